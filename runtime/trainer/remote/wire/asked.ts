import type { JsonBounds } from '../../../foreign/jsonBounds.js';
import { LIMITS, type Chunk, type Datum, type SampleRequest } from './types.js';

/** Bounds of an answer, from what was asked for: reading it costs by values and parts, not by its bytes alone. */
export interface AnswerBounds extends JsonBounds {
  readonly bytes: number;
  /** Datums or sequences. */
  readonly items: number;
}

/** Answers without tensors: ids, paths, lists of models, metrics of a step. */
export const CONTROL: AnswerBounds = { bytes: 1 << 20, depth: 16, values: 10_000, items: 0 };

/** Numbers that come back for each token: its log-prob, its loss, and one more. */
const A_TOKEN = 3,
  AN_ITEM = 32,
  /** Characters of a number in JSON that is spread over lines. */
  A_VALUE = 32,
  MOST_VALUES = 1 << 20,
  MOST_BYTES = 32 << 20;

function askedOf(tokens: number, items: number): AnswerBounds {
  const values = Math.min(MOST_VALUES, CONTROL.values + A_TOKEN * tokens + AN_ITEM * items);
  return { bytes: Math.min(MOST_BYTES, CONTROL.bytes + A_VALUE * values), depth: CONTROL.depth, values, items };
}
/** The result of any request. */
export const LARGEST = askedOf(MOST_VALUES, LIMITS.items);

/** The result of a pass. */
export const askedOfPass = (data: readonly Datum[]): AnswerBounds =>
  askedOf(
    data.reduce((n, d) => n + targetsOf(d), 0),
    data.length,
  );
/** Targets of a datum. */
export const targetsOf = (d: Datum): number => Math.max(0, ...Object.values(d.inputs).map((t) => t.data.length));

/** Tokens of a picture that does not say how many it has. */
const IMAGE_TOKENS = 1 << 14;
const tokensOf = (c: Chunk): number =>
  c.type === 'encoded_text' ? c.tokens.length : (c.expectedTokens ?? IMAGE_TOKENS);
/** Tokens that the pictures of a datum stand for. */
export const pictureTokensOf = (d: Datum): number =>
  d.chunks.reduce((n, c) => n + (c.type === 'image' ? tokensOf(c) : 0), 0);
/** Samples of a prompt. */
export const askedOfSample = (r: SampleRequest): AnswerBounds =>
  askedOf(r.samples * r.maxTokens + (r.promptLogprobs ? r.chunks.reduce((n, c) => n + tokensOf(c), 0) : 0), r.samples);
