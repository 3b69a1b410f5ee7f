import { describe, expect, it } from 'vitest';
import type { EventSink } from '../../../runtime/data/commits.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import { dataConfig, failure, familyIds, makeTrajectory, success, taskOf } from '../../helpers/data/manager.js';

const SINK: EventSink = { append: () => Promise.resolve(), close: () => Promise.resolve() };
const open = (eta: number): DataManager =>
  DataManager.volatile(
    {
      config: dataConfig({
        dynamicRollouts: { max: 2 },
        dynamicLength: { exploreShare: 0 },
        pool: { enabled: false },
        staleness: { eta, perUpdate: 100, groupsPerUpdate: 1 },
      }),
      families: familyIds.map((id) => ({ id, seeds: { from: 1, count: 20 } })),
      taskOf,
    },
    SINK,
  );

async function start(m: DataManager, version: number, behavior = version): Promise<[RolloutOrder, RolloutOrder]> {
  const info = { maxConcurrent: 100, version, behavior },
    a = await m.nextOrder(info),
    b = await m.nextOrder(info);
  if (!a || !b) throw new Error('no order');
  for (const o of [a, b]) await m.started(o.rollout, behavior);
  return [a, b];
}
async function end(m: DataManager, [a, b]: readonly [RolloutOrder, RolloutOrder], version: number): Promise<void> {
  await m.record(makeTrajectory(a, success, { version, steps: 2 }));
  await m.record(makeTrajectory(b, failure, { version, steps: 2 }));
}
async function update(m: DataManager, version: number): Promise<string | undefined> {
  const b = await m.claimBatch({ version });
  if (b) await m.trained(b.id, version + 1);
  return b?.groups[0]?.id;
}

describe('the staleness bound, kept without discarding', () => {
  it('an update waits for an old group rather than letting it grow too old', async () => {
    const m = open(1),
      slow = await start(m, 0),
      quick = await start(m, 0);
    await end(m, quick, 0);
    expect(await update(m, 0)).toBe(quick[0].group); // the slow one can still have the next turn
    const later = await start(m, 1);
    await end(m, later, 1);
    expect(await update(m, 1)).toBeUndefined(); // its turn
    await end(m, slow, 0);
    expect(await update(m, 1)).toBe(slow[0].group);
    expect(await update(m, 2)).toBe(later[0].group);
    expect(m.stats().ledger).toMatchObject({ trained: 6, retired: {} });
    expect(m.stats().staleness).toEqual([
      { lag: 0, rollouts: 2 },
      { lag: 1, rollouts: 4 },
    ]);
  });
  it('the group with the oldest weights goes first, whichever was complete first', async () => {
    const m = open(3),
      old = await start(m, 0),
      first = await start(m, 0);
    await end(m, first, 0);
    expect(await update(m, 0)).toBe(first[0].group);
    const young = await start(m, 1);
    await end(m, young, 1);
    await end(m, old, 0);
    expect(await update(m, 1)).toBe(old[0].group);
  });
  it('who starts on weights that are being replaced may wait that much less', () => {
    const m = open(2),
      info = { maxConcurrent: 100, version: 5 };
    expect(m.capacity(info)).toBe(6); // (eta + 1) groups of 2
    expect(m.capacity({ ...info, behavior: 4 })).toBe(4);
    expect(m.capacity({ ...info, behavior: 2 })).toBeLessThanOrEqual(1);
  });
  it('goes on when the old group is dropped', async () => {
    const m = open(1),
      slow = await start(m, 0),
      quick = await start(m, 0);
    await end(m, quick, 0);
    await update(m, 0);
    const later = await start(m, 1);
    await end(m, later, 1);
    expect(await update(m, 1)).toBeUndefined();
    for (const o of slow) await m.record(makeTrajectory(o, failure, { version: 0, steps: 2 }));
    expect(await update(m, 1)).toBe(later[0].group);
  });
});

describe('orders of open groups only', () => {
  it('give what a group still lacks, and no new group', async () => {
    const m = open(4),
      info = { maxConcurrent: 100, version: 0, onlyOpen: true };
    expect(await m.nextOrder(info)).toBeUndefined();
    const first = (await m.nextOrder({ ...info, onlyOpen: false }))!;
    expect(m.isOpen(first.group)).toBe(true);
    expect((await m.nextOrder(info))?.group).toBe(first.group);
    expect(await m.nextOrder(info)).toBeUndefined();
  });
});
