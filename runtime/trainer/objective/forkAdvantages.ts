import { ADVANTAGE_EPSILON, groupStatistics, type AdvantageOptions } from './advantages.js';

/**
 * One trajectory of a group: its reward, and of each step the key of the state it was decided in (equal keys = the
 * policy could not tell the states apart).
 */
export interface ForkMember {
  readonly reward: number;
  readonly states: readonly string[];
}

/**
 * Advantage of every step, [trajectory][step], with the reward a state promises as its baseline: the mean reward of
 * those trajectories of the group that came through the same state, each counted once. Where trajectories part, the
 * step that made the difference gets the credit; steps that all shared, and steps after which nothing differed any
 * more, get none. A state only one trajectory came through promises what the group does, so its steps keep the group's
 * advantage, and a group whose trajectories share no state but the first has exactly the advantages of
 * `groupAdvantages` with the baseline `trajectory`. The deviation is that of the group
 * (runtime/trainer/README.md#fork-credit), so that
 * the scale stays.
 */
export function forkAdvantages(members: readonly ForkMember[], norm: AdvantageOptions['norm']): number[][] {
  const { mean, std } = groupStatistics(members.map((m) => m.reward)),
    scale = norm === 'std' ? 1 / (std + ADVANTAGE_EPSILON) : 1;
  const through = new Map<string, { n: number; sum: number }>();
  for (const m of members)
    for (const s of new Set(m.states)) {
      const t = through.get(s);
      if (t) {
        t.n++;
        t.sum += m.reward;
      } else through.set(s, { n: 1, sum: m.reward });
    }
  return members.map((m) =>
    m.states.map((s) => {
      const { n, sum } = through.get(s)!;
      return (m.reward - (n > 1 ? sum / n : mean)) * scale;
    }),
  );
}
