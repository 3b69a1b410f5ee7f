import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { dataConfig, failure, makeTrajectory, openManager, success, withDir } from '../../helpers/data/manager.js';

const config = dataConfig({
  dynamicRollouts: { max: 2 },
  dynamicLength: { exploreShare: 0 },
  deterministic: true,
});
const one = { maxConcurrent: 1, version: 0 };
const order = async (m: DataManager): Promise<RolloutOrder> => (await m.nextOrder(one))!;
/** What a crash leaves: the folder as it is now, without what its writer would still write. */
async function crashed(dir: string, name: string): Promise<DataManager> {
  const copy = join(dir, '..', name);
  await cp(dir, copy, { recursive: true, filter: (f) => !/lock|reserve/.test(f) });
  return openManager(copy, config);
}

describe('a deterministic run', () => {
  it('begins a rollout that a crash cut short again, under its own id and without its steps', () =>
    withDir(async (base) => {
      const dir = join(base, 'a'),
        m = await openManager(dir, config),
        o = await order(m),
        t = makeTrajectory(o, success);
      await m.started(o.rollout, 0);
      await m.recordStep(o.rollout, t.steps[0]!);
      const r = await crashed(dir, 'b');
      await m.close();
      expect(r.recovery.lost).toEqual([o.rollout]);
      expect(r.stats().ledger).toMatchObject({ generated: 1, begun: 0, retired: {}, byState: { queued: 1 } });
      expect(await order(r)).toEqual(o);
      expect(await r.nextOrder(one)).toBeUndefined();
      await r.started(o.rollout, 0);
      await r.record(t);
      const next = await order(r);
      expect(next.rollout).not.toBe(o.rollout);
      await r.started(next.rollout, 0);
      await r.record(makeTrajectory(next, failure));
      // A fault that the run survives does the same.
      const third = await order(r);
      await r.started(third.rollout, 0);
      await r.restart(third.rollout);
      expect(await order(r)).toEqual(third);
      expect(r.stats().ledger.begun).toBe(2);
      await r.close();
      const reader = await RunReader.open(join(base, 'b'), { index: 'local' });
      expect((await reader.readTrajectory(o.rollout))!.steps).toHaveLength(t.steps.length);
      await reader.close();
    }));

  it('trains the batch that was claimed when it crashed, as it was claimed', () =>
    withDir(async (base) => {
      const dir = join(base, 'a'),
        m = await openManager(dir, config);
      for (const outcome of [success, failure]) {
        const o = await order(m);
        await m.started(o.rollout, 0);
        await m.record(makeTrajectory(o, outcome));
      }
      const claimed = (await m.claimBatch({ version: 0 }))!,
        r = await crashed(dir, 'b');
      await m.close();
      expect(r.recovery.released).toBe(0);
      expect(await r.claimBatch({ version: 0 })).toEqual(claimed);
      expect(await r.claimBatch({ version: 0 })).toBeUndefined();
      await r.trained(claimed.id, 1);
      expect(r.stats()).toMatchObject({ batches: 1, ledger: { trained: 2, byState: { claimed: 0 } } });
      expect(r.groups()).toEqual({ opened: 1, open: [] });
      await r.close();
    }));
});
