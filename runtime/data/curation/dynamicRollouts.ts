import { message } from '../../domain/index.js';
import type { DynamicRolloutsConfig } from '../config.js';
import { groupSeries } from './groupSeries.js';
import type { Mechanism } from './mechanism.js';
import type { SuccessRate } from './successStats.js';

/** A smaller group has no baseline. */
const MIN_SIZE = 2;
/**
 * With fewer outcomes than this (or than the window, if it is smaller), the rate is not meaningful yet and N stays at
 * `max`.
 */
const MIN_OUTCOMES = 8;

/**
 * Rollouts of the next group of a family (runtime/data/README.md#dynamic-rollout-number): `max` while the success rate
 * is under the threshold,
 * else floor(9 / SR - 7), scaled by max / 8 when `max` is not the paper's 8. For max = 8: .60->8 .625->7 .65->6 .70->5
 * .75->5 .80->4 .90->3 1.0->2.
 */
export function groupSize(stats: Pick<SuccessRate, 'n' | 'rate'>, c: DynamicRolloutsConfig): number {
  const known = stats.n >= Math.min(MIN_OUTCOMES, c.window);
  if (!c.enabled || stats.rate === undefined || !known || stats.rate < c.threshold) return c.max;
  const n = (9 / stats.rate - 7) * (c.max / 8);
  // The addend corrects rates such as 3/5, whose quotient is a rounding error below a whole number.
  return Math.min(c.max, Math.max(MIN_SIZE, Math.floor(n + 1e-9)));
}

export const dynamicRollouts: Mechanism<'dynamicRollouts'> = {
  plan: (plan, family, options) => ({ ...plan, size: groupSize(family.successes, options) }),
  charts: [
    {
      name: 'size',
      unit: 'count',
      words: {
        title: message('Rollouts per group'),
        says: message(
          'Dynamic rollout number: a task that succeeds often gets fewer rollouts, because most of them would teach nothing.',
        ),
        label: message('mean over tasks, with range'),
        empty: message('No group was opened.'),
        summary: message(
          'Rollouts per group: mean {0} rollouts at first, {1} now, between {2} and {3} over the tasks.',
        ),
      },
      read: (run) => groupSeries(run, 'size'),
    },
  ],
};
