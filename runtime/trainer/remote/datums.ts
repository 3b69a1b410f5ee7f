import { StudioError } from '../../domain/index.js';
import type { TargetSpan } from '../objective/signedWeights.js';
import type { TokenSample, TokenSequence } from './sample.js';
import type { Chunk, Datum } from './wire/index.js';

/** Samples as a training server takes them: one datum a sequence, targets one ahead of their inputs. */

/** One sequence of a sample on the wire. */
interface Part {
  readonly chunks: readonly Chunk[];
  /** The token that comes after each position of the input. */
  readonly targets: Float64Array;
  readonly span: TargetSpan;
  /** Index of its answer's first token among the tokens of the sample. */
  readonly offset: number;
  readonly length: number;
}
/** A sample, where its tokens stand on the wire, and their log-probs as they become known: f32[tokens]. */
export interface Prepared {
  readonly sample: TokenSample;
  /** Place in the batch. */
  readonly index: number;
  readonly parts: readonly Part[];
  /** Answer tokens of all sequences: the T of the loss. */
  readonly tokens: number;
  /** log pi_rollout; NaN where not known; absent where nobody sampled any of it. */
  readonly rollout: Float32Array | undefined;
  /** log pi of the latest forward pass. */
  now: Float32Array | undefined;
  /** Before the update. */
  old: Float32Array | undefined;
  reference: Float32Array | undefined;
}

/** Target where the next token is part of an image; its weight is always 0. */
const ANY_TOKEN = 0;

/** Throws `trainer.invalid`, with the rollout, on what cannot be a datum. Masked samples are left out. */
export function prepared(samples: readonly TokenSample[]): Prepared[] {
  return samples.flatMap((sample, index) => {
    check(sample);
    return sample.weight === 0 ? [] : [prepare(sample, index)];
  });
}
function prepare(sample: TokenSample, index: number): Prepared {
  let offset = 0;
  const parts = sample.sequences.map((s): Part => {
    const part = partOf(sample, s, offset);
    offset += part.length;
    return part;
  });
  const rollout = sample.sequences.some((s) => s.logprobs) ? new Float32Array(offset).fill(NaN) : undefined;
  sample.sequences.forEach((s, i) => {
    if (s.logprobs) rollout!.set(s.logprobs, parts[i]!.offset);
  });
  return {
    sample,
    index,
    parts,
    tokens: offset,
    rollout: sample.kind === 'policy' ? rollout : undefined,
    now: undefined,
    old: undefined,
    reference: undefined,
  };
}

function partOf(sample: TokenSample, s: TokenSequence, offset: number): Part {
  const lengths = s.prompt.map((c) => (c.type === 'encoded_text' ? c.tokens.length : (c.expectedTokens ?? NaN))),
    before = lengths.reduce((a, n) => a + n, 0);
  if (!(before >= 1)) throw unusable(sample, 'has no prompt, or an image whose number of tokens is not known');
  const n = s.answer.length,
    targets = new Float64Array(before + n - 1).fill(ANY_TOKEN);
  let at = 0;
  s.prompt.forEach((c, i) => {
    // The target of a position is the token after it, so each token is the target one before its own place.
    if (c.type === 'encoded_text')
      for (let t = 0; t < c.tokens.length; t++) if (at + t > 0) targets[at + t - 1] = c.tokens[t]!;
    at += lengths[i]!;
  });
  targets.set(s.answer, before - 1);
  const input: readonly Chunk[] = n > 1 ? [{ type: 'encoded_text', tokens: s.answer.subarray(0, n - 1) }] : [];
  return {
    chunks: [...s.prompt, ...input],
    targets,
    span: { targets: targets.length, start: before - 1 },
    offset,
    length: n,
  };
}

function check(s: TokenSample): void {
  if (!Number.isFinite(s.advantage) || !(s.weight >= 0) || !Number.isFinite(s.weight) || !((s.coefficient ?? 0) >= 0))
    throw unusable(s, 'has an advantage or weight that is not usable');
  if (s.sequences.length === 0) throw unusable(s, 'has no tokens');
  for (const q of s.sequences) {
    if (q.answer.length === 0) throw unusable(s, 'has an answer without tokens');
    if (q.logprobs && q.logprobs.length !== q.answer.length)
      throw unusable(s, `has ${q.logprobs.length} log-probs for ${q.answer.length} tokens`);
    if (q.answer.some((t) => t < 0)) throw unusable(s, 'has a negative token');
  }
}
const unusable = (s: TokenSample, what: string): StudioError =>
  new StudioError(
    'trainer.invalid',
    `Step ${s.step} of rollout ${s.rollout} ${what}.`,
    'Record the step again, or leave its trajectory out.',
    { details: { untrainable: [s.rollout], theirs: true } },
  );

/** A part with what its loss needs beside the targets. */
export const datumOf = (p: Part, inputs: Readonly<Record<string, Float32Array>>): Datum => ({
  chunks: p.chunks,
  inputs: {
    target_tokens: { dtype: 'int64', data: p.targets, shape: [p.targets.length] },
    ...Object.fromEntries(
      Object.entries(inputs).map(([k, data]) => [k, { dtype: 'float32' as const, data, shape: [data.length] }]),
    ),
  },
});
/** A datum for a forward pass: the answer's tokens have weight 1, so that no server leaves them out. */
export function scored(p: Part): Datum {
  const weights = new Float32Array(p.span.targets);
  weights.fill(1, p.span.start, p.span.start + p.length);
  return datumOf(p, { weights });
}

/** Tokens worked on between two turns: a few milliseconds. */
export const TOKENS_A_TURN = 4096;

/** Steps in slices of so many tokens, at least one each. */
export function inSlices(of: readonly Prepared[]): Prepared[][] {
  const out: Prepared[][] = [];
  let tokens = 0;
  for (const s of of) {
    if (out.length === 0 || tokens + s.tokens > TOKENS_A_TURN) {
      out.push([]);
      tokens = 0;
    }
    out.at(-1)!.push(s);
    tokens += s.tokens;
  }
  return out;
}
