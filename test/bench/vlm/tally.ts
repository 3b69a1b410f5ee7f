import { estimate, type Estimate } from '../schedule/statistics.js';

export interface Tally {
  readonly episodes: number;
  readonly successes: number;
}
export const rate = (t: Tally): number => t.successes / t.episodes;
export const better = (a: Tally | undefined, b: Tally | undefined): Tally | undefined =>
  !a || (b && rate(b) > rate(a)) ? b : a;

/** Share of the failures of `before` that are gone; undefined where there were none to remove. */
export function seedFailuresRemoved(before: Tally | undefined, after: Tally | undefined): number | undefined {
  if (!before || !after || before.successes === before.episodes) return undefined;
  return 1 - (1 - rate(after)) / (1 - rate(before));
}

export interface Pooled {
  readonly all: Tally;
  /** What each seed came to. */
  readonly each: readonly Tally[];
  readonly success: Estimate;
}
/** Episodes of all seeds together, and the mean over seeds. */
export function pooled(tallies: readonly Tally[]): Pooled {
  const sum = (f: (t: Tally) => number): number => tallies.reduce((n, t) => n + f(t), 0);
  return {
    each: tallies,
    all: { episodes: sum((t) => t.episodes), successes: sum((t) => t.successes) },
    success: estimate(tallies.map(rate)),
  };
}
