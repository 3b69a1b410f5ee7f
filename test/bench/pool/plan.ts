import type { RunFile } from '../../../runtime/config/index.js';
import { merge } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';

export interface PoolVariant {
  readonly name: string;
  readonly label: string;
  readonly file: RunFile;
}
const off: RunFile = {
  curation: { pool: { enabled: false } },
  trainer: { replay: 0 },
  warmStart: { demonstrations: 0, steps: 0 },
};

const POOL: RunFile = {
  curation: { pool: { enabled: true } },
  trainer: { replay: 48, imitationCoef: 1 },
  warmStart: { demonstrations: 6, steps: 0 },
};

/** What is done with demonstrations of the tasks that are never solved; the first row has none. */
export const POOL_VARIANTS: readonly PoolVariant[] = [
  { name: 'without', label: 'without the pool', file: off },
  {
    name: 'injection',
    label: 'injection alone',
    file: { curation: { pool: { enabled: true } }, trainer: { replay: 0 }, warmStart: { demonstrations: 6, steps: 0 } },
  },
  { name: 'pool', label: 'the pool: injection, and imitation mixed in', file: POOL },
  { name: 'blind', label: 'the pool, every screen blanked', file: { ...POOL, policy: { blind: true } } },
  {
    name: 'imitation',
    label: 'imitation warm start, then the pool',
    file: {
      curation: { pool: { enabled: true } },
      trainer: { replay: 48, imitationCoef: 1 },
      warmStart: { demonstrations: 6, steps: 300, lr: 2e-3, shift: 16 },
    },
  },
];

/**
 * Taught before: buttons and lists of dialogs. Then met: other applications and widgets, with typing, hotkeys and
 * dragging. All of these need to see (bench:blind).
 */
const TAUGHT = ['press-button', 'press-two', 'list-pick'],
  UNSOLVED = ['file-rename', 'file-delete', 'file-drag', 'window-move', 'calendar-day', 'form-choice'];

export interface PoolPlan {
  readonly seeds: readonly number[];
  readonly variants: readonly string[];
  readonly budget: number;
  readonly probe: number;
  readonly quick: boolean;
}

/**
 * Per seed one policy that was taught other tasks, and each variant from it with the same number of rollouts of tasks
 * it never solves.
 */
export function poolPlan(p: PoolPlan): Experiment[] {
  const wanted = p.variants.map((n): PoolVariant => {
    const v = POOL_VARIANTS.find((x) => x.name === n);
    if (!v) throw new Error(`--variants ${n}: unknown; there are ${POOL_VARIANTS.map((x) => x.name).join(', ')}`);
    return v;
  });
  const base = (seed: number): Experiment => ({
    name: `base-s${seed}`,
    variant: 'base',
    seed,
    half: 'redo',
    file: {
      name: 'pool-base',
      seed,
      tasks: { families: p.quick ? ['press-button'] : TAUGHT },
      evaluation: { episodes: 0 },
      budget: { rollouts: 1 },
      warmStart: p.quick
        ? { demonstrations: 3, steps: 40, lr: 2e-3 }
        : { reading: { screens: 500, steps: 600 }, demonstrations: 6, steps: 200, lr: 2e-3, shift: 16 },
    },
  });
  const run = (seed: number, v: PoolVariant): Experiment => ({
    name: `s${seed}-${v.name}`,
    variant: v.name,
    seed,
    from: `base-s${seed}`,
    half: 'resume',
    file: merge(
      {
        name: `pool-${v.name}`,
        seed,
        tasks: { families: p.quick ? ['term-touch'] : UNSOLVED },
        evaluation: { episodes: p.probe, everyMinutes: 0 },
        budget: { rollouts: p.budget },
        policy: { temperature: 0.8 },
        warmStart: { reading: { screens: 0, steps: 0 } },
        trainer: { batchGroups: 2, epochs: 3, minibatchStates: 24, lr: 1e-3, entropyBonus: 0.002 },
        ...(p.quick ? { desktops: { count: 4 } } : {}),
      } satisfies RunFile,
      v.file,
    ) as RunFile,
  });
  return p.seeds.flatMap((seed) => [base(seed), ...wanted.map((v) => run(seed, v))]);
}
