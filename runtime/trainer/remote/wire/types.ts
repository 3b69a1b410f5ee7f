import { StudioError } from '../../../domain/index.js';

/** The vocabulary of the Tinker protocol, as the driver sees it: neither protobuf nor JSON. */

/** Row-major. `int64` values are whole numbers below 2^53. */
export interface WireTensor {
  readonly dtype: 'float32' | 'int64';
  readonly data: Float32Array | Float64Array;
  readonly shape: readonly number[];
}
/** A piece of the model's input. Order matters: an image stands where its tokens stand. */
export type Chunk =
  | { readonly type: 'encoded_text'; readonly tokens: ArrayLike<number> }
  | {
      readonly type: 'image';
      /** The exact bytes that were sent when the step was sampled. */
      readonly data: Uint8Array;
      readonly format: 'png' | 'jpeg';
      /** Tokens the image stands for; a server refuses the datum where it counts others. */
      readonly expectedTokens?: number | undefined;
    };
export interface Datum {
  readonly chunks: readonly Chunk[];
  /** `target_tokens` (already shifted: input without its last token, targets without the first), `weights`, ... */
  readonly inputs: Readonly<Record<string, WireTensor>>;
}
export interface ForwardBackwardRequest {
  readonly modelId: string;
  /** Idempotency key, with the model; 1 or more. */
  readonly seqId: number;
  readonly data: readonly Datum[];
  readonly lossFn: string;
  readonly lossFnConfig?: Readonly<Record<string, number>> | undefined;
  readonly forwardOnly: boolean;
}
export interface ForwardBackwardOutput {
  /** Per datum, what the loss gave: `logprobs` of its targets, mostly. */
  readonly outputs: readonly ReadonlyMap<string, WireTensor>[];
  readonly metrics: ReadonlyMap<string, number>;
}
export interface SampledSequence {
  readonly stopReason: 'stop' | 'length';
  readonly tokens: Int32Array;
  readonly logprobs?: Float32Array | undefined;
}
export interface SampleOutput {
  readonly sequences: readonly SampledSequence[];
  /** NaN where a token was not scored (the first one never is). */
  readonly promptLogprobs?: Float32Array | undefined;
}
export interface SampleRequest {
  readonly chunks: readonly Chunk[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed?: number | undefined;
  readonly stop?: readonly number[] | undefined;
  readonly promptLogprobs?: boolean | undefined;
  /** The weights that sample: those of a session at the number of a call, saved ones, or the base model's. */
  readonly from:
    | { readonly session: string; readonly seqId: number }
    | { readonly modelPath: string }
    | { readonly baseModel: string };
}

/** Bounds on what a server may answer; what is larger is refused, not read. */
export const LIMITS = {
  /** Datums or sequences in one answer. */
  items: 65_536,
  /** Elements of one tensor. */
  elements: 1 << 26,
  dimensions: 8,
  /** Named tensors of a datum. */
  tensors: 64,
  /** Metrics of an answer, models of a server. */
  names: 1024,
  /** Characters of an identifier, a path, a name. */
  text: 4096,
} as const;

/** The error for an answer that does not follow the protocol. */
export const malformed = (what: string, cause?: unknown): StudioError =>
  new StudioError(
    'trainer.remote',
    `The training server's answer cannot be used: ${what}.`,
    'Check that the URL is that of a Tinker-protocol server; `dart-studio engine probe URL` says what it can do.',
    { cause },
  );

/**
 * An answer of a shape that this version does not know: the server may be older or newer (`skew.ts` says what it is).
 */
export class Unread extends StudioError {}
export const unread = (what: string, cause?: unknown): Unread => {
  const { kind, message, remedy } = malformed(what).error;
  return new Unread(kind, message, remedy, { cause });
};

export const floats = (data: ArrayLike<number>): WireTensor => ({
  dtype: 'float32',
  data: Float32Array.from(data),
  shape: [data.length],
});
export const integers = (data: ArrayLike<number>): WireTensor => ({
  dtype: 'int64',
  data: Float64Array.from(data),
  shape: [data.length],
});
