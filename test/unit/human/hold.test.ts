import { describe, expect, it } from 'vitest';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';

const config = dataConfig({
  dynamicRollouts: { max: 2 },
  dynamicLength: { exploreShare: 0 },
  staleness: { eta: 1, perUpdate: 100, groupsPerUpdate: 1 },
});
async function started(m: DataManager, version: number): Promise<RolloutOrder> {
  const o = await m.nextOrder({ maxConcurrent: 100, version });
  if (!o) throw new Error('no order');
  await m.started(o.rollout, version);
  return o;
}
/** A group of two, ended. */
async function group(m: DataManager, version: number): Promise<void> {
  const [a, b] = [await started(m, version), await started(m, version)];
  await m.record(makeTrajectory(a, success, { version }));
  await m.record(makeTrajectory(b, failure, { version }));
}
const closes = (m: DataManager): void => {
  const c = m.stats().ledger;
  expect(c.generated).toBe(c.trained + c.inFlight + Object.values(c.retired).reduce((n, x) => n + x, 0));
};

describe('a rollout that a person holds', () => {
  it('keeps no update waiting: its group goes on without it, and it is retired as stale when it ends, also after a restart', () =>
    withDir(async (dir) => {
      let m = await openManager(dir, config);
      const held = await started(m, 0),
        beside = await started(m, 0);
      await m.record(makeTrajectory(beside, failure, { version: 0 }));
      m.hold(held.rollout, 'held');
      await group(m, 0);
      const first = (await m.claimBatch({ version: 0 }))!;
      await m.trained(first.id, 1);
      await group(m, 1);
      // The next update would leave the held group too old: another rollout takes its place, and the group is waited
      // for.
      expect(await m.claimBatch({ version: 1 })).toBeUndefined();
      const instead = await started(m, 1);
      expect(instead.group).toBe(held.group);
      await m.record(makeTrajectory(instead, success, { version: 1 }));
      const second = (await m.claimBatch({ version: 1 }))!;
      expect(second.groups.map((g) => [g.id, g.members.map((x) => x.trajectory.id)])).toEqual([
        [held.group, [beside.rollout, instead.rollout]],
      ]);
      await m.trained(second.id, 2);
      expect(await m.claimBatch({ version: 2 })).toBeDefined();
      // It ends: there to be looked at, and out of training.
      await m.record(makeTrajectory(held, success, { version: 0 }));
      expect(m.stats().ledger.retired).toMatchObject({ stale: 1 });
      closes(m);
      await m.close();
      m = await openManager(dir, config);
      expect(m.stats().ledger.retired).toMatchObject({ stale: 1 });
      closes(m);
      await m.close();
    }));

  it('is waited for while nothing else is under way, but not for ever', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        held = await started(m, 0),
        beside = await started(m, 0);
      await m.record(makeTrajectory(beside, success, { version: 0 }));
      m.hold(held.rollout, 'held');
      expect(await m.claimBatch({ version: 0 })).toBeUndefined();
      expect(m.capacity({ maxConcurrent: 1, version: 0 })).toBe(0);
      m.hold(held.rollout, 'long');
      expect(await m.claimBatch({ version: 0 })).toBeUndefined();
      const instead = await started(m, 0);
      expect(instead.group).toBe(held.group);
      // Handed back and ended before the group is claimed: it is not part of it any more.
      m.hold(held.rollout, 'free');
      await m.record(makeTrajectory(held, failure, { version: 0 }));
      await m.record(makeTrajectory(instead, failure, { version: 0 }));
      expect((await m.claimBatch({ version: 0 }))!.groups[0]!.members.map((x) => x.trajectory.id)).toEqual([
        beside.rollout,
        instead.rollout,
      ]);
      closes(m);
      await m.close();
    }));

  it('that is handed back in time is one of its group like any other', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        held = await started(m, 0),
        beside = await started(m, 0);
      m.hold(held.rollout, 'held');
      await m.record(makeTrajectory(beside, success, { version: 0 }));
      m.hold(held.rollout, 'free');
      await m.record(makeTrajectory(held, failure, { version: 0 }));
      expect((await m.claimBatch({ version: 0 }))!.groups[0]!.members).toHaveLength(2);
      closes(m);
      await m.close();
    }));
});
