import type { DynamicRolloutsConfig } from '../config.js';
import type { SuccessRate } from './successStats.js';

/**
 * Rollouts of the next group of a family (runtime/data/README.md#dynamic-rollout-number): `max` while the success rate
 * is under the threshold,
 * else floor(9 / SR - 7), scaled by max / 8 when `max` is not the paper's 8. For max = 8: .60->8 .625->7 .65->6 .70->5
 * .75->5 .80->4 .90->3 1.0->2.
 */
export function groupSize(stats: Pick<SuccessRate, 'n' | 'rate'>, c: DynamicRolloutsConfig): number {
  if (!c.enabled || stats.rate === undefined || stats.n < c.minRollouts || stats.rate < c.threshold) return c.max;
  const n = (9 / stats.rate - 7) * (c.max / 8);
  // The addend keeps rates such as 3/5, whose quotient lands a rounding error under a whole number, on it.
  return Math.min(c.max, Math.max(1, c.min, Math.floor(n + 1e-9)));
}
