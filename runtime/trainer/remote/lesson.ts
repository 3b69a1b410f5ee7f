import { random, type BatchId } from '../../domain/index.js';
import type { Prepared } from './datums.js';

/** A lesson weighs its samples by their weight alone. */
export const asImitation = (s: Prepared): Prepared => ({
  ...s,
  sample: { ...s.sample, kind: 'imitation', coefficient: 1 },
  rollout: undefined,
});

/**
 * Which samples each step of a lesson takes: in random order, all of them before any comes again. A function of the step
 * alone, so that a lesson that starts again in the middle goes on with the same samples.
 */
export function lessonPicks(
  samples: readonly Prepared[],
  size: number,
  seed: number,
  batch: BatchId,
): (step: number) => Prepared[] {
  const orders = new Map<number, readonly Prepared[]>();
  const order = (round: number): readonly Prepared[] => {
    let o = orders.get(round);
    if (!o) {
      o = random(`remote/${seed}/${batch}/${round}`).shuffle(samples);
      orders.clear();
      orders.set(round, o);
    }
    return o;
  };
  const n = Math.min(size, samples.length);
  return (step) =>
    Array.from({ length: n }, (_, i) => {
      const k = step * n + i;
      return order(Math.floor(k / samples.length))[k % samples.length]!;
    });
}
