import { askedMs, pause } from '../../concurrency/pause.js';
import { StudioError } from '../../domain/index.js';
import { nextTurn } from '../../concurrency/turns.js';
import {
  answerJson,
  blamesRequest,
  callCancelled,
  PROTO,
  wordsOf,
  type Outgoing,
  type Reply,
  type TrainingHttp,
} from './http.js';
import { TooMuch } from './refusals.js';
import { Skewed, lacks } from './skew.js';
import { CONTROL, future, parsed, polled, type AnswerBounds } from './wire/index.js';

/**
 * Calls that take time: submitted, then asked for until they are there, through lost connections, busy servers and
 * forgotten futures. Every call carries its own key (seq_id and the like), so it can be submitted again without being
 * done again.
 */

export interface CallOptions {
  /** How long a call may make no progress: from its first try on, or from what its `Progress` saw last. */
  readonly deadlineMs: number;
  /** Client's side of a long poll. */
  readonly pollMs: number;
  readonly submitMs: number;
  /** How long a 409 is asked again: the server may still be at the call before. */
  readonly conflictMs: number;
  /** How long the other requests of a pass may make no progress once one of them was refused. */
  readonly othersMs: number;
  readonly now: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A number in [0, 1), which spreads retries. */
  readonly random: () => number;
  readonly onRetry: (why: string) => void;
}
export const CALL_DEFAULTS: CallOptions = {
  deadlineMs: 60 * 60_000,
  pollMs: 45_000,
  submitMs: 120_000,
  conflictMs: 5 * 60_000,
  othersMs: 60_000,
  now: () => performance.now(),
  sleep: (ms, signal) => pause(ms, signal, callCancelled),
  random: Math.random,
  onRetry: () => undefined,
};
const BACKOFF = { baseMs: 250, maxMs: 30_000 };
/** A future that the server forgot is submitted again so often. */
const RESUBMITS = 5;
/** A poll's 400 may be a proxy's; so often it is asked again. */
const BAD_POLLS = 3;
/** Between polls that were answered at once: a server that does not hold them would be asked in a tight loop. */
const POLL_PAUSE_MS = 50;

export interface Submission extends Omit<Outgoing, 'timeoutMs'> {
  /** The server has never taken a body in this encoding: a failure may mean that it does not know it. */
  readonly untried?: boolean;
}
/** So many failures (500) of one call mean an unknown encoding: other failures pass. */
const ENCODING_FAILURES = 3;

export type Result =
  { readonly kind: 'proto'; readonly bytes: Uint8Array } | { readonly kind: 'json'; readonly json: unknown };

/** Calls that wait behind one another, such as the requests of a pass: while the server ends one of them it is at work. */
export interface Progress {
  /** When one of them ended last, on the clock of the calls. */
  at?: number;
}

/** State of one call's retries. */
class Retries {
  readonly #o: CallOptions;
  readonly #signal: AbortSignal;
  readonly #start: number;
  readonly #what: string;
  readonly #progress: Progress;
  #tries = 0;
  constructor(o: CallOptions, what: string, signal: AbortSignal, progress: Progress = {}) {
    this.#o = o;
    this.#what = what;
    this.#signal = signal;
    this.#progress = progress;
    this.#start = o.now();
  }
  get waitedMs(): number {
    return this.#o.now() - Math.max(this.#start, this.#progress.at ?? this.#start);
  }
  /** Waits while the server is there and at work: the next failure is the first. */
  async stillRunning(ms: number): Promise<void> {
    this.#tries = 0;
    await this.#sleep('it is still running', ms);
  }
  /** Waits before the next try, so long as the server asks for; throws `trainer.remote` when time is up. */
  async again(why: string, afterMs?: number): Promise<void> {
    const before = this.#tries++,
      ms = askedMs(afterMs, BACKOFF, before, { from: 0.5, to: 1, random: this.#o.random });
    this.#o.onRetry(`${this.#what}: ${why}`);
    await this.#sleep(why, ms);
  }
  async #sleep(why: string, ms: number): Promise<void> {
    if (this.waitedMs + ms > this.#o.deadlineMs) throw unavailable(this.#what, why, this.waitedMs);
    if (ms > 0) await this.#o.sleep(ms, this.#signal);
  }
}

export class Calls {
  readonly #http: TrainingHttp;
  readonly #o: CallOptions;
  constructor(http: TrainingHttp, o: Partial<CallOptions> = {}) {
    this.#http = http;
    this.#o = { ...CALL_DEFAULTS, ...o };
  }
  get othersMs(): number {
    return this.#o.othersMs;
  }

  /** A call that is answered at once, as JSON. */
  async json(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    const reply = await this.#submit({ path, body: JSON.stringify(body), timeoutMs: this.#o.submitMs }, signal);
    return answerJson(reply.bytes, CONTROL);
  }

  /** Asks once that something be deleted; a server that cannot keeps it. False: it was not there to be asked. */
  async remove(path: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#http.send({ path, method: 'DELETE', timeoutMs: this.#o.submitMs }, signal)).kind === 'answer';
  }

  /** A page, as JSON. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    return answerJson((await this.#submit({ path, timeoutMs: this.#o.submitMs }, signal)).bytes, CONTROL);
  }

  /**
   * Submits and answers the future's id; `fetched` then waits for it. Apart, so that chunks are submitted in order and
   * waited for together. Throws UnsupportedEncoding where the server does not know the encoding of the body.
   */
  async submit(out: Submission, signal: AbortSignal): Promise<string> {
    const { untried, ...rest } = out,
      reply = await this.#submit({ ...rest, timeoutMs: this.#o.submitMs }, signal, untried);
    return parsed(future, answerJson(reply.bytes, CONTROL)).request_id;
  }

  /**
   * The value of a future, within `most`; `resubmit` is the very same call, for a server that forgot it. Calls that share
   * a `progress` have their time from when one of them ended last.
   */
  async fetched(
    id: string,
    what: string,
    proto: boolean,
    most: AnswerBounds,
    resubmit: () => Promise<string>,
    signal: AbortSignal,
    progress: Progress = {},
  ): Promise<Result> {
    const value = await this.#fetched(
      id,
      new Retries(this.#o, what, signal, progress),
      what,
      proto,
      most,
      resubmit,
      signal,
    );
    progress.at = this.#o.now();
    return value;
  }
  async #fetched(
    id: string,
    retries: Retries,
    what: string,
    proto: boolean,
    most: AnswerBounds,
    resubmit: () => Promise<string>,
    signal: AbortSignal,
  ): Promise<Result> {
    let request = id,
      resubmits = 0,
      bad = 0;
    for (;;) {
      const began = this.#o.now(),
        r = await this.#poll(request, proto, most, signal);
      if (r.kind === 'unreachable') {
        // A poll that timed out here is no failure: the work goes on.
        await (r.timedOut ? retries.stillRunning(0) : retries.again(r.why));
        continue;
      }
      const held = this.#o.now() - began > POLL_PAUSE_MS ? 0 : POLL_PAUSE_MS;
      if (r.status === 200) {
        if (r.proto) return { kind: 'proto', bytes: r.bytes };
        const p = polled(await this.#parsed(r.bytes, most));
        if (p.kind === 'done') return { kind: 'json', json: p.json };
        if (p.kind === 'failed') throw refused(what, p.message, p.user);
        await retries.stillRunning(held);
      } else if (r.status === 408) {
        await retries.stillRunning(held);
      } else if (r.status === 410 && resubmits++ < RESUBMITS) {
        await retries.again('the server forgot the answer');
        request = await resubmit();
      } else if (r.status === 429 || failing(r.status) || (r.status === 400 && bad++ < BAD_POLLS))
        await retries.again(`status ${r.status}`, r.retryAfterMs);
      else throw statusError(what, r);
    }
  }
  /** Parses an answer; for a long one the event loop turns before it is checked. */
  async #parsed(bytes: Uint8Array, most: AnswerBounds): Promise<unknown> {
    const json = answerJson(bytes, most);
    if (bytes.length > CONTROL.bytes) await nextTurn();
    return json;
  }
  #poll(request: string, proto: boolean, most: AnswerBounds, signal: AbortSignal): Promise<Reply> {
    return this.#http.send(
      {
        path: 'retrieve_future',
        body: JSON.stringify({ request_id: request, allow_metadata_only: false }),
        headers: proto ? { accept: PROTO } : {},
        timeoutMs: this.#o.pollMs,
        most: most.bytes,
      },
      signal,
    );
  }

  async #submit(out: Outgoing, signal: AbortSignal, untried = false): Promise<Extract<Reply, { kind: 'answer' }>> {
    const retries = new Retries(this.#o, out.path, signal);
    let failures = 0;
    for (;;) {
      const r = await this.#http.send(out, signal);
      if (r.kind === 'unreachable') await retries.again(r.why);
      else if (r.status >= 200 && r.status < 300) return r;
      else if (untried && (r.status === 422 || (r.status === 500 && ++failures === ENCODING_FAILURES)))
        throw unsupported(out.path, r);
      else if (r.status === 408 || r.status === 429 || failing(r.status))
        await retries.again(`status ${r.status}`, r.retryAfterMs);
      else if (r.status === 409 && retries.waitedMs < this.#o.conflictMs)
        await retries.again(`conflict: ${wordsOf(r.bytes)}`, r.retryAfterMs);
      else throw await this.#refusal(out.path, r);
    }
  }
  /** A model that is gone and a call that is not there are told alike; the description of its calls tells them apart. */
  async #refusal(path: string, r: Extract<Reply, { kind: 'answer' }>): Promise<StudioError> {
    const e = statusError(path, r);
    if (r.status === 400 && PASSES.includes(path) && blamesRequest(r.bytes))
      return new StudioError('trainer.invalid', e.message, REFUSED);
    return e.kind === 'trainer.lost' && r.status === 404 && (await lacks(this.#http, path))
      ? new Skewed('trainer.remote', `The training server has no ${path}.`, 'Use a server of another version.')
      : e;
  }
}

/** The server does not take the encoding of the body. */
export class UnsupportedEncoding extends Skewed {}
const unsupported = (what: string, r: Extract<Reply, { kind: 'answer' }>): UnsupportedEncoding =>
  new UnsupportedEncoding(
    'trainer.remote',
    `The training server answered ${r.status} to ${what}: ${wordsOf(r.bytes)}`,
    'Nothing: JSON is tried instead.',
  );

function statusError(what: string, r: Extract<Reply, { kind: 'answer' }>): StudioError {
  const said = wordsOf(r.bytes),
    message = `The training server answered ${r.status} to ${what}: ${said}`;
  if (r.status === 415) return unsupported(what, r);
  if (r.status >= 300 && r.status < 400)
    return new StudioError(
      'trainer.remote',
      `The training server sends ${what} elsewhere (status ${r.status}), where neither key nor screenshots may go.`,
      'Give the address it points to in trainer.remote.url, if you trust it.',
    );
  if (r.status === 413)
    return new TooMuch({
      kind: 'trainer.remote',
      message,
      remedy: 'Let it, or a proxy before it, take larger requests (the engine: --max-body-bytes).',
    });
  if (isSkew(what, r.status, said)) return new Skewed('trainer.remote', message, 'Use a server of another version.');
  if (r.status === 404 && what === 'create_session')
    return new StudioError(
      'trainer.remote',
      message,
      'Check trainer.remote.url: no Tinker-protocol server answers there.',
    );
  if (r.status === 401 || r.status === 403)
    return new StudioError(
      'trainer.remote',
      message,
      'Set the API key in the environment variable that trainer.remote.apiKeyEnv names.',
    );
  if (r.status === 404 || r.status === 410)
    return new StudioError(
      'trainer.lost',
      message,
      'The server was restarted or has dropped this model; training continues from its last checkpoint.',
    );
  if (r.status === 409)
    return new StudioError(
      'trainer.remote',
      message,
      'Another client uses this model, or the server counts calls it refused. Give the run a model of its own, from its last checkpoint.',
    );
  return new StudioError('trainer.remote', message, 'The server refuses this call; see its message and its log.');
}
/** Calls with samples in them, one of which may be to blame. */
const PASSES: readonly string[] = ['forward_backward', 'forward'];
const REFUSED = 'Change what it refuses, or what it takes; the run then goes on from its last checkpoint.';
/** Trouble of its own, which may pass; what it has not implemented (501) it will not have when asked again. */
const failing = (status: number): boolean => status >= 500 && status !== 501;
/** A body of another shape, a client that is too old or too new. */
const isSkew = (what: string, status: number, said: string): boolean =>
  [405, 422, 426, 501].includes(status) ||
  (status === 400 && what === 'create_session' && /version|sdk|upgrade/i.test(said));
const unavailable = (what: string, why: string, ms: number): StudioError =>
  new StudioError(
    'trainer.remote',
    `The training server did not do ${what} in ${Math.round(ms / 1000)} s: ${why}.`,
    'Check that it runs and can be reached. Nothing is lost: training continues from the last checkpoint.',
  );
const LESS_MEMORY =
  'Lower trainer.remote.options.microBatchTokens or trainer.remote.options.maxPixels (of an engine that runs already: --micro-batch-tokens, --max-pixels, and the latter in trainer.remote.options.maxPixels too, since clicks are read by it), the number of images a step keeps (policy.vlm.images), or trainer.remote.rank.';
function refused(what: string, said: string, user: boolean): StudioError {
  const message = `The training server could not do ${what}: ${said}`;
  // Whoever it blames: the same in smaller pieces may be done.
  if (/out of memory|\bOOM\b/i.test(said)) return new TooMuch({ kind: 'trainer.remote', message, remedy: LESS_MEMORY });
  return user
    ? new StudioError('trainer.invalid', message, REFUSED)
    : new StudioError(
        'trainer.remote',
        message,
        'Training continues from the last checkpoint; the server log says more.',
      );
}
