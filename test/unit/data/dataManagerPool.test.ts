import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { Outcome, RolloutId } from '../../../runtime/domain/index.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
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
import { n3, group } from '../../helpers/data/groups.js';

describe('data manager and experience pool', () => {
  it("a person's words about the pool hold in the run and after a restart: overrides count as successes, what is off or out teaches nothing", () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, pool: { addSuccesses: false } })),
        family = familyIds[0]!,
        demo = (name: string, outcome: Outcome) =>
          makeTrajectory({ rollout: id<RolloutId>(name), family, task: taskOf(family, 1), cap: 9 }, outcome, {
            steps: 2,
            provenance: { kind: 'human' },
          });
      let told = 0;
      m.onPool(() => {
        told++;
      });
      expect((await m.record(demo('h1', failure), { override: 'the verifier is wrong' })).pool).toEqual({
        pooled: true,
      });
      expect((await m.record(demo('h2', success))).pool).toEqual({ pooled: true });
      expect((await m.record(demo('h3', success))).pool).toEqual({ pooled: true });
      expect((await m.record(demo('h4', failure))).pool).toMatchObject({ pooled: false });
      await m.switchPool([id<RolloutId>('h2')], false);
      await m.removeFromPool([id<RolloutId>('h3')], 'discarded');
      const holds = (x: DataManager): void => {
        expect(x.externalSuccesses().map((t) => [t.id, t.outcome.kind])).toEqual([['h1', 'success']]);
        expect(['h1', 'h2', 'h3', 'h4'].map((r) => x.rejected(id<RolloutId>(r)))).toEqual([false, true, true, false]);
      };
      holds(m);
      expect(told).toBeGreaterThan(3);
      await m.close();
      const again = await openManager(dir, dataConfig({ ...n3, pool: { addSuccesses: false } }));
      holds(again);
      // Groups of the family that fail get it, as the success it is said to be; nothing else is left.
      for (let k = 0; k < 12; k++) await group(again, [failure, failure, failure]);
      const b = await again.claimBatch({ version: 0, minGroups: 1 }),
        injected = b!.groups.flatMap((g) => g.members.filter((x) => x.injected));
      expect(injected.map((x) => [x.trajectory.id, x.reward, x.trajectory.outcome.kind])).toEqual([
        ['h1', 1, 'success'],
      ]);
      await again.close();
    }));

  it('injects a pool success into a group nobody solved, in place of its oldest failure', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, planner: { planner: 'shuffle' } }));
      for (const f of familyIds)
        await m.record(
          makeTrajectory({ rollout: id<RolloutId>(`demo-${f}`), family: f, task: taskOf(f, 99), cap: 30 }, success, {
            provenance: { kind: 'oracle' },
            steps: 4,
          }),
        );
      const { orders } = await group(m, [failure, failure, failure]);
      const b = (await m.claimBatch({ version: 0 }))!,
        members = b.groups[0]!.members;
      expect(members.map((x) => x.trajectory.id)).toEqual([
        orders[1]!.rollout,
        orders[2]!.rollout,
        `demo-${orders[0]!.family}`,
      ]);
      expect(members[2]).toMatchObject({
        injected: true,
        reward: 1,
        provenance: { kind: 'oracle' },
        keep: [true, true, true, true],
      });
      expect(members[2]!.trajectory.steps.every((s) => s.tokens === undefined)).toBe(true);
      expect(m.stats()).toMatchObject({
        pool: { entries: 3, injections: 1 },
        ledger: { generated: 3, retired: { replaced: 1 }, byState: { claimed: 2 } },
      });
      // A family with a demonstration starts from its length.
      expect(m.stats().families.find((f) => f.family === orders[0]!.family)).toMatchObject({ cap: 6, longest: 4 });
      await m.close();
    }));

  it('keeps a policy success for later groups, and can be told not to', () =>
    withDir(async (dir) => {
      const m = await openManager(join(dir, 'a'), dataConfig(n3)),
        off = await openManager(join(dir, 'b'), dataConfig({ ...n3, pool: { addSuccesses: false } }));
      for (const x of [m, off]) await group(x, [success, failure, failure]);
      expect([m.stats().pool.entries, off.stats().pool.entries]).toEqual([1, 0]);
      await m.close();
      await off.close();
    }));

  it('does not mask the injected success whole, even when its steps are the surest of the group', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, highEntropy: { keep: 0.5 } }));
      for (const f of familyIds)
        await m.record(
          makeTrajectory({ rollout: id<RolloutId>(`old-${f}`), family: f, task: taskOf(f, 99), cap: 30 }, success, {
            provenance: { kind: 'imported', from: 'x' },
            steps: 2,
          }),
        );
      for (const f of familyIds)
        await m.record({
          ...makeTrajectory({ rollout: id<RolloutId>(`sure-${f}`), family: f, task: taskOf(f, 98), cap: 30 }, success, {
            provenance: { kind: 'rollout' },
            entropies: [0.01],
          }),
          provenance: { kind: 'imported', from: 'y' },
        });
      await group(m, [failure, failure, failure], [{ entropies: [1] }, { entropies: [2, 2] }, { entropies: [3, 3] }]);
      const members = (await m.claimBatch({ version: 0 }))!.groups[0]!.members;
      expect(members[2]).toMatchObject({ injected: true, keep: [true] });
      expect(members[2]!.trajectory.id).toMatch(/^sure-/);
      await m.close();
    }));

  it('lets probes steer neither lengths nor rates, and holds a family to its share of the pool', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, pool: { maxPerFamily: 2 } })),
        f = familyIds[0]!;
      await m.record(
        makeTrajectory({ rollout: id<RolloutId>('p'), family: f, task: taskOf(f, 1), cap: 30 }, success, {
          provenance: { kind: 'probe' },
          steps: 3,
        }),
      );
      expect(m.stats().families.find((x) => x.family === f)).toMatchObject({
        longest: undefined,
        outcomes: 0,
        cap: 30,
      });
      for (let i = 1; i <= 4; i++)
        await m.record(
          makeTrajectory({ rollout: id<RolloutId>(`d${i}`), family: f, task: taskOf(f, i), cap: 30 }, success, {
            provenance: { kind: 'human' },
            steps: i,
          }),
        );
      expect(m.stats().pool.entries).toBe(2);
      expect(m.stats().families.find((x) => x.family === f)).toMatchObject({ longest: 4, cap: 6 });
      await m.close();
      const r = await openManager(dir, dataConfig({ ...n3, pool: { maxPerFamily: 2 } }));
      expect(r.stats().pool.entries).toBe(2);
      await r.close();
    }));
});
