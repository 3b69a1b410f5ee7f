import type { RunFile } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';

export interface MiniwobPlan {
  /** The user's copy of MiniWoB++. */
  readonly dir: string;
  readonly pages: readonly string[];
  readonly seed: number;
  readonly minutes: number;
  /** A few lessons, so that there is a checkpoint to measure. */
  readonly quick: boolean;
}

/** One policy on all pages: no demonstrations of theirs, and what it reads is learned from words drawn at random. */
export const trainOn = (p: MiniwobPlan): Experiment => ({
  name: `miniwob-s${p.seed}`,
  variant: 'trained',
  seed: p.seed,
  half: 'resume',
  file: {
    preset: 'quickstart',
    name: 'miniwob',
    seed: p.seed,
    tasks: { suite: 'miniwob', dir: p.dir, families: [...p.pages] },
    desktops: { count: 4 },
    rollout: { maxSteps: 8 },
    warmStart: { demonstrations: 0, steps: 0, ...(p.quick ? { reading: { screens: 24, steps: 3 } } : {}) },
    evaluation: { episodes: p.pages.length, untrained: false, everyMinutes: 0 },
    budget: { minutes: p.minutes },
  } satisfies RunFile,
});

/** The rows of the table, in its order, as arguments of `evaluate`. */
export const ROWS = [
  { row: 'trained', args: [] },
  { row: 'blind', args: ['--blind'] },
  { row: 'random', args: ['--random'] },
] as const;
export type RowName = (typeof ROWS)[number]['row'];
