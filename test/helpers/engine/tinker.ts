import { createHash } from 'node:crypto';
import { hash32, random } from '../../../runtime/domain/index.js';
import type { ForwardBackwardRequest, SampledSequence } from '../../../runtime/trainer/remote/wire/types.js';
import type { Fault } from './faults.js';
import { Learner, type AdamParams, type LearnerState } from './learner.js';
import type { TinyPolicy } from './policy.js';
import { readJsonChunk, type JsonChunk, type Result, type Sampled } from './serverWire.js';

/** The Tinker half of the reference server without its sockets: sessions, models, futures, weights, samples. */

/** What outlives a server that is killed, by tinker:// path. */
export interface Saved {
  readonly model: string;
  readonly base: string;
  readonly rank: number;
  readonly state: LearnerState;
  /** What was done by then, by sequence number; only with training weights. */
  readonly done: ReadonlyMap<number, Done>;
}
export type Disk = Map<string, Saved>;
/** What a request made, as its future gives it. */
export type Value =
  | { readonly kind: 'output'; readonly value: Result }
  | { readonly kind: 'sample'; readonly value: Sampled }
  | { readonly kind: 'json'; readonly value: object };
interface Done {
  readonly fingerprint: string;
  readonly request: string;
  readonly value?: Value;
}
export interface Future {
  readonly promise: Promise<Value>;
}
/** An answer of its own status. */
export class HttpError extends Error {
  readonly status: number;
  readonly body: object;
  constructor(status: number, detail: string, body: object = { detail }) {
    super(detail);
    this.status = status;
    this.body = body;
  }
}

interface Model {
  readonly id: string;
  readonly base: string;
  readonly rank: number;
  readonly learner: Learner;
  readonly done: Map<number, Done>;
  /** What was saved of it first. */
  first?: ReturnType<Learner['state']>;
  /** The last number it was given. */
  last: number;
  broken: boolean;
}
export interface TinkerOptions {
  readonly policy: TinyPolicy;
  readonly faults: ReadonlySet<Fault>;
  readonly disk: Disk;
  readonly baseModel: string;
  /** A number that was used before is a conflict, also for the same request. */
  readonly refusesRepeats?: boolean | undefined;
  /** A number that is not the next of its model is a conflict. */
  readonly strict?: boolean | undefined;
  readonly mostEps?: number | undefined;
  /** Standard deviation of what is added to every log-prob. */
  readonly noise?: number;
  /** The same of what rounding adds: it differs with the weights, and with them it is always the same. */
  readonly grain?: number;
  /** Before each piece of work: how a server is made slow. */
  readonly beforeWork: (what: string) => Promise<void>;
  /** May throw in a pass's place. */
  readonly beforePass?: ((r: ForwardBackwardRequest) => void) | undefined;
}
type Body = Readonly<Record<string, unknown>>;
/** Servers so far: an id of one that was killed means nothing to the next. */
let boots = 0;

export class Tinker {
  readonly #o: TinkerOptions;
  readonly #sessions = new Set<string>();
  readonly #models = new Map<string, Model>();
  readonly #samplers = new Map<string, Float64Array>();
  /** Weights by the first prompt that they were asked with: what a cache keyed by prompts alone answers with. */
  readonly #prompts = new Map<string, Float64Array>();
  readonly #futures = new Map<string, Future>();
  #queue: Promise<unknown> = Promise.resolve();
  readonly #boot = ++boots;
  readonly #rng = random('noise');
  #ids = 0;
  constructor(o: TinkerOptions) {
    this.#o = o;
  }

  /** JSON calls by the last part of their path; undefined where there is none. */
  call(path: string, b: Body): object | undefined {
    switch (path) {
      case 'create_session':
        return { type: 'create_session', session_id: this.#session() };
      case 'session_heartbeat':
        this.#known(String(b.session_id));
        return { type: 'session_heartbeat' };
      case 'create_model':
        return this.#createModel(b);
      case 'get_info':
        return this.#info(this.#model(String(b.model_id)));
      case 'optim_step':
        if ((b.adam_params as AdamParams).eps > (this.#o.mostEps ?? Infinity))
          throw new HttpError(422, 'eps is too large');
        return this.#ordered(b, 'optim_step', (m) => {
          const { norm } = m.learner.step(b.adam_params as Partial<AdamParams>);
          return { kind: 'json', value: { type: 'optim_step', metrics: { grad_norm: norm } } };
        });
      case 'save_weights':
        return this.#ordered(b, 'save_weights', (m) => this.#save(m, 'weights', b));
      case 'load_weights':
        return this.#load(b);
      case 'save_weights_for_sampler':
        return this.#ordered(b, 'save_weights_for_sampler', (m) =>
          b.path ? this.#save(m, 'sampler_weights', b) : this.#ephemeral(m, b),
        );
      case 'create_sampling_session':
        return { sampling_session_id: this.#samplingSession(b) };
      case 'asample':
        return this.#sample(b);
      case 'unload_model':
        this.#unload(String(b.model_id));
        return { type: 'unload_model' };
      case 'telemetry':
        return { status: 'accepted' };
      default:
        return undefined;
    }
  }

  forwardBackward(r: ForwardBackwardRequest): object {
    const inputs = { model_id: r.modelId, seq_id: r.seqId };
    return this.#ordered(
      inputs,
      r.forwardOnly ? 'forward' : 'forward_backward',
      (m) => {
        this.#o.beforePass?.(r);
        const { logprobs, loss } = m.learner.pass(r);
        const grain = this.#grain(m.learner.delta);
        for (const row of logprobs)
          for (const [i, x] of row.entries()) row[i] = x + this.#noise() + grain(`scored/${i}`);
        return { kind: 'output', value: { fields: { logprobs }, metrics: { 'loss:sum': loss } } };
      },
      JSON.stringify(r, (_, v: unknown) => (ArrayBuffer.isView(v) ? Array.from(v as Float32Array) : v)),
    );
  }

  future(id: string): Future {
    const f = this.#futures.get(id);
    if (!f) throw new HttpError(410, `the promise ${id} is gone`);
    return f;
  }
  /** All answers that were not fetched are lost. */
  forgetFutures(): void {
    this.#futures.clear();
  }
  /** Trained weights of a model, for a test to look at. */
  weightsOf(model: string): Float64Array {
    return this.#model(model).learner.delta;
  }
  optimizerSteps(model: string): number {
    return this.#model(model).learner.steps;
  }

  #noise(): number {
    return (this.#o.noise ?? 0) * this.#rng.normal();
  }
  #grain(weights: Float64Array): (of: string) => number {
    const { grain = 0 } = this.#o;
    if (grain === 0) return () => 0;
    const which = hash32(weights.join());
    return (of) => grain * random(`grain/${which}/${of}`).normal();
  }
  #session(): string {
    const id = `s${this.#boot}-${++this.#ids}`;
    this.#sessions.add(id);
    return id;
  }
  #known(session: string): void {
    if (!this.#sessions.has(session)) throw new HttpError(404, `there is no session ${session}`);
  }
  #model(id: string): Model {
    const m = this.#models.get(id);
    if (!m) throw new HttpError(404, `there is no model ${id}`);
    return m;
  }
  #unload(id: string): void {
    this.#models.delete(id);
    if (!this.#o.faults.has('weights-go-with-model')) return;
    for (const [path, { model }] of this.#o.disk) if (model === id) this.#o.disk.delete(path);
  }
  #createModel(b: Body): object {
    const session = String(b.session_id),
      id = `${session}:train:${Number(b.model_seq_id)}`;
    this.#known(session);
    if (b.base_model !== this.#o.baseModel) throw new HttpError(400, `there is no model ${String(b.base_model)}`);
    const rank = (b.lora_config as { rank?: number } | undefined)?.rank ?? 0;
    if (!this.#models.has(id)) this.#add(id, rank, new Learner(this.#o.policy, this.#o.faults));
    return this.#work('create_model', () => ({ kind: 'json', value: { type: 'create_model', model_id: id } }));
  }
  #add(id: string, rank: number, learner: Learner, done: ReadonlyMap<number, Done> = new Map()): Model {
    const m: Model = {
      id,
      base: this.#o.baseModel,
      rank,
      learner,
      done: new Map(done),
      last: Math.max(0, ...done.keys()),
      broken: false,
    };
    this.#models.set(id, m);
    return m;
  }
  #info(m: Model): object {
    return {
      type: 'get_info',
      model_id: m.id,
      model_data: { arch: 'tiny', model_name: m.base, tokenizer_id: 'tiny' },
      is_lora: m.rank > 0,
      lora_rank: m.rank,
      model_name: m.base,
    };
  }

  /** One request of a model: a sequence number that was seen is answered from what it made then. */
  #ordered(b: Body, what: string, work: (m: Model) => Value, whole: string = JSON.stringify(b)): object {
    const m = this.#model(String(b.model_id)),
      seq = typeof b.seq_id === 'number' ? b.seq_id : undefined,
      fingerprint = createHash('sha256').update(what).update(whole).digest('hex'),
      before = seq === undefined ? undefined : m.done.get(seq);
    if (m.broken) throw new HttpError(409, `a sequence number is missing before ${seq}`);
    if (before && !this.#o.faults.has('apply-twice')) {
      if (before.fingerprint !== fingerprint || this.#o.refusesRepeats)
        throw new HttpError(409, `the sequence number ${seq} was used for another request`);
      if (!this.#futures.has(before.request) && before.value)
        this.#futures.set(before.request, { promise: Promise.resolve(before.value) });
      return { request_id: before.request };
    }
    if (this.#o.strict && seq !== undefined && seq !== m.last + 1) throw new HttpError(409, `${m.last + 1} comes next`);
    m.last = seq ?? m.last;
    const request = this.#work(what, () => {
      try {
        const value = work(m);
        if (seq !== undefined) m.done.set(seq, { fingerprint, request: request.request_id, value });
        return value;
      } catch (e) {
        if (this.#o.faults.has('gap-after-refusal')) m.broken = true;
        throw e;
      }
    });
    if (seq !== undefined) m.done.set(seq, { fingerprint, request: request.request_id });
    return request;
  }
  /** Puts work at the end of the one queue and answers its future. */
  #work(what: string, work: () => Value): { readonly request_id: string } {
    const id = `r${this.#boot}-${++this.#ids}`,
      promise = this.#queue.then(async () => {
        await this.#o.beforeWork(what);
        return work();
      });
    this.#queue = promise.then(
      () => undefined,
      () => undefined,
    );
    this.#futures.set(id, { promise });
    return { request_id: id };
  }

  #save(m: Model, kind: 'weights' | 'sampler_weights', b: Body): Value {
    const path = `tinker://${m.id}/${kind}/${String(b.path ?? `seq${String(b.seq_id)}`)}`,
      state = m.learner.state(),
      done = new Map(m.done);
    m.first ??= state;
    if (typeof b.seq_id === 'number') {
      const own = done.get(b.seq_id)!;
      done.set(b.seq_id, { ...own, value: { kind: 'json', value: { path, type: 'save_weights' } } });
    }
    const stale = kind === 'sampler_weights' && this.#o.faults.has('stale-sampler'),
      kept = kind === 'weights' && this.#o.faults.has('stale-save') ? m.first : state;
    this.#o.disk.set(path, {
      model: m.id,
      base: m.base,
      rank: m.rank,
      state: stale ? { ...state, delta: m.learner.previous.slice() } : kept,
      done,
    });
    return { kind: 'json', value: { path, type: kind === 'weights' ? 'save_weights' : 'save_weights_for_sampler' } };
  }
  #load(b: Body): object {
    const path = String(b.path),
      saved = this.#o.disk.get(path);
    if (!saved) throw new HttpError(404, `there are no weights at ${path}`);
    const id =
      typeof b.session_id === 'string' ? `${b.session_id}:train:${Number(b.model_seq_id)}` : String(b.model_id);
    if (typeof b.session_id === 'string') this.#known(b.session_id);
    // A model whose server died comes back under its name, and remembers what it had done by then.
    const m =
      this.#models.get(id) ??
      this.#add(
        id,
        saved.rank,
        new Learner(this.#o.policy, this.#o.faults),
        id === saved.model ? saved.done : new Map(),
      );
    return this.#work('load_weights', () => {
      m.learner.load(saved.state, b.optimizer === true);
      return { kind: 'json', value: { type: 'load_weights', model_id: id, path } };
    });
  }

  #ephemeral(m: Model, b: Body): Value {
    const id = `${m.id}:sample:${Number(b.sampling_session_seq_id ?? 0)}`;
    this.#samplers.set(id, (this.#o.faults.has('stale-sampler') ? m.learner.previous : m.learner.delta).slice());
    return { kind: 'json', value: { path: null, sampling_session_id: id, type: 'save_weights_for_sampler' } };
  }
  #samplingSession(b: Body): string {
    this.#known(String(b.session_id));
    const id = `${String(b.session_id)}:sample:${Number(b.sampling_session_seq_id)}`;
    this.#samplers.set(id, this.#weightsFor(b));
    return id;
  }
  /** Weights that a sampling request names. */
  #weightsFor(b: Body): Float64Array {
    if (typeof b.model_path === 'string') return this.adapter(b.model_path);
    if (typeof b.base_model === 'string') return new Float64Array(this.#o.policy.parameters);
    const w = this.#samplers.get(String(b.sampling_session_id));
    if (!w) throw new HttpError(404, `there is no sampling session ${String(b.sampling_session_id)}`);
    return w;
  }
  /** Saved weights by path; 404 where there are none. */
  adapter(path: string): Float64Array {
    const saved = this.#o.disk.get(path);
    if (!saved) throw new HttpError(404, `there are no weights at ${path}`);
    return this.#o.faults.has('noop-adapter') ? new Float64Array(this.#o.policy.parameters) : saved.state.delta;
  }

  #cached(prompt: unknown, weights: Float64Array): Float64Array {
    const key = JSON.stringify(prompt),
      first = this.#prompts.get(key) ?? weights;
    this.#prompts.set(key, first);
    return this.#o.faults.has('stale-prefix-cache') ? first : weights;
  }

  #sample(b: Body): object {
    const weights = this.#cached(b.prompt, this.#weightsFor(b)),
      params = b.sampling_params as { max_tokens?: number; temperature?: number; seed?: number | null },
      chunks = (b.prompt as { chunks: readonly JsonChunk[] }).chunks.map(readJsonChunk),
      n = Number(b.num_samples ?? 1);
    const { policy, faults } = this.#o;
    const request = this.#work('asample', () => {
      const rng = random(params.seed ? `sample/${params.seed}` : `sample/free/${++this.#ids}`),
        reader = policy.read(chunks, faults.has('drop-images')),
        grain = this.#grain(weights);
      const sequences = Array.from({ length: n }, (): SampledSequence => {
        const s = policy.sample(weights, policy.read(chunks, faults.has('drop-images')), {
          maxTokens: params.max_tokens ?? 16,
          temperature: params.temperature ?? 1,
          rng,
        });
        return {
          stopReason: s.stopped ? 'stop' : 'length',
          tokens: Int32Array.from(s.tokens),
          logprobs: Float32Array.from(
            s.tokens,
            (t, i) => reported(s.logProbs[i]![t]!, faults) + this.#noise() + grain(`sampled/${i}`),
          ),
        };
      });
      const prompt = reader.positions.slice(0, -1).map((p, i) => {
        const next = reader.positions[i + 1]!.token;
        return policy.logProbs(weights, p)[next]! + this.#noise() + grain(`scored/${i}`);
      });
      return {
        kind: 'sample',
        value: {
          sequences,
          promptLogprobs: b.prompt_logprobs === true ? Float32Array.from([NaN, ...prompt]) : undefined,
        },
      };
    });
    return { ...request, sample_sequence_ids: Array.from({ length: n }, (_, i) => `${request.request_id}-${i}`) };
  }
}
/** As a server with another distribution than its trainer's reports them. */
export const reported = (x: number, faults: ReadonlySet<Fault>): number =>
  faults.has('biased-logprobs') ? 0.7 * x : x;
