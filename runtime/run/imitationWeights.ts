import type { FamilyId, LearnStep } from '../domain/index.js';

/** How much replayed successes are imitated (`trainer.imitation`, runtime/trainer/README.md#imitation-by-need). */

/** Factor for a family that always fails, and for one that always succeeds; 1 for one that does either as often. */
const MOST = 3,
  LEAST = 0.1;
/** Success rate of a family that nobody has rolled out yet: the mean of its Beta prior. */
const UNKNOWN = 0.5;

/**
 * Factor on `trainer.imitationCoef` for a family with this success rate in [0, 1]: falls geometrically from 3 through 1
 * at one half to 0.1. Pure.
 */
export const imitationFactor = (rate: number): number =>
  rate < 0.5 ? MOST ** (1 - 2 * rate) : LEAST ** (2 * rate - 1);

export interface WeighedImitation {
  readonly steps: LearnStep[];
  /** Metrics of the update: the mean factor of a step, and the number of families that are imitated more than usual. */
  readonly metrics: { readonly imitationFactor: number; readonly imitationMore: number };
}
/**
 * Imitated steps with a coefficient each, by the success rates of their families. The factors are not made to average 1:
 * where every family succeeds by itself there is less imitation, where none does there is more. Pure.
 */
export function weighByNeed(
  steps: readonly LearnStep[],
  rates: ReadonlyMap<string, number>,
  imitationCoef: number,
): WeighedImitation {
  const factorOf = new Map<FamilyId, number>();
  for (const { family } of steps.map((s) => s.trajectory))
    if (!factorOf.has(family)) factorOf.set(family, imitationFactor(rates.get(family) ?? UNKNOWN));
  const factors = steps.map((s) => factorOf.get(s.trajectory.family)!);
  return {
    steps: steps.map((s, i) => ({ ...s, coefficient: imitationCoef * factors[i]! })),
    metrics: {
      imitationFactor: factors.reduce((a, f) => a + f, 0) / Math.max(1, factors.length),
      imitationMore: [...factorOf.values()].filter((f) => f > 1).length,
    },
  };
}
