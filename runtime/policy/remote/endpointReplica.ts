/**
 * A server of a vision-language model as a replica: it answers chat completions with the newest adapter it was given.
 * Each version of the adapter has a name of its own, since a server caches by name; a new one is asked for a token
 * before it counts, and an old one is unloaded when its last call has ended (runtime/policy/README.md#versioned-adapters).
 */
import { setMaxListeners } from 'node:events';
import { StudioError, toRunError, type PolicyVersion, type ReplicaId, type RunError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import type { AnswerBase, Replica } from '../types.js';
import type { ChatRequest } from './chatSession.js';
import {
  agreementOf,
  proofIn,
  proofRequest,
  saidTheSame,
  unlike,
  unlikeScored,
  unmoved,
  type Agreement,
  type ExpectedProof,
  type Proof,
} from './adapterProof.js';
import { traceOf, type Completion, type Said } from './completion.js';
import { LoadLimit } from './load.js';
import { ModelServer, type ModelServerOptions } from './modelServer.js';
import { HEAD_REMEDY, SPOKEN, ageingError, refuseOlder, type Dated } from './versions.js';

/** Weights as a training engine saved them for sampling. */
export interface AdapterWeights {
  readonly version: PolicyVersion;
  /** The path that the server is told to load: `tinker://...`, or a folder as the server sees it. */
  readonly path: string;
  /** The same as the training engine calls it. */
  readonly saved?: string;
  /** The trainer's log-probs of the proof with these weights; without them the server must only answer. */
  readonly expected?: ExpectedProof | undefined;
}
export interface ChatCall extends ChatRequest {
  readonly signal: AbortSignal;
}
export interface ChatAnswer extends AnswerBase {
  readonly said: Said;
}
export interface EndpointReplicaOptions extends ModelServerOptions {
  readonly id: ReplicaId;
  /**
   * Adapters are called `<run>.<start>@v<version>`. `run` tells runs apart that share a server; what is left there of an
   * earlier start of the same run is removed.
   */
  readonly run: string;
  /** Another one each time the run is started: a server caches by name, and a version may be made anew after a crash. */
  readonly start: string;
  readonly weights: AdapterWeights;
  /** Answers that it may work at; fewer while its own figures say that it is full. Default: no limit of its own. */
  readonly concurrency?: number;
  /** This server has loaded these weights, or no longer has. */
  readonly onLoaded?: (w: AdapterWeights, loaded: boolean) => void;
  /** Called when the server answers with these weights; `p` proves the weights that come next. */
  readonly onProved?: (p: Proof) => void;
  /** Image token of the model, which no answer may hold. */
  readonly imageToken?: number;
}

/** How the adapters of one start of a run are called; their version follows. */
export const adapterNames = (run: string, start: string): string => `${run}.${start}@v`;
/** A start does not wait longer for what a server says of its age. */
const DATED_MS = 5000;
/** Between two looks at a server's load. */
const LOAD_MS = 1000;
/** An adapter that a server holds. */
interface Loaded {
  readonly weights: AdapterWeights;
  /** Name under which it is loaded and listed. */
  readonly name: string;
  /** Model name in requests. */
  readonly model: string;
  /** Calls in flight. */
  calls: number;
}

/** Rejects with `policy.remote` when the server is not there or does not take the adapter. */
export async function startEndpointReplica(
  o: EndpointReplicaOptions,
  signal: AbortSignal,
): Promise<Replica<ChatCall, ChatAnswer, AdapterWeights>> {
  const replica = new EndpointReplica(o);
  await replica.start(signal);
  return replica;
}

class EndpointReplica implements Replica<ChatCall, ChatAnswer, AdapterWeights> {
  readonly id: ReplicaId;
  readonly swapsInService = true;
  readonly #o: EndpointReplicaOptions;
  readonly #server: ModelServer;
  readonly #closed = new AbortController();
  readonly #limit: LoadLimit | undefined;
  #now: Loaded | undefined;
  /** The first of the weights with which the server said what it says now of the same tokens. */
  #agreement: Agreement | undefined;
  #dated: Dated | undefined;
  #calls = 0;
  /** When its load is asked next; it is asked when a call ends, and not again where it does not say. */
  #loadDue = 0;

  constructor(o: EndpointReplicaOptions) {
    this.#o = o;
    this.id = o.id;
    this.#server = new ModelServer(o);
    this.#limit = o.concurrency === undefined ? undefined : new LoadLimit(o.concurrency);
    setMaxListeners(0, this.#closed.signal); // every call under way listens to it: not a leak
  }
  get limit(): number | undefined {
    return this.#limit?.now;
  }

  async start(signal: AbortSignal): Promise<void> {
    const { run, start, weights } = this.#o,
      all = AbortSignal.any([signal, this.#closed.signal]);
    // A server that does not say its version is started all the same.
    this.#dated = await orUndefined(
      withDeadline(DATED_MS, [all], (s) => this.#server.dated(s)),
      'then its age is not known',
    );
    refuseOlder(this.#o.url, this.#dated);
    const own = `${adapterNames(run, start)}${weights.version}`;
    for (const { id: name, root } of await this.#server.cards(all)) {
      if (typeof name !== 'string' || !name.startsWith(`${run}.`)) continue;
      // Of this start it may be the same version from files that were exported before these.
      const other = name === own && typeof root === 'string' && root !== weights.path;
      if (other || !name.startsWith(`${run}.${start}@`)) await this.#unload(name);
    }
    this.#now = await this.#load(weights, all);
  }
  get version(): PolicyVersion {
    return this.#loaded.weights.version;
  }
  get #loaded(): Loaded {
    if (!this.#now) throw new Error('an endpoint is used before it has started');
    return this.#now;
  }

  async decide({ body, extras, signal }: ChatCall): Promise<ChatAnswer> {
    const adapter = this.#loaded,
      began = performance.now();
    adapter.calls++;
    this.#calls++;
    try {
      // The server has a limit of its own. AbortSignal.any would stay with `#closed`, one for each decision.
      const said = await withDeadline(undefined, [signal, this.#closed.signal], (either) =>
        this.#ask(adapter, { ...body, ...extras }, either),
      );
      if (said.model !== undefined && said.model !== adapter.model)
        throw new StudioError(
          'policy.remote',
          `${this.#o.url} answered with the model ${said.model} where ${adapter.model} was asked.`,
          'Point policy.vlm.endpoints at the model servers themselves, not at a router that chooses models.',
        );
      return { said, version: adapter.weights.version, computeMs: performance.now() - began };
    } catch (e) {
      if (signal.aborted || !this.#closed.signal.aborted) throw e;
      // Closed because another call took too long: whoever asked has not given this one up.
      throw new StudioError(
        'policy.lost',
        `${this.#o.url} is not asked any more: its replica was closed.`,
        'The runtime asks again automatically.',
        { cause: e },
      );
    } finally {
      this.#askLoad(this.#calls--);
      adapter.calls--;
      if (adapter !== this.#now) this.#drained(adapter);
    }
  }

  /**
   * The new adapter answers from the next call on. Rejects, and the old one stays in use, when the server cannot load
   * it or answers as if it had not.
   */
  async swap(weights: AdapterWeights): Promise<void> {
    const old = this.#loaded;
    if (weights.version === old.weights.version) return;
    const next = await this.#load(weights, this.#closed.signal);
    this.#now = next;
    this.#drained(old);
  }

  onLost(_listener: (e: RunError) => void): () => void {
    // A server has no channel that breaks: the call that meets it gone says so.
    return () => undefined;
  }

  /** The adapter stays loaded: the replica that takes this one's place asks for it by the same name. */
  close(): Promise<void> {
    this.#closed.abort();
    return Promise.resolve();
  }

  async #load(weights: AdapterWeights, signal: AbortSignal): Promise<Loaded> {
    const name = `${adapterNames(this.#o.run, this.#o.start)}${weights.version}`,
      model = (await this.#server.dialect(signal)).called(name),
      next = { weights, name, model, calls: 0 };
    let there = false;
    try {
      await this.#server.loadAdapter(name, weights.path, signal);
      there = true;
      this.#o.onLoaded?.(weights, true);
      await this.#check(next, await this.#prove(next, signal), signal);
    } catch (e) {
      const why = await this.#blamed(e, name, signal);
      // A server that is away is asked for nothing; the replica that takes this one's place loads it again.
      if (there && toRunError(why).kind === 'policy.remote') await this.#unload(name, weights);
      throw ageingError(why, this.#dated);
    }
    return next;
  }
  /**
   * vLLM answers 500 for files that it cannot use, as it does when it is broken. Where it goes on answering with what it
   * had, the files are to blame: another attempt would end the same way, again and again.
   */
  async #blamed(e: unknown, name: string, signal: AbortSignal): Promise<unknown> {
    const { kind, message, details } = toRunError(e);
    if (kind !== 'policy.lost' || details?.['status'] === undefined || !(await this.#lives(signal))) return e;
    return new StudioError(
      'policy.remote',
      `The server cannot use the adapter ${name}: ${message}`,
      `The version before it stays in use. Check that the server sees whole files there and takes adapters of this rank and these layers (vLLM: --max-lora-rank; SGLang: --max-lora-rank, --lora-target-modules, no --dp-size); its log says more. ${HEAD_REMEDY}`,
      { cause: e },
    );
  }
  /** Whether it makes a token with what it had before. Its /health is no proof: that of a broken vLLM says ok. */
  async #lives(signal: AbortSignal): Promise<boolean> {
    const asked = (async () => {
      const model = this.#now?.model ?? (await this.#server.models(signal))[0];
      return (
        model !== undefined && (await this.#server.complete({ ...proofRequest(this.#o.imageToken), model }, signal))
      );
    })();
    return Boolean(await orUndefined(asked, 'then it is the server that is to blame'));
  }
  /** The proof; a server that was started again since it loaded the adapter loads it once more, and no oftener. */
  async #prove({ name, model, weights }: Loaded, signal: AbortSignal): Promise<Completion> {
    const ask = (): Promise<Completion> =>
      this.#server.complete({ ...proofRequest(this.#o.imageToken), model }, signal);
    try {
      return await ask();
    } catch (e) {
      if (!(await this.#forgot(e, name, signal))) throw e;
      await this.#server.loadAdapter(name, weights.path, signal);
      return ask();
    }
  }
  #ask({ name, model }: Loaded, body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Said> {
    return this.#orLost(name, signal, () => this.#server.ask({ ...body, model }, signal));
  }
  /**
   * A server that was started again between two calls has none of the adapters it was given, and no call met it gone:
   * it is lost like one that is away, and the replica that takes this one's place loads them.
   */
  async #orLost<T>(name: string, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (e) {
      if (!(await this.#forgot(e, name, signal))) throw e;
      throw new StudioError(
        'policy.lost',
        `${this.#o.url} no longer has ${name}: it was started again.`,
        'The runtime loads it again automatically.',
        { cause: e },
      );
    }
  }
  /** Whether it refused because it lacks the adapter (vLLM: 404, SGLang: 400); not where it does not say what it has. */
  async #forgot(e: unknown, name: string, signal: AbortSignal): Promise<boolean> {
    const status = toRunError(e).details?.['status'];
    if (status !== 404 && status !== 400) return false;
    const there = await orUndefined(this.#server.models(signal), 'then the first answer is what is said');
    return there !== undefined && there.length > 0 && !there.includes(name);
  }
  /** Throws when the server answers with other weights than these. */
  async #check({ name, weights }: Loaded, completion: Completion, signal: AbortSignal): Promise<void> {
    const { expected } = weights,
      trace = traceOf(completion);
    if (!trace)
      throw new StudioError(
        'policy.remote',
        `${this.#o.url} gives no log-probs.`,
        'Start the server with log-probs allowed (vLLM: --max-logprobs 8 or more).',
      );
    if (!trace.ids || !completion.prompt_token_ids)
      throw new StudioError(
        'policy.remote',
        `${this.#o.url} does not say the token ids of prompts and answers, and nothing can be trained without them.`,
        `Use vLLM ${SPOKEN.vLLM.oldest} or SGLang ${SPOKEN.SGLang.oldest}, or newer: older ones pass over return_token_ids.`,
      );
    const why = expected && (await this.#unlike(name, expected, completion, signal));
    if (why !== undefined)
      throw new StudioError(
        'policy.remote',
        `${this.#o.url} does not answer with the weights of ${name}: ${why}.`,
        'Check that the server applies adapters to the layers that are trained (vLLM: key prefixes, --enable-tower-connector-lora; SGLang: --lora-target-modules, and no layers of the vision part), and that it serves the model that is trained.',
      );
    const proof = proofIn(completion);
    if (proof) this.#o.onProved?.(proof);
  }
  /**
   * Compares log-probs of the very same tokens. Where the server sampled others (SGLang does each time, whatever the
   * seed, and vLLM after a large step) it is asked for these: what is known of them otherwise may be no more than that
   * they are improbable. The tokens that nobody says tell other weights apart where both are sure of the answer.
   */
  async #unlike(
    name: string,
    expected: ExpectedProof,
    completion: Completion,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const scored = (answer: Int32Array): Promise<readonly number[] | undefined> =>
        this.#orLost(name, signal, () => this.#server.score({ prompt: expected.prompt, answer }, name, signal)),
      said = agreementOf(expected, completion) ? undefined : await scored(expected.answer),
      why = said ? unlikeScored(expected, said) : unlike(expected, completion);
    if (why !== undefined) return why;
    const unsaid = expected.unsaid && (await scored(expected.unsaid.answer));
    return (unsaid && unlikeScored(expected.unsaid!, unsaid)) ?? this.#unmoved(expected, completion);
  }
  /** Small changes are within what formats differ by; but a server that says the same for ever ignores them. */
  #unmoved(expected: ExpectedProof, completion: Completion): string | undefined {
    const before = this.#agreement,
      now = agreementOf(expected, completion);
    if (before && now && saidTheSame(before, now)) return unmoved(before, now);
    this.#agreement = now;
    return undefined;
  }
  #askLoad(inFlight: number): void {
    const limit = this.#limit,
      now = performance.now();
    if (!limit || now < this.#loadDue) return;
    this.#loadDue = Infinity;
    const asked = this.#server.load(this.#closed.signal).then((load) => {
      if (!load) return;
      limit.saw(load, inFlight);
      this.#loadDue = now + LOAD_MS;
    });
    asked.catch(() => {
      // Away just now: its calls say so, and it is asked again.
      this.#loadDue = now + LOAD_MS;
    });
  }
  #drained(old: Loaded): void {
    if (old.calls === 0) void this.#unload(old.name, old.weights);
  }
  #unload(name: string, weights?: AdapterWeights): Promise<unknown> {
    const unloaded = this.#server.unloadAdapter(name).then(() => {
      if (weights) this.#o.onLoaded?.(weights, false);
    });
    return orUndefined(unloaded, 'an adapter that stays loaded costs memory of the server only');
  }
}
