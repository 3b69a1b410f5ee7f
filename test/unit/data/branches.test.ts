import { describe, expect, it } from 'vitest';
import { random, type BranchPoint, type GroupId, type RolloutId, type Step } from '../../../runtime/domain/index.js';
import { curateGroup } from '../../../runtime/data/curation/curateGroup.js';
import { highEntropy } from '../../../runtime/data/curation/highEntropy.js';
import type { ChartSource } from '../../../runtime/data/curation/mechanism.js';
import { branchesOf, branchPoint } from '../../../runtime/data/curation/branches.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { info, order } from '../../helpers/data/groups.js';
import {
  broken,
  dataConfig,
  diverged,
  failure,
  makeTrajectory,
  openManager,
  success,
  withDir,
} from '../../helpers/data/manager.js';

const on = { enabled: true, count: 2, choose: 'entropy' } as const;
const made = (rollout: string, entropies: number[], outcome = failure) =>
  makeTrajectory(
    {
      rollout: rollout as RolloutId,
      family: 'alpha' as never,
      task: 'alpha#1' as never,
      cap: 9,
      group: 'g' as GroupId as never,
    },
    outcome,
    { entropies },
  );
const changed = (t: ReturnType<typeof made>, index: number, by: Partial<Step>) => ({
  ...t,
  steps: t.steps.map((s) => (s.index === index ? { ...s, ...by } : s)),
});

describe('where branches begin', () => {
  it('at the step of highest entropy of the group, the first steps left out', () => {
    const a = made('a', [9, 1, 2]),
      b = made('b', [9, 3, 1]);
    expect(branchPoint([a, b], on, random(1))).toEqual({ of: 'b', step: 1 });
  });
  it('whichever way its rollout ended, but nowhere when all succeeded', () => {
    const won = made('won', [1, 5], success),
      lost = made('lost', [1, 2]);
    expect(branchPoint([won, lost], on, random(1))).toEqual({ of: 'won', step: 1 });
    expect(branchPoint([won, { ...won, id: 'too' as RolloutId }], on, random(1))).toBeUndefined();
  });
  it('nowhere behind a step that cannot be acted out again', () => {
    const t = made('t', [1, 2, 3, 4]);
    expect(branchPoint([changed(t, 2, { settled: false })], on, random(1))).toEqual({ of: 't', step: 2 });
    expect(branchPoint([changed(t, 1, { origin: 'human' })], on, random(1))).toBeUndefined();
    expect(branchPoint([{ ...t, branch: { of: 'x' as RolloutId, step: 1 } }], on, random(1))).toBeUndefined();
    expect(branchPoint([made('short', [1])], on, random(1))).toBeUndefined();
  });
  it('at any step, as a control', () => {
    const t = made('t', [1, 9, 1, 1]),
      steps = Array.from({ length: 60 }, (_, i) => branchPoint([t], { choose: 'uniform' }, random(i))?.step);
    expect(new Set(steps)).toEqual(new Set([1, 2, 3]));
  });
  it('leaves two rollouts that begin with the task', () => {
    expect([2, 3, 4, 8].map((n) => branchesOf(n, on))).toEqual([0, 1, 2, 2]);
    expect(branchesOf(8, { ...on, enabled: false })).toBe(0);
  });
});

describe('a success from the pool', () => {
  it('takes the place of a branch where only one rollout began with the task', () => {
    const alone = made('alone', [1, 2]),
      a = { ...made('a', [1, 2, 3]), branch: { of: alone.id, step: 1 }, endedAt: 30 },
      b = { ...made('b', [1, 2, 3]), branch: { of: alone.id, step: 1 }, endedAt: 31 },
      pooled = made('pooled', [1], success),
      c = curateGroup([alone, a, b], () => pooled, dataConfig({ branches: on }), random(1));
    expect(c).toMatchObject({ kind: 'formed', retired: [{ rollout: 'a', reason: 'replaced' }] });
  });
});

const config = dataConfig({
  dynamicRollouts: { max: 4 },
  dynamicLength: { exploreShare: 0 },
  branches: on,
  pool: { enabled: false },
});
const entropies = [1, 2, 5, 3];
/** Opens a group and ends its two whole rollouts; returns the orders that follow in it. */
async function whole(m: DataManager, outcomes = [failure, success]): Promise<RolloutOrder[]> {
  const orders: RolloutOrder[] = [];
  for (const outcome of outcomes) {
    const o = await order(m);
    orders.push(o);
    await m.started(o.rollout, 0);
    await m.record(makeTrajectory(o, outcome, { entropies }));
  }
  return orders;
}
async function branch(m: DataManager): Promise<RolloutOrder> {
  const o = await order(m);
  await m.started(o.rollout, 0);
  return o;
}
const ends = (m: DataManager, o: RolloutOrder, outcome = failure) =>
  m.record(makeTrajectory(o, outcome, { entropies }));

describe('a group with branches', () => {
  it('hands them out once the others have ended, and trains only what they did themselves', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        [first] = await whole(m),
        point: BranchPoint = { of: first!.rollout, step: 2 },
        a = await branch(m),
        b = await branch(m);
      expect([a.branch, b.branch, a.group]).toEqual([point, point, first!.group]);
      expect(m.before(a)?.steps.map((s) => s.index)).toEqual([0, 1, 2]);
      await ends(m, a, success);
      expect((await ends(m, b)).group).toBe(first!.group);
      const batch = await m.claimBatch({ version: 0, minGroups: 1 }),
        members = batch!.groups[0]!.members,
        keep = (r: RolloutId) => members.find((x) => x.trajectory.id === r)!.keep;
      expect(keep(a.rollout).slice(0, 2)).toEqual([false, false]);
      expect(keep(a.rollout).slice(2)).toContain(true);
      expect(members.find((x) => x.trajectory.id === b.rollout)!.trajectory.branch).toEqual(point);
      await m.close();
    }));
  it('counts as generated, kept and left out what they sampled, not what they acted out again', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config);
      await whole(m);
      await ends(m, await branch(m), success);
      await ends(m, await branch(m));
      const batch = (await m.claimBatch({ version: 0, minGroups: 1 }))!,
        kept = batch.groups[0]!.members.flatMap((x) => x.keep).filter(Boolean).length,
        shown = highEntropy.charts
          .find((c) => c.name === 'kept')!
          .read(m.store as unknown as ChartSource, { enabled: true, keep: 0.8 });
      // Four rollouts of four steps, two of which begin at the third.
      expect(await shown).toMatchObject({ value: [kept / 12] });
      await m.trained(batch.id, 1);
      expect(m.stats().stepLedger).toMatchObject({ generated: 12, trained: kept, masked: 12 - kept });
      await m.close();
    }));
  it('gives them the turns that the rollout they branch off from had', () =>
    withDir(async (dir) => {
      const m = await openManager(
          dir,
          dataConfig({ ...config, dynamicLength: { exploreShare: 1, floor: 3, slack: 0 } }),
        ),
        [first] = await whole(m),
        a = await branch(m);
      // Once there is a success of four steps, others may take four; explorers take what is allowed at most.
      expect([first!.cap, a.cap]).toEqual([30, 30]);
      await m.close();
    }));
  it('counts them in no success rate', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config);
      await whole(m, [failure, failure]);
      await ends(m, await branch(m), success);
      expect(m.stats().families.find((f) => f.outcomes > 0)).toMatchObject({ outcomes: 2, rate: 0 });
      await m.close();
    }));
  it('goes on without one that met another screen; one that a fault ended is tried again', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        [first] = await whole(m),
        a = await branch(m),
        b = await branch(m);
      expect((await ends(m, a, diverged)).group).toBeUndefined();
      expect((await ends(m, b, broken)).group).toBeUndefined();
      const again = await branch(m);
      expect(again.branch).toEqual(b.branch);
      expect((await ends(m, again)).group).toBe(first!.group);
      expect(m.stats().ledger.retired).toMatchObject({ diverged: 1, error: 1 });
      await m.close();
    }));
  it('has none where there is nothing to find out', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        [first] = await whole(m, [success, success]);
      expect((await order(m)).group).not.toBe(first!.group);
      await m.close();
    }));
  it('goes on after a stop: what was not handed out, and what was lost', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        [first] = await whole(m);
      await branch(m);
      await m.close();
      const r = await openManager(dir, config),
        orders = [await branch(r), await branch(r)];
      expect(orders.map((o) => [o.group, o.branch?.step])).toEqual([
        [first!.group, 2],
        [first!.group, 2],
      ]);
      expect(r.before(orders[0]!)?.steps).toHaveLength(3);
      expect(r.capacity(info)).toBeGreaterThan(0);
      await r.close();
    }));
});
