import { PRESETS } from '../../../runtime/config/index.js';
import type { Experiment } from '../lib/experiments.js';

export interface ImitationPlan {
  readonly seeds: readonly number[];
  /** Updates of the warm start that are tried, each in a run of its own. */
  readonly steps: readonly number[];
  /** Learning rates that are tried with each of them. */
  readonly rates: readonly number[];
  readonly quick: boolean;
}
/** What the quick start imitates with, and what a few minutes and half an hour more would give. */
export const STEPS = [600, 3000, 8000];
/** The preset's. Another rate is as long again as all lengths together (`--rates`). */
export const RATES = [PRESETS.quickstart.warmStart!.lr!];

/** Splits on which the policy is measured at the end, for reporting, as the quick start's is. */
export const SPLITS = ['heldout', 'words', 'near', 'looks', 'heldout-blind', 'words-blind'] as const;
export type Split = (typeof SPLITS)[number];
/** Minutes of a run: the preset's 20 would end the longest imitation halfway. */
const ENOUGH = 240;
/** Of each split, as in the quick start. */
const episodesOf = (p: Pick<ImitationPlan, 'quick'>): number => (p.quick ? 21 : 84);

/**
 * The quick start's imitation alone: the same demonstrations, each number of updates and each rate in a run of its own
 * (the rate falls over all of a run's updates, so that no run is the beginning of a longer one), no reinforcement learning.
 */
export const imitationPlan = (p: ImitationPlan): Experiment[] =>
  p.seeds.flatMap((seed) =>
    p.steps.flatMap((steps) =>
      p.rates.map((lr): Experiment => {
        const name = `imitation-${steps}${lr === RATES[0] ? '' : `-lr${lr}`}`;
        return {
          name: `${name}-s${seed}`,
          variant: 'imitation',
          seed,
          half: 'redo',
          file: {
            preset: 'quickstart',
            name,
            seed,
            warmStart: { steps, lr, ...(p.quick ? { demonstrations: 1, reading: { screens: 24, steps: 3 } } : {}) },
            evaluation: { episodes: episodesOf(p), untrained: false, everyMinutes: 0 },
            budget: { rollouts: 1, minutes: ENOUGH },
          },
          splits: p.quick ? SPLITS.slice(0, 1) : SPLITS,
          episodes: episodesOf(p),
        };
      }),
    ),
  );
