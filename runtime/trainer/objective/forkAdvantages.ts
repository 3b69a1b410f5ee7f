import { ADVANTAGE_EPSILON, groupStatistics, type AdvantageOptions } from './advantages.js';

/**
 * One trajectory of a group: its reward, and for each step the key of the state it was decided in (equal keys = the
 * policy could not tell the states apart).
 */
export interface ForkMember {
  readonly reward: number;
  readonly states: readonly string[];
}

/**
 * Advantage of every step, [trajectory][step], with the expected reward of its state as the baseline: the mean reward
 * of the trajectories of the group that passed through the same state, each counted once. Where trajectories diverge,
 * the step that made the difference gets the credit; steps that all shared, and steps after the outcomes no longer
 * differ, get none. A state that only one trajectory passed through has the group's baseline, so its steps keep the
 * group's advantage, and a group whose trajectories share only the first state has exactly the advantages of
 * `groupAdvantages` with the baseline `trajectory`. The deviation is that of the group
 * (runtime/trainer/README.md#fork-credit), so that the scale stays.
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
