/** HTTP calls to a server at OSWorld's port 5000. Nothing it says is trusted: a policy controls what runs there. */
import { withoutSlashes } from '../../../foreign/address.js';
import { boundedBody } from '../../../foreign/boundedBody.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { StudioError, messageOf, cancelled } from '../../../domain/index.js';
import { isObject, jsonOrNothing } from '../../../foreign/json.js';
import type { JsonBounds } from '../../../foreign/jsonBounds.js';
import { pause } from '../../../concurrency/pause.js';
import { lost } from '../../agentClient.js';

export interface ServerOptions {
  /** Address without a path, e.g. http://10.0.0.2:5000. */
  readonly url: string;
  /** Sent to this address alone. */
  readonly token?: string | undefined;
}
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
  /** Which desktop answered, where the server says. */
  readonly episode: string | undefined;
}
/** Header of ours: the desktop of a port, and how often it was reset. */
export const EPISODE = 'x-dart-episode';
export interface AskOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Fires when the desktop is over: nothing of it may be done later, in somebody else's. */
  readonly over?: AbortSignal | undefined;
  /** Bytes of the answer. */
  readonly most?: number;
  /** The error for a longer answer, where that does not end the desktop. */
  readonly tooLong?: () => Error;
}

/** Bytes of an answer, unless more is asked for. */
const MOST_BYTES = 1 << 20;
/** Answers in JSON are one flat object. */
const FLAT: JsonBounds = { depth: 8, values: 1 << 16 };
/** Pauses before a question that changes nothing is asked again, ms. */
const AGAIN_MS = [200, 1000];

export class OsworldServer {
  readonly url: string;
  readonly #token: string | undefined;
  /** Which desktop it had, since which reset, when ours was given out; other servers do not say. */
  #episode: string | undefined;

  constructor(o: ServerOptions) {
    this.url = withoutSlashes(o.url);
    this.#token = o.token;
  }

  /**
   * Ties the server to the desktop of this answer: from now on another desktop, or the same one after a reset by
   * others, counts as lost.
   */
  begin(episode: string | undefined): void {
    this.#episode = episode;
  }

  /** A question that changes nothing: asked again where the server fails or `right` refuses the answer. */
  async get(path: string, o: AskOptions & { readonly right?: (a: Answer) => boolean }): Promise<Answer> {
    const right = o.right ?? ((a) => a.status < 500);
    for (let n = 0; ; n++) {
      let why: string;
      try {
        const a = await this.#ask('GET', path, undefined, o);
        if (right(a)) return a;
        why = `it answered ${a.status}`;
      } catch (e) {
        if (e instanceof Replaced || !(e instanceof StudioError) || e.kind !== 'desktop.lost') throw e;
        if (n >= AGAIN_MS.length) throw e;
        why = e.message;
      }
      const ms = AGAIN_MS[n];
      if (ms === undefined) throw this.#lost(`${path} cannot be read: ${why}`);
      await pause(ms, o.signal ?? NEVER, callCancelled);
    }
  }
  /**
   * Anything else is sent once: what was sent and not answered may have been done, so that the desktop is in no state
   * that anybody knows, and is lost.
   */
  post(path: string, json: unknown, o: AskOptions): Promise<Answer> {
    const body = { data: JSON.stringify(json), type: 'application/json' };
    return this.#ask('POST', path, body, o);
  }
  /** A form; with a file in it, of several parts. */
  form(
    path: string,
    fields: Readonly<Record<string, string>>,
    o: AskOptions & { readonly file?: { readonly name: string; readonly data: Buffer } },
  ): Promise<Answer> {
    if (!o.file) return this.#ask('POST', path, { data: new URLSearchParams(fields) }, o);
    const form = new FormData();
    for (const [k, v] of Object.entries(fields)) form.set(k, v);
    form.set(o.file.name, new Blob([new Uint8Array(o.file.data)]), 'file');
    return this.#ask('POST', path, { data: form }, o);
  }

  /** Whether it answers at all: a screenshot, as its own clients ask. Never rejects. */
  async ready(o: AskOptions): Promise<string | undefined> {
    try {
      const { status } = await this.#ask('GET', '/screenshot', undefined, { ...o, most: MOST_SCREEN });
      return status === 200 ? undefined : `it answers ${status}`;
    } catch (e) {
      return messageOf(e);
    }
  }

  async #ask(
    method: 'GET' | 'POST',
    path: string,
    body: { readonly data: string | URLSearchParams | FormData; readonly type?: string } | undefined,
    { timeoutMs, signal, over, most = MOST_BYTES, tooLong }: AskOptions,
  ): Promise<Answer> {
    try {
      return await withDeadline(timeoutMs, [signal, over], async (either) => {
        const response = await fetch(`${this.url}${path}`, {
          method,
          // A redirect leads where nobody said, and the token would go along.
          redirect: 'manual',
          signal: either,
          body: body?.data ?? null,
          headers: {
            ...(body?.type === undefined ? {} : { 'content-type': body.type }),
            ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
          },
        });
        const episode = response.headers.get(EPISODE) ?? undefined,
          why = tooLong ?? ((): Error => new TooLong(`the answer to ${path} is too long`)),
          a = { status: response.status, body: await boundedBody(response, most, why), episode };
        // Ours says so while it replaces a desktop.
        if (a.status === 503 || (this.#episode !== undefined && episode !== this.#episode))
          throw new Replaced(this.url);
        return a;
      });
    } catch (e) {
      if (e instanceof StudioError) throw e;
      if (signal?.aborted) throw callCancelled();
      if (over?.aborted) throw this.#lost('it was taken down');
      if (e instanceof TooLong) throw this.#lost(e.message);
      const cause = e instanceof Error && e.cause instanceof Error ? e.cause : e;
      const why =
        e instanceof DOMException && e.name === 'TimeoutError'
          ? `${path} was not answered within ${timeoutMs / 1000} s`
          : messageOf(cause);
      throw this.#lost(why, cause);
    }
  }
  #lost(why: string, cause?: unknown): StudioError {
    return lost(`The desktop at ${this.url} does not answer: ${why}.`, cause);
  }
}
/** Bytes of a screen as PNG: no less than its pixels may need. */
export const MOST_SCREEN = 64 << 20;
const NEVER = new AbortController().signal;

/** The fields of an answer in JSON; none where it is something else. */
export function fieldsOf(a: Answer): Readonly<Record<string, unknown>> {
  const value = jsonOrNothing(a.body.toString('utf8'), FLAT);
  return isObject(value) ? value : {};
}
/** The server's own words in a refusal, for people. */
export const wordsOf = (a: Answer): string => {
  const { message } = fieldsOf(a);
  return (typeof message === 'string' ? message : a.body.toString('utf8', 0, 1000)).slice(0, 300).trim();
};

class TooLong extends Error {}
/** The desktop was replaced or reset behind its port: what was set up and done there is gone. */
class Replaced extends StudioError {
  constructor(url: string) {
    super(
      'desktop.lost',
      `The desktop at ${url} was replaced or reset meanwhile.`,
      'The rollout is tried again. If this happens often, see whether somebody else uses that server.',
    );
  }
}
const callCancelled = (): StudioError => cancelled('The call');
