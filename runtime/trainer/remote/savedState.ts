import { join } from 'node:path';
import { z } from 'zod';
import { StudioError } from '../../domain/index.js';
import { MANIFEST_VALUES, manifestJson, readCheckpoint, writeCheckpoint } from '../checkpoint.js';
import type { CheckpointRef, UpdateReport } from '../types.js';
import type { ModelOptions } from './client.js';

/** What a checkpoint of a remote trainer holds: no weights, but where its server has them. */
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
  /** The batch that these weights were trained on last, and what came of it. */
  readonly trained?: { readonly batch: string; readonly report: UpdateReport } | undefined;
}

const whole = z.number().int().nonnegative(),
  text = z.string().min(1).max(4096),
  numbers = z.array(z.number().nullable());
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
  trained: z
    .object({
      batch: text,
      report: reportSchema,
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
 * Weights of tokens that are kept at most, for a manifest with more values could not be read again. A batch that is
 * asked for again has its report without them too.
 */
const MOST_TOKENS = MANIFEST_VALUES * 0.9;
const kept = ({ tokenWeights, ...r }: UpdateReport): UpdateReport => {
  const tokens = tokenWeights?.reduce((n, w) => n + (w?.length ?? 0) + 1, r.sampleWeights?.length ?? 0) ?? 0;
  return tokens > MOST_TOKENS ? r : { ...r, tokenWeights };
};

/** Atomic: a folder with `manifest.json` alone. */
export async function writeState(dir: string, m: ModelOptions, s: SavedState): Promise<CheckpointRef> {
  const to = checkpointDir(dir, s.version),
    trained = s.trained && { batch: s.trained.batch, report: plain(kept(s.trained.report)) };
  await writeCheckpoint(to, { ...headOf(m), values: { ...s, trained, base: m.base, rank: m.rank } }, {});
  return { version: s.version, dir: to };
}
/** Throws `trainer.invalid` on a checkpoint that is damaged, of another model, or not of a remote trainer. */
export async function readState(dir: string, m: ModelOptions): Promise<SavedState> {
  const read = values.safeParse((await readCheckpoint(dir, headOf(m))).values);
  if (!read.success)
    throw new StudioError(
      'trainer.invalid',
      `The checkpoint ${dir} does not say where a training server has its weights.`,
      'Resume from an earlier checkpoint of this run, or start without one.',
      { cause: read.error },
    );
  const { trained, ...rest } = read.data;
  return { ...rest, trained: trained && { batch: trained.batch, report: reportOf(trained.report) } };
}

/** Where a server has the weights of a checkpoint, whatever its model; empty for one of another trainer. */
export async function weightsIn(dir: string): Promise<string[]> {
  const manifest = await manifestJson(dir),
    read = z.object({ values: values.pick({ weights: true, reference: true }) }).safeParse(manifest);
  if (!read.success) return [];
  const { weights, reference } = read.data.values;
  return reference === null ? [weights] : [weights, reference];
}

/** JSON has no NaN: null stands for it. */
const plain = ({ tokenWeights, ...r }: UpdateReport): object => ({
  ...Object.fromEntries(
    Object.entries(r).flatMap(([k, v]: [string, number | ArrayLike<number> | undefined]) =>
      v === undefined ? [] : [[k, typeof v === 'number' ? nullable(v) : Array.from(v, nullable)]],
    ),
  ),
  ...(tokenWeights ? { tokenWeights: tokenWeights.map((w) => (w ? Array.from(w, nullable) : null)) } : {}),
});
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
