import {
  failuresRemoved,
  hierarchicalBootstrap,
  outcomesOf,
  pairedBootstrap,
  removedInOneSeed,
  type BootstrapInterval,
} from '../../../runtime/domain/bootstrap.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { estimate } from '../schedule/statistics.js';
import type { Count } from './evaluated.js';

/**
 * The mean over seeds with its interval: the wider of a bootstrap's and of Student's t over the seeds, and nowhere narrower
 * than Wilson's of one seed's episodes. Every seed is asked the same tasks, so that more seeds say more of training and
 * nothing of other tasks. With one seed, or where all episodes ended alike, every draw tells the same: then it is Wilson's.
 */
export function successInterval(seeds: readonly Count[]): BootstrapInterval | undefined {
  const some = seeds.filter((c) => c.episodes > 0);
  if (some.length === 0) return undefined;
  const rates = some.map((c) => c.successes / c.episodes),
    mean = rates.reduce((a, b) => a + b, 0) / rates.length,
    tasks = Math.max(...some.map((c) => c.episodes));
  if (some.length === 1 || mean === 0 || mean === 1) return atLeastOf(tasks, { mean, low: 1, high: 0 });
  const wide = widened(hierarchicalBootstrap(some.map((c) => outcomesOf(c.successes, c.episodes))), rates);
  return atLeastOf(tasks, { ...wide, low: Math.max(0, wide.low) });
}

/** No narrower than what so many tasks tell, however often they were asked. */
export function atLeastOf(tasks: number, of: BootstrapInterval): BootstrapInterval {
  const { low, high } = wilson(of.mean * tasks, tasks);
  return { ...of, low: Math.min(of.low, low), high: Math.max(of.high, high) };
}

/**
 * The share of the failures before that are gone after, from a pair [before, after] of each seed: the wider of a paired
 * bootstrap's interval and of Student's t over the seeds, and nowhere narrower than one seed's would be that has the mean
 * of both, since every seed is asked the same tasks. It has no lower end (-Infinity) where so few failures were left
 * before that there may as well be none.
 */
export function removedInterval(pairs: readonly (readonly [before: Count, after: Count])[]): BootstrapInterval {
  const runs = pairs.map((p) => p.map((c) => outcomesOf(c.successes, c.episodes))),
    wide = widened(
      pairedBootstrap(runs, failuresRemoved),
      runs.map((r) => failuresRemoved([r])),
    );
  if (!Number.isFinite(wide.mean)) return wide;
  const one = removedInOneSeed(pooledSeed(pairs.map((p) => p[0])), pooledSeed(pairs.map((p) => p[1])));
  return {
    ...wide,
    low: Math.min(wide.low, wide.mean + one.low - one.mean),
    high: Math.min(1, Math.max(wide.high, wide.mean + one.high - one.mean)),
  };
}
/** The outcomes of one seed that has the mean of these; a failure that any of them has is one of its own. */
function pooledSeed(seeds: readonly Count[]): readonly number[] {
  const tasks = Math.max(...seeds.map((c) => c.episodes)),
    failed = seeds.reduce((sum, c) => sum + (c.episodes - c.successes) / Math.max(1, c.episodes), 0) / seeds.length;
  return outcomesOf(tasks - (failed > 0 ? Math.max(1, Math.round(failed * tasks)) : 0), tasks);
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
