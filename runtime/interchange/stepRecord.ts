/**
 * A trainer's record of a step that a remote model sampled, as plain JSON: token ids, log-probs, entropies, the prompt,
 * rejected answers. `.traj.jsonl` has it under `record`. Arrays are base64 of little-endian numbers: unknown log-probs
 * stay unknown, and nothing is rounded.
 */
import { z } from 'zod';
import {
  FINISH_WORD,
  SequenceReader,
  sampledRemotely,
  withoutPrompts,
  type PromptDelta,
  type RejectedAnswer,
  type Step,
  type TokenTrace,
} from '../domain/index.js';
import { limits } from './types.js';

/** Bounds on one answer and on one prompt; a real one stays far below each. */
const most = { answer: 1 << 16, symbols: 1 << 20, images: 64, rejected: 16, tokens: 1 << 20 } as const;

/** Text of a base64 array of at most `length` numbers of four bytes. */
const numbers = (length: number): z.ZodString =>
  z
    .string()
    .max(Math.ceil((length * 4) / 3) + 4)
    .regex(/^[A-Za-z0-9+/]*={0,2}$/);
const ints = (length: number): z.ZodType<Int32Array, string> =>
  numbers(length).transform((s) => new Int32Array(bytesOf(s)));
const floats = (length: number): z.ZodType<Float32Array, string> =>
  numbers(length).transform((s) => new Float32Array(bytesOf(s)));

const tokensSchema = z
  .object({
    ids: ints(most.answer).optional(),
    logprobs: floats(most.answer),
    entropies: floats(most.answer),
    bound: z.literal('lower').optional(),
    finish: z.string().regex(FINISH_WORD).optional(),
  })
  .transform((t, c) => {
    const why = tokensProblem(t);
    if (why !== undefined) c.addIssue({ code: 'custom', message: why });
    return t;
  });
/** Why a trace cannot be used, in words. */
export function tokensProblem({ ids, logprobs, entropies }: TokenTrace): string | undefined {
  if (logprobs.length !== entropies.length || (ids && ids.length !== logprobs.length))
    return 'its lists of tokens differ in length';
  if (logprobs.length > most.answer) return `it has more than ${most.answer} tokens`;
  if (ids?.some((x) => x < 0)) return 'a token id is negative';
  if (logprobs.some((x) => !Number.isNaN(x) && x > 0)) return 'a log-prob is above 0';
  return entropies.every((x) => x >= 0 && Number.isFinite(x)) ? undefined : 'an entropy is no entropy';
}
const imageSchema = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  format: z.enum(['png', 'jpeg']),
  tokens: z.number().int().min(1).max(most.tokens),
});
const promptSchema = z.object({
  parts: ints(most.symbols),
  symbols: ints(most.symbols),
  images: z.array(imageSchema).max(most.images),
});
const schema = z.object({
  tokens: tokensSchema.optional(),
  prompt: promptSchema.optional(),
  rejected: z
    .array(
      z.object({
        text: z.string().max(limits.text),
        reason: z.string().max(limits.text),
        tokens: tokensSchema.optional(),
        prompt: promptSchema.optional(),
      }),
    )
    .max(most.rejected)
    .optional(),
});
/** The parts of a Step that a record holds. Versions are not among them: they count another run's updates. */
export type StepRecord = Pick<Step, 'tokens' | 'prompt' | 'rejected'>;

/**
 * Undefined for a step of which it says nothing: choices of the embedded policy mean nothing without the states they
 * were made in.
 */
export function recordOf(s: Step): object | undefined {
  const remote = sampledRemotely(s);
  if (!remote && !s.rejected) return undefined;
  return {
    tokens: remote && s.tokens ? tokensOf(s.tokens) : undefined,
    prompt: s.prompt && promptOf(s.prompt),
    rejected: s.rejected?.map((r: RejectedAnswer) => ({
      text: r.text,
      reason: r.reason,
      tokens: r.tokens && tokensOf(r.tokens),
      prompt: r.prompt && promptOf(r.prompt),
    })),
  };
}
/** Records of steps by their index, for those that have one. */
export const recordsOf = (steps: readonly Step[]): Map<number, object> =>
  new Map(
    steps.flatMap((s) => {
      const record = recordOf(s);
      return record ? [[s.index, record] as const] : [];
    }),
  );
const tokensOf = (t: TokenTrace): object => ({
  ids: t.ids && base64(t.ids),
  logprobs: base64(t.logprobs),
  entropies: base64(t.entropies),
  bound: t.bound,
  finish: t.finish,
});
const promptOf = (p: PromptDelta): object => ({
  parts: base64(p.parts),
  symbols: base64(p.symbols),
  images: p.images,
});

/** A record, or why it cannot be used. Of tokens, those of a remote model are taken alone. */
export function readRecord(value: unknown): StepRecord | { readonly why: string } {
  const r = schema.safeParse(value);
  if (!r.success) return { why: r.error.issues[0]?.message ?? 'it cannot be read' };
  if (sampledRemotely(r.data)) return r.data;
  const { tokens: _t, ...rest } = r.data;
  return rest;
}

/**
 * Steps whose prompts can all be read: from the first one that does not fit those before it, prompts are left out.
 * `lost`: how many steps lost theirs.
 */
export function readablePrompts<S extends Pick<Step, 'tokens' | 'prompt' | 'rejected'>>(
  steps: readonly S[],
  asStep: (s: S, index: number) => Step,
): { readonly steps: S[]; readonly lost: number } {
  const reader = new SequenceReader();
  let damaged = false,
    lost = 0;
  const out = steps.map((s, index) => {
    try {
      if (!damaged) reader.read(asStep(s, index));
    } catch (e) {
      if (!(e instanceof RangeError)) throw e;
      damaged = true;
    }
    if (!damaged || (!s.prompt && !s.rejected?.some((r) => r.prompt))) return s;
    lost++;
    return withoutPrompts(s);
  });
  return { steps: out, lost };
}

const base64 = (a: Int32Array | Float32Array): string =>
  Buffer.from(a.buffer, a.byteOffset, a.byteLength).toString('base64');
/** Memory of its own; bytes beyond the last whole number are dropped. */
function bytesOf(s: string): ArrayBuffer {
  const b = Buffer.from(s, 'base64'),
    own = new Uint8Array(b.length - (b.length % 4));
  own.set(b.subarray(0, own.length));
  return own.buffer;
}
