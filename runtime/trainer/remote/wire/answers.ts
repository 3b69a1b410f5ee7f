import { z } from 'zod';
import { firstIssue } from './forwardBackward.js';
import { LIMITS, unread } from './types.js';

/** JSON answers of the protocol, each as a schema: unknown fields are ignored, wrong ones refused. */

const text = z.string().min(1).max(LIMITS.text),
  size = z.number().int().positive();

/** The server's settings for its clients. */
export const clientConfig = z.object({
  proto_compress_fwdbwd: z.boolean().default(false),
  /** Servers of the JSON age turn protobuf on with this. */
  proto_write_fwdbwd: z.boolean().optional(),
  fwdbwd_max_chunk_len: size.default(1024),
  fwdbwd_max_chunk_bytes_count: size.default(5_000_000),
});
export type ClientConfig = z.infer<typeof clientConfig>;

export const capabilities = z.object({
  supported_models: z
    .array(z.object({ model_name: text.nullish() }))
    .max(LIMITS.names)
    .default([]),
});
/** `error_message`: what the server has against this client, though it opens a session. */
export const session = z.object({ session_id: text, error_message: z.string().nullish().catch(undefined) });
/** Every call that takes time answers with the future's id. */
export const future = z.object({ request_id: text });
export const model = z.object({ model_id: text });
export const modelInfo = z.object({
  model_id: text.nullish(),
  is_lora: z.boolean().nullish(),
  lora_rank: z.number().int().nonnegative().nullish(),
  model_name: text.nullish(),
  model_data: z.object({ model_name: text.nullish(), tokenizer_id: text.nullish() }).nullish(),
});
export const savedWeights = z.object({ path: text });
/** Persistent weights have a path, ephemeral ones a session. */
export const samplerWeights = z.object({ path: text.nullish(), sampling_session_id: text.nullish() });
export const samplingSession = z.object({ sampling_session_id: text });
/** Metrics of an optimizer step; some servers have none. */
export const optimStep = z.object({ metrics: z.record(z.string(), z.number().nullable()).nullish() });
export const nothing = z.object({});

/** A future that is not there yet: an answer of 200 or the body of a 408. */
export const tryAgain = z.object({ type: z.literal('try_again'), queue_state: z.string().max(LIMITS.text).nullish() });
/** A request that failed; it comes with a status of 200. */
export const failed = z.object({ error: z.string(), category: z.string().max(LIMITS.text).nullish() });

export type Polled =
  | { readonly kind: 'pending'; readonly queue: string | undefined }
  /** `user`: the request itself is wrong, and will be however often it is asked. */
  | { readonly kind: 'failed'; readonly message: string; readonly user: boolean }
  | { readonly kind: 'done'; readonly json: unknown };

/** The state of a future, from a JSON answer of `retrieve_future`. */
export function polled(json: unknown): Polled {
  const again = tryAgain.safeParse(json);
  if (again.success) return { kind: 'pending', queue: again.data.queue_state ?? undefined };
  const no = failed.safeParse(json);
  if (no.success)
    return {
      kind: 'failed',
      message: no.data.error.slice(0, LIMITS.text),
      user: no.data.category?.toLowerCase() === 'user',
    };
  return { kind: 'done', json };
}

/** Throws `trainer.remote` with what is wrong where. */
export function parsed<T>(schema: z.ZodType<T>, json: unknown): T {
  const p = schema.safeParse(json);
  if (!p.success) throw unread(firstIssue(p.error), p.error);
  return p.data;
}
