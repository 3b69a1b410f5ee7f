import { byPerson, rewardOf, type Group, type GroupId, type LearnStep, type Trajectory } from '../domain/index.js';
import { siblingsAt } from '../data/curation/branches.js';
import { stepWeight } from '../trainer/objective/aggregation.js';
import { groupAdvantages, type AdvantageOptions } from '../trainer/objective/advantages.js';
import { forkAdvantages } from '../trainer/objective/forkAdvantages.js';
import { progressAdvantages } from '../trainer/objective/progressAdvantages.js';

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
   * Every step of a trajectory shares its advantage (the paper), or each has its own: against what others did in the same
   * state, or by what the verifier said of it mid-episode.
   */
  readonly credit: 'trajectory' | 'fork' | 'progress';
}

/**
 * Whether a policy could have chosen the actions of a step itself: those of a person or of another policy may not exist
 * for it.
 */
export type Expressible = (t: Trajectory, step: number) => boolean;

/**
 * The steps of a batch with their advantages and weights (runtime/trainer/README.md#advantages). Rewards are those of
 * the whole group, the injected success among them; an injected trajectory of a script or an import has no behaviour
 * log-probs, so its truncated weight is 1, as in the paper.
 *
 * A step that a person took, or chose by declining others, never has a policy-gradient term: it is imitated, and only
 * when its trajectory succeeded. Weight and advantage are those of the paper's injected step, so that at rho = 1 the
 * gradient is the same, -A w grad log p; there is no ratio, and nothing is clipped.
 */
export function policySteps(groups: readonly CuratedGroup[], o: CreditOptions, expressible: Expressible): LearnStep[] {
  const out: LearnStep[] = [];
  for (const { group, keep, aged } of groups) {
    const advantages = groupCredit(group, o);
    for (const [i, t] of group.trajectories.entries())
      out.push(
        ...stepsOf(t, keep[i]!, (s) => advantages[i]![s]!, {
          balance: o.balance,
          group: group.id,
          expressible,
          aged: aged?.[i] === true,
        }),
      );
  }
  return out;
}

/**
 * Advantage of every step, [trajectory][step]. Rollouts that began with the task are compared with one another. From the
 * step at which others branch off, they and the one that they branch off from are compared among themselves: each of
 * these steps is worth R - V, V being the mean reward of those that passed through the same state
 * (runtime/trainer/README.md#branches).
 */
function groupCredit(group: Group, o: CreditOptions): number[][] {
  const { trajectories } = group,
    injected = new Set(group.injected),
    advantages = trajectories.map((t) => new Array<number>(t.steps.length).fill(0)),
    members = trajectories.map((trajectory, i) => ({ trajectory, advantages: advantages[i]! })),
    own = members.filter((m) => !injected.has(m.trajectory.id)),
    // Trajectories from the pool count as whole ones, even a branch of another group.
    whole = members.filter((m) => !m.trajectory.branch || injected.has(m.trajectory.id));
  // In a group with branches, a member that is alone in its set has nobody to be compared with: the others began
  // elsewhere.
  const branched = whole.length < members.length,
    sets = [{ step: 0, members: whole }, ...siblingsAt(own)].filter((s) => s.members.length > (branched ? 1 : 0));
  for (const { step, members: compared } of sets) {
    const found = advantagesFrom(
      step,
      compared.map((m) => m.trajectory),
      o,
    );
    for (const [i, m] of compared.entries()) m.advantages.splice(step, Infinity, ...found[i]!);
  }
  return advantages;
}

/** The advantages of the steps from `first` on, of trajectories that are compared with one another. */
function advantagesFrom(first: number, trajectories: readonly Trajectory[], o: CreditOptions): number[][] {
  const rewards = trajectories.map(rewardOf);
  // Two states are one when screen, instruction and history are: what the policy is told.
  if (o.credit === 'fork')
    return forkAdvantages(
      trajectories.map((t, i) => ({ reward: rewards[i]!, states: prefixKeys(t).slice(first) })),
      o.norm,
    );
  if (o.credit === 'progress')
    return progressAdvantages(
      trajectories.map((t, i) => ({ reward: rewards[i]!, held: t.steps.slice(first).map((s) => s.progress?.held) })),
      o.norm,
    );
  const lengths = trajectories.map((t) => t.steps.length - first),
    advantages = groupAdvantages(rewards, lengths, o);
  return lengths.map((n, i) => new Array<number>(n).fill(advantages[i]!));
}

function stepsOf(
  t: Trajectory,
  keep: readonly boolean[],
  advantageOf: (step: number) => number,
  o: {
    readonly balance: CreditOptions['balance'];
    readonly group: GroupId;
    readonly expressible: Expressible;
    readonly aged: boolean;
  },
): LearnStep[] {
  const imitate = t.outcome.kind === 'success',
    people = t.steps.filter(byPerson).length,
    own = keep.filter((k, j) => k && !byPerson(t.steps[j]!)).length,
    weight = stepWeight(o.balance, own + (imitate ? people : 0)),
    // Among steps that were worth something, one that was worth nothing stays in the mean over steps and in the KL term.
    told = t.steps.some((s) => advantageOf(s.index) !== 0);
  return t.steps.flatMap((s): LearnStep[] => {
    const advantage = advantageOf(s.index),
      human = byPerson(s),
      learned = human ? imitate && advantage > 0 : keep[s.index] && told;
    if (!learned || !o.expressible(t, s.index)) return [];
    const step = { trajectory: t, group: o.group, step: s.index, weight };
    return human
      ? [{ ...step, kind: 'imitation', advantage: 0, coefficient: advantage }]
      : [{ ...step, kind: 'policy', advantage, ...(o.aged ? { precollected: true } : {}) }];
  });
}

/** Per step: a key of the screen it was decided on and of the actions that led there. */
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
