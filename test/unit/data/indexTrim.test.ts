import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { IndexEngine } from '../../../runtime/data/store/indexEngine.js';
import { peaks } from '../../../runtime/data/store/indexThin.js';
import { losingScreens } from '../../../runtime/data/store/indexTrim.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { WorkerIndex } from '../../../runtime/data/store/runIndex.js';
import { Snapshots, indexTrouble } from '../../../runtime/data/store/snapshots.js';
import { JUDGED, REASONS, STATES } from '../../../runtime/data/store/totals.js';
import { progressOf, trainedOf } from '../../../runtime/queries/compare.js';
import { series } from '../../../runtime/queries/curves.js';
import { failuresView } from '../../../runtime/queries/failures.js';
import { lanes } from '../../../runtime/queries/lanes.js';
import { metricRecords, metricRows } from '../../../runtime/queries/runReport.js';
import { listTrajectories } from '../../../runtime/queries/rows.js';
import { trajectoryColumns } from '../../../runtime/queries/table.js';
import { trajectoryView } from '../../../runtime/queries/trajectory.js';
import { withDir } from '../../helpers/data/manager.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { syntheticEvents, type SyntheticJournal } from '../../helpers/data/syntheticEvents.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

async function written(o: SyntheticJournal, bound: number, more: object = {}): Promise<MemoryIndex> {
  const index = await MemoryIndex.open({ bound, successes: 20, ...more });
  for (const batch of syntheticEvents(o)) index.write(batch);
  return index;
}
const MB = 1e6;

describe('an index that is full', () => {
  it('keeps its bound however many rollouts there are, and counts them all', async () => {
    const bound = 2 * MB,
      index = await MemoryIndex.open({ bound, successes: 20 });
    let most = 0;
    for (const batch of syntheticEvents({ rollouts: 20_000, seed: 1, steps: 1, activities: 1 })) {
      index.write(batch);
      most = Math.max(most, index.bytes);
    }
    // A batch is taken in before something goes for it; what is only counted is 25 bytes a rollout.
    expect(most).toBeLessThan(1.05 * bound);
    expect(index.rows.number('SELECT SUM(orders) FROM runs')).toBe(20_000);
    expect(index.rows.number(`SELECT SUM(c) FROM (${STATES})`)).toBe(20_000);
    expect(index.rows.number('SELECT COUNT(*) FROM rollouts')).toBeLessThan(5000);
    index.close();
  });

  it('draws by minutes and hours what it has no spans of, in the same places', async () => {
    const journal = { rollouts: 2400, seed: 2, ms: 20_000, desktops: 3 },
      whole = await written(journal, Infinity),
      small = await written(journal, 500_000),
      [first, last, fine] = small.rows.all(
        "SELECT MIN(t0), MAX(t1), (SELECT value FROM meta WHERE key = 'spansFrom') FROM lanes",
      )[0]! as [number, number, number];
    expect(fine).toBeGreaterThan(first);
    expect(small.rows.number('SELECT COUNT(*) FROM span_hours')).toBeGreaterThan(0);
    const of = async (index: MemoryIndex, from: number, to: number): ReturnType<typeof lanes> =>
      lanes(index.run, { from, to, width: 1000 });
    const recent = [last - 600_000, last] as const;
    expect(await of(small, ...recent)).toEqual(await of(whole, ...recent));
    // Half of this window has no spans any more: what is drawn ascends, and nothing is drawn twice.
    const mixed = await of(small, fine - 1_200_000, fine + 1_200_000);
    for (const l of mixed.lanes) {
      expect([...l.start]).toEqual([...l.start].sort((a, b) => a - b));
      expect(l.start.some((s) => s < fine)).toBe(true);
      expect(l.start.some((s) => s > fine)).toBe(true);
    }
    const old = await of(small, first, first + 1_200_000);
    expect(old.lanes.map((l) => [l.id, l.slot])).toEqual(
      (await of(whole, first, first + 1_200_000)).lanes.map((l) => [l.id, l.slot]),
    );
    expect(old.lanes.every((l) => l.ms.length > 0)).toBe(true);
    whole.close();
    small.close();
  });

  it('lists say how many are only counted, and one that is asked for by name is said to be gone', async () => {
    const { run, ...index } = await written({ rollouts: 900, seed: 3 }, 300_000).then((i) => ({
        run: i.run,
        rows: i.rows,
      })),
      older = index.rows.number('SELECT SUM(begun) FROM past');
    expect(older).toBeGreaterThan(100);
    expect(await listTrajectories(run, {}, false)).toMatchObject({ older });
    expect(await trajectoryColumns(run, { limit: 10 }, false)).toMatchObject({ older });
    expect(await failuresView(run, {})).toMatchObject({ older });
    await expect(trajectoryView(run, 'r0000000', { alive: false, interpreter: {} as never })).rejects.toThrow(
      /older ones that the run only counts/,
    );
  });

  it('a rollout whose screens are to be removed stays until they are, while there is room', async () => {
    const journal = { rollouts: 1500, seed: 4 },
      lost = await written(journal, 400_000),
      kept = await written(journal, 400_000, { loseScreens: ['failure'] }),
      failures = (i: MemoryIndex): number =>
        i.rows.number("SELECT COUNT(*) FROM rollouts WHERE outcome = 'failure' AND state = 'trained'");
    expect(failures(kept)).toBeGreaterThan(failures(lost));
    const rollouts = kept.rows.all("SELECT id FROM rollouts WHERE outcome = 'failure'").map(([id]) => String(id));
    const before = kept.rows.number('SELECT COUNT(*) FROM rollouts');
    const record = { type: 'frames.removed', rollouts, frames: 1, bytes: 1, why: 'age' };
    for (let i = 0; i < 20; i++) kept.write([{ ...record, seq: 1e6 + i, at: 2e12 } as never]);
    expect(kept.rows.number('SELECT COUNT(*) FROM rollouts')).toBeLessThan(before);
    lost.close();
    kept.close();
    expect(losingScreens({ store: { keep: { failureHours: 3 } } })).toEqual(['failure']);
    expect(losingScreens({ store: { keep: { gigabytes: 3 } } })).toEqual(['retired', 'failure', 'success']);
    expect(losingScreens(undefined)).toEqual([]);
  });

  it('made anew from the journal, or read from its snapshot, it counts the same', () =>
    withDir(async (dir) => {
      const run = join(dir, 'run');
      await writeSyntheticRun(run, { groups: 60, steps: 3 });
      const counts = (e: IndexEngine): unknown =>
        [STATES, REASONS, `SELECT * FROM (${JUDGED}) ORDER BY family, outcome`].map((q) => e.query(q));
      const journal = join(run, 'journal'),
        o = { bound: 250_000, successes: 5 },
        whole = await IndexEngine.open(journal, join(dir, 'none')),
        small = await IndexEngine.open(journal, join(dir, 'small'), undefined, o);
      expect(small.query('SELECT COUNT(*) AS n FROM past_outcomes')[0]!['n']).toBeGreaterThan(50);
      expect(counts(small)).toEqual(counts(whole));
      await small.snapshot();
      small.close();
      const again = await IndexEngine.open(journal, join(dir, 'small'), undefined, o);
      expect(again.status().start).toBe('snapshot');
      expect(counts(again)).toEqual(counts(whole));
      again.close();
      whole.close();
      const reader = await RunReader.open(run, { index: 'local' });
      expect((await reader.readTrajectory('r000001' as never))?.steps.length).toBeGreaterThan(0);
      await reader.close();
    }));

  it('holds no more of its metrics however many updates there are, and their curves keep every peak', async () => {
    const whole = await MemoryIndex.open({ bound: Infinity }),
      small = await MemoryIndex.open({ bound: 0, updates: 16 });
    let most = 0;
    for (const batch of syntheticEvents({ rollouts: 6000, seed: 5, size: 4, steps: 1, activities: 1, metrics: 3 })) {
      whole.write(batch);
      small.write(batch);
      most = Math.max(most, small.rows.number("SELECT COUNT(*) FROM metrics WHERE name = 'update.measure-1'"));
    }
    const n = whole.rows.number('SELECT COUNT(*) FROM batches');
    expect(n).toBeGreaterThan(1000);
    // Two of each of 64 buckets, and what comes in during a pass over all names.
    expect(most).toBeLessThan(2 * 64 + 4 * 16 + 16);
    expect(small.rows.number('SELECT COUNT(*) FROM batches')).toBeLessThan(4 * 16);
    expect(small.rows.number('SELECT COUNT(*) FROM events')).toBeLessThan(3 * 4 * 16);
    const [a] = await series(small.run, ['update.measure-1'], 12),
      [b] = await series(whole.run, ['update.measure-1'], 1e6),
      drawn = (s: typeof a): number[] => [s!.at[0]!, s!.at.at(-1)!, Math.min(...s!.value), Math.max(...s!.value)];
    expect(drawn(a)).toEqual(drawn(b));
    const moved = progressOf({
      from: 0,
      to: 1,
      timeline: { outages: [] },
      ended: [],
      trained: await trainedOf(small.run),
    });
    expect(moved.updates.at(-1)).toBe(n);
    expect(moved.tokens!.at(-1)).toBe(whole.rows.number("SELECT SUM(value) FROM metrics WHERE name = 'update.tokens'"));
    whole.close();
    small.close();
  });

  it('keeps of each bucket the lowest and the highest, and the first of all', () => {
    const seq = [3, 5, 6, 9, 17, 18, 19, 40],
      of = (value: number[], width: number): number[] => [...peaks(seq, value, width)].sort((a, b) => a - b);
    expect(of([5, 1, 9, 4, 2, 2, 2, 7], 10)).toEqual([3, 5, 6, 17, 40]);
    expect(of([5, 1, 9, 4, 2, 2, 2, 7], 1)).toEqual(seq);
    expect(of([1, 2, 3, 4, 5, 6, 7, 8], 100)).toEqual([3, 40]);
    expect(peaks([], [], 8).size).toBe(0);
  });

  it('exports all metrics all the same, and what a lesson left stays', () =>
    withDir(async (dir) => {
      const run = join(dir, 'run');
      await writeSyntheticRun(run, { groups: 40, steps: 2 });
      const before = [await metricRows(run), (await metricRecords(run)).records],
        small = await IndexEngine.open(join(run, 'journal'), join(dir, 'small'), undefined, { bound: 0, updates: 3 }),
        count = (where: string): unknown => small.query(`SELECT COUNT(*) AS n FROM ${where}`)[0]!['n'];
      expect(count('past_metrics')).toBeGreaterThan(0);
      expect(count('metrics')).toBeLessThan(before[0]!.length);
      await small.snapshot();
      small.close();
      await rename(join(dir, 'small'), join(run, 'index.sqlite'));
      expect([await metricRows(run), (await metricRecords(run)).records]).toEqual(before);
    }));

  it('that cannot follow the journal is said once', () =>
    withDir(async (dir) => {
      const said: unknown[] = [],
        index = new WorkerIndex(
          { file: join(dir, 'none.mjs') },
          { journal: join(dir, 'journal'), file: join(dir, 'index'), onFailure: (why) => said.push(why) },
        );
      for (let i = 1; i < 4; i++) {
        index.durable(i);
        await index.query('SELECT 1').catch(() => undefined);
      }
      await expect.poll(() => said).toHaveLength(1);
      expect(indexTrouble.behind(said[0])).toMatch(/The run's index stopped: .* no screens are removed/s);
      await index.close({ snapshot: false });
    }));

  it('that cannot be saved is said once, until it can be', async () => {
    vi.useFakeTimers();
    try {
      const said: unknown[] = [];
      let fails = true;
      const s = new Snapshots(
        1000,
        () => (fails ? Promise.reject(new Error('no space left')) : Promise.resolve()),
        (why) => said.push(why),
      );
      const later = async (): Promise<void> => {
        s.changed();
        await vi.advanceTimersByTimeAsync(2000);
      };
      await later();
      await later();
      expect(said).toHaveLength(1);
      fails = false;
      await later();
      fails = true;
      await later();
      expect(said).toHaveLength(2);
      s.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});
