import type { Group, LearnStep, Trajectory } from '../domain/index.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';
import { forkAdvantages } from '../trainer/objective/forkAdvantages.js';

/** A group as curation left it: which steps of which trajectory are trained. */
export interface CuratedGroup {
  readonly group: Group;
  /** Same order as `group.trajectories`. */
  readonly keep: readonly (readonly boolean[])[];
  /** Members that are older than the staleness bound: pool successes of the policy itself. Default: none. */
  readonly aged?: readonly boolean[];
}

export interface CreditOptions extends AdvantageOptions {
  /**
   * Policy-gradient steps of a trajectory share its weight 1 (trajectory-balanced), or every step weighs 1 (the paper's
   * mean over steps).
   */
  readonly balance: 'step' | 'trajectory';
  /**
   * Every step of a trajectory shares its advantage (the paper), or each has its own against what others did in the
   * same state.
   */
  readonly credit: 'trajectory' | 'fork';
}

/** Whether a policy has words for what was done in a step: a person, or another policy, may do what it cannot say. */
export type Expressible = (t: Trajectory, step: number) => boolean;

/**
 * The steps of a batch with their advantages and weights (runtime/trainer/README.md#advantages). Rewards are those of
 * the whole group, the injected success among them; an injected trajectory of a script or an import has no behaviour
 * log-probs, so its truncated weight is 1, as in the paper.
 *
 * A step in which a person acted never has a policy-gradient term: it is imitated, and only when its trajectory
 * succeeded. Weight and advantage are those of the paper's injected step, so that at rho = 1 the gradient is the same,
 * -A w grad log p; there is no ratio, and nothing is clipped.
 */
export function policySteps(groups: readonly CuratedGroup[], o: CreditOptions, expressible: Expressible): LearnStep[] {
  const out: LearnStep[] = [];
  for (const { group, keep, aged } of groups) {
    const rewards = group.trajectories.map((t) => (t.outcome.kind === 'error' ? 0 : t.outcome.reward));
    const advantages = groupAdvantages(
      rewards,
      group.trajectories.map((t) => t.steps.length),
      o,
    );
    // Two states are one when screen, instruction and history are: what the policy is told.
    const forks =
      o.credit === 'fork'
        ? forkAdvantages(
            group.trajectories.map((t, i) => ({ reward: rewards[i]!, states: prefixKeys(t) })),
            o.norm,
          )
        : undefined;
    for (const [i, t] of group.trajectories.entries())
      if (forks || advantages[i] !== 0)
        out.push(
          ...stepsOf(t, keep[i]!, (s) => forks?.[i]![s] ?? advantages[i]!, {
            balance: o.balance,
            expressible,
            aged: aged?.[i] === true,
          }),
        );
  }
  return out;
}

function stepsOf(
  t: Trajectory,
  keep: readonly boolean[],
  advantageOf: (step: number) => number,
  o: { readonly balance: CreditOptions['balance']; readonly expressible: Expressible; readonly aged: boolean },
): LearnStep[] {
  const imitate = t.outcome.kind === 'success',
    people = t.steps.filter((s) => s.origin === 'human').length,
    own = keep.filter((k, j) => k && t.steps[j]!.origin !== 'human').length,
    weight = o.balance === 'trajectory' ? 1 / Math.max(1, own + (imitate ? people : 0)) : 1;
  return t.steps.flatMap((s): LearnStep[] => {
    const advantage = advantageOf(s.index),
      human = s.origin === 'human',
      learned = human ? imitate && advantage > 0 : keep[s.index] && advantage !== 0;
    if (!learned || !o.expressible(t, s.index)) return [];
    const step = { trajectory: t, step: s.index, weight };
    return human
      ? [{ ...step, kind: 'imitation', advantage: 0, coefficient: advantage }]
      : [{ ...step, kind: 'policy', advantage, ...(o.aged ? { precollected: true } : {}) }];
  });
}

/** Of each step: the screen it was decided on and the actions that led there. */
function prefixKeys(t: Trajectory): string[] {
  let past = '';
  return t.steps.map((s) => {
    const key = `${s.frame.hash} ${past}`;
    past += JSON.stringify(s.actions);
    return key;
  });
}

/** The steps of successes to imitate: neither behaviour log-probs nor advantage. */
export const imitationSteps = (successes: readonly Trajectory[], expressible: Expressible): LearnStep[] =>
  successes.flatMap((trajectory) =>
    trajectory.steps.flatMap((s): LearnStep[] =>
      expressible(trajectory, s.index)
        ? [{ trajectory, step: s.index, kind: 'imitation', advantage: 0, weight: 1 }]
        : [],
    ),
  );
