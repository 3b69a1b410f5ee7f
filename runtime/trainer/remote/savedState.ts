import { join } from 'node:path';
import { z } from 'zod';
import { StudioError } from '../../domain/index.js';
import { manifestJson, readCheckpoint, writeCheckpoint } from '../checkpoint.js';
import type { CheckpointRef, UpdateReport } from '../types.js';
import type { ModelOptions } from './client.js';

/** A checkpoint of a remote trainer: no weights, but the server's paths of them. */
export interface SavedState {
  readonly version: number;
  /** Optimizer steps of updates so far: the learning rate rises over the first. */
  readonly updateSteps: number;
  readonly weights: string;
  readonly reference: string | null;
  readonly model: string;
  readonly session: string;
  /** Number of the model's last call. */
  readonly seq: number;
  /** `ModelOptions.head` of the weights; absent in older checkpoints, whose adapters had it. */
  readonly head?: boolean | undefined;
  /** The batch that these weights were trained on last, and what came of it. */
  readonly trained?: { readonly batch: string; readonly report: UpdateReport } | undefined;
}

const whole = z.number().int().nonnegative(),
  text = z.string().min(1).max(4096),
  numbers = z.array(z.number().nullable());
/** Version 0.1 wrote the weights of tokens here. */
const reportSchema = z
  .object({ tokenWeights: z.array(numbers.nullable()).optional() })
  .catchall(z.union([z.number().nullable(), numbers]));
const values = z.object({
  version: whole,
  updateSteps: whole,
  weights: text,
  reference: text.nullable(),
  model: text,
  session: text,
  seq: whole,
  head: z.boolean().optional(),
  trained: z
    .object({
      batch: text,
      report: reportSchema,
      /** How many weights of tokens each sample has; null for none. */
      tokens: z.array(whole.nullable()).optional(),
    })
    .optional(),
});

const headOf = (m: ModelOptions): { readonly policy: string; readonly layout: string } => ({
  policy: m.base,
  layout: m.rank === 0 ? 'all weights' : `adapter of rank ${m.rank}`,
});
export const checkpointDir = (dir: string, version: number): string =>
  join(dir, `v${String(version).padStart(6, '0')}`);

/**
 * Weights of tokens are hundreds of thousands of numbers, which as text would hold up the event loop: a file of their
 * own, little-endian floats one sample after another, and in the manifest how many each has.
 */
const TOKENS = 'tokens.f32';
type Tokens = NonNullable<UpdateReport['tokenWeights']>;
const counts = (tokens: Tokens): (number | null)[] => tokens.map((w) => w?.length ?? null);
function packed(tokens: Tokens): Uint8Array {
  const all = new Float32Array(tokens.reduce((n, w) => n + (w?.length ?? 0), 0));
  let at = 0;
  for (const w of tokens) {
    if (!w) continue;
    all.set(w, at);
    at += w.length;
  }
  return new Uint8Array(all.buffer);
}
/** Undefined where the counts are not those of the file. */
function unpacked(file: Buffer, of: readonly (number | null)[]): Tokens | undefined {
  if (4 * of.reduce<number>((n, c) => n + (c ?? 0), 0) !== file.length) return undefined;
  // A copy that begins where a float may.
  const all = new Float32Array(Uint8Array.from(file).buffer);
  let at = 0;
  return of.map((c) => (c === null ? undefined : all.slice(at, (at += c))));
}

/** Atomic: a folder with `manifest.json`, and the weights of tokens where the last batch had any. */
export async function writeState(dir: string, m: ModelOptions, s: SavedState): Promise<CheckpointRef> {
  const to = checkpointDir(dir, s.version),
    { tokenWeights, ...report } = s.trained?.report ?? {},
    trained = s.trained && {
      batch: s.trained.batch,
      report: plain(report),
      ...(tokenWeights ? { tokens: counts(tokenWeights) } : {}),
    },
    files: Record<string, Uint8Array> = tokenWeights ? { [TOKENS]: packed(tokenWeights) } : {};
  await writeCheckpoint(
    to,
    { ...headOf(m), values: { ...s, head: m.head, trained, base: m.base, rank: m.rank } },
    files,
  );
  return { version: s.version, dir: to };
}
/** Throws `trainer.invalid` on a checkpoint that is damaged, of another model, or not of a remote trainer. */
export async function readState(dir: string, m: ModelOptions): Promise<SavedState> {
  const { values: found, files } = await readCheckpoint(dir, headOf(m)),
    read = values.safeParse(found);
  if (!read.success)
    throw new StudioError(
      'trainer.invalid',
      `The checkpoint ${dir} does not say where a training server has its weights.`,
      'Resume from an earlier checkpoint of this run, or start without one.',
      { cause: read.error },
    );
  const { trained, ...rest } = read.data;
  if (!trained) return { ...rest, trained };
  const report = reportOf(trained.report),
    tokenWeights = trained.tokens && files[TOKENS] && unpacked(files[TOKENS], trained.tokens);
  return { ...rest, trained: { batch: trained.batch, report: tokenWeights ? { ...report, tokenWeights } : report } };
}

/** The server's paths of a checkpoint's weights, whatever its model; empty for one of another trainer. */
export async function weightsIn(dir: string): Promise<string[]> {
  const manifest = await manifestJson(dir),
    read = z.object({ values: values.pick({ weights: true, reference: true }) }).safeParse(manifest);
  if (!read.success) return [];
  const { weights, reference } = read.data.values;
  return reference === null ? [weights] : [weights, reference];
}

/** JSON has no NaN: null stands for it. */
const plain = (r: Omit<Partial<UpdateReport>, 'tokenWeights'>): object =>
  Object.fromEntries(
    Object.entries(r).flatMap(([k, v]: [string, number | ArrayLike<number> | undefined]) =>
      v === undefined ? [] : [[k, typeof v === 'number' ? nullable(v) : Array.from(v, nullable)]],
    ),
  );
const nullable = (x: number): number | null => (Number.isFinite(x) ? x : null);
function reportOf({ tokenWeights, ...r }: z.infer<typeof reportSchema>): UpdateReport {
  const numbers = Object.fromEntries(
    Object.entries(r).map(([k, v]) => [k, typeof v === 'object' && v !== null ? v.map((x) => x ?? NaN) : (v ?? NaN)]),
  ) as unknown as UpdateReport & { sampleWeights?: number[] };
  return {
    ...numbers,
    sampleWeights: numbers.sampleWeights && Float32Array.from(numbers.sampleWeights),
    ...(tokenWeights
      ? { tokenWeights: tokenWeights.map((w) => w?.map((x) => x ?? NaN)).map((w) => w && Float32Array.from(w)) }
      : {}),
  };
}
