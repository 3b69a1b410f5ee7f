/** Partial scores: an evaluator may give a part of a task, which is a failure with a reward between 0 and 1. Pure. */
import type { OutcomeKind } from '../domain/index.js';

export const isPartial = (outcome: OutcomeKind, reward: number | null | undefined): reward is number =>
  outcome === 'failure' && typeof reward === 'number' && reward > 0 && reward < 1;

/** The score with as few digits, two or more, as keep a part from reading as nothing or as all: 0.7, 0.33, 0.999. */
export function scoreText(score: number): string {
  for (const digits of [2, 3, 4]) {
    const rounded = Number(score.toFixed(digits));
    if (rounded > 0 && rounded < 1) return String(rounded);
  }
  return String(score);
}

/** The results of some episodes; `score`: the mean of their rewards, absent where each is 0 or 1. */
export interface Scored {
  readonly episodes: number;
  readonly successes: number;
  readonly score?: number | undefined;
}
/** The mean score of all episodes together; undefined without any. */
export function meanScore(of: readonly Scored[]): number | undefined {
  const episodes = of.reduce((n, x) => n + x.episodes, 0);
  if (episodes === 0) return undefined;
  return of.reduce((sum, x) => sum + (x.score === undefined ? x.successes : x.score * x.episodes), 0) / episodes;
}
