import { cp, mkdir, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { FamilyId, Outcome, RolloutId } from '../../../runtime/domain/index.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { ledgerFromIndex, ledgerOf } from '../../../runtime/queries/overview.js';
import { lastCheckpoint } from '../../../runtime/run/resume.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import {
  broken,
  dataConfig,
  failure,
  familyIds,
  makeTrajectory,
  openManager,
  success,
  taskOf,
  withDir,
} from '../../helpers/data/manager.js';

const n3 = { dynamicRollouts: { max: 3 }, dynamicLength: { exploreShare: 0 } };
const info = { maxConcurrent: 100, version: 0 };

async function order(m: DataManager, o = info): Promise<RolloutOrder> {
  const x = await m.nextOrder(o);
  if (!x) throw new Error('no order');
  return x;
}
type Extra = Parameters<typeof makeTrajectory>[2];
/** Runs one group to its end with given outcomes. */
async function group(
  m: DataManager,
  outcomes: Outcome[],
  extra: Extra[] = [],
  version = 0,
): Promise<{ orders: RolloutOrder[]; ready: boolean }> {
  const orders: RolloutOrder[] = [];
  for (const _ of outcomes) orders.push(await order(m, { ...info, version }));
  let ready = false;
  for (const [i, o] of orders.entries()) {
    await m.started(o.rollout, version);
    const r = await m.record(makeTrajectory(o, outcomes[i]!, { version, endedAt: 100 + i, ...extra[i] }));
    ready ||= r.group !== undefined;
  }
  return { orders, ready };
}

describe('data manager', () => {
  it('takes a group from orders to a trained batch, and the ledger closes at every step', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3));
      const { orders, ready } = await group(m, [success, failure, failure]);
      expect(ready).toBe(true);
      expect(new Set(orders.map((o) => o.group)).size).toBe(1);
      const b = (await m.claimBatch({ version: 0 }))!;
      expect(b.groups[0]!.members.map((x) => x.reward)).toEqual([1, 0, 0]);
      expect(b.groups[0]!.members.map((x) => x.trajectory.id)).toEqual(orders.map((o) => o.rollout));
      expect(b.steps).toBe(b.groups[0]!.members.flatMap((x) => x.keep).filter(Boolean).length);
      expect(await m.claimBatch({ version: 0 })).toBeUndefined();
      expect(m.stats().ledger.byState).toMatchObject({ claimed: 3 });
      const checkpoint = join(dir, 'checkpoints', 'v000001');
      await mkdir(checkpoint, { recursive: true });
      await m.trained(b.id, 1, undefined, checkpoint);
      expect(await lastCheckpoint(m.store)).toEqual({ version: 1, dir: checkpoint });
      expect(m.stats()).toMatchObject({
        version: 1,
        batches: 1,
        staleness: [{ lag: 0, rollouts: 3 }],
        ledger: { generated: 3, trained: 3, inFlight: 0, retired: {} },
      });
      await expect(m.trained(b.id, 2)).rejects.toMatchObject({ kind: 'internal' });
      await m.close();
    }));

  it("counts a taken-over rollout apart: in its group's baseline, in no rate, no length, and its person's steps by themselves", () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, highEntropy: { enabled: false } })),
        orders = [await order(m), await order(m), await order(m)],
        family = orders[0]!.family;
      const helped = makeTrajectory(orders[0]!, success, { steps: 3 }),
        taken = {
          ...helped,
          steps: helped.steps.map(({ tokens, version, ...s }, i) =>
            i === 0 ? { ...s, tokens: tokens!, version: version! } : { ...s, origin: 'human' as const },
          ),
        };
      for (const o of orders) await m.started(o.rollout, 0);
      await m.record(taken);
      for (const o of orders.slice(1)) await m.record(makeTrajectory(o, failure, { steps: 2 }));
      const of = m.stats().families.find((f) => f.family === family)!;
      expect(of).toMatchObject({ outcomes: 2, rate: 0, longest: undefined });
      const b = (await m.claimBatch({ version: 0 }))!;
      expect(b.groups[0]!.members.map((x) => [x.reward, x.keep])).toEqual([
        [1, [true, false, false]],
        [0, [true, true]],
        [0, [true, true]],
      ]);
      expect(m.stats().stepLedger).toMatchObject({ generated: 7, human: 2, inFlight: 5 });
      await m.trained(b.id, 1);
      const counts = { generated: 7, trained: 5, masked: 0, human: 2, assisted: 1, inFlight: 0, retired: {} };
      expect(m.stats().stepLedger).toEqual(counts);
      await m.close();
      const reader = await RunReader.open(dir, { index: 'local' });
      expect(await ledgerFromIndex(reader)).toMatchObject({
        generated: 3,
        trained: 3,
        closes: true,
        human: { rollouts: 1, steps: 2 },
      });
      await reader.close();
      const again = await openManager(dir, dataConfig({ ...n3, highEntropy: { enabled: false } }));
      expect(again.stats().stepLedger).toEqual(counts);
      expect(ledgerOf(again.stats().ledger, again.stats().stepLedger).human).toEqual({ rollouts: 1, steps: 2 });
      expect(again.stats().families.find((f) => f.family === family)).toMatchObject({
        outcomes: 2,
        rate: 0,
        longest: undefined,
      });
      await again.close();
    }));

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

  it('never gives an order or a claim twice, however many ask at once', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3));
      const orders = await Promise.all(Array.from({ length: 9 }, () => m.nextOrder(info)));
      expect(new Set(orders.map((o) => o!.rollout)).size).toBe(9);
      for (const o of orders) {
        await m.started(o!.rollout, 0);
        await m.record(
          makeTrajectory(
            o!,
            o!.rollout.endsWith('1') || o!.rollout.endsWith('4') || o!.rollout.endsWith('7') ? success : failure,
          ),
        );
      }
      const claims = await Promise.all(Array.from({ length: 5 }, () => m.claimBatch({ version: 0 })));
      const groups = claims.flatMap((c) => c?.groups.map((g) => g.id) ?? []);
      expect(groups).toHaveLength(3);
      expect(new Set(groups).size).toBe(3);
      await m.close();
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

  it('drops groups without variance and forgets none of their rollouts', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3));
      expect((await group(m, [success, success, success])).ready).toBe(false);
      expect((await group(m, [failure, failure, failure])).ready).toBe(false);
      expect(m.stats()).toMatchObject({
        groups: { dropped: 2, ready: 0, open: 0 },
        ledger: { generated: 6, inFlight: 0, retired: { 'no-variance': 6 } },
      });
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

  it('retries errors in the group and never counts them as outcomes', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, planner: { retries: 1 } }));
      const [a, b, c] = [await order(m), await order(m), await order(m)];
      for (const o of [a, b, c]) await m.started(o.rollout, 0);
      await m.record(makeTrajectory(a, broken));
      const retry = await order(m);
      expect(retry).toMatchObject({ group: a.group, seed: a.seed });
      await m.started(retry.rollout, 0);
      await m.record(makeTrajectory(retry, broken));
      await m.record(makeTrajectory(b, success));
      expect(m.stats().groups.open).toBe(1);
      expect((await m.record(makeTrajectory(c, failure))).group).toBe(a.group);
      expect(m.stats().ledger).toMatchObject({ generated: 4, retired: { error: 2 }, byState: { grouped: 2 } });
      expect(m.stats().families.find((f) => f.family === a.family)).toMatchObject({ outcomes: 2, rate: 0.5 });
      await m.close();
    }));

  it('a group all of whose rollouts failed to run is dropped', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, planner: { retries: 0 } }));
      await group(m, [broken, broken, broken]);
      expect(m.stats()).toMatchObject({
        groups: { open: 0, dropped: 1 },
        ledger: { retired: { error: 3 }, inFlight: 0 },
      });
      await m.close();
    }));

  it('masks low-entropy steps and retires a trajectory that keeps none, leaving its reward in the group', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig({ ...n3, highEntropy: { keep: 0.5 } }));
      const { orders } = await group(
        m,
        [success, failure, failure],
        [{ entropies: [1, 2] }, { entropies: [0.1, 0.2] }, { entropies: [3, 0.3] }],
      );
      const b = (await m.claimBatch({ version: 0 }))!;
      expect(b.groups[0]!.threshold).toBeCloseTo(0.65, 5);
      expect(b.groups[0]!.members.map((x) => x.keep)).toEqual([
        [true, true],
        [false, false],
        [true, false],
      ]);
      expect(b.steps).toBe(3);
      await m.trained(b.id, 1);
      expect(m.stats()).toMatchObject({
        stepLedger: { generated: 6, trained: 3, masked: 3, human: 0, inFlight: 0, retired: {} },
        ledger: { trained: 2, retired: { masked: 1 } },
        steps: { seen: 6, kept: 3, trained: 3, share: 0.5 },
      });
      expect((await m.store.readTrajectory(orders[1]!.rollout))!.steps).toHaveLength(2);
      await m.close();
    }));

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

  it('reads a trajectory back whole, and probes and demonstrations stay out of the ledger', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3)),
        o = await order(m);
      await m.started(o.rollout, 0);
      const t = makeTrajectory(o, success, { steps: 4 });
      await m.recordStep(o.rollout, t.steps[0]!, { alternatives: [[{ label: 'click', probability: 0.5 }]] });
      await m.recordStep(o.rollout, t.steps[1]!);
      expect((await m.store.readSteps(o.rollout)).map((s) => s.step)).toEqual(t.steps.slice(0, 2));
      expect(await m.store.readTrajectory(o.rollout)).toBeUndefined();
      await m.record(t);
      expect(await m.store.readTrajectory(o.rollout)).toEqual(t);
      expect((await m.store.readSteps(o.rollout))[0]!.extra).toEqual({
        alternatives: [[{ label: 'click', probability: 0.5 }]],
      });
      const probe = makeTrajectory(
        { rollout: id<RolloutId>('p1'), family: familyIds[0]!, task: taskOf(familyIds[0]!, 7), cap: 30 },
        success,
        { provenance: { kind: 'probe' } },
      );
      await m.record(probe);
      expect(await m.store.readTrajectory(probe.id)).toEqual(probe);
      expect(m.stats()).toMatchObject({ ledger: { generated: 1 }, pool: { entries: 1, byProvenance: { rollout: 1 } } });
      await m.close();
    }));

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

  it('tells listeners once a turn, after the change is complete', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3)),
        claims: Promise<unknown>[] = [];
      let told = 0;
      m.onChange(() => {
        told++;
        claims.push(m.claimBatch({ version: 0 }));
      });
      await group(m, [success, failure, failure]);
      expect((await Promise.all(claims)).filter((c) => c !== undefined)).toHaveLength(1);
      expect(told).toBeLessThan(25);
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
      const [row] = await m.store.index.query("SELECT position FROM events WHERE type = 'group.formed'");
      await m.close();
      await truncate(join(dir, 'journal', '00000000.journal'), Number(row!['position']));
      const r = await openManager(dir, dataConfig(n3));
      expect((await r.claimBatch({ version: 0 }))!.groups[0]!.members.map((x) => x.trajectory.id)).toEqual(
        orders.map((o) => o.rollout),
      );
      await r.close();
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

  it('is refused while another has the run, naming it', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, dataConfig(n3));
      await expect(openManager(dir, dataConfig(n3))).rejects.toMatchObject({
        kind: 'run.busy',
        error: { details: { holder: { pid: process.pid } } },
      });
      await m.close();
      await (await openManager(dir, dataConfig(n3))).close();
    }));
});
