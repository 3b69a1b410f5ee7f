import { withoutSlashes } from '../../foreign/address.js';
import { boundedBody } from '../../foreign/boundedBody.js';
import { StudioError, cancelled } from '../../domain/index.js';
import { deadline } from '../../concurrency/deadline.js';
import { foreignJson } from '../../foreign/json.js';
import { CONTROL, malformed, type AnswerBounds } from './wire/index.js';

/** One HTTP exchange with the training server: bounded, with a deadline, and the key for that server alone. */

export interface HttpOptions {
  /** Root of the server, with or without /api/v1. */
  readonly url: string;
  /** Goes to this server and nowhere else: redirects are refused, not followed. */
  readonly apiKey?: string | undefined;
  readonly fetch?: typeof fetch;
}
export interface Outgoing {
  readonly path: string;
  /** The path is beside /api/v1 instead of under it. */
  readonly beside?: boolean;
  /** Method of a request without a body; default GET. */
  readonly method?: 'DELETE';
  /** Absent: a GET. */
  readonly body?: Uint8Array | string | Blob;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Bytes of the answer. Default: those of an answer without tensors. */
  readonly most?: number;
}
/** `unreachable`: no answer, so nobody knows whether it was done. */
export type Reply =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly proto: boolean;
      readonly bytes: Uint8Array;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: 'unreachable'; readonly why: string; readonly timedOut: boolean };

export const PROTO = 'application/x-protobuf';
/** Longest wait that a Retry-After header can ask for. */
const MAX_RETRY_AFTER_MS = 60_000;

/** Base address at which the same server would answer chat completions: beside /api/v1. */
export const actingFace = (url: string): string => new TrainingHttp({ url }).base.replace(/\/api\/v1$/, '/v1');

export class TrainingHttp {
  readonly base: string;
  readonly #root: string;
  readonly #o: HttpOptions;
  constructor(o: HttpOptions) {
    let url: URL;
    try {
      url = new URL(o.url);
    } catch (e) {
      throw badUrl(o.url, e);
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw badUrl(o.url);
    const root = withoutSlashes(url.href);
    this.base = root.endsWith('/api/v1') ? root : `${root}/api/v1`;
    this.#root = this.base.replace(/\/api\/v1$/, '');
    this.#o = o;
  }

  /** Throws `cancelled` when `signal` is aborted, `trainer.remote` on an answer beyond the bounds; else answers. */
  async send(out: Outgoing, signal: AbortSignal): Promise<Reply> {
    const time = deadline(out.timeoutMs, signal),
      key = this.#o.apiKey,
      most = out.most ?? CONTROL.bytes;
    try {
      const r = await (this.#o.fetch ?? fetch)(`${out.beside ? this.#root : this.base}/${out.path}`, {
        method: out.method ?? (out.body === undefined ? 'GET' : 'POST'),
        body:
          typeof out.body === 'string' || out.body === undefined || out.body instanceof Blob
            ? out.body
            : Buffer.from(out.body.buffer, out.body.byteOffset, out.body.byteLength),
        redirect: 'manual',
        signal: time.signal,
        headers: {
          ...(out.body === undefined ? {} : { 'content-type': typeOf(out.body) }),
          ...(key === undefined ? {} : { 'x-api-key': key, authorization: `Bearer ${key}` }),
          ...out.headers,
        },
      });
      const after = Number(r.headers.get('retry-after') ?? NaN);
      return {
        kind: 'answer',
        status: r.status,
        proto: (r.headers.get('content-type') ?? '').startsWith(PROTO),
        bytes: await boundedBody(r, most, () => malformed(`it is longer than ${most} bytes`)),
        retryAfterMs: after > 0 ? Math.min(after * 1000, MAX_RETRY_AFTER_MS) : undefined,
      };
    } catch (e) {
      if (signal.aborted) throw callCancelled(e);
      if (e instanceof StudioError) throw e;
      const cause = e instanceof Error && e.cause instanceof Error ? e.cause : e;
      return {
        kind: 'unreachable',
        why: time.signal.aborted
          ? `no answer in ${out.timeoutMs} ms`
          : cause instanceof Error
            ? cause.message
            : String(cause),
        timedOut: time.signal.aborted,
      };
    } finally {
      time.end();
    }
  }
}

const typeOf = (body: Uint8Array | string | Blob): string =>
  body instanceof Blob ? body.type : typeof body === 'string' ? 'application/json' : PROTO;

/** An answer as JSON; throws `trainer.remote` on what is none, and, before it is parsed, on what is beyond the bounds. */
export function answerJson(bytes: Uint8Array, most: AnswerBounds): unknown {
  if (bytes.length > most.bytes) throw malformed(`it is longer than ${most.bytes} bytes`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return foreignJson(text, most, (why, _, cause) => malformed(`it ${why}`, cause));
}
/** The server's own words in a refusal, for people, bounded. */
export function wordsOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.subarray(0, 2000)).toString('utf8');
  try {
    const { detail, error, message } = JSON.parse(text) as Record<string, unknown>;
    const said = detail ?? error ?? message;
    if (typeof said === 'string') return said.slice(0, 500);
  } catch {
    // The text is no JSON: it is quoted as it is.
  }
  return text.slice(0, 500);
}

/** Whether a refusal says that what was asked for is to blame, as the error of a future does. */
export const blamesRequest = (bytes: Uint8Array): boolean =>
  /"category"\s*:\s*"user"/i.test(Buffer.from(bytes.subarray(0, 2000)).toString('utf8'));

export const callCancelled = (cause?: unknown): StudioError => cancelled('A call to the training server', { cause });
const badUrl = (url: string, cause?: unknown): StudioError =>
  new StudioError(
    'config.invalid',
    `${url.slice(0, 200)} is no address of a training server.`,
    'Give it as http://HOST:PORT or https://HOST in trainer.remote.url.',
    { cause },
  );
