import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { failuresView, strips } from '../../../runtime/queries/failures.js';
import { families, writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

let dir: string, run: RunReader, truth: SyntheticRun;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-failures-'));
  truth = await writeSyntheticRun(join(dir, 'run'), { groups: 30, size: 4, steps: 5, running: 2 });
  run = await RunReader.open(join(dir, 'run'), { index: 'local' });
});
afterAll(async () => {
  await run.close();
  await rm(dir, { recursive: true, force: true });
});

it('every failure of the run is in one cluster, with families counted, and exemplars that can be opened', async () => {
  const v = await failuresView(run, {}),
    failed = truth.told.filter((t) => t.outcome === 'failure').map((t) => t.id),
    listed = v.clusters.flatMap((c) => c.rollouts);
  expect(failed.length).toBeGreaterThan(10);
  expect(listed.filter((r) => !r.startsWith('probe/')).sort()).toEqual([...failed].sort());
  expect(new Set(listed).size).toBe(listed.length);
  expect(v.looked).toBe(listed.length);
  expect(v.families.reduce((a, f) => a + f.failures, 0)).toBe(v.failures);
  expect(v.clicks).toBeUndefined();
  for (const c of v.clusters) {
    expect(c.exemplars.length).toBeGreaterThan(0);
    for (const e of c.exemplars) expect(e.frame.hash).toMatch(/^[0-9a-f]{64}$/);
  }
});
it('of one family, with its clicks; of some versions', async () => {
  const v = await failuresView(run, { family: families[1] }),
    mine = truth.told.filter((t) => t.outcome === 'failure' && t.family === families[1]);
  expect(v.clusters.every((c) => c.family === families[1])).toBe(true);
  expect(v.clusters.flatMap((c) => c.rollouts)).toEqual(expect.arrayContaining(mine.map((t) => t.id)));
  const { clicks } = v;
  expect(clicks!.x.length).toBe(clicks!.success.length);
  for (const i of clicks!.rollout) expect(clicks!.rollouts[i]).toBeDefined();
  const some = await failuresView(run, { version: { min: 3, max: 5 } }),
    want = truth.told.filter((t) => t.outcome === 'failure' && t.versions[1] >= 3 && t.versions[0] <= 5);
  expect(
    some.clusters
      .flatMap((c) => c.rollouts)
      .filter((r) => !r.startsWith('probe/'))
      .sort(),
  ).toEqual(want.map((t) => t.id).sort());
});
it('strips have every step of an episode, in the order asked for; of what is not there none', async () => {
  const [a, b] = truth.told.filter((t) => t.steps > 1),
    got = await strips(run, [b!.id, 'nobody', a!.id]);
  expect(got.map((s) => [s.rollout, s.steps.length])).toEqual([
    [b!.id, b!.steps],
    [a!.id, a!.steps],
  ]);
});
