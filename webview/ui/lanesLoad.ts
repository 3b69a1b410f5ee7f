/** How full replicas were that answer many calls at a time, in words. */
import type { Lane } from '../../runtime/protocol/types.js';
import { shares, type Window } from './lanesMath.js';
import { t } from './words.js';

/** "3.2 of 16 calls under way, 20 %": the mean of these replicas in the window; each takes `concurrency` calls at a time. */
export function underWay(replicas: readonly Lane[], w: Window, concurrency: number): string {
  const busy = Math.min(1, shares(replicas, 'replica', w, concurrency).busy);
  return t(
    '{0} of {1} calls under way, {2} %',
    Math.round(busy * concurrency * 10) / 10,
    concurrency,
    Math.round(busy * 100),
  );
}
