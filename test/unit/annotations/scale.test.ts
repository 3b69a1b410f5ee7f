import { mkdtemp, rm } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import type { AnnotationMarks } from '../../../runtime/protocol/types.js';
import { Annotations } from '../../../runtime/annotations/annotations.js';
import { candidates, rankForReview } from '../../../runtime/annotations/queue.js';
import { listTrajectories, rowsOf } from '../../../runtime/queries/rows.js';
import { writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

/**
 * Many trajectories (SCALE_GROUPS=1250 for 10,000), half of them annotated. What is asserted are counts; times are
 * printed.
 */
const groups = Number(process.env['SCALE_GROUPS'] ?? 100);
let dir: string, run: RunReader, truth: SyntheticRun, marks: ReadonlyMap<string, AnnotationMarks>;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-scale-'));
  truth = await writeSyntheticRun(dir, { groups, size: 8, steps: 2, close: 'finished' });
  const a = new Annotations((t) => {
    throw new Error(t);
  });
  await Promise.all(
    truth.told
      .filter((_, i) => i % 2 === 0)
      .map((t, i) =>
        a.write(dir, t.id, (l) => ({
          type: 'edit',
          rollout: t.id,
          part: 0,
          revision: l.last + 1,
          base: 0,
          at: 1,
          ops: [
            { op: 'tags', tags: [`t${i % 7}`] },
            { op: 'reviewed', value: i % 4 === 0 },
          ],
        })),
      ),
  );
  await a.close();
  run = await RunReader.open(dir, { index: 'local' });
  await run.index.query('SELECT 1');
}, 300_000);
afterAll(async () => {
  await run.close();
  await rm(dir, { recursive: true, force: true });
});

it('annotations, lists and the queue of many are read without reading trajectories', async () => {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const t0 = performance.now(),
    cpu = process.cpuUsage();
  marks = await new Annotations((t) => {
    throw new Error(t);
  }).marks(dir);
  const t1 = performance.now(),
    read = delay.max / 1e6;
  delay.disable();
  const all = await candidates(run, marks),
    t2 = performance.now(),
    top = await rankForReview(all, () => false, { limit: 100, reviewed: false }),
    rows = await rowsOf(
      run,
      top.map((r) => r.rollout),
      false,
    ),
    t3 = performance.now();
  const list = await listTrajectories(run, { filter: { reviewed: true, tag: 't0' }, limit: 100 }, false, marks),
    t4 = performance.now();
  const used = process.cpuUsage(cpu);
  console.log(
    `${truth.told.length} trajectories, ${((used.user + used.system) / 1000).toFixed(0)} ms of processor in all: ${marks.size} annotated in ${(t1 - t0).toFixed(0)} ms (the loop stood still for at most ${read.toFixed(0)} ms); queue ${(t3 - t1).toFixed(0)} ms, of it ${(t2 - t1).toFixed(0)} the index; list ${(t4 - t3).toFixed(0)} ms`,
  );
  const finished = truth.told.filter((t) => t.outcome === 'success' || t.outcome === 'failure');
  // Every 28th of those annotated has both the tag and the mark.
  const both = Math.ceil(truth.told.length / 2 / 28);
  expect([marks.size, all.length, rows.size, list.total, list.rows.length]).toEqual([
    truth.told.length / 2,
    finished.length,
    Math.min(100, top.length),
    both,
    Math.min(100, both),
  ]);
  expect(list.rows.every((r) => r.annotated?.reviewed && r.annotated.tags?.includes('t0'))).toBe(true);
  expect(await candidates(run, marks, undefined, 7)).toEqual(all);
  const { family } = all[0]!;
  expect(await candidates(run, marks, family, 5)).toEqual(all.filter((c) => c.family === family));
  expect(all.filter((c) => c.reviewed).length).toBe(finished.filter((t) => marks.get(t.id)?.reviewed).length);
});
