import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { tableFlags } from '../../../runtime/protocol/table.js';
import type { CodedColumn, TrajectoryColumns } from '../../../runtime/protocol/types.js';
import { listTrajectories } from '../../../runtime/queries/rows.js';
import { lastFrames, trajectoryColumns } from '../../../runtime/queries/table.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

let dir: string, run: RunReader;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-columns-'));
  await writeSyntheticRun(join(dir, 'run'), { groups: 30, size: 4, steps: 5, running: 2 });
  run = await RunReader.open(join(dir, 'run'), { index: 'local' });
});
afterAll(async () => {
  await run.close();
  await rm(dir, { recursive: true, force: true });
});
const at = (c: CodedColumn, i: number): string => c.values[c.at[i]!]!;
async function parts(limit: number, alive = true): Promise<TrajectoryColumns[]> {
  const out: TrajectoryColumns[] = [];
  for (let before: number | undefined; ;) {
    const p = await trajectoryColumns(run, { limit, ...(before === undefined ? {} : { before }) }, alive);
    out.push(p.columns);
    if (p.next === undefined) return out;
    before = p.next;
  }
}

describe('columns of trajectories', () => {
  it('parts of any size are the list, newest first, without a row lost or repeated', async () => {
    const { rows, total } = await listTrajectories(run, { limit: 1000 }, true),
      want = rows.map((r) => r.rollout);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 200 }), async (limit) => {
        expect((await parts(limit)).flatMap((c) => c.rollout)).toEqual(want);
      }),
      { numRuns: 12 },
    );
    const first = await trajectoryColumns(run, { limit: 3 }, true);
    expect([first.total, first.alive]).toEqual([total, true]);
    expect((await trajectoryColumns(run, { limit: 3 }, false)).alive).toBe(false);
    expect(first.seq).toBeGreaterThan(0);
  });

  it('each row says what the list says of it', async () => {
    for (const alive of [true, false]) {
      const [c] = await parts(1000, alive),
        { rows } = await listTrajectories(run, { limit: 1000 }, alive);
      expect(rows.length).toBeGreaterThan(100);
      rows.forEach((r, i) => {
        expect({
          task: at(c!.task, i),
          family: at(c!.family, i),
          instruction: at(c!.instruction, i),
          outcome: at(c!.outcome, i),
          origin: at(c!.origin, i),
          steps: c!.steps[i],
          reward: c!.reward[i] ?? undefined,
          truncated: (c!.flags[i]! & tableFlags.truncated) !== 0,
          injected: (c!.flags[i]! & tableFlags.injected) !== 0,
          versions: c!.versionMin[i] === null ? undefined : [c!.versionMin[i], c!.versionMax[i]],
          endedAt: c!.endedAt[i] ?? undefined,
        }).toEqual({
          task: r.task,
          family: r.family,
          instruction: r.instruction,
          outcome: r.outcome,
          origin: r.provenance,
          steps: r.steps,
          reward: r.reward,
          truncated: r.truncated ?? false,
          injected: r.tags?.includes('injected') ?? false,
          versions: r.versions,
          endedAt: r.endedAt,
        });
        if (r.entropy === undefined) expect(c!.entropy[i]).toBeNull();
        else expect(c!.entropy[i]).toBeCloseTo(r.entropy, 3);
        const place = r.provenance !== 'rollout' ? '' : r.state;
        expect(at(c!.ledger, i).replace(/:.*/, '')).toBe(place);
      });
    }
  });

  it('what was trained has its advantage and the mean weight of its steps, from the record of the update', async () => {
    const [c] = await parts(1000),
      events = [];
    for await (const e of run.events(0)) if (e.type === 'batch.trained') events.push(...(e.trajectories ?? []));
    expect(events.length).toBeGreaterThan(10);
    const newest = new Map(events.map((t) => [t.rollout as string, t]));
    for (const [id, t] of newest) {
      const i = c!.rollout.indexOf(id);
      expect(c!.advantage[i]).toBeCloseTo(t.advantage, 3);
      expect(c!.weight[i]).toBeCloseTo([...t.weights].reduce((a, b) => a + b, 0) / t.weights.length, 3);
    }
    for await (const e of run.events(0))
      if (e.type === 'batch.trained')
        for (const id of e.rollouts) expect(c!.update[c!.rollout.indexOf(id)]).toBe(e.version);
    c!.rollout.forEach((id, i) => {
      if (!newest.has(id)) expect([c!.advantage[i], c!.weight[i]]).toEqual([null, null]);
    });
  });

  it('the last screen of one that ended, and of one that runs; nothing for what is not there', async () => {
    const { rows } = await listTrajectories(run, { limit: 1000 }, true),
      some = [
        ...rows.filter((r) => r.outcome === 'running').slice(0, 1),
        ...rows.filter((r) => r.outcome !== 'running' && r.steps > 0).slice(0, 4),
      ];
    const frames = await lastFrames(run, [...some.map((r) => r.rollout), 'nobody']);
    expect(Object.keys(frames).sort()).toEqual(some.map((r) => r.rollout).sort());
    for (const hash of Object.values(frames)) expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(await lastFrames(run, [])).toEqual({});
  });
});
