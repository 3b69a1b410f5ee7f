import type { Experiment } from '../lib/experiments.js';

export interface ImitationPlan {
  readonly seeds: readonly number[];
  /** Updates of the warm start; the quick start itself has 600. */
  readonly steps: number;
  readonly quick: boolean;
}
/** Splits on which the policy is measured at the end, for reporting, as the quick start's is. */
export const SPLITS = ['heldout', 'words', 'near', 'looks'] as const;
export type Split = (typeof SPLITS)[number];
/** Of each split, as in the quick start. */
const episodesOf = (p: Pick<ImitationPlan, 'quick'>): number => (p.quick ? 21 : 84);

/** The quick start's imitation alone: the same demonstrations for so many updates, and no reinforcement learning. */
export const imitationPlan = (p: ImitationPlan): Experiment[] =>
  p.seeds.map((seed) => ({
    name: `imitation-${p.steps}-s${seed}`,
    variant: 'imitation',
    seed,
    half: 'redo',
    file: {
      preset: 'quickstart',
      name: `imitation-${p.steps}`,
      seed,
      warmStart: { steps: p.steps, ...(p.quick ? { demonstrations: 1, reading: { screens: 24, steps: 3 } } : {}) },
      evaluation: { episodes: episodesOf(p), untrained: false, everyMinutes: 0 },
      budget: { rollouts: 1 },
    },
    splits: p.quick ? SPLITS.slice(0, 1) : SPLITS,
    episodes: episodesOf(p),
  }));
