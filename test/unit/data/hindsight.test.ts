import { describe, expect, it } from 'vitest';
import { id, type FamilyId, type RolloutId, type TaskId, type Trajectory } from '../../../runtime/domain/index.js';
import { tallyHindsight, withinShare } from '../../../runtime/data/curation/hindsight.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import type { PoolEntryInfo } from '../../../runtime/data/experiencePool.js';
import { retain } from '../../../runtime/data/store/retention.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { relabelled } from '../../../runtime/rollout/hindsight.js';
import { listTrajectories } from '../../../runtime/queries/rows.js';
import { poolView } from '../../../runtime/queries/pool.js';
import { Successes } from '../../../runtime/run/successes.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { group, n3 } from '../../helpers/data/groups.js';
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

const family = familyIds[0]!;
const demo = (name: string, f = family): Trajectory =>
  makeTrajectory({ rollout: id<RolloutId>(name), family: f, task: taskOf(f, 1), cap: 9 }, success, {
    provenance: { kind: 'oracle' },
    steps: 2,
  });
/** A failed rollout as a success of another task; `what` says what it did. */
function second(name: string, o: { f?: FamilyId; sibling?: string; what?: number; endedAt?: number } = {}): Trajectory {
  const f = o.f ?? family,
    failed = makeTrajectory({ rollout: id<RolloutId>(name), family: f, task: taskOf(f, 1), cap: 9 }, failure, {
      seed: o.what ?? 1,
      steps: 3,
      endedAt: o.endedAt ?? 20,
    });
  // Of one task the pool holds each way of doing it once.
  const steps = failed.steps.map((s, k) => ({
    ...s,
    actions: [{ type: 'click' as const, at: { x: o.what ?? 1, y: k } }],
  }));
  return relabelled(
    { ...failed, steps },
    { id: id<TaskId>(o.sibling ?? `${failed.task}+1`), instruction: 'do another' },
    { kind: 'success', reward: 1, truncated: false },
  );
}

describe('what is imitated of relabelled successes', () => {
  const all = [demo('d1'), demo('d2'), ...[1, 2, 3, 4].map((n) => second(`r${n}`, { endedAt: n }))],
    ids = (ts: readonly Trajectory[]): string[] => ts.map((t) => t.id);

  it('the newest, at most a share of the family', () => {
    expect(ids(withinShare(all, 0.5))).toEqual(['d1', 'd2', 'hindsight/r3', 'hindsight/r4']);
    // Of two and two thirds of a third: 2 s / (1 - s).
    expect(ids(withinShare(all, 0.4))).toEqual(['d1', 'd2', 'hindsight/r4']);
    expect(ids(withinShare(all, 0))).toEqual(['d1', 'd2']);
    expect(withinShare(all, 1)).toEqual(all);
  });
  it('are all imitated where the family has no other successes', () => {
    const alone = [...all.slice(2), demo('elsewhere', familyIds[1])];
    expect(withinShare(alone, 0.5)).toEqual(alone);
  });
});

describe('counts of looking back', () => {
  it('failures, verdicts, time and what came of it; what other runs relabelled is theirs', () => {
    const tally = { failures: 0, asked: 0, held: 0, relabelled: 0, ms: 0 };
    const t = makeTrajectory({ rollout: id<RolloutId>('a'), family, task: taskOf(family, 1), cap: 9 }, failure);
    for (const one of [
      t,
      { ...t, hindsight: { siblings: 3, asked: 0, held: false, ms: 1 } },
      { ...t, hindsight: { siblings: 3, asked: 2, held: true, ms: 40 } },
      second('a'),
      { ...second('b'), id: id<RolloutId>('import/1') },
    ])
      tallyHindsight(tally, one);
    expect(tally).toEqual({ failures: 2, asked: 2, held: 1, relabelled: 1, ms: 41 });
  });
});

describe('relabelled successes in a run', () => {
  const config = dataConfig({ ...n3, hindsight: { enabled: true, maxPerFamily: 2 } });

  it('are imitated and never injected; rollout, ledger, success rate and step cap know nothing of them', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config),
        known = await Successes.load(m, 8, 0.5);
      const before = m.stats();
      for (const f of familyIds) await m.record(second(`x-${f}`, { f }));
      expect(m.externalSuccesses().map((t) => t.id)).toEqual(familyIds.map((f) => `hindsight/x-${f}`));
      expect(known.imitable().length).toBe(familyIds.length);
      const after = m.stats();
      expect(after.families).toEqual(before.families);
      expect(after.ledger).toEqual(before.ledger);
      expect(after.pool).toMatchObject({ entries: 3, usable: 0, byProvenance: { hindsight: 3 } });
      expect(m.counts().hindsight).toMatchObject({ relabelled: 3 });
      // Groups that fail have nothing to learn from all the same.
      for (let k = 0; k < 6; k++) expect((await group(m, [failure, failure, failure])).ready).toBe(false);
      expect(m.stats().ledger.retired['no-variance']).toBe(18);
      expect(m.stats().pool.injections).toBe(0);
      await m.close();
    }));

  it('have a limit of their own, and of each way to do a task one; another leaves no record', () =>
    withDir(async (dir) => {
      const m = await openManager(
          dir,
          dataConfig({ ...n3, pool: { maxPerFamily: 1 }, hindsight: { maxPerFamily: 2 } }),
        ),
        pooled = (): string[] => m.externalSuccesses().map((t) => t.id);
      await m.record(demo('d'));
      await m.record(second('a', { sibling: 's1' }));
      expect((await m.record(second('b', { sibling: 's1' }))).pool.pooled).toBe(false);
      await m.record(second('c', { sibling: 's2' }));
      await m.record(second('e', { sibling: 's3' }));
      expect(pooled()).toEqual(['d', 'hindsight/c', 'hindsight/e']);
      const rows = (
        await m.store.index.query("SELECT id FROM rollouts WHERE provenance = 'hindsight' ORDER BY id", [])
      ).map((r) => r['id']);
      expect(rows).toEqual(['hindsight/a', 'hindsight/c', 'hindsight/e']);
      await m.close();
    }));

  it('are there again after a restart, and a person may turn them off', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config);
      await m.record({
        ...makeTrajectory({ rollout: id<RolloutId>('p'), family, task: taskOf(family, 2), cap: 9 }, success, {
          provenance: { kind: 'imported', from: 'x' },
        }),
      });
      await m.record(second('a', { sibling: 's1' }));
      await m.record(second('b', { sibling: 's2' }));
      await m.switchPool([id<RolloutId>('hindsight/b')], false);
      await m.close();
      const again = await openManager(dir, config),
        known = await Successes.load(again, 8, 0.5);
      expect(again.externalSuccesses().map((t) => t.id)).toEqual(['p', 'hindsight/a']);
      expect(known.imitable().map((t) => t.id)).toEqual(['hindsight/a', 'p']);
      expect(again.counts().hindsight.relabelled).toBe(2);
      const t = again.externalSuccesses().find((x) => x.id === id<RolloutId>('hindsight/a'))!;
      expect(t.provenance).toEqual(second('a').provenance);
      expect(t.steps.every((s) => s.tokens === undefined && s.version === undefined)).toBe(true);
      await again.close();
    }));

  it('say in lists and in the pool what was asked for', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config);
      await m.record(second('a'));
      await m.close();
      const reader = await RunReader.open(dir, { index: 'local' });
      try {
        const { rows } = await listTrajectories(reader, { filter: { provenance: ['hindsight'] } }, false);
        expect(rows).toMatchObject([
          { rollout: 'hindsight/a', instruction: 'do another', relabelledFrom: 'do alpha#1', outcome: 'success' },
        ]);
        const view = await poolView(reader, {
          facts: { trained: [], families: new Map() },
          config: config.pool,
          active: false,
        });
        expect(view.families[0]!.entries).toMatchObject([
          { source: 'hindsight', from: 'do alpha#1', instruction: 'do another', usable: false, why: 'imitated' },
        ]);
      } finally {
        await reader.close();
      }
    }));

  it('lose their screens as failures do, once they have left the pool', () =>
    withDir(async (dir) => {
      const m = await openManager(dir, config);
      for (const [k, name] of ['a', 'b', 'c'].entries()) await m.record(second(name, { sibling: `s${k}` }));
      const gone = await retain(
        m.store,
        {
          rules: { failureHours: 1 },
          successes: 8,
          annotated: new Set(),
          dry: true,
          now: Date.now() + 24 * 3_600_000,
        },
        () => Promise.resolve(),
      );
      expect(gone.flatMap((r) => r.rollouts)).toEqual(['hindsight/a']);
      await m.close();
    }));
});

describe('a full index', () => {
  it('forgets those that have left the pool, and counts nothing of them', async () => {
    const index = await MemoryIndex.open({ bound: 1 }),
      head = (name: string) => ({ ...second(name), steps: 3 }),
      entry: PoolEntryInfo = {
        id: id<RolloutId>('hindsight/b'),
        task: head('b').task,
        family,
        steps: 3,
        provenance: 'hindsight',
        signature: [],
      };
    const events: JournalEvent[] = [
      { type: 'trajectory.recorded', head: head('a') },
      { type: 'trajectory.recorded', head: head('b') },
      { type: 'pool.added', entry },
    ];
    index.write(events.map((e, seq) => ({ ...e, seq, at: seq })));
    index.write([{ type: 'log', level: 'info', message: '', seq: 3, at: 3 }]);
    expect(index.rows.all("SELECT id FROM rollouts WHERE provenance = 'hindsight'")).toEqual([['hindsight/b']]);
    expect(index.rows.all('SELECT * FROM past')).toEqual([]);
    expect(index.rows.all('SELECT * FROM past_outcomes')).toEqual([]);
    index.close();
  });
});
