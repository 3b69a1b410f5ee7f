import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { openTasks } from '../../../runtime/tasks/open.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'folder-probes-'));
});
afterEach(() => rm(dir, { recursive: true }));

it('of a folder, a part of the tasks is a sample of all applications, and the same every time', async () => {
  const apps = ['chrome', 'gimp', 'os', 'vlc'];
  for (const app of apps) {
    await mkdir(join(dir, app));
    for (let i = 0; i < 20; i++)
      await writeFile(
        join(dir, app, `${app}-${i}.json`),
        JSON.stringify({
          id: `${app}-${i}`,
          instruction: 'x',
          config: [],
          evaluator: { func: 'infeasible' },
          related_apps: [],
        }),
      );
  }
  const config = parseRunFile({ tasks: { suite: 'folder', dir, infeasible: true } }),
    tasks = await openTasks(config, { apps: [], programs: [] }),
    names = tasks.probes(20).map((p) => p.family);
  expect(new Set(names).size).toBe(20);
  for (const app of apps)
    expect(
      names.some((n) => n.includes(app)),
      app,
    ).toBe(true);
  expect(tasks.probesOf('heldout', 20).map((p) => p.family)).toEqual(names);
  expect(new Set(tasks.probes(80).map((p) => p.family)).size).toBe(80);
  expect(tasks.noneHeldOut).toBe(true);
});
