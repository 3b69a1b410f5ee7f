import { boundedBody } from '../../foreign/boundedBody.js';
import { messageOf } from '../../domain/index.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { jsonOf } from '../../foreign/json.js';
import type { JsonBounds } from '../../foreign/jsonBounds.js';

/**
 * Sends one question to a server for a check: bounded, with a deadline, the key for that server alone. Never rejects.
 */

export interface Question {
  readonly url: string;
  readonly apiKey: string | undefined;
  /** JSON, or bytes of protobuf; absent = GET. */
  readonly body?: object | Uint8Array;
  readonly timeoutMs?: number;
}
/** `json`: the text as JSON; undefined where it is none. */
export type Answered = { readonly status: number; readonly text: string; readonly json: unknown };
export type Reply = Answered | { readonly away: string };

const TIMEOUT_MS = 180_000,
  MOST_BYTES = 4 << 20;
/** The longest answer has the ids of a prompt's tokens, pictures included. */
const BOUNDS: JsonBounds = { depth: 32, values: 1 << 18 };

export async function ask(q: Question): Promise<Reply> {
  const { url, apiKey, body, timeoutMs = TIMEOUT_MS } = q,
    bytes = body instanceof Uint8Array;
  try {
    return await withDeadline(timeoutMs, [], async (signal) => {
      const r = await fetch(url, {
        method: body === undefined ? 'GET' : 'POST',
        ...(body === undefined ? {} : { body: bytes ? Buffer.from(body) : JSON.stringify(body) }),
        // A redirect is not followed: it would send the key to an address that nobody named.
        redirect: 'manual',
        signal,
        headers: {
          'content-type': bytes ? 'application/x-protobuf' : 'application/json',
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}`, 'x-api-key': apiKey }),
        },
      });
      const text = (await boundedBody(r, MOST_BYTES, tooLong)).toString('utf8');
      return { status: r.status, text, json: jsonOf(text, BOUNDS, (beyond) => new Error(`the answer ${beyond}`)) };
    });
  } catch (e) {
    if (e instanceof Error && e.name === 'TimeoutError') return { away: `no answer in ${timeoutMs / 1000} s` };
    return { away: messageOf(e instanceof Error && e.cause instanceof Error ? e.cause : e) };
  }
}

const tooLong = (): Error => new Error(`the answer is longer than ${MOST_BYTES >> 20} MB`);

/** The server's own words in a refusal, where it has some, for people. */
export function wordsOf({ status, text, json }: Answered): string {
  const said = json as { detail?: unknown; error?: unknown; message?: unknown } | undefined,
    error = (said?.error as { message?: unknown } | undefined)?.message ?? said?.error,
    words = [said?.detail, error, said?.message].find((x) => typeof x === 'string') ?? text.trim();
  return `${status}${words ? `: ${words.slice(0, 300)}` : ''}`;
}
