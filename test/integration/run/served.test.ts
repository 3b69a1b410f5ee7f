import { existsSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { forwardedRuntime } from '../../../extension/daemon/forwarded.js';
import { fetchPictures } from '../../../extension/panels/remotePictures.js';
import type { RunFile } from '../../../runtime/config/index.js';
import * as methods from '../../../runtime/protocol/methods.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { cleanUp, folder, record, removeFolders, testClient, when } from '../../helpers/daemon/harness.js';
import { endAll, ensureBundle, folderOf, replay, start } from '../../helpers/run/cli.js';

/** `train --serve`: what the Job of a cluster runs, and what a window that attaches to it sees and can do. */
const noLocal = await whyNoLocalDesktops(),
  provider = (await engineHere()) ? 'docker' : 'local',
  missing = provider === 'local' ? noLocal : undefined;
if (missing) console.warn(`skipped: a run that windows attach to (${missing})`);

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-served-'));
});
afterEach(async () => {
  await cleanUp();
  await endAll();
});
afterAll(async () => {
  removeFolders();
  await rm(dir, { recursive: true, force: true });
});

describe.skipIf(missing !== undefined)('a run that windows attach to', () => {
  it('tells them everything, is stopped by one of them, and ends its process as `train` does', async () => {
    const file = join(dir, 'served.json'),
      storage = join(dir, 'studio', 'runtime');
    await writeFile(
      file,
      JSON.stringify({
        name: 'served',
        seed: 3,
        tasks: { families: ['press-button'] },
        desktops: { count: 1, provider },
        policy: { replicas: 1 },
        rollout: { maxSteps: 4 },
        warmStart: { demonstrations: 1, steps: 0 },
        evaluation: { episodes: 1, everyMinutes: 0 },
        budget: { rollouts: 500 },
      } satisfies RunFile),
    );
    await mkdir(storage, { recursive: true });
    const c = start('train', file, '--runs', join(dir, 'runs'), '--json', '--serve', storage),
      run = await folderOf(c),
      there = await Promise.race([when(storage, () => record(storage)), c.ended]);
    if ('code' in there) throw new Error(there.stderr);
    expect(statSync(join(storage, 'daemon.json')).mode & 0o077).toBe(0);

    const { client, reaches } = await testClient(folder());
    await client.attachTo(forwardedRuntime(there, there.port));
    const training = new Promise<void>((done) => {
      client.on(methods.runStatus, (s) => {
        if (s.run === run && s.status.rollouts > 0) done();
      });
    });
    // Standard output has what `train --json` has.
    await c.hear((l) => l['type'] === 'status' && l['phase'] === 'training');
    await training;
    const { rows } = await client.request(methods.listTrajectories, { run }),
      ended = rows.find((r) => r.steps > 0)!,
      { view } = { view: await client.request(methods.getTrajectory, { run, rollout: ended.rollout }) },
      hashes = view.steps.map((s) => s.frame.hash);
    const { paths } = await fetchPictures(
      client,
      { run, hashes, width: 64 },
      join(dir, 'pictures'),
      new AbortController().signal,
    );
    expect(Object.keys(paths).sort()).toEqual([...new Set(hashes)].sort());
    for (const p of Object.values(paths)) expect(statSync(p).size).toBeGreaterThan(60);

    const gone = reaches('failed');
    await client.request(methods.stopRun, { run, now: true });
    await gone;
    expect(client.stateDetail).toMatchObject({ kind: 'remote.gone' });
    const end = await c.ended;
    expect(end, end.stderr).toMatchObject({ code: 130, signal: null });
    expect(c.said.find((l) => l['type'] === 'result')).toMatchObject({ stopped: 'signal', dir: run });
    expect(existsSync(join(storage, 'daemon.json'))).toBe(false);
    expect((await replay(run)).of('run.closed').map((e) => e.reason)).toEqual(['stopped']);
  });

  it('that cannot begin ends its process with what is wrong', async () => {
    const file = join(dir, 'broken.json');
    await writeFile(
      file,
      JSON.stringify({ tasks: { suite: 'folder', dir: join(dir, 'nowhere') }, desktops: { provider } }),
    );
    const end = await start('train', file, '--runs', join(dir, 'runs'), '--json', '--serve', join(dir, 'other')).ended;
    expect(end.code, end.stderr).not.toBe(0);
    expect(end.stderr).toContain('nowhere');
  });
});
