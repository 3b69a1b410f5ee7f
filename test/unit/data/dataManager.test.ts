import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { RolloutId } from '../../../runtime/domain/index.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { ledgerFromIndex, ledgerOf } from '../../../runtime/queries/overview.js';
import { lastCheckpoint } from '../../../runtime/run/checkpoints.js';
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
import { n3, info, order, group } from '../../helpers/data/groups.js';

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
