import { hierarchicalBootstrap, outcomesOf, type BootstrapInterval } from '../../../runtime/domain/bootstrap.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { estimate } from '../schedule/statistics.js';
import type { Count } from './evaluated.js';

/**
 * The mean over seeds with its interval, the wider of a bootstrap's and of Student's t over the seeds. Where there is one
 * seed, or all episodes ended alike, every draw tells the same, which would pass for certainty: the interval is then
 * Wilson's of all episodes.
 */
export function successInterval(seeds: readonly Count[]): BootstrapInterval | undefined {
  const some = seeds.filter((c) => c.episodes > 0),
    [won, n] = some.reduce(([w, k], c) => [w + c.successes, k + c.episodes], [0, 0]);
  if (n === 0) return undefined;
  if (some.length > 1 && won > 0 && won < n) {
    const wide = widened(
      hierarchicalBootstrap(some.map((c) => outcomesOf(c.successes, c.episodes))),
      some.map((c) => c.successes / c.episodes),
    );
    return { ...wide, low: Math.max(0, wide.low) };
  }
  const { low, high } = wilson(won, n);
  return { mean: won / n, low, high };
}

/**
 * The wider end of each: an interval, and that of Student's t over what each seed came to, since draws of a few seeds
 * hardly leave their range; a share is at most 1.
 */
export function widened(of: BootstrapInterval, seeds: readonly number[]): BootstrapInterval {
  const { half } = estimate(seeds.filter(Number.isFinite));
  return Number.isFinite(half)
    ? { ...of, low: Math.min(of.low, of.mean - half), high: Math.min(1, Math.max(of.high, of.mean + half)) }
    : of;
}
