import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createPool } from '../../../runtime/cluster/pool.js';
import { OsworldProvider } from '../../../runtime/cluster/providers/osworld/provider.js';
import { RemoteDesktop } from '../../../runtime/cluster/providers/osworld/remoteDesktop.js';
import { OsworldServer } from '../../../runtime/cluster/providers/osworld/server.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { id, isEncoded, random, type DesktopId } from '../../../runtime/domain/index.js';
import { serveOsworld, type Served } from '../../../runtime/gateway/osworld/serve.js';
import { createTaskEngine, metricWorkers, openAssets, parseTask } from '../../../runtime/tasks/index.js';
import { localProvider, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { faultyProxy, type FaultyProxy } from '../../helpers/osworld/faultyProxy.js';
import { endAll, ensureBundle, folderOf, replay, start } from '../../helpers/run/cli.js';
import { smallRun } from '../../helpers/run/smallRun.js';

const BUNDLE = resolve('dist/runtime.js');
const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: desktops behind OSWorld’s port (${why})`);

describe.skipIf(why)('desktops behind OSWorld’s port', () => {
  let dir: string, served: Served, proxies: FaultyProxy[];
  const providers: OsworldProvider[] = [];
  const of = (i: number): string => `http://127.0.0.1:${served.desktops[i]!.port}`,
    osworld = (): OsworldProvider => {
      const servers = proxies.map((p) => p.url),
        p = new OsworldProvider({ ...parseRunFile({}).desktops.osworld, servers });
      providers.push(p);
      return p;
    };
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-osworld-'));
    served = await serveOsworld({
      provider: localProvider(),
      spec: SMALL,
      count: 2,
      port: 0,
      picture: pngOf,
      onLine: () => {},
    });
    proxies = await Promise.all([0, 1].map((i) => faultyProxy(of(i))));
  });
  afterEach(async () => {
    for (const p of proxies) p.fault = () => undefined;
    for (const p of providers.splice(0)) await p.dispose();
  });
  afterAll(async () => {
    await endAll();
    for (const p of proxies ?? []) await p.close();
    await served?.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** A dialog that writes down what is entered. */
  const ask = async (d: Desktop): Promise<void> => {
    await d.spawn(['sh', '-c', 'yad --entry --title=Ask >/home/user/said.txt']);
    await expect.poll(async () => (await d.exec(['wmctrl', '-l'])).stdout.toString()).toContain('Ask');
    expect(await d.settle({ maxMs: 10_000 })).toMatchObject({ settled: true, detector: 'exact' });
  };

  it('are seen, acted on, read, written and reset like any other', async () => {
    const provider = osworld(),
      d = await provider.create(SMALL),
      first = await d.screenshot!();
    expect(isEncoded(first) && first.width).toBe(640);
    const pixels = await d.observe();
    expect([pixels.width, pixels.height, pixels.data.length]).toEqual([640, 400, 640 * 400 * 4]);
    await ask(d);
    const asked = await d.screenshot!();
    expect(isEncoded(asked) && isEncoded(first) && asked.png.equals(first.png)).toBe(false);
    await d.perform({ type: 'type', text: 'a < b, "c"' });
    await d.input!([
      { type: 'key', key: '!', down: true },
      { type: 'key', key: 'Enter', down: true },
    ]);
    await expect.poll(async () => (await d.readFile('/home/user/said.txt')).toString()).toBe('a < b, "c"!\n');
    const bytes = Buffer.from(Array.from({ length: 3000 }, (_, i) => i & 255));
    await d.writeFile('/home/user/Documents/deep/x.bin', bytes);
    expect((await d.readFile('/home/user/Documents/deep/x.bin')).equals(bytes)).toBe(true);
    expect(await d.exec(['sh', '-c', 'cat; exit 4'], { stdin: bytes })).toMatchObject({ code: 4, stdout: bytes });
    expect(await d.exec(['sleep', '60'], { timeoutMs: 500 })).toMatchObject({ timedOut: true });
    await expect(d.exec(['/no/such'])).rejects.toMatchObject({ error: { details: { code: 'ENOENT' } } });
    await expect(d.readFile('/home/user/none')).rejects.toMatchObject({ error: { details: { code: 'ENOENT' } } });
    expect(await provider.reset(d)).toBe(d);
    const again = await d.screenshot!();
    expect(isEncoded(again) && isEncoded(first) && again.png.equals(first.png)).toBe(true);
    await expect(d.readFile('/home/user/said.txt')).rejects.toMatchObject({ kind: 'desktop.exec' });
    await provider.destroy(d);
  });

  it('set up and judge task files as any other desktop does', async () => {
    const provider = osworld(),
      d = await provider.create(SMALL),
      { signal } = new AbortController(),
      assets = join(dir, 'assets');
    await mkdir(join(assets, 'files.example/a'), { recursive: true });
    await writeFile(join(assets, 'files.example/a/list.txt'), 'pears\nplums\n');
    await writeFile(join(assets, 'files.example/a/gold.txt'), 'pears\nplums\nfigs\n');
    const engine = createTaskEngine({ metrics: metricWorkers({ file: BUNDLE }), assets: await openAssets(assets) }),
      task = parseTask(
        {
          id: 'add-a-line',
          instruction: 'Add figs to the list and make a folder for photos.',
          related_apps: ['os'],
          config: [
            {
              type: 'download',
              parameters: { files: [{ url: 'https://files.example/a/list.txt', path: '/home/user/Desktop/list.txt' }] },
            },
            { type: 'execute', parameters: { command: 'echo password > ~/Desktop/notes', shell: true } },
          ],
          evaluator: {
            func: ['compare_text_file', 'exact_match'],
            result: [
              { type: 'vm_file', path: '/home/user/Desktop/list.txt', dest: 'list.txt' },
              { type: 'vm_command_line', command: '[ -d ~/Desktop/photos ] && echo yes || echo no', shell: true },
            ],
            expected: [
              { type: 'cloud_file', path: 'https://files.example/a/gold.txt', dest: 'gold.txt' },
              { type: 'rule', rules: { expected: 'yes\n' } },
            ],
          },
        },
        'add-a-line.json',
      ),
      verdict = async (): Promise<number> => (await engine.verify(task, d, { type: 'finished' }, signal)).reward;
    await engine.setup(task, d, signal);
    expect((await d.readFile('/home/user/Desktop/notes')).toString()).toBe('password\n');
    expect(await verdict()).toBe(0);
    await d.exec(['sh', '-c', 'echo figs >> /home/user/Desktop/list.txt && mkdir /home/user/Desktop/photos']);
    expect(await verdict()).toBe(1);
    // What fails on the way is an error, and no reward.
    proxies[0]!.fault = proxies[1]!.fault = () => 'cut';
    await expect(verdict()).rejects.toMatchObject({ kind: 'desktop.lost' });
  });

  it('screens that come as errors, halves, or too late are asked for again', async () => {
    const r = random(11),
      [proxy] = proxies,
      d = new RemoteDesktop({
        id: id<DesktopId>('one'),
        spec: SMALL,
        server: new OsworldServer({ url: proxy!.url }),
        screenMs: 4000,
      });
    let faults = 0,
      last = false;
    proxy!.fault = (_, path) => {
      // Never twice in a row: three times in a row the desktop is lost, as it should be.
      last = path === '/screenshot' && !last && r.next() < 0.5;
      if (!last) return undefined;
      return (['error500', 'half', 'cut', 'hang'] as const)[faults++ % 4];
    };
    for (let i = 0; i < 24; i++) expect((await d.screenshot()).width).toBe(640);
    expect(faults).toBeGreaterThan(4);
    expect(d.isLost).toBe(false);
    proxy!.fault = () => 'busy';
    await expect(d.screenshot()).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect(d.isLost).toBe(true);
  });

  it('a server that is away loses its desktop, and serves the next when it is back', async () => {
    const pool = createPool({ provider: osworld(), spec: SMALL, size: 2, backoffMs: () => 50 }),
      signal = new AbortController().signal;
    try {
      const [a, b] = [await pool.lease({ signal }), await pool.lease({ signal })];
      for (const p of proxies) p.fault = () => 'cut';
      await expect(a.desktop.perform({ type: 'hotkey', keys: ['escape'] })).rejects.toMatchObject({
        kind: 'desktop.lost',
      });
      a.release({ broken: true });
      b.release();
      for (const p of proxies) p.fault = () => undefined;
      for (let i = 0; i < 6; i++) {
        const l = await pool.lease({ signal });
        await l.desktop.perform({ type: 'click', at: { x: 320, y: 200 } });
        expect((await l.desktop.observe()).width).toBe(640);
        l.release();
      }
      expect(pool.status().desktops.some((p) => p.replaced > 0)).toBe(true);
    } finally {
      await pool.close();
    }
  });

  it('a run trains on them, and every rollout is accounted for', async () => {
    ensureBundle();
    const r = random(5),
      file = join(dir, 'run.json');
    // Of what changes nothing one in twenty fails; of what does, one in fifty is never answered.
    for (const p of proxies)
      p.fault = (method) =>
        r.next() < (method === 'GET' ? 0.05 : 0.02) ? (method === 'GET' ? 'half' : 'cut') : undefined;
    await writeFile(
      file,
      smallRun('osworld', {
        desktops: { count: 2, provider: 'osworld', osworld: { servers: proxies.map((p) => p.url) }, settleMaxMs: 1000 },
        warmStart: { demonstrations: 0, steps: 0 },
        rollout: { maxSteps: 3 },
        budget: { rollouts: 24 },
      }),
    );
    const c = start('train', file, '--runs', join(dir, 'runs'), '--json'),
      run = await folderOf(c),
      ended = await c.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const journal = await replay(run),
      recorded = journal.of('trajectory.recorded').filter((e) => e.head.provenance.kind === 'rollout'),
      done = recorded.filter((e) => e.head.outcome.kind !== 'error');
    expect(done.length).toBeGreaterThanOrEqual(16);
    // What was lost on the way is an error of the desktop, and never a failure of the policy.
    for (const { head } of recorded)
      if (head.outcome.kind === 'error') expect(head.outcome.error.kind).toBe('desktop.lost');
    expect(journal.of('run.closed').at(-1)!.reason).toBe('finished');
  });
});
