import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import {
  id,
  type FamilyId,
  type Provenance,
  type RolloutId,
  type RunId,
  type TaskId,
} from '../../../runtime/domain/index.js';
import type { TaskRow } from '../../../runtime/protocol/types.js';
import type { RunFacts } from '../../../runtime/queries/facts.js';
import { taskRows } from '../../../runtime/queries/tasks.js';

const facts: RunFacts = {
  trained: ['a', 'b'],
  families: new Map([
    ['a', { title: 'calc: Sum', apps: ['calc'], domain: 'libreoffice_calc', heldOut: false, infeasible: false }],
  ]),
};
type Reward = number | 'timeout' | 'lost';
function recorded(rollout: string, family: string, reward: Reward, provenance: Provenance): JournalEvent {
  return {
    type: 'trajectory.recorded',
    head: {
      id: id<RolloutId>(rollout),
      task: id<TaskId>(family),
      family: id<FamilyId>(family),
      instruction: 'Do it',
      provenance,
      steps: 2,
      outcome:
        typeof reward === 'number'
          ? { kind: reward === 1 ? 'success' : 'failure', reward, truncated: false }
          : {
              kind: 'error',
              error: { kind: reward === 'lost' ? 'desktop.lost' : reward, message: 'over', remedy: 'none' },
            },
      cap: 4,
      startedAt: 1,
      endedAt: 2,
      resetMs: 1,
      verifyMs: 1,
    },
  };
}
const evaluation = (version: number, episodes: number, successes: number): JournalEvent => ({
  type: 'eval',
  version,
  label: 'later',
  episodes,
  successes,
  errors: 0,
  low: 0,
  high: 1,
  perFamily: { a: { episodes, successes } },
});

describe('mean scores of tasks', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-scores-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));
  async function rowsOf(name: string, events: readonly JournalEvent[], collected?: string): Promise<TaskRow[]> {
    const store = await RunStore.open(join(dir, name), {
      index: 'local',
      create: {
        id: id<RunId>(name),
        createdAt: 1,
        name,
        config: {},
        ...(collected === undefined ? {} : { collected: { policy: collected } }),
      },
    });
    for (const e of events) await store.append(e);
    await store.close();
    const run = await RunReader.open(join(dir, name), { index: 'local' });
    try {
      return await taskRows(run, facts);
    } finally {
      await run.close();
    }
  }

  it('are of rollouts and of the newest evaluation, only where one has a part', async () => {
    const probe: Provenance = { kind: 'probe' },
      [a, b] = await rowsOf('trained', [
        recorded('probe/later/v2/0', 'a', 0.9, probe),
        evaluation(2, 1, 0),
        recorded('probe/later/v20/0', 'a', 0.5, probe),
        recorded('probe/later/v20/1', 'a', 1, probe),
        recorded('probe/later/v20/2', 'a', 0, probe),
        recorded('probe/later/v20/3', 'a', 'lost', probe),
        evaluation(20, 4, 1),
        recorded('r1', 'a', 0.25, { kind: 'rollout' }),
        recorded('r2', 'a', 1, { kind: 'rollout' }),
        recorded('r3', 'b', 0, { kind: 'rollout' }),
        recorded('r4', 'b', 1, { kind: 'rollout' }),
      ]);
    expect(a).toMatchObject({
      domain: 'libreoffice_calc',
      rollouts: 2,
      successes: 1,
      score: 0.625,
      evaluation: { version: 20, episodes: 4, successes: 1, score: 0.375, rate: 0.25 },
    });
    expect(b).toMatchObject({ rollouts: 2, successes: 1, evaluation: undefined });
    expect(b).not.toHaveProperty('score');
  });
  it('are of imported trajectories, too', async () => {
    const from: Provenance = { kind: 'imported', from: 'elsewhere' },
      [a] = await rowsOf('imported', [recorded('i1', 'a', 1, from), recorded('i2', 'a', 0.5, from)]);
    expect(a).toMatchObject({ external: true, rollouts: 2, successes: 1, score: 0.75 });
  });
  it('and rates are there for a collection that measures a policy, as the command line counts them', async () => {
    const probe: Provenance = { kind: 'probe' },
      [a, b] = await rowsOf(
        'measured',
        [
          recorded('c000001', 'a', 0.5, probe),
          recorded('c000002', 'a', 1, probe),
          // Out of time is not solved; what broke is tried again.
          recorded('c000003', 'a', 'timeout', probe),
          recorded('c000004', 'a', 'lost', probe),
          recorded('c000005', 'b', 1, probe),
        ],
        'some model',
      );
    expect(a).toMatchObject({ rollouts: 0, evaluation: { episodes: 3, successes: 1, score: 0.5 } });
    expect(b?.evaluation).toMatchObject({ episodes: 1, successes: 1, rate: 1 });
    expect(b?.evaluation).not.toHaveProperty('score');
  });
});
