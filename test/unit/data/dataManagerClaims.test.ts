import { describe, expect, it } from 'vitest';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';
import { n3, info, order, group } from '../../helpers/data/groups.js';

describe('data manager: what may be claimed', () => {
  it('admits by the staleness bound and goes on when a batch is trained', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, staleness: { eta: 0, perUpdate: 6 } }));
      let changes = 0;
      m.onChange(() => {
        changes++;
      });
      await group(m, [success, failure, failure]);
      await group(m, [success, failure, failure]);
      expect(await m.nextOrder(info)).toBeUndefined();
      expect(m.capacity({ maxConcurrent: 4, version: 0 })).toBe(0);
      const b = (await m.claimBatch({ version: 0, minGroups: 2 }))!;
      expect(await m.nextOrder(info)).toBeUndefined();
      const before = changes;
      await m.trained(b.id, 1);
      expect(changes).toBeGreaterThan(before);
      expect(m.capacity({ maxConcurrent: 4, version: 1 })).toBe(4);
      expect(await m.nextOrder({ maxConcurrent: 4, version: 1 })).toBeDefined();
      await m.close();
    }));

  it('does not stop for ever when the bound is smaller than what the trainer wants', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, staleness: { eta: 0, perUpdate: 2 } }));
      const seen: RolloutOrder[] = [];
      for (let i = 0; i < 20 && !(await m.claimBatch({ version: 0, minGroups: 2 })); i++) {
        const o = await order(m);
        seen.push(o);
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, seen.filter((x) => x.group === o.group).length === 1 ? success : failure));
      }
      expect(seen).toHaveLength(6);
      await m.close();
    }));

  it('retires what lags too far before it hands out a batch, and keeps what is still worth it', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, staleness: { eta: 2, perUpdate: 100 } }));
      await group(m, [success, failure, failure], [{ version: 0 }, { version: 3 }, { version: 3 }]);
      await group(m, [success, failure, failure], [{ version: 3 }, { version: 0 }, { version: 3 }]);
      const b = (await m.claimBatch({ version: 3, maxGroups: 5 }))!;
      expect(b.groups.map((g) => g.members.length)).toEqual([2]);
      await m.trained(b.id, 4);
      expect(m.stats()).toMatchObject({ ledger: { trained: 2, retired: { stale: 4 }, inFlight: 0 } });
      await m.close();
    }));

  it('gives a claim back in front of the queue', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3));
      await group(m, [success, failure, failure]);
      const a = (await m.claimBatch({ version: 0 }))!;
      await group(m, [success, failure, failure]);
      await m.release(a.id, 'the trainer died');
      const again = (await m.claimBatch({ version: 0 }))!;
      expect(again.id).not.toBe(a.id);
      expect(again.groups.map((g) => g.id)).toEqual(a.groups.map((g) => g.id));
      await m.close();
    }));

  it('bounds open, waiting and claimed groups, so that small groups do not wait for many updates', () =>
    withDir(async (dir) => {
      const m = await openManager(
        dir,
        dataConfig({ ...n3, staleness: { eta: 1, perUpdate: 100, groupsPerUpdate: 1 } }),
      );
      await group(m, [success, failure, failure]);
      const [a, b] = [await order(m), await order(m)];
      // Two groups are pending: the second may be finished, a third may not be begun.
      expect(m.capacity(info)).toBe(1);
      const c = await order(m);
      expect(c.group).toBe(a.group);
      expect(await m.nextOrder(info)).toBeUndefined();
      const batch = (await m.claimBatch({ version: 0 }))!;
      expect(await m.nextOrder(info)).toBeUndefined();
      await m.trained(batch.id, 1);
      expect((await order(m)).group).not.toBe(a.group);
      for (const o of [a, b, c]) {
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, success));
      }
      // A dropped group makes room.
      expect(m.stats().groups.dropped).toBe(1);
      expect(m.capacity({ ...info, version: 1 })).toBe(2 + 3);
      await m.close();
    }));

  it('counts what is recorded but not yet grouped against the bound', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, staleness: { eta: 0, perUpdate: 3 } })),
        o = await order(m);
      await m.started(o.rollout, 0);
      expect(m.capacity(info)).toBe(2);
      await m.record(makeTrajectory(o, success));
      expect(m.capacity(info)).toBe(2);
      await m.close();
    }));
});
