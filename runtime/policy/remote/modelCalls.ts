/** Calls of model servers, each a request with pictures and an answer with the log-probs of every token. */
import { cancelled, type StudioError } from '../../domain/index.js';
import { completionOf, saidIn, type Said } from './completion.js';
import { jsonPieces } from './picture.js';
import { postJson, type PostOptions } from './postJson.js';

export interface ModelCall extends Pick<PostOptions, 'url' | 'apiKey' | 'timeoutMs' | 'most'> {
  /** A value of JSON in which pictures stand. */
  readonly body: unknown;
  /** Name of the server in errors. */
  readonly server: string;
  readonly tooLong: () => StudioError;
}
export interface ModelReply {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The parsed answer, when the status is 2xx. */
  readonly said?: Said;
  /** The beginning of any other answer. */
  readonly text: string;
}
/** Makes calls in this thread or in another. */
export interface ModelCaller {
  /**
   * Rejects with `policy.remote` for an answer that is none, with `tooLong()`, with the error of the connection, or when
   * the signal fires.
   */
  call(c: ModelCall, signal: AbortSignal): Promise<ModelReply>;
}

/** What a call throws when its signal fires. */
export const decisionCancelled = (): StudioError => cancelled('A decision');

/** Characters of a refusal that are kept. */
const EXCERPT = 2000;

export const callHere: ModelCaller = {
  call: (c, signal) => callNow({ ...c, body: jsonPieces(c.body), signal }, c.server),
};

export async function callNow(o: PostOptions, server: string): Promise<ModelReply> {
  const { status, text, retryAfterMs } = await postJson(o);
  return status >= 200 && status < 300
    ? { status, retryAfterMs, text: '', said: saidIn(completionOf(text, server)) }
    : { status, retryAfterMs, text: text.slice(0, EXCERPT) };
}
