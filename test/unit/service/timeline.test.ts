import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import {
  id,
  type FamilyId,
  type GroupId,
  type RolloutId,
  type RunId,
  type TaskId,
} from '../../../runtime/domain/index.js';
import { ledgerFromIndex, summaryOf } from '../../../runtime/queries/overview.js';
import { timelineOf } from '../../../runtime/queries/timeline.js';

const dirs: string[] = [];
afterEach(async () => {
  for (const d of dirs.splice(0)) await rm(d, { recursive: true, force: true });
});

/** A run of several processes: what each journals at which second, and whether it ended cleanly. */
async function runOf(
  processes: readonly { readonly says: readonly (readonly [number, JournalEvent])[]; readonly closed?: number }[],
): Promise<RunReader> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-timeline-'));
  dirs.push(dir);
  let now = 0;
  for (const [i, p] of processes.entries()) {
    const store = await RunStore.open(join(dir, 'r'), {
      index: 'local',
      now: () => now,
      create: { id: id<RunId>('r'), createdAt: 0, config: { seed: 5 } },
    });
    now = (p.says[0]?.[0] ?? 0) * 1000;
    await store.append({ type: 'run.opened', run: id<RunId>('r'), resumed: i > 0, pid: 1 });
    for (const [s, e] of p.says) {
      now = s * 1000;
      await store.append(e);
    }
    if (p.closed !== undefined) {
      now = p.closed * 1000;
      await store.append({ type: 'run.closed', reason: 'stopped' });
    }
    await store.close();
  }
  return RunReader.open(join(dir, 'r'), { index: 'local' });
}
const metrics = (source: string, values: Record<string, number>): JournalEvent => ({ type: 'metrics', source, values });
const queued = (rollout: string): JournalEvent => ({
  type: 'rollout.queued',
  order: {
    rollout: id<RolloutId>(rollout),
    group: id<GroupId>('g1'),
    task: id<TaskId>('t'),
    family: id<FamilyId>('f'),
    seed: 1,
    groupSize: 5,
    cap: 5,
  },
});
const work = (from: number, seconds: number): JournalEvent => ({
  type: 'spans',
  lane: 'd1',
  kind: 'desktop',
  t0: from * 1000,
  rollouts: [],
  what: Uint8Array.of(1),
  start: Float32Array.of(0),
  ms: Float32Array.of(seconds * 1000),
  of: Uint8Array.of(255),
});

describe('the timeline of a run', () => {
  it('phases begin where their first record says, and lessons when they were begun', async () => {
    const run = await runOf([
      {
        says: [
          [0, metrics('run', { elapsedMs: 0 })],
          [60, metrics('reading', { loss: 1, ms: 40_000 })],
          [100, metrics('warm-start', { loss: 1, ms: 25_000 })],
          [110, queued('r1')],
          [120, queued('r2')],
        ],
        closed: 130,
      },
    ]);
    expect(await timelineOf(run)).toEqual({
      phases: [
        { phase: 'reading', from: 20_000 },
        { phase: 'warm start', from: 75_000 },
        { phase: 'training', from: 110_000 },
      ],
      outages: [],
      measured: { from: 110_000, resumed: false },
    });
    await run.close();
  });
  it('shares count from when the newest process begins to train, though its first order waits', async () => {
    const run = await runOf([
      {
        says: [
          [5, { type: 'training.began' }],
          [10, queued('r1')],
        ],
        closed: 20,
      },
      {
        says: [
          [25, { type: 'training.began' }],
          [30, metrics('run', { elapsedMs: 0 })],
          [50, queued('r2')],
          [55, { type: 'training.ended' }],
        ],
        closed: 60,
      },
    ]);
    const { phases, measured } = await timelineOf(run);
    expect(measured).toEqual({ from: 25_000, to: 55_000, resumed: true });
    expect(phases).toEqual([{ phase: 'training', from: 5000 }]);
    await run.close();
  });
  it('of journals before 0.2 shares count from the first order of the newest process that gave one', async () => {
    const resumed = await runOf([
        { says: [[10, queued('r1')]], closed: 20 },
        {
          says: [
            [30, queued('r2')],
            [31, queued('r3')],
          ],
          closed: 40,
        },
        { says: [[50, metrics('run', { elapsedMs: 0 })]], closed: 60 }, // only evaluated
      ]),
      neverTrained = await runOf([{ says: [[0, metrics('run', { elapsedMs: 0 })]], closed: 10 }]);
    expect((await timelineOf(resumed)).measured).toEqual({ from: 30_000, resumed: true });
    expect((await timelineOf(neverTrained)).measured).toBeUndefined();
    await Promise.all([resumed.close(), neverTrained.close()]);
  });
  it('an outage lasts from what a process did last, however it ended, to what the next one did first', async () => {
    const run = await runOf([
      { says: [[0, queued('r1')]], closed: 10 },
      { says: [[100, work(100, 25)]] }, // killed: 125 is the last that is known of it
      { says: [[400, queued('r2')]], closed: 410 },
      { says: [[411, queued('r3')]], closed: 420 }, // goes on at once
    ]);
    expect((await timelineOf(run)).outages).toEqual([
      { from: 10_000, to: 100_000 },
      { from: 125_000, to: 400_000 },
    ]);
    await run.close();
  });
});

describe('one number of rollouts', () => {
  it('summary and ledger agree on how many began, and planned ones that never began are none of them', async () => {
    const started = (rollout: string): JournalEvent => ({
      type: 'rollout.started',
      rollout: id<RolloutId>(rollout),
      version: 0,
    });
    const stopped = (rollout: string): JournalEvent => ({
      type: 'rollout.retired',
      rollout: id<RolloutId>(rollout),
      group: id<GroupId>('g1'),
      reason: 'stopped',
    });
    const run = await runOf([
      {
        says: [
          ...['r1', 'r2', 'r3', 'r4', 'r5'].map((r) => [1, queued(r)] as const),
          [2, started('r1')],
          [2, started('r2')],
          ...['r2', 'r3', 'r4', 'r5'].map((r) => [3, stopped(r)] as const),
        ],
        closed: 4,
      },
    ]);
    const [summary, ledger] = await Promise.all([summaryOf(run), ledgerFromIndex(run)]);
    expect([summary.rollouts, ledger.begun, ledger.generated]).toEqual([2, 2, 5]);
    expect(summary.collection).toBeUndefined();
    expect(summary.seed).toBe(5);
    await run.close();
  });
  it('a folder in which all was imported is a collection', async () => {
    const imported = (n: number): JournalEvent => ({
      type: 'trajectory.recorded',
      head: {
        id: id<RolloutId>(`i${n}`),
        task: id<TaskId>('t'),
        family: id<FamilyId>('f'),
        instruction: 'x',
        provenance: { kind: 'imported', from: 'x' },
        steps: 0,
        outcome: { kind: 'success', reward: 1, truncated: false },
        cap: 5,
        startedAt: 0,
        endedAt: 1,
        resetMs: 0,
        verifyMs: 0,
      },
    });
    const collection = await runOf([{ says: [[1, imported(1)]], closed: 2 }]);
    expect((await summaryOf(collection)).collection).toBe(true);
    await collection.close();
    const trained = await runOf([
      {
        says: [
          [1, imported(1)],
          [2, queued('r1')],
        ],
        closed: 3,
      },
    ]);
    expect((await summaryOf(trained)).collection).toBeUndefined();
    await trained.close();
  });
});
