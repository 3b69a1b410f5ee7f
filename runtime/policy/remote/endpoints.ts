/**
 * Several OpenAI-compatible servers as one: a session stays with its server (prefix cache of its screenshots), new
 * sessions go to the least busy one, and a request that meets 429, 5xx or a broken connection is retried after a
 * growing pause, on another server when there is one.
 */
import { withoutSlashes } from '../../foreign/address.js';
import { askedMs, pause } from '../../concurrency/pause.js';
import { MODEL_FAULTS, StudioError, messageOf } from '../../domain/index.js';
import { MOST_ANSWER_BYTES, type Said } from './completion.js';
import { refusesLength } from './contextRefusal.js';
import { callHere, decisionCancelled, type ModelCaller } from './modelCalls.js';

export interface EndpointOptions {
  /** Each ends in /v1 (or whatever precedes /chat/completions). */
  readonly baseUrls: readonly string[];
  readonly apiKey?: string;
  /** Total attempts. Default 5. */
  readonly attempts?: number;
  /** First pause; doubles each time, up to 20 s, with up to half of it more at random. Default 500 ms. */
  readonly backoffMs?: number;
  /** Time limit of one request. Default 180 s. */
  readonly timeoutMs?: number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
  readonly now?: () => number;
  /** Makes the calls. Default: this thread. */
  readonly caller?: ModelCaller;
}
export interface Reply {
  readonly said: Said;
  /** ms of the request that succeeded. */
  readonly ms: number;
  /** ms of failed attempts and pauses before it. */
  readonly waited: number;
  readonly endpoint: string;
}

interface Endpoint {
  readonly url: string;
  inFlight: number;
  sessions: number;
  /** Does not know vLLM's extra fields. */
  plain: boolean;
}
const MAX_BACKOFF_MS = 20_000;

export class Endpoints {
  readonly #all: readonly Endpoint[];
  readonly #own = new Map<string, Endpoint>();
  readonly #o: Required<Omit<EndpointOptions, 'apiKey'>> & Pick<EndpointOptions, 'apiKey'>;

  constructor(o: EndpointOptions) {
    this.#o = {
      attempts: 5,
      backoffMs: 500,
      timeoutMs: 180_000,
      sleep: (ms, signal) => pause(ms, signal, decisionCancelled),
      random: Math.random,
      now: () => performance.now(),
      caller: callHere,
      ...o,
    };
    if (o.baseUrls.length === 0)
      throw new StudioError(
        'config.invalid',
        'A remote policy needs at least one endpoint.',
        'Give policy.openai.baseUrls.',
      );
    this.#all = o.baseUrls.map((u) => ({ url: withoutSlashes(u), inFlight: 0, sessions: 0, plain: false }));
  }

  /**
   * POST `body` with `extras` merged in (fields beyond OpenAI's own; left out for a server that refuses them). Rejects
   * with `policy.remote`, or
   * `cancelled` as soon as the signal fires.
   */
  async post(
    session: string,
    path: string,
    body: Readonly<Record<string, unknown>>,
    extras: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Reply> {
    const began = this.#o.now();
    let avoid: Endpoint | undefined, last: StudioError | undefined, bare: Endpoint | undefined;
    for (let attempt = 0; attempt < this.#o.attempts;) {
      const e = this.#pick(session, avoid);
      const t0 = this.#o.now();
      e.inFlight++;
      let failure: Failure;
      try {
        const r = await this.#once(e, path, e.plain || e === bare ? body : { ...body, ...extras }, signal);
        if (!('failed' in r)) {
          // This answer shows that the extras were refused, and not the request.
          e.plain ||= e === bare;
          return { said: r.said, ms: this.#o.now() - t0, waited: t0 - began, endpoint: e.url };
        }
        failure = r;
      } finally {
        e.inFlight--;
      }
      const choosy = failure.status === 400 || failure.status === 422;
      if (choosy && !e.plain && e !== bare && Object.keys(extras).length > 0) {
        bare = e;
        continue;
      }
      last = failure.failed;
      if (!failure.retry) throw last;
      if (++attempt >= this.#o.attempts) break;
      // 429 means that the server's queue is full: waiting for it keeps its cache useful. For other failures another
      // server is tried.
      avoid = failure.status === 429 ? undefined : e;
      const { backoffMs: baseMs, random } = this.#o,
        spread = { from: 1, to: 1.5, random },
        ms = askedMs(failure.retryAfterMs, { baseMs, maxMs: MAX_BACKOFF_MS }, attempt - 1, spread);
      await this.#o.sleep(ms, signal);
    }
    throw last!;
  }

  end(session: string): void {
    const e = this.#own.get(session);
    if (e) e.sessions--;
    this.#own.delete(session);
  }

  #pick(session: string, avoid: Endpoint | undefined): Endpoint {
    const before = this.#own.get(session);
    if (before && before !== avoid) return before;
    const others = this.#all.filter((e) => e !== avoid);
    const from = others.length > 0 ? others : this.#all;
    const best = from.reduce((a, b) =>
      b.inFlight < a.inFlight || (b.inFlight === a.inFlight && b.sessions < a.sessions) ? b : a,
    );
    if (before !== best) {
      if (before) before.sessions--;
      best.sessions++;
      this.#own.set(session, best);
    }
    return best;
  }

  async #once(e: Endpoint, path: string, body: unknown, signal: AbortSignal): Promise<{ said: Said } | Failure> {
    const url = `${e.url}${path}`;
    try {
      const { apiKey, timeoutMs } = this.#o,
        call = { url, body, apiKey, timeoutMs, server: e.url, most: MOST_ANSWER_BYTES, tooLong },
        { status, text, said, retryAfterMs } = await this.#o.caller.call(call, signal);
      if (said) return { said };
      return {
        status,
        retry: status === 408 || status === 429 || status >= 500,
        retryAfterMs: retryAfterMs === undefined ? undefined : Math.min(retryAfterMs, MAX_BACKOFF_MS),
        failed: new StudioError(
          'policy.remote',
          `${url} answered ${status}: ${text.slice(0, 500)}`,
          remedyFor(status),
          {
            details: { status, ...(refusesLength(status, text) ? MODEL_FAULTS.outgrown : {}) },
          },
        ),
      };
    } catch (x) {
      if (signal.aborted) throw decisionCancelled();
      if (x instanceof StudioError) return { status: 0, retry: false, failed: x };
      const cause = messageOf(x);
      return {
        status: 0,
        retry: true,
        failed: new StudioError(
          'policy.remote',
          `${url} cannot be reached: ${cause}`,
          'Check that the model server is running and that policy.openai.baseUrls is right.',
          { cause: x },
        ),
      };
    }
  }
}
interface Failure {
  readonly failed: StudioError;
  readonly status: number;
  readonly retry: boolean;
  readonly retryAfterMs?: number | undefined;
}

const remedyFor = (status: number): string =>
  status >= 300 && status < 400
    ? 'Give the address that it redirects to, if you trust it: redirects are not followed, because the key would go along.'
    : status === 401 || status === 403
      ? 'Set the API key in the environment variable that policy.openai.apiKeyEnv names.'
      : status === 404
        ? 'Check policy.openai.model and that the URL ends in /v1.'
        : status === 429 || status >= 500
          ? 'The server is overloaded or failing. Look at its log.'
          : 'The server refused the request. Its message says why.';

const tooLong = (): StudioError =>
  new StudioError(
    'policy.remote',
    `A model server's answer is larger than ${MOST_ANSWER_BYTES >> 20} MB.`,
    'Lower policy.openai.maxTokens or its top log-probs.',
  );
