import { clamp, MAX_LOG_RATIO } from './policyLoss.js';

/**
 * Rollout corrections: weights for samples drawn by a policy that is older than (or numerically different from) the
 * trainer's (runtime/trainer/README.md#truncated-importance-sampling).
 */

const importance = (logRatio: number): number => Math.exp(clamp(logRatio, -MAX_LOG_RATIO, MAX_LOG_RATIO));

/** min(old/rollout, cap) per token. */
export const tisToken = (old: ArrayLike<number>, rollout: ArrayLike<number>, cap: number): number[] =>
  Array.from(old, (o, i) => Math.min(importance(o - rollout[i]!), cap));

/** Product of now/old over a step's tokens: how far the policy moved on the whole step. */
export const sequenceRatio = (now: ArrayLike<number>, old: ArrayLike<number>): number =>
  importance(Array.from(now).reduce((s, x, i) => s + x - old[i]!, 0));

/** min(product of old/rollout, cap): one weight for a whole step. */
export const tisSequence = (old: ArrayLike<number>, rollout: ArrayLike<number>, cap: number): number =>
  Math.min(sequenceRatio(old, rollout), cap);

export interface CorrectionMetrics {
  readonly n: number;
  readonly mean: number;
  /** Share of weights at the cap. */
  readonly bounded: number;
  /** Effective sample size / n: (sum w)^2 / (n sum w^2); 1 = all weights equal. */
  readonly ess: number;
  /** Weights over [0, cap] in 20 bins. */
  readonly histogram: readonly number[];
}
export const HISTOGRAM_BINS = 20;

export function correctionMetrics(weights: readonly number[], cap: number): CorrectionMetrics {
  const histogram = new Array<number>(HISTOGRAM_BINS).fill(0);
  let s = 0,
    s2 = 0,
    bounded = 0;
  for (const w of weights) {
    s += w;
    s2 += w * w;
    if (w >= cap) bounded++;
    histogram[Math.min(HISTOGRAM_BINS - 1, Math.floor((w / cap) * HISTOGRAM_BINS))]!++;
  }
  const n = weights.length;
  return {
    n,
    mean: n === 0 ? 1 : s / n,
    bounded: n === 0 ? 0 : bounded / n,
    ess: n === 0 ? 1 : s2 === 0 ? 0 : (s * s) / (n * s2),
    histogram,
  };
}
