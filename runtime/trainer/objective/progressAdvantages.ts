import { ADVANTAGE_EPSILON, groupStatistics, type AdvantageOptions } from './advantages.js';

/** One trajectory of a group: its reward, and of each step what share of the verifier's checks held after it. */
export interface ProgressMember {
  readonly reward: number;
  /** Undefined where the verifier was not asked, as after the last step; then what was heard last still holds. */
  readonly held: readonly (number | undefined)[];
}
/** How much of what comes later a step is credited with, for each step in between (lambda of GAE, arXiv 1506.02438). */
const LAMBDA = 0.9;

/**
 * Advantage of every step, [trajectory][step], by what it changed of the reward that is to be expected. V of a state is the
 * mean reward of those trajectories of the group that ever had as many checks hold, each counted once; of one that no other
 * reached, the group's mean. With delta = V(after) - V(before), and R - V(before) for the last step, an advantage is the
 * sum of the deltas from its step on, each LAMBDA times less than the one before, over the group's deviation: steps that
 * brought a trajectory on are worth something though it failed, and what spoilt it is worth less than nothing. Where
 * nothing was ever heard, steps have the group's advantage (runtime/trainer/README.md#credit-by-progress).
 */
export function progressAdvantages(members: readonly ProgressMember[], norm: AdvantageOptions['norm']): number[][] {
  const { mean, std } = groupStatistics(members.map((m) => m.reward)),
    by = norm === 'std' ? std + ADVANTAGE_EPSILON : 1,
    heard = members.filter((m) => m.held.some((h) => h !== undefined)),
    // All began alike, and with no more than the least that was heard of any.
    first = Math.min(...heard.flatMap((m) => m.held.filter((h) => h !== undefined))),
    values = valuesOf(heard, first, mean);
  return members.map((m) =>
    heard.includes(m)
      ? credited(
          m.reward,
          statesOf(m, first).map((s) => values.get(s)!),
        ).map((a) => a / by)
      : m.held.map(() => (m.reward - mean) / by),
  );
}

/** Share of the checks that held before each step. */
function statesOf({ held }: ProgressMember, first: number): number[] {
  let now = first;
  return held.map((after) => {
    const before = now;
    now = after ?? now;
    return before;
  });
}
function valuesOf(heard: readonly ProgressMember[], first: number, mean: number): ReadonlyMap<number, number> {
  const through = new Map<number, { n: number; sum: number }>();
  for (const m of heard)
    for (const s of new Set(statesOf(m, first))) {
      const t = through.get(s) ?? { n: 0, sum: 0 };
      through.set(s, { n: t.n + 1, sum: t.sum + m.reward });
    }
  return new Map([...through].map(([s, { n, sum }]) => [s, n > 1 ? sum / n : mean]));
}
/** `values`: V before each step. */
function credited(reward: number, values: readonly number[]): number[] {
  const out = new Array<number>(values.length).fill(0);
  let later = 0;
  for (let k = values.length - 1; k >= 0; k--) {
    later = (values[k + 1] ?? reward) - values[k]! + LAMBDA * later;
    out[k] = later;
  }
  return out;
}
