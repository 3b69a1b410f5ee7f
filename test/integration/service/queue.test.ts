import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as methods from '../../../runtime/protocol/methods.js';
import type { RunSummary } from '../../../runtime/protocol/types.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { cleanUp, folder, record, removeFolders, testClient, type TestClient } from '../../helpers/daemon/harness.js';
import { hook, notifySend, program } from '../../helpers/machine/alertEnds.js';
import { ensureBundle, replay } from '../../helpers/run/cli.js';
import { smallRun } from '../../helpers/run/smallRun.js';

/** The night: a queue that a window filled, and nobody there until the morning. */
const noLocal = await whyNoLocalDesktops();
let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-night-'));
});
afterEach(cleanUp);
afterAll(async () => {
  removeFolders();
  await rm(dir, { recursive: true, force: true });
});

async function attach(storage: string): Promise<TestClient> {
  const c = await testClient(storage, {
    runtime: resolve('dist/runtime.js'),
    build: JSON.parse(await readFile('dist/build.json', 'utf8')) as { version: string; time: number },
    env: { PATH: `${dir}:${process.env['PATH'] ?? ''}` },
  });
  await c.client.connect({ start: true });
  return c;
}
const said = (x: { readonly body: unknown }): unknown => x.body;

describe.skipIf(noLocal !== undefined)('a queue without a window', () => {
  it(
    'ends both runs one after the other, passes on what they are watched for, and stops the one that reaches its target',
    { timeout: 900_000 },
    async () => {
      const storage = folder(),
        page = program(dir),
        web = await hook(),
        desk = notifySend(dir),
        window = await attach(storage),
        { client } = window,
        { pid } = record(storage)!;
      // Bounds that every run breaks after three updates; which of them comes last ends it.
      const watched = smallRun('watched', {
          budget: { minutes: 30 },
          curation: { dynamicRollouts: { max: 4 }, groupFilter: { enabled: false } },
          watch: { diskBelowGb: 1e6, entropyBelow: 100, klAbove: 1e-12, stop: ['kl'] },
        }),
        early = smallRun('early', {
          budget: { minutes: 30 },
          evaluation: { episodes: 2, everyMinutes: 0 },
          watch: { target: 0, stop: ['target'] },
        });
      await client.request(methods.setAlerts, { command: page.path, webhook: web.url, desktop: true });
      await client.request(methods.pauseQueue, { paused: true });
      await client.request(methods.addToQueue, {
        runs: [watched, early].map((text) => ({ text, base: dir })),
      });
      await client.request(methods.pauseQueue, { paused: false });
      client.dispose();

      const over = (): unknown[] => page.heard().filter((a) => a['kind'] === 'finished');
      await expect.poll(over, { timeout: 800_000, interval: 200 }).toHaveLength(2);
      const back = await attach(storage);
      expect(record(storage)!.pid).toBe(pid);
      const queue = await back.client.request(methods.listQueue, {});
      expect(queue.items.map((i) => `${i.name} ${i.state}`)).toEqual(['watched done', 'early done']);
      const [first, second] = await Promise.all(
        queue.items.map(async (i) => JSON.parse(await readFile(join(i.run!, 'summary.json'), 'utf8')) as RunSummary),
      );
      expect([first!.state, second!.state]).toEqual(['finished', 'finished']);
      expect(second!.createdAt).toBeGreaterThanOrEqual(first!.endedAt!);
      expect(
        (await back.client.request(methods.listRuns, { roots: [join(dir, 'runs')] })).runs.map((r) => r.state),
      ).toEqual(['finished', 'finished']);

      // Each thing was passed on once to each of the three, with nobody there.
      const of = (name: string): readonly (readonly [unknown, string])[] =>
        page
          .heard()
          .filter((a) => a['name'] === name)
          .map((a) => [a['kind'], String(a['message'])] as const);
      expect(new Set(of('watched').map(([kind]) => kind))).toEqual(new Set(['disk', 'entropy', 'kl', 'finished']));
      expect(of('watched')).toHaveLength(4);
      expect(of('early')).toEqual([
        ['target', expect.stringMatching(/^An evaluation reached \d+ %; the target is 0 %\.$/) as string],
        ['finished', expect.stringMatching(/^finished, \d+ rollouts?, evaluation \d+ %$/) as string],
      ]);
      expect(web.heard.map(said)).toEqual(page.heard());
      expect(desk.calls().map((c) => c.slice(-2))).toEqual(page.heard().map((a) => [a['name'], a['message']]));
      await web.close();

      // It ended before its budget of half an hour, and says why.
      const journal = await replay(second!.run);
      expect(journal.of('log').map((n) => n.message)).toContain(
        'The run ends early, as set in its run file: watch.stop names target.',
      );
      await back.client.shutdown();
    },
  );

  it('ends a run that stands still, and says so', { timeout: 180_000 }, async () => {
    const storage = folder(),
      page = program(dir, 'page-standing'),
      tasks = join(dir, 'standing'),
      { client } = await attach(storage);
    await mkdir(tasks);
    // Its set-up takes longer than the watch waits between two looks, and no rollout ends before it.
    const config = [{ type: 'execute', parameters: { command: ['sleep', '25'] } }];
    await writeFile(
      join(tasks, 'waits.json'),
      JSON.stringify({ id: 'waits', instruction: 'Wait', config, evaluator: { func: 'infeasible' }, related_apps: [] }),
    );
    await client.request(methods.setAlerts, { command: page.path, webhook: '', desktop: false });
    const standing = smallRun('standing', {
      tasks: { suite: 'folder', dir: tasks, infeasible: true },
      desktops: { count: 1, provider: 'local' },
      warmStart: {},
      budget: { minutes: 30 },
      watch: { stalledMinutes: 0.01, stop: ['stalled'] },
    });
    await client.request(methods.addToQueue, { runs: [{ text: standing, base: dir }] });
    await expect
      .poll(() => page.heard().map((a) => [a['kind'], a['message']]), { timeout: 120_000, interval: 200 })
      .toEqual([
        ['stalled', 'No rollout has ended and nothing was trained for 0.01 minutes.'],
        ['finished', expect.stringMatching(/^finished, /) as string],
      ]);
    const [item] = (await client.request(methods.listQueue, {})).items,
      journal = await replay(item!.run!);
    expect(item!.state).toBe('done');
    expect(journal.of('log').map((n) => n.message)).toContain(
      'The run ends early, as set in its run file: watch.stop names stalled.',
    );
    await client.shutdown();
  });
});
