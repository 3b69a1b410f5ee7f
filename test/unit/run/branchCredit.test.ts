import { describe, expect, it } from 'vitest';
import {
  id,
  type FamilyId,
  type GroupId,
  type RolloutId,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { policySteps, type CreditOptions } from '../../../runtime/run/credit.js';
import { failure, makeTrajectory, success } from '../../helpers/data/manager.js';

const plain: CreditOptions = { baseline: 'trajectory', norm: 'none', balance: 'step', credit: 'trajectory' };

function made(name: string, outcome: typeof success, steps: number, branch?: { of: string; step: number }): Trajectory {
  return makeTrajectory(
    {
      rollout: id<RolloutId>(name),
      group: id<GroupId>('g'),
      family: id<FamilyId>('f'),
      task: id<TaskId>('t'),
      cap: 9,
      ...(branch ? { branch: { of: id<RolloutId>(branch.of), step: branch.step } } : {}),
    },
    outcome,
    { steps, seed: 1 },
  );
}
function advantages(trajectories: readonly Trajectory[], o = plain, injected: readonly string[] = []) {
  const keep = trajectories.map((t) =>
      t.steps.map((s) => s.index >= (injected.includes(t.id) ? 0 : (t.branch?.step ?? 0))),
    ),
    group = {
      id: id<GroupId>('g'),
      family: id<FamilyId>('f'),
      trajectories,
      injected: injected.map((r) => id<RolloutId>(r)),
    },
    by = new Map<string, [number, number][]>();
  for (const s of policySteps([{ group, keep }], o, () => true))
    by.set(s.trajectory.id, [...(by.get(s.trajectory.id) ?? []), [s.step, s.advantage]]);
  return Object.fromEntries(by);
}

describe('credit of branches', () => {
  const lost = made('lost', failure, 4),
    won = made('won', success, 2),
    a = made('a', success, 3, { of: 'lost', step: 2 }),
    b = made('b', failure, 3, { of: 'lost', step: 2 });

  it('before the branch point rollouts are compared with those that began with the task, behind it with their siblings', () => {
    // Whole: [0, 1], mean 1/2. Siblings: [0, 1, 0], mean 1/3.
    expect(advantages([lost, won, a, b])).toEqual({
      lost: [
        [0, -0.5],
        [1, -0.5],
        [2, -1 / 3],
        [3, -1 / 3],
      ],
      won: [
        [0, 0.5],
        [1, 0.5],
      ],
      a: [[2, 1 - 1 / 3]],
      b: [[2, -1 / 3]],
    });
  });
  it('divides by the deviation of those that are compared', () => {
    const got = advantages([lost, won, a, b], { ...plain, norm: 'std' });
    // The n-1 deviation of [0, 1, 0] is 1 / sqrt 3.
    expect(got['a']![0]![1]).toBeCloseTo((2 / 3) * Math.sqrt(3), 4);
  });
  it('where all siblings end alike, the step decided nothing, and counts in the mean over steps all the same', () => {
    const c = made('c', failure, 3, { of: 'lost', step: 2 });
    expect(advantages([lost, won, b, c])).toEqual({
      lost: [
        [0, -0.5],
        [1, -0.5],
        [2, 0],
        [3, 0],
      ],
      won: [
        [0, 0.5],
        [1, 0.5],
      ],
    });
  });
  it('one whose origin is gone is compared with its siblings, and alone with nobody', () => {
    expect(advantages([won, made('other', failure, 2), a, b])).toMatchObject({ a: [[2, 0.5]], b: [[2, -0.5]] });
    expect(advantages([won, made('other', failure, 2), a])).not.toHaveProperty('a');
  });
  it('a rollout that is alone with branches is compared with nobody', () => {
    const half = { ...made('half', failure, 2), outcome: { kind: 'failure', reward: 0.5, truncated: false } as const };
    expect(advantages([half, a, b])).not.toHaveProperty('half');
  });
  it('one that ended before it began is no sibling', () => {
    const early = made('early', failure, 2, { of: 'lost', step: 2 });
    // Without it: [0, 1].
    expect(advantages([lost, won, a, early])).toMatchObject({ a: [[2, 0.5]] });
  });
  it('from the pool it is a whole like any other', () => {
    const pooled = made('pooled', success, 3, { of: 'elsewhere', step: 2 });
    expect(advantages([lost, pooled], plain, ['pooled'])['pooled']).toEqual([
      [0, 0.5],
      [1, 0.5],
      [2, 0.5],
    ]);
  });
});

describe('a step whose advantage is 0', () => {
  const group = (trajectories: readonly Trajectory[]) => ({
      group: { id: id<GroupId>('g'), family: id<FamilyId>('f'), trajectories, injected: [] },
      keep: trajectories.map((t) => t.steps.map(() => true)),
    }),
    one = made('one', success, 3),
    /** The same, but for its last screen. */
    parted = (name: string): Trajectory => ({
      ...one,
      id: id<RolloutId>(name),
      outcome: failure,
      steps: one.steps.map((s) => (s.index < 2 ? s : { ...s, frame: { ...s.frame, hash: 'elsewhere' } })),
    }),
    again: Trajectory = { ...one, id: id<RolloutId>('again') },
    other = made('other', failure, 3),
    learned = (trajectories: readonly Trajectory[], o: CreditOptions) =>
      policySteps([group(trajectories)], o, () => true).map((s) => [s.trajectory.id, s.step, s.advantage, s.weight]);

  it('stays among the steps that a trajectory is divided by, by whatever credit', () => {
    const o: CreditOptions = { ...plain, credit: 'fork', balance: 'trajectory' },
      steps = learned([one, again, parted('lost'), parted('lost too')], o);
    // Behind the step at which they part all end alike.
    expect(steps.map(([, , advantage]) => advantage)).toEqual([0.5, 0.5, 0, 0.5, 0.5, 0, -0.5, -0.5, 0, -0.5, -0.5, 0]);
    expect(steps.map(([, , , weight]) => weight)).toEqual(steps.map(() => 1 / 3));
  });
  it('is left out with all others of a trajectory that was worth what the mean is: nothing changes by default', () => {
    const half = (name: string): Trajectory => ({
      ...made(name, failure, 2),
      outcome: { kind: 'failure', reward: 0.5, truncated: false },
    });
    for (const balance of ['step', 'trajectory'] as const) {
      const w = balance === 'step' ? 1 : 1 / 3;
      expect(learned([one, half('half'), other], { ...plain, balance })).toEqual([
        ...[0, 1, 2].map((s) => ['one', s, 0.5, w]),
        ...[0, 1, 2].map((s) => ['other', s, -0.5, w]),
      ]);
    }
  });
});

describe('credit by progress', () => {
  it('is told by what the verifier said after each step, apart for branches', () => {
    const heard = (t: Trajectory, ...held: readonly (number | undefined)[]): Trajectory => ({
        ...t,
        steps: t.steps.map((s, i) => (held[i] === undefined ? s : { ...s, progress: { held: held[i], ms: 5 } })),
      }),
      o: CreditOptions = { ...plain, credit: 'progress' },
      got = advantages([heard(made('won', success, 3), 0.5, 1), heard(made('lost', failure, 3), 0.5, 0)], o);
    // Half of it held once in both, so it is worth what nothing is: 1/2. All of it held in one alone.
    expect(got['won']!.map(([, a]) => Math.round(1000 * a) / 1000)).toEqual([0.405, 0.45, 0.5]);
    expect(got['lost']!.map(([, a]) => Math.round(1000 * a) / 1000)).toEqual([-0.405, -0.45, -0.5]);
    const [lost, won, a, b] = [
      heard(made('lost', failure, 4), 0, 0, 0),
      made('won', success, 2),
      made('a', success, 3, { of: 'lost', step: 2 }),
      made('b', failure, 3, { of: 'lost', step: 2 }),
    ];
    expect(advantages([lost, won, a, b], o)['a']).toEqual([[2, 1 - 1 / 3]]);
  });
});
