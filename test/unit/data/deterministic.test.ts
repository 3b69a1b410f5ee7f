import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BatchId } from '../../../runtime/domain/index.js';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import type { StoredEvent } from '../../../runtime/data/events.js';
import { byteOf, readJournal, segmentName, segmentOf } from '../../../runtime/data/store/journalReader.js';
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
/** A group of a success and a failure. */
async function group(m: DataManager): Promise<readonly RolloutOrder[]> {
  const orders: RolloutOrder[] = [];
  for (const outcome of [success, failure]) {
    const o = await order(m);
    orders.push(o);
    await m.started(o.rollout, 0);
    await m.record(makeTrajectory(o, outcome));
  }
  return orders;
}
/** One flipped bit in the record of which this is. */
async function damage(dir: string, is: (e: StoredEvent) => boolean): Promise<void> {
  const journal = join(dir, 'journal');
  for await (const batch of readJournal(journal))
    for (const e of batch)
      if (is(e.event() as StoredEvent)) {
        const file = join(journal, segmentName(segmentOf(e.position))),
          bytes = await readFile(file);
        bytes[Math.floor((byteOf(e.position) + byteOf(e.next)) / 2)]! ^= 4;
        await writeFile(file, bytes);
        return;
      }
}
/** What a crash leaves: the folder as it is now, without what its writer would still write. */
async function crashed(dir: string, name: string, damaged?: (e: StoredEvent) => boolean): Promise<DataManager> {
  const copy = join(dir, '..', name);
  await cp(dir, copy, { recursive: true, filter: (f) => !/lock|reserve/.test(f) });
  if (damaged) await damage(copy, damaged);
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
      await group(m);
      const claimed = (await m.claimBatch({ version: 0 }))!,
        r = await crashed(dir, 'b');
      await m.close();
      expect(r.recovery.released).toBe(0);
      // It counts as an update once it is made again.
      expect(r.counts()).toMatchObject({ trained: 0, claimed: 0 });
      expect(await r.claimBatch({ version: 0 })).toEqual(claimed);
      expect(r.counts()).toMatchObject({ trained: 0, claimed: 1 });
      expect(await r.claimBatch({ version: 0 })).toBeUndefined();
      await r.trained(claimed.id, 1);
      expect(r.stats()).toMatchObject({ batches: 1, ledger: { trained: 2, byState: { claimed: 0 } } });
      expect(r.groups()).toEqual({ opened: 1, open: [] });
      await r.close();
    }));

  it('goes on where a trajectory of the claimed batch cannot be read: its group is lost, the others are trained', () =>
    withDir(async (base) => {
      const dir = join(base, 'a'),
        m = await openManager(dir, config),
        [lost, kept] = [await group(m), await group(m)];
      await m.claimBatch({ version: 0, minGroups: 2 });
      const r = await crashed(
        dir,
        'b',
        (e) => e.type === 'rollout.step' && e.rollout === lost[1]!.rollout && e.step.index === 0,
      );
      await m.close();
      expect(r.recovery).toMatchObject({ released: 1, unreadable: [lost[1]!.rollout], lost: [] });
      expect(r.stats().ledger).toMatchObject({ retired: { lost: 2 }, byState: { grouped: 2, claimed: 0 } });
      const batch = (await r.claimBatch({ version: 0 }))!;
      expect(batch.groups.map((g) => g.id)).toEqual([kept[0]!.group]);
      await r.trained(batch.id, 1);
      await r.close();
      const again = await openManager(join(base, 'b'), config);
      expect(again.stats().ledger).toMatchObject({ trained: 2, retired: { lost: 2 } });
      await again.close();
    }));

  it('trains no batch again of which the journal has lost that it was trained', () =>
    withDir(async (base) => {
      const dir = join(base, 'a'),
        m = await openManager(dir, config),
        batches: BatchId[] = [];
      for (let n = 0; n < 3; n++) {
        await group(m);
        batches.push((await m.claimBatch({ version: 0 }))!.id);
        if (n < 2) await m.trained(batches[n]!, n + 1);
      }
      const r = await crashed(dir, 'b', (e) => e.type === 'batch.trained' && e.batch === batches[0]);
      await m.close();
      expect(r.recovery.released).toBe(1);
      expect(r.stats().ledger).toMatchObject({ trained: 2, retired: { lost: 2 }, byState: { claimed: 2 } });
      expect((await r.claimBatch({ version: 2 }))?.id).toBe(batches[2]);
      await r.trained(batches[2]!, 3);
      expect(await r.claimBatch({ version: 3 })).toBeUndefined();
      await r.close();
    }));
});
