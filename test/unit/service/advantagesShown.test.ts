import { describe, expect, it } from 'vitest';
import { id, type FamilyId, type GroupId, type RolloutId, type TaskId } from '../../../runtime/domain/index.js';
import { advantagesOf } from '../../../runtime/queries/trajectory.js';
import { policySteps, type CreditOptions } from '../../../runtime/run/credit.js';
import { interpreter } from '../../../runtime/service/interpreter.js';
import { failure, makeTrajectory, success } from '../../helpers/data/manager.js';

const group = id<GroupId>('g'),
  family = id<FamilyId>('f'),
  task = id<TaskId>('t'),
  made = (name: string, outcome: typeof success, steps: number) =>
    makeTrajectory({ rollout: id<RolloutId>(name), group, family, task, cap: 30 }, outcome, { steps, seed: 1 });

/** One short success beside long failures, most of whose steps curation leaves out. */
const trajectories = [made('won', success, 10), ...['a', 'b', 'c'].map((name) => made(name, failure, 30))],
  keep = trajectories.map((t) => t.steps.map((s) => s.index % (t.id === 'won' ? 2 : 3) === 0)),
  members = trajectories.map((t, i) => ({
    rollout: t.id,
    injected: false,
    reward: t.id === 'won' ? 1 : 0,
    keep: keep[i]!,
  }));

describe('advantages that are shown', () => {
  it.each([
    ['step', 'std'],
    ['step', 'none'],
    ['trajectory', 'std'],
  ] as const)('are those that are trained: over %ss, norm %s', (baseline, norm) => {
    const o: CreditOptions = { baseline, norm, balance: baseline, credit: 'trajectory' },
      trained = policySteps([{ group: { id: group, family, trajectories, injected: [] }, keep }], o, () => true),
      shown = advantagesOf(members, interpreter(o));
    expect(shown.size).toBe(4);
    for (const s of trained) expect(shown.get(s.trajectory.id)).toBe(s.advantage);
  });
  it.each(['fork', 'progress'] as const)('are left to what training recorded where credit is `%s`', (credit) => {
    expect(advantagesOf(members, interpreter({ baseline: 'trajectory', norm: 'std', credit })).size).toBe(0);
  });
});
