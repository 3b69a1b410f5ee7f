import { describe, expect, it } from 'vitest';
import { wilson } from '../../../runtime/domain/wilson.js';
import { atLeastOf, removedInterval, successInterval } from '../../bench/lib/interval.js';

const of = (...won: readonly number[]) => successInterval(won.map((successes) => ({ episodes: 84, successes })))!,
  one = (won: number): { low: number; high: number } => wilson(won, 84);

describe('intervals over seeds that are asked the same tasks', () => {
  it('are no narrower than that of one seed, however alike seeds are', () => {
    for (const won of [81, 60, 42]) {
      const { mean, low, high } = of(won, won, won, won, won);
      expect(mean).toBeCloseTo(won / 84, 9);
      expect(low).toBeLessThanOrEqual(one(won).low + 1e-9);
      expect(high).toBeGreaterThanOrEqual(one(won).high - 1e-9);
    }
  });
  it('are those over seeds where these are further apart', () => {
    // 50, 60, 70 %: Student's half is 25 points.
    const { low, high } = of(42, 50.4, 58.8);
    expect([low, high]).toEqual([expect.closeTo(0.352, 2), expect.closeTo(0.848, 2)]);
  });
  it('say of nothing, or everything, solved what one seed says', () => {
    expect([of(0, 0, 0).low, of(0, 0, 0).high]).toEqual([0, expect.closeTo(one(0).high, 9)]);
    expect([of(84, 84).low, of(84, 84).high]).toEqual([expect.closeTo(one(84).low, 9), expect.closeTo(1, 9)]);
    // As the random row of four seeds with 80 episodes.
    const four = [1, 2, 3, 4].map(() => ({ episodes: 80, successes: 0 }));
    expect(successInterval(four)!.high).toBeCloseTo(0.0458, 3);
  });
  it('of one seed are Wilson of its episodes, and of none nothing', () => {
    expect(of(60)).toEqual({ mean: 60 / 84, ...{ low: one(60).low, high: one(60).high } });
    expect(successInterval([])).toBeUndefined();
    expect(successInterval([{ episodes: 0, successes: 0 }])).toBeUndefined();
  });
  it('of the failures removed are no narrower than those of one seed either, and at most all', () => {
    const failures = (n: number): { episodes: number; successes: number } => ({ episodes: 84, successes: 84 - n }),
      pair = [failures(11), failures(3)] as const,
      alone = removedInterval([pair]),
      five = removedInterval([pair, pair, pair, pair, pair]);
    expect(five.mean).toBeCloseTo(8 / 11, 9);
    expect(five.low).toBeLessThanOrEqual(alone.low + 1e-9);
    expect(five.high).toBeGreaterThanOrEqual(alone.high - 1e-9);
    expect(removedInterval([pair, [failures(11), failures(0)]]).high).toBe(1);
    // Seeds that are further apart than that tell it by themselves: Student's t of two.
    expect(
      removedInterval([
        [failures(40), failures(4)],
        [failures(40), failures(36)],
      ]).low,
    ).toBeLessThan(-3);
    // Next to none before: there is no telling.
    expect(
      removedInterval([
        [failures(1), failures(1)],
        [failures(0), failures(1)],
      ]).low,
    ).toBe(-Infinity);
  });
  it('widen what is told otherwise, at each end', () => {
    const { low, high } = atLeastOf(144, { mean: 0.44, low: 0.41, high: 0.6 });
    expect([low, high]).toEqual([expect.closeTo(wilson(0.44 * 144, 144).low, 9), 0.6]);
  });
});
