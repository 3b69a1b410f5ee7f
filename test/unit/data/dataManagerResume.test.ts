import { cp, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { FamilyId, RolloutId } from '../../../runtime/domain/index.js';
import {
  dataConfig,
  failure,
  familyIds,
  makeTrajectory,
  openManager,
  success,
  taskOf,
  withDir,
} from '../../helpers/data/manager.js';
import { n3, order, group } from '../../helpers/data/groups.js';

describe('data manager after a restart', () => {
  it('resumes: lost rollouts are handed out again, claims are free, recorded ones are not lost', () =>
    withDir(async (dir) => {
      const a = join(dir, 'a'),
        b = join(dir, 'b'),
        config = dataConfig(n3);
      const m = await openManager(a, config);
      await m.record(
        makeTrajectory(
          { rollout: id<RolloutId>('demo'), family: id<FamilyId>('alpha'), task: taskOf(familyIds[0]!, 99), cap: 30 },
          success,
          { provenance: { kind: 'human' } },
        ),
      );
      await group(m, [success, failure, failure]);
      const claimed = (await m.claimBatch({ version: 0 }))!;
      const [x, y, z] = [await order(m), await order(m), await order(m)];
      for (const o of [x, y]) await m.started(o.rollout, 0);
      const done = makeTrajectory(x, success);
      await m.record(done);
      // What a kill leaves on disk at this moment.
      await cp(a, b, { recursive: true });
      const before = m.stats();
      await m.close();

      const r = await openManager(b, config);
      expect(r.recovery).toMatchObject({ lost: [z.rollout, y.rollout], released: 1, skipped: 0, unreadable: [] });
      expect(r.stats().ledger).toMatchObject({
        generated: before.ledger.generated,
        retired: { lost: 2 },
        byState: { grouped: 3, recorded: 1, claimed: 0, queued: 0, running: 0 },
      });
      expect(r.stats().pool).toEqual(before.pool);
      expect(r.stats().families).toEqual(before.families);
      const again = (await r.claimBatch({ version: 0 }))!;
      expect(again.groups).toEqual(claimed.groups);
      const [y2, z2] = [await order(r), await order(r)];
      expect([y2, z2].map((o) => [o.group, o.task, o.seed])).toEqual([y, z].map((o) => [o.group, o.task, o.seed]));
      for (const o of [y2, z2]) {
        await r.started(o.rollout, 0);
        await r.record(makeTrajectory(o, failure));
      }
      const b2 = (await r.claimBatch({ version: 0 }))!;
      expect(b2.groups[0]!.members.map((q) => q.trajectory)).toContainEqual(done);
      await r.close();
    }));

  it('keeps the order of waiting groups when several claims are given back by a restart', () =>
    withDir(async (dir) => {
      const a = join(dir, 'a'),
        b = join(dir, 'b'),
        m = await openManager(a, dataConfig(n3)),
        formed: string[] = [];
      for (let i = 0; i < 4; i++) formed.push((await group(m, [success, failure, failure])).orders[0]!.group);
      await m.claimBatch({ version: 0 });
      await m.claimBatch({ version: 0, minGroups: 2 });
      await cp(a, b, { recursive: true });
      await m.close();
      const r = await openManager(b, dataConfig(n3));
      expect(r.recovery.released).toBe(2);
      expect((await r.claimBatch({ version: 0, minGroups: 4 }))!.groups.map((g) => g.id)).toEqual(formed);
      await r.close();
    }));

  it('curates on resume a group whose last trajectory was written just before the end', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3)),
        { orders } = await group(m, [success, failure, failure]);
      const [row] = await m.store.index.query('SELECT position FROM groups WHERE closed_at IS NOT NULL');
      await m.close();
      await truncate(join(dir, 'journal', '00000000.journal'), Number(row!['position']));
      const r = await openManager(dir, dataConfig(n3));
      expect((await r.claimBatch({ version: 0 }))!.groups[0]!.members.map((x) => x.trajectory.id)).toEqual(
        orders.map((o) => o.rollout),
      );
      await r.close();
    }));
});
