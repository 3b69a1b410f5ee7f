import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { resolve } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import { KubernetesProvider } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import type * as Library from '../../../runtime/cluster/providers/kubernetes/library.js';
import { tryCluster } from '../../../runtime/cluster/providers/kubernetes/tryOut.js';
import type { Desktop, DesktopEvent, DesktopSpec } from '../../../runtime/cluster/types.js';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { untilSettled } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { ApiServer, ends, stuck } from '../../helpers/kubernetes/apiServer.js';
import { Containers } from '../../helpers/kubernetes/containers.js';

const engine = await engineHere();
if (!engine) console.log('skipped: Kubernetes provider tests (no Docker engine answers here)');
const spec: DesktopSpec = { screen: { width: 640, height: 400 }, memoryMb: 300, pids: 120 };
/** Answers with what it is told (7000), or without end (7001); says at /tmp/up that it listens. */
const SERVER = `
import asyncio
async def echo(reader, writer):
    writer.write(await reader.read())
    await writer.drain()
    writer.close()
async def endless(reader, writer):
    while True:
        writer.write(bytes(1 << 16))
        await writer.drain()
async def main():
    await asyncio.start_server(echo, '127.0.0.1', 7000)
    await asyncio.start_server(endless, '127.0.0.1', 7001)
    open('/tmp/up', 'w').close()
    await asyncio.Event().wait()
asyncio.run(main())
`;

/** A real desktop behind the API's small server: pods are containers. */
describe.skipIf(!engine)('Kubernetes provider', () => {
  let api: ApiServer, image: string;
  const containers = new Containers();
  const open: KubernetesProvider[] = [];
  beforeAll(async () => {
    image = await ensureImage(connectEngine());
    api = await ApiServer.open(containers);
  });
  afterEach(async () => {
    for (const p of open.splice(0)) await p.dispose();
    expect(api.pods.size).toBe(0);
    api.faults = {};
  });
  afterAll(() => api.close());

  type Options = NonNullable<NonNullable<RunFile['desktops']>['kubernetes']>;
  const provider = (
    o: Options = {},
    link?: { pingMs: number; answerMs: number },
    named?: string,
  ): KubernetesProvider => {
    const { kubernetes } = parseRunFile({}, { desktops: { kubernetes: { spares: 0, image, ...o } } }).desktops;
    const p = new KubernetesProvider({
      config: kubernetes,
      access: () => api.access(),
      ...(named === undefined ? {} : { image: named }),
      ...(link ? { link } : {}),
    });
    open.push(p);
    return p;
  };
  const screen = async (d: Desktop): Promise<string> => {
    const f = await d.observe();
    return createHash('sha256').update(f.data).digest('hex');
  };
  const podOf = (): string => [...api.pods.keys()].at(-1)!;
  const fileOf = async (d: Desktop, file: string): Promise<string> => (await d.readFile(file)).toString();

  it('create, observe, act, settle, reset to the same first frame, destroy', async () => {
    const p = provider();
    const d = await p.create(spec);
    expect(d).toMatchObject({ provider: 'kubernetes', screen: spec.screen });
    const first = await screen(d);
    await d.writeFile('/home/user/a.txt', Buffer.from('before '));
    await d.spawn(['mousepad', '/home/user/a.txt']);
    expect((await d.settle({ horizonMs: 250, maxMs: 20_000 })).settled).toBe(true);
    await d.perform({ type: 'hotkey', keys: ['ctrl', 'end'] });
    await d.perform({ type: 'type', text: 'Grüße 日本' });
    expect((await untilSettled(d)).detector).toBe('exact');
    await d.perform({ type: 'hotkey', keys: ['ctrl', 's'] });
    await untilSettled(d);
    expect(await fileOf(d, '/home/user/a.txt')).toMatch(/^before Grüße 日本/);
    expect(await screen(d)).not.toBe(first);
    expect((await d.exec(['sh', '-c', 'id -u; stat -c %a /tmp /run /home/user'])).stdout.toString()).toBe(
      '1000\n1777\n755\n755\n',
    );
    const same = await p.reset(d);
    expect(same).toBe(d);
    expect(await screen(d)).toBe(first);
    await expect(d.readFile('/home/user/a.txt')).rejects.toMatchObject({ kind: 'desktop.exec' });
    await p.destroy(d);
    expect(api.pods.size).toBe(0);
  });

  it('goes on where it was after cuts: a command, a file and an open application, with no event', async () => {
    const p = provider();
    const d = await p.create(spec),
      events: DesktopEvent[] = [];
    d.onEvent((e) => events.push(e));
    await d.spawn(['mousepad']);
    await untilSettled(d, { horizonMs: 250, maxMs: 20_000 });
    const command = d.exec(['sh', '-c', 'sleep 0.5; echo done']);
    api.cut();
    await d.perform({ type: 'type', text: 'one ' });
    api.cut();
    const [said] = await Promise.all([
      command,
      d.writeFile('/home/user/big', Buffer.alloc(3_000_000, 7)).then(() => api.cut()),
    ]);
    expect(said).toMatchObject({ code: 0 });
    expect(said.stdout.toString()).toBe('done\n');
    await d.perform({ type: 'type', text: 'two' });
    await untilSettled(d);
    // a server that starts again refuses all kinds of things
    const refusals = [401, 403, 408, 429].map((code) => ({ code, message: `no (${code})` }));
    api.faults.refuseExec = refusals;
    api.cut();
    await d.perform({ type: 'hotkey', keys: ['ctrl', 's'] });
    expect(refusals).toEqual([]);
    await d.settle({ horizonMs: 250 });
    expect((await d.readFile('/home/user/big')).equals(Buffer.alloc(3_000_000, 7))).toBe(true);
    expect(d.stalledMs!()).toBeGreaterThan(0);
    expect(events.filter((e) => e.type === 'lost')).toEqual([]);
  });

  it('an API server that is killed costs a pause; the desktop is lost only after the patience', async () => {
    const p = provider({ patienceSeconds: 20 });
    const d = await p.create(spec),
      first = await screen(d);
    await api.kill();
    const seen = screen(d);
    await new Promise((r) => {
      setTimeout(r, 300);
    });
    await api.back();
    expect(await seen).toBe(first);
    const short = await provider({ patienceSeconds: 0.5 }).create(spec);
    const lost = new Promise<DesktopEvent>((r) => short.onEvent(r));
    await api.kill();
    try {
      expect(await lost).toMatchObject({ type: 'lost', error: { kind: 'desktop.lost' } });
      await expect(short.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
    } finally {
      await api.back();
    }
    expect(await screen(d)).toBe(first);
  });

  it('deletes what it could not while the API server was away, with the next desktop and at the end', async () => {
    const p = provider({ patienceSeconds: 20 }),
      d = await p.create(spec);
    await api.kill();
    await expect(p.destroy(d)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
    await api.back();
    expect(api.pods.size).toBe(1);
    const next = await p.create(spec);
    await vi.waitFor(() => expect([...api.pods.keys()]).toEqual([p.podOf(next)]), { timeout: 20_000 });
    await api.kill();
    await expect(p.destroy(next)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
    await api.back();
    await p.dispose();
    expect(api.pods.size).toBe(0);
  });

  it('connects to ports of a desktop, each connection by itself', async () => {
    const p = provider(),
      d = await p.create(spec);
    await d.writeFile('/home/user/server.py', Buffer.from(SERVER));
    await d.exec(['mkfifo', '/tmp/up']);
    await d.spawn(['python3', '/home/user/server.py']);
    await d.exec(['cat', '/tmp/up']);
    const said = randomBytes(3_000_000),
      echo = await d.connect!(7000);
    echo.end(said);
    expect((await buffer(echo)).equals(said)).toBe(true);
    // nobody reads what comes without end: nothing else waits for it
    const endless = await d.connect!(7001);
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const s = await d.connect!(7000);
        s.end(`hello ${i}`);
        return text(s);
      }),
    );
    expect(answers).toEqual(answers.map((_, i) => `hello ${i}`));
    await d.observe();
    await once(endless, 'readable');
    expect(endless.readableLength).toBeLessThan(1 << 20);
    expect((await buffer(await d.connect!(9))).length).toBe(0);
    // a channel that is cut ends its connection, as any network would; the desktop goes on
    const cut = await d.connect!(7000),
      closed = once(cut, 'close');
    endless.destroy();
    api.cut();
    await closed;
    expect(cut.readableEnded).toBe(false);
    await d.observe();
    const last = await d.connect!(7000),
      over = once(last, 'close');
    last.resume();
    await p.reset(d);
    await over;
    await expect.poll(() => api.channels).toBe(1);
  });

  it('notices a channel that is dead without a word', async () => {
    const d = await provider({}, { pingMs: 100, answerMs: 3000 }).create(spec),
      first = await screen(d);
    api.freeze();
    expect(await screen(d)).toBe(first);
    expect(d.stalledMs!()).toBeGreaterThan(0);
  }, 60_000);

  it.each([
    ['oom', 'OOMKilled'],
    ['evicted', 'Evicted'],
  ] as const)('a pod that ends (%s) is lost at once, with the reason', async (what, reason) => {
    const p = provider();
    const d = await p.create(spec);
    const lost = new Promise<DesktopEvent>((r) => d.onEvent(r));
    const waiting = d.exec(['sleep', '60']).catch((e: unknown) => e);
    api.setStatus(podOf(), ends[what]);
    expect(await lost).toMatchObject({
      type: 'lost',
      error: { details: { reason } },
    });
    expect(await waiting).toMatchObject({ kind: 'desktop.lost' });
  });

  it('doctor tries rights, image, network and room, and says what is missing', async () => {
    const desktops = parseRunFile({}, { desktops: { count: 3, kubernetes: { image } } }).desktops;
    const findings = async (o: { roomMs?: number } = {}): Promise<Record<string, string>> => {
      const trial = provider({ startSeconds: 20 }, undefined, 'osworld');
      const found = await tryCluster(desktops, spec, { provider: trial, more: 2, ...o });
      expect(api.pods.size).toBe(0);
      return Object.fromEntries(found.map((f) => [f.name, `${f.level}: ${f.detail}`]));
    };
    const before = api.made.length;
    expect(await findings()).toEqual({
      Kubernetes: expect.stringMatching(/^ok: Kubernetes v1\.34\.4 \(test\), namespace desktops/) as string,
      'rights in desktops': expect.stringContaining('ok: get pods') as string,
      desktop: expect.stringContaining('ok:') as string,
      'network of desktops': 'ok: a desktop does not reach the API server or other desktops',
      // Of rollouts, a spare one, and two that make demonstrations.
      'room for desktops': 'ok: all 6 found a node',
    });
    // the trial of room asks for as much as desktops of the image will
    const limits = new Set(api.made.slice(before).map((m) => m.spec!.containers![0]!.resources!.limits!['memory']));
    expect([api.made.length - before, [...limits]]).toEqual([8, ['3072Mi']]);
    const reached = async (): Promise<string | undefined> => (await findings())['network of desktops'];
    containers.serviceHost = '127.0.0.1';
    // Whoever listens is not refused by itself: a policy can be.
    expect(await reached()).toMatch(/^ok: a desktop does not reach the API server or other desktops/);
    containers.listens = [6443];
    expect(await reached()).toMatch(/^wrong: a desktop reaches the API server: no NetworkPolicy/);
    containers.serviceHost = '10.96.0.1';
    containers.listens = [7000];
    api.podIP = '127.0.0.1';
    expect(await reached()).toMatch(/^wrong: a desktop reaches other desktops: no NetworkPolicy/);
    containers.listens = [];
    api.podIP = undefined;
    expect(await reached()).toBe('doubtful: it could not be seen whether a desktop reaches other desktops');
    api.faults = { forbidden: ['create pods/exec', 'list events'] };
    expect((await findings())['rights in desktops']).toBe('wrong: missing: create pods/exec, list events');
    api.faults = { quota: 2 };
    expect((await findings())['room for desktops']).toMatch(/^wrong: 2 of 6 found a place: The namespace's quota/);
    api.faults = { start: stuck.imageMissing };
    expect((await findings())['desktop']).toMatch(/^wrong: The cluster cannot have the desktop image/);
  });

  it('the bundle that is shipped reads a kubeconfig, and nothing else loads it', async () => {
    const bundle = resolve('dist/runtime.kubernetes.js');
    const { KubeConfig } = (await import(pathToFileURL(bundle).href)) as typeof Library;
    const config = new KubeConfig();
    config.loadFromString(
      'clusters: [{name: c, cluster: {server: "https://10.0.0.1"}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x',
    );
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options as never);
    expect(options.headers).toEqual({ Authorization: 'Bearer t' });
    const studio = readFileSync('dist/runtime.studio.js', 'utf8');
    expect(studio).toMatch(/import\("\.\/runtime\.kubernetes\.js"\)/);
    expect(studio).not.toMatch(/(from|import) ?"\.\/runtime\.kubernetes/);
    for (const f of ['runtime.js', 'runtime.engines.js', 'runtime.workers.js'])
      expect(readFileSync(`dist/${f}`, 'utf8')).not.toContain('runtime.kubernetes');
  });

  it('a deleted pod is lost; a spare takes its place at once', async () => {
    const p = provider({ spares: 1 });
    const d = await p.create(spec);
    await p.spareReady();
    expect(api.pods.size).toBe(2);
    const lost = new Promise<DesktopEvent>((r) => d.onEvent(r)),
      [taken, spare] = [...api.pods.keys()];
    await api.delete(taken!);
    expect(await lost).toMatchObject({ type: 'lost' });
    await p.destroy(d);
    const next = await p.create(spec);
    expect(next.id).not.toBe(d.id);
    expect(next.id).toBe(`k8s-${spare!.slice(-8)}`);
    await p.spareReady();
  });
});
