import { setMaxListeners } from 'node:events';
import { type StudioError } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { Calls, UnsupportedEncoding, type CallOptions, type Progress, type Result } from './calls.js';
import { Skewed, explained } from './skew.js';
import { inRequests, type RequestLimits } from './chunks.js';
import { callCancelled, TrainingHttp, type HttpOptions } from './http.js';
import { Requests } from './refusals.js';
import * as wire from './wire/index.js';

/** A Tinker-protocol server as its client sees it: a session that is kept alive, models, samples. */

export interface ClientOptions extends HttpOptions, Partial<CallOptions> {
  readonly version: string;
  /** Servers drop a session that is silent for minutes. */
  readonly heartbeatMs?: number;
  /** Most targets of a request. */
  readonly mostTargets?: number | undefined;
}
export interface ModelOptions {
  readonly base: string;
  /** 0 trains all weights, where a server can. */
  readonly rank: number;
  readonly seed?: number | undefined;
  /** Whether an adapter has a part for the output layer (`lm_head`), which not every model server takes; default true. */
  readonly head?: boolean | undefined;
}
export interface AdamParams {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  /** Global norm; 0 = none. */
  readonly gradClip: number;
}
export interface Loss {
  readonly name: string;
  readonly config?: Readonly<Record<string, number>> | undefined;
}

interface Opened {
  readonly calls: Calls;
  readonly config: wire.ClientConfig & RequestLimits;
  readonly session: string;
  readonly explain: (e: unknown) => Promise<unknown>;
}

export class TrainingClient {
  readonly config: wire.ClientConfig & RequestLimits;
  readonly session: string;
  readonly calls: Calls;
  readonly #explain: Opened['explain'];
  readonly #closed = new AbortController();
  readonly #beat: NodeJS.Timeout;
  #joined: { readonly of: AbortSignal; readonly both: AbortSignal } | undefined;
  #models = 0;
  #samplers = 0;
  /** protobuf until the server refuses it. */
  proto: boolean;
  /** Whether the server has taken a pass in protobuf. */
  #protoTaken = false;

  private constructor({ calls, config, session, explain }: Opened, heartbeatMs: number) {
    this.calls = calls;
    this.config = config;
    this.session = session;
    this.#explain = explain;
    this.proto = config.proto_write_fwdbwd ?? true;
    let under = false;
    this.#beat = setInterval(() => {
      // Heartbeats are sent one at a time: while the server is away they must not pile up.
      if (under) return;
      under = true;
      const beat = calls.json('session_heartbeat', { session_id: session }, this.#closed.signal).finally(() => {
        under = false;
      });
      ignoreFailure(beat, 'the next call says that the server or the session is gone');
    }, heartbeatMs);
    this.#beat.unref();
  }

  static async connect(o: ClientOptions, signal: AbortSignal): Promise<TrainingClient> {
    const http = new TrainingHttp(o);
    try {
      return await TrainingClient.#connected(o, http, signal);
    } catch (e) {
      throw await explained(e, http);
    }
  }
  static async #connected(o: ClientOptions, http: TrainingHttp, signal: AbortSignal): Promise<TrainingClient> {
    const calls = new Calls(http, defined(o)),
      config = { ...(await clientConfigOf(calls, o.version, signal)), targets: o.mostTargets },
      // Older servers take no null there.
      opened = await calls.json('create_session', { tags: [], user_metadata: {}, sdk_version: o.version }, signal);
    const { session_id: session, error_message: told } = wire.parsed(wire.session, opened),
      explain = (e: unknown): Promise<unknown> => explained(e, http, told);
    return new TrainingClient({ calls, config, session, explain }, o.heartbeatMs ?? 10_000);
  }
  /** Resolves as `work` does; a version mismatch rejects with what the server says it is. */
  async explained<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (e) {
      throw await this.#explain(e);
    }
  }
  /** Calls in flight are cancelled; the server drops the session by itself. */
  close(): void {
    clearInterval(this.#beat);
    this.#closed.abort();
  }

  async createModel(m: ModelOptions, signal: AbortSignal): Promise<RemoteModel> {
    const body = {
      session_id: this.session,
      model_seq_id: this.#models++,
      base_model: m.base,
      lora_config: {
        rank: m.rank,
        ...(m.seed === undefined ? {} : { seed: m.seed }),
        // The protocol's default is true, and of all weights there is no part to leave out.
        ...(m.rank > 0 && m.head === false ? { train_unembed: false } : {}),
      },
    };
    const made = await this.asked('create_model', body, wire.model, signal);
    return new RemoteModel(this, made.model_id, 0);
  }
  /** Names of the models that can be trained. */
  async supportedModels(signal: AbortSignal): Promise<string[]> {
    const page = wire.parsed(wire.capabilities, await this.calls.get('get_server_capabilities', this.#with(signal)));
    return page.supported_models.flatMap((m) => (m.model_name ? [m.model_name] : []));
  }
  /**
   * Deletes saved weights where the server has a way; others it keeps. What a server still loads must not be named.
   * False: the server was not there, so it may be asked again.
   */
  async forget(uri: string, signal: AbortSignal): Promise<boolean> {
    // SkyRL leaves the kind out of the address of weights for sampling.
    const [, model, kind = 'sampler_weights', name] =
      /^tinker:\/\/([^/]+)\/(?:(weights|sampler_weights)\/)?([^/]+)$/.exec(uri) ?? [];
    if (model === undefined || name === undefined) return true;
    const path = `training_runs/${encodeURIComponent(model)}/checkpoints/${kind}/${encodeURIComponent(name)}`;
    return this.calls.remove(path, this.#with(signal));
  }
  /** A model this server still has, or gets back from its weights; `seq` is the number of its last call. */
  attach(id: string, seq: number): RemoteModel {
    return new RemoteModel(this, id, seq);
  }

  /** Weights to sample from: saved ones by path, or the base model. */
  async samplingSession(
    of: { readonly path: string } | { readonly base: string },
    signal: AbortSignal,
  ): Promise<string> {
    const body = {
      session_id: this.session,
      sampling_session_seq_id: this.#samplers++,
      ...('path' in of ? { model_path: of.path } : { base_model: of.base }),
    };
    const made = this.calls.json('create_sampling_session', body, this.#with(signal)),
      read = made.then((said) => wire.parsed(wire.samplingSession, said));
    return (await this.explained(read)).sampling_session_id;
  }
  async sample(r: wire.SampleRequest, signal: AbortSignal): Promise<wire.SampleOutput> {
    const most = wire.askedOfSample(r),
      out = this.#submitted('asample', JSON.stringify(wire.sampleBody(r)), true, most, signal);
    return this.explained(
      out.then((o) => (o.kind === 'proto' ? wire.decodeSample(o.bytes, most) : wire.parseSample(o.json))),
    );
  }

  /** A JSON call with a future, and its JSON answer. */
  async ask(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    const out = await this.explained(this.#submitted(path, JSON.stringify(body), false, wire.CONTROL, signal));
    if (out.kind === 'proto') throw wire.malformed(`${path} was answered in protobuf`);
    return out.json;
  }
  /** The same, and of the answer what `schema` says. */
  asked<T>(path: string, body: object, schema: Parameters<typeof wire.parsed<T>>[0], signal: AbortSignal): Promise<T> {
    return this.explained(this.ask(path, body, signal).then((said) => wire.parsed(schema, said)));
  }
  async #submitted(
    path: string,
    body: string,
    proto: boolean,
    most: wire.AnswerBounds,
    signal: AbortSignal,
  ): Promise<Result> {
    const all = this.#with(signal),
      submit = (): Promise<string> => this.calls.submit({ path, body }, all);
    return this.calls.fetched(await submit(), path, proto, most, submit, all);
  }

  /** Submits a pass, in protobuf or, once that was refused, in JSON; the second promise is its result. */
  async pass(
    r: wire.ForwardBackwardRequest,
    signal: AbortSignal,
    progress?: Progress,
  ): Promise<{ readonly result: Promise<wire.ForwardBackwardOutput> }> {
    const all = this.#with(signal),
      submit = (): Promise<string> => (this.proto ? this.#inProto(r, all) : this.#inJson(r, all));
    const what = r.forwardOnly ? 'a forward pass' : 'forward_backward',
      most = wire.askedOfPass(r.data),
      id = await this.explained(submit()),
      read = this.calls
        .fetched(id, what, this.proto, most, submit, all, progress)
        .then((out) => (out.kind === 'proto' ? wire.decodeOutput(out.bytes, most) : wire.parseOutput(out.json)));
    return { result: this.explained(read) };
  }
  async #inJson(r: wire.ForwardBackwardRequest, signal: AbortSignal): Promise<string> {
    const path = r.forwardOnly ? 'forward' : 'forward_backward';
    return this.calls.submit({ path, body: await wire.jsonInTurns(r) }, signal);
  }
  async #inProto(r: wire.ForwardBackwardRequest, signal: AbortSignal): Promise<string> {
    const { bytes, headers } = await wire.compressed(await wire.encodeInTurns(r), this.config.proto_compress_fwdbwd),
      call = { path: 'forward_backward', body: bytes, headers };
    try {
      const id = await this.calls.submit({ ...call, untried: !this.#protoTaken }, signal);
      this.#protoTaken = true;
      return id;
    } catch (e) {
      if (!(e instanceof UnsupportedEncoding)) throw e;
    }
    this.proto = false;
    try {
      return await this.#inJson(r, signal);
    } catch (e) {
      // A server of protobuf alone may not have the JSON call at all.
      if (!(e instanceof Skewed)) throw e;
      // The server knows protobuf alone, so the failure had another cause and is handled as that of any call.
      this.proto = true;
      return this.calls.submit(call, signal);
    }
  }
  #with(signal: AbortSignal): AbortSignal {
    if (this.#closed.signal.aborted) throw callCancelled();
    // Calls of one caller share it: a run makes thousands.
    if (this.#joined?.of !== signal) {
      this.#joined = { of: signal, both: AbortSignal.any([signal, this.#closed.signal]) };
      // A call in flight listens, and dozens are at once: chunks of a batch, weights to be deleted.
      setMaxListeners(0, this.#joined.both);
    }
    return this.#joined.both;
  }
}

/** One model on the server. Its calls are numbered: the same number is the same call, however often it is sent. */
export class RemoteModel {
  readonly id: string;
  readonly #client: TrainingClient;
  #seq: number;
  #saved = false;
  #last: Promise<unknown> = Promise.resolve();
  constructor(client: TrainingClient, id: string, seq: number) {
    this.#client = client;
    this.id = id;
    this.#seq = seq;
  }
  /** Number of the last call; with the checkpoint it is what a resume goes on from. */
  get seq(): number {
    return this.#seq;
  }

  /** Weights were saved, which some servers forget with the model. */
  get saved(): boolean {
    return this.#saved;
  }

  /** log p of every target, one row a datum. */
  async forward(data: readonly wire.Datum[], signal: AbortSignal): Promise<Float32Array[]> {
    const out = await this.#passes(data, { name: 'cross_entropy' }, true, signal),
      targets = data.map((d) => d.inputs.target_tokens?.data.length ?? 0);
    return wire.logprobRows(out, targets);
  }
  /** Adds the gradient of a loss to what is there, in as many requests as the server wants. */
  forwardBackward(data: readonly wire.Datum[], loss: Loss, signal: AbortSignal): Promise<wire.ForwardBackwardOutput> {
    return this.#passes(data, loss, false, signal);
  }
  async #passes(
    data: readonly wire.Datum[],
    loss: Loss,
    forwardOnly: boolean,
    signal: AbortSignal,
  ): Promise<wire.ForwardBackwardOutput> {
    // Submitted one by one, so that numbers arrive in order; waited for together. They are computed one after the other:
    // the last may be asked for hours while those before it end.
    const pass = { lossFn: loss.name, lossFnConfig: loss.config, forwardOnly },
      requests = new Requests(data, pass, this.#client.calls.othersMs),
      progress: Progress = {};
    await this.#inOrder(async () => {
      for (const part of inRequests(data, this.#client.config)) {
        const request = { ...pass, modelId: this.id, seqId: ++this.#seq, data: part };
        if (!(await requests.submitted(part, this.#client.pass(request, signal, progress)))) return;
      }
    });
    const done = await requests.outputs(),
      metrics = new Map<string, number>();
    for (const d of done) for (const [k, v] of d.metrics) metrics.set(k, (metrics.get(k) ?? 0) + v);
    return { outputs: done.flatMap((d) => d.outputs), metrics };
  }

  /** Metrics the server has of the step; many have none. `seq` asks for a step again that was asked for before. */
  async optimStep(p: AdamParams, signal: AbortSignal, seq?: number): Promise<ReadonlyMap<string, number>> {
    const out = await this.#numbered(
      'optim_step',
      {
        adam_params: {
          learning_rate: p.learningRate,
          beta1: p.beta1,
          beta2: p.beta2,
          eps: p.eps,
          weight_decay: p.weightDecay,
          grad_clip_norm: p.gradClip,
        },
      },
      wire.optimStep,
      signal,
      seq,
    );
    const { metrics } = out;
    return new Map(Object.entries(metrics ?? {}).map(([k, v]) => [k, v ?? NaN]));
  }
  /** Weights, optimizer and the numbers of calls; answers their path. */
  async saveWeights(name: string, signal: AbortSignal): Promise<string> {
    this.#saved = true;
    return (await this.#numbered('save_weights', { path: name }, wire.savedWeights, signal)).path;
  }
  /** An adapter or weights for sampling; answers their path. */
  async saveForSampler(name: string, signal: AbortSignal): Promise<string> {
    this.#saved = true;
    const { path } = await this.#numbered('save_weights_for_sampler', { path: name }, wire.samplerWeights, signal);
    if (!path) throw wire.malformed('weights were saved for sampling, and no path was given');
    return path;
  }
  /** Loads weights. The call needs no number: loading twice is loading once. */
  async load(path: string, optimizer: boolean, signal: AbortSignal): Promise<void> {
    await this.#inOrder(() => this.#client.ask('load_weights', { model_id: this.id, path, optimizer }, signal));
  }
  async info(signal: AbortSignal): Promise<ReturnType<typeof wire.modelInfo.parse>> {
    return wire.parsed(wire.modelInfo, await this.#client.calls.json('get_info', { model_id: this.id }, signal));
  }

  #numbered<T>(
    path: string,
    body: object,
    schema: Parameters<typeof wire.parsed<T>>[0],
    signal: AbortSignal,
    seq?: number,
  ): Promise<T> {
    return this.#inOrder(() => {
      const own = seq ?? ++this.#seq;
      return this.#client.asked(path, { model_id: this.id, seq_id: own, ...body }, schema, signal);
    });
  }
  /** Runs one call after the other; a failed one holds up none. */
  #inOrder<T>(call: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(call, call);
    this.#last = mine.catch((e: unknown) => e);
    return mine;
  }
}

/** The server's settings for clients; an older one has no such page. */
async function clientConfigOf(calls: Calls, version: string, signal: AbortSignal): Promise<wire.ClientConfig> {
  const none = (e: StudioError): object => {
    if (e.kind !== 'trainer.lost' && !(e instanceof Skewed)) throw e;
    return {};
  };
  return wire.parsed(
    wire.clientConfig,
    await calls.json('client/config', { sdk_version: version }, signal).catch(none),
  );
}
const defined = (o: Partial<CallOptions>): Partial<CallOptions> =>
  Object.fromEntries(
    (['deadlineMs', 'pollMs', 'submitMs', 'conflictMs', 'othersMs', 'now', 'sleep', 'random', 'onRetry'] as const)
      .filter((k) => o[k] !== undefined)
      .map((k) => [k, o[k]]),
  );
