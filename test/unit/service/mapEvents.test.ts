import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../../runtime/data/events.js';
import {
  id,
  type BatchId,
  type FamilyId,
  type GroupId,
  type RolloutId,
  type TaskId,
} from '../../../runtime/domain/index.js';
import type { TrajectoryRow } from '../../../runtime/protocol/types.js';
import { interpreter } from '../../../runtime/service/interpreter.js';
import { concerns, rowsNeeded, toRunEvent } from '../../../runtime/service/mapEvents.js';

const rollout = (s: string): RolloutId => id<RolloutId>(s);

describe('events for subscribers', () => {
  const row = (of: string, o: Partial<TrajectoryRow> = {}): TrajectoryRow => ({
    rollout: of,
    task: 't',
    family: 'f',
    instruction: 'do',
    outcome: 'success',
    reward: 1,
    provenance: 'rollout',
    steps: 3,
    cap: 5,
    group: 'g',
    startedAt: 5,
    state: 'trained',
    kept: 2,
    ...o,
  });
  const rows = new Map([
    ['a', row('a')],
    ['b', row('b', { outcome: 'failure', reward: 0 })],
    ['c', row('c', { outcome: 'error' })],
    ['q', { ...row('q', { outcome: 'error' }), startedAt: undefined } as unknown as TrajectoryRow],
  ]);
  const stored = (e: object): StoredEvent => ({ seq: 7, at: 100, ...e }) as StoredEvent,
    options = interpreter({ baseline: 'trajectory', norm: 'std', credit: 'trajectory' });
  const map = (e: object) => toRunEvent(stored(e), rows, options);
  const formed = {
    type: 'group.formed',
    group: id<GroupId>('g'),
    family: id<FamilyId>('f'),
    task: id<TaskId>('t'),
    version: 1,
    threshold: 0.3,
    retired: [{ rollout: rollout('c'), reason: 'replaced' }],
    members: [
      { rollout: rollout('a'), injected: true, reward: 1, keep: [true, true, false] },
      { rollout: rollout('b'), injected: false, reward: 0, keep: [true] },
    ],
  };

  it('a started rollout runs, whatever became of it since', () => {
    expect(map({ type: 'rollout.started', rollout: 'a', version: 2, desktop: 'd', instruction: 'press' })).toEqual({
      seq: 7,
      at: 100,
      type: 'started',
      desktop: 'd',
      row: {
        rollout: 'a',
        task: 't',
        family: 'f',
        instruction: 'press',
        outcome: 'running',
        provenance: 'rollout',
        state: 'running',
        group: 'g',
        steps: 0,
        cap: 5,
        startedAt: 100,
      },
    });
  });
  it('a group tells members, advantages and who left', () => {
    const e = map(formed);
    expect(e).toMatchObject({ type: 'group', injected: 1, keptShare: 0.75, group: { id: 'g', threshold: 0.3 } });
    if (e?.type !== 'group') throw new Error('no group');
    expect(e.group.members.map((m) => [m.rollout, m.injected, m.retired, Math.sign(m.advantage ?? 0)])).toEqual([
      ['a', true, undefined, 1],
      ['b', false, undefined, -1],
      ['c', false, 'replaced', 0],
    ]);
  });
  it('a retired rollout has ended as an error; an order never begun, and one with a verdict, is told no more', () => {
    expect(map({ type: 'rollout.retired', rollout: 'c', group: 'g', reason: 'stopped' })).toMatchObject({
      type: 'ended',
      row: { outcome: 'error', errorKind: 'stopped', endedAt: 100 },
    });
    expect(map({ type: 'rollout.retired', rollout: 'q', group: 'g', reason: 'stopped' })).toBeUndefined();
    expect(map({ type: 'rollout.retired', rollout: 'a', group: 'g', reason: 'lost' })).toBeUndefined();
  });
  it('a trajectory that ended tells its outcome even when its row is not known', () => {
    const head = {
      id: 'z',
      task: 't',
      family: 'f',
      instruction: 'i',
      provenance: { kind: 'oracle' },
      steps: 2,
      outcome: { kind: 'success', reward: 1, truncated: false },
      cap: 3,
      startedAt: 1,
      endedAt: 2,
      resetMs: 0,
      verifyMs: 0,
    };
    expect(map({ type: 'trajectory.recorded', head })).toMatchObject({
      type: 'ended',
      row: {
        rollout: 'z',
        outcome: 'success',
        reward: 1,
        provenance: 'oracle',
        state: 'kept',
        steps: 2,
        startedAt: 1,
        endedAt: 2,
      },
    });
    // Times of a deterministic run are logical: it began when its record says so, and ended when this one was written.
    const logical = { ...head, id: 'a', startedAt: 7_200_000, endedAt: 7_202_000 };
    expect(map({ type: 'trajectory.recorded', head: logical })).toMatchObject({ row: { startedAt: 5, endedAt: 100 } });
  });
  it.each<[string, object, object]>([
    [
      'metrics',
      { type: 'metrics', source: 'update', values: { loss: 1 }, lists: { h: [1] } },
      { source: 'update', values: { loss: 1 }, lists: { h: [1] } },
    ],
    [
      'eval',
      {
        type: 'eval',
        version: 3,
        episodes: 4,
        successes: 2,
        errors: 0,
        low: 0.1,
        high: 0.9,
        label: 'final',
        infeasible: { episodes: 2, successes: 1 },
      },
      { point: { label: 'final', at: 100, version: 3, infeasible: { episodes: 2, successes: 1 } } },
    ],
    ['checkpoint', { type: 'checkpoint', version: 3, dir: 'x' }, { version: 3, path: 'x' }],
    [
      'trained',
      { type: 'batch.trained', batch: id<BatchId>('b'), rollouts: ['a'], version: 4, checkpoint: 'checkpoints/v4' },
      { version: 4, rollouts: ['a'], path: 'checkpoints/v4' },
    ],
    ['note', { type: 'log', level: 'warn', message: 'careful' }, { level: 'warn', message: 'careful' }],
    ['closed', { type: 'run.closed', reason: 'stopped' }, { reason: 'stopped' }],
    [
      'spans',
      {
        type: 'spans',
        lane: 'replica-1',
        kind: 'replica',
        t0: 10,
        what: Uint8Array.of(9),
        start: Float32Array.of(2),
        ms: Float32Array.of(3),
        of: Uint8Array.of(255),
        rollouts: [],
        version: 4,
      },
      {
        lanes: [{ id: 'replica-1', what: ['sync'], start: [12], ms: [3], rollout: [''], version: [4] }],
        syncs: [{ lane: 'replica-1', start: 12, ms: 3, version: 4 }],
      },
    ],
  ])('%s', (type, e, want) => {
    expect(map(e)).toMatchObject({ seq: 7, at: 100, type, ...want });
  });
  it('records that are not for people give nothing', () => {
    for (const type of ['run.opened', 'rollout.queued', 'group.opened', 'batch.claimed', 'pool.added'])
      expect(map({ type })).toBeUndefined();
  });
  it('knows what concerns a trajectory, and whose rows it needs', () => {
    expect(['a', 'b', 'c', 'x'].map((r) => concerns(stored(formed), r))).toEqual([true, true, true, false]);
    expect(concerns(stored({ type: 'batch.trained', rollouts: ['b'], trajectories: [{ rollout: 'a' }] }), 'a')).toBe(
      true,
    );
    expect(concerns(stored({ type: 'metrics' }), 'a')).toBe(false);
    expect(rowsNeeded(stored(formed))).toEqual(['a', 'b', 'c']);
    expect(rowsNeeded(stored({ type: 'rollout.step', rollout: 'a', extra: { labels: [] } }))).toEqual([]);
  });
});
