import { describe, expect, it, vi } from 'vitest';
import { Journal } from '../../../runtime/data/store/journal.js';
import { Snapshots } from '../../../runtime/data/store/snapshots.js';
import type { DesktopPool, PoolEvent } from '../../../runtime/cluster/types.js';
import { DesktopRegistry } from '../../../runtime/rollout/desktopRegistry.js';
import { SlowDisk } from '../../../runtime/data/slowDisk.js';
import { DataManager } from '../../../runtime/data/dataManager.js';
import { id, type DesktopId, type FamilyId } from '../../../runtime/domain/index.js';
import { Meters } from '../../../runtime/run/meters.js';
import type { SchedulerEvent } from '../../../runtime/rollout/types.js';
import { dataConfig, failure, makeTrajectory, openManager, taskOf, withDir } from '../../helpers/data/manager.js';

describe('what grows with desktops, rollouts and families', () => {
  it('statistics look at a family as often whether there are ten or a thousand', () => {
    const looks = (n: number): number => {
      let read = 0;
      const families = Array.from({ length: n }, (_, i) => ({
        get id() {
          read++;
          return id<FamilyId>(`f${i}`);
        },
        seeds: [0],
      }));
      const data = DataManager.volatile({ config: dataConfig(), families, taskOf }, {
        append: () => Promise.resolve({} as never),
        close: () => Promise.resolve(),
      } as never);
      data.stats();
      read = 0;
      data.stats();
      return read / n;
    };
    expect(looks(1000)).toBeLessThanOrEqual(looks(10) + 1);
  });

  it('the success curve of a long run has as many points as that of a short one', () => {
    const m = new Meters(0),
      t = makeTrajectory(
        { rollout: 'r1' as never, family: 'f' as never, task: 't' as never, cap: 9, group: 'g' as never },
        failure,
      );
    for (let i = 0; i < 100_000; i++)
      m.onScheduler({ type: 'ended', kind: 'rollout', trajectory: t, versions: [], at: i } as never as SchedulerEvent);
    expect(m.curve.length).toBeLessThan(600);
    expect(m.curve.length).toBeGreaterThan(100);
  });

  it('the index is written the more seldom the longer it takes', async () => {
    vi.useFakeTimers();
    try {
      let written = 0;
      const s = new Snapshots(10_000, async () => {
        written++;
        await new Promise((r) => setTimeout(r, 2000));
      });
      for (let i = 0; i < 600; i++) {
        s.changed();
        await vi.advanceTimersByTimeAsync(1000);
      }
      // 600 s, and 100 s between two of them.
      expect(written).toBeLessThanOrEqual(7);
      expect(written).toBeGreaterThanOrEqual(5);
      s.stop();
    } finally {
      vi.useRealTimers();
    }
  });

  it('rows of desktops are looked at one by one: an event of one does not go over the others', async () => {
    const n = 500,
      listeners = new Set<(e: PoolEvent) => void>(),
      rows = new Map(
        Array.from({ length: n }, (_, i) => [
          `d${i}`,
          { id: `d${i}` as DesktopId, state: 'leased' as const, since: 1, resets: 0, replaced: 0 },
        ]),
      );
    let all = 0,
      one = 0;
    const pool = {
      status: () => (all++, { size: n, waiting: 0, desktops: [...rows.values()] }),
      statusOf: (d: string) => (one++, rows.get(d)),
      onEvent: (l: (e: PoolEvent) => void) => {
        listeners.add(l);
        return () => listeners.delete(l);
      },
    } as unknown as DesktopPool;
    const registry = new DesktopRegistry(),
      told: [string, string | undefined][] = [];
    registry.onChange((d, row) => told.push([d, row?.state]));
    registry.attach(pool);
    await Promise.resolve();
    expect(told.length).toBe(n);
    told.length = 0;
    const before = all;
    for (let i = 0; i < n; i++) {
      registry.begin(`d${i}`, { rollout: 'r', task: 't', instruction: '', cap: 9, version: 0, since: 1 });
      registry.progress(`d${i}`, 1);
      for (const l of listeners) l({ type: 'state', desktop: `d${i}` as DesktopId, state: 'leased', at: 1 });
      await Promise.resolve();
    }
    expect(told.map(([d]) => d)).toEqual(Array.from({ length: n }, (_, i) => `d${i}`));
    expect(all).toBe(before);
    expect(one).toBe(n);
  });

  it('a disk that is behind starts no rollout, and one is asked for again after its next write', () =>
    withDir(async (dir) => {
      const data = await openManager(dir, dataConfig()),
        room = { maxConcurrent: 8, version: 0 };
      expect(data.capacity(room)).toBe(8);
      const behind = vi.spyOn(data.store, 'behindMs', 'get').mockReturnValue(5000),
        told = vi.fn();
      expect(data.capacity(room)).toBe(0);
      expect(await data.nextOrder(room)).toBeUndefined();
      data.onChange(told);
      behind.mockRestore();
      await data.note({ type: 'log', level: 'info', message: 'written' });
      expect(told).toHaveBeenCalled();
      expect(data.capacity(room)).toBe(8);
      await data.close();
    }));

  it('the journal says how long it is behind, from the oldest record that waits', () =>
    withDir(async (dir) => {
      let go = (): void => undefined;
      const gate = new Promise<void>((r) => {
          go = r;
        }),
        { journal } = await Journal.open(dir, { fence: () => gate });
      expect(journal.behindMs).toBe(0);
      const first = journal.append({ n: 1 });
      await new Promise((r) => setTimeout(r, 30));
      void journal.append({ n: 2 });
      expect(journal.behindMs).toBeGreaterThanOrEqual(25);
      // The most that is not slow.
      const slow = new SlowDisk({ behindMs: 3000, onDurable: (l) => journal.onDurable(() => l()) }, vi.fn());
      expect(slow.slow).toBe(false);
      go();
      await first;
      await journal.close();
      expect(journal.behindMs).toBe(0);
    }));
});
