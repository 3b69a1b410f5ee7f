import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import {
  createDockerProvider,
  desktopPath,
  type DockerProvider,
  type DockerProviderOptions,
} from '../../../runtime/cluster/providers/docker.js';
import { OWNER, ROLE, RUN } from '../../../runtime/cluster/providers/dockerContainer.js';
import { ownerLabel, self } from '../../../runtime/cluster/providers/dockerHosts.js';
import type { Desktop, DesktopEvent, DesktopSpec } from '../../../runtime/cluster/types.js';
import { decodePng } from '../../../runtime/data/store/png.js';
import { isEncoded, type EncodedFrame } from '../../../runtime/domain/index.js';
import { untilSettled } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';

const engine = await engineHere();
if (!engine) console.log('skipped: Docker provider tests (no Docker engine answers here)');
const root = process.getuid?.() === 0 && process.platform === 'linux';
const spec: DesktopSpec = { screen: { width: 640, height: 400 }, memoryMb: 300, pids: 120 };
const sh = async (d: Desktop, script: string): Promise<{ code: number | null; out: string }> => {
  const r = await d.exec(['sh', '-c', script]);
  return { code: r.code, out: (r.stdout.toString() + r.stderr.toString()).trim() };
};

/** Where two pictures of the desktop differ, for the message of a failure. */
function differing(a: Buffer, b: Buffer): string {
  const at = Array.from({ length: a.length / 4 }, (_, i) => i).filter(
    (i) => a.readInt32LE(4 * i) !== b.readInt32LE(4 * i),
  );
  if (!at.length) return 'nothing';
  const { width } = spec.screen;
  const [xs, ys] = [at.map((i) => i % width), at.map((i) => Math.floor(i / width))];
  const span = (v: number[]): string =>
    `${v.reduce((m, n) => Math.min(m, n))} to ${v.reduce((m, n) => Math.max(m, n))}`;
  return `${at.length} pixels, x ${span(xs)}, y ${span(ys)}`;
}

const errnoOf = (systemCall: number): string =>
  `python3 -c "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(${systemCall}, 0, 0, 0, 0, 0); print(ctypes.get_errno())"`;

describe.skipIf(!engine)('Docker provider', () => {
  const docker = connectEngine();
  const providers: DockerProvider[] = [];
  const provider = (o: DockerProviderOptions = {}): DockerProvider => {
    const p = createDockerProvider({ spares: 0, ...o });
    providers.push(p);
    return p;
  };
  const containers = async (label: string): Promise<number> =>
    (await docker.listContainers({ all: true, filters: { label: [label] } })).length;
  const MINE = `${OWNER}=${ownerLabel(self())}`;
  beforeAll(async () => {
    await ensureImage(docker);
  });
  afterEach(async () => {
    for (const p of providers.splice(0)) await p.dispose();
  });
  afterAll(async () => {
    expect(await containers(MINE)).toBe(0);
  });

  it('says what answers and how much room there is', async () => {
    expect(await provider().status()).toMatchObject({
      provider: 'docker',
      ok: true,
      detail: expect.stringContaining(engine!) as string,
      capacity: expect.any(Number) as number,
    });
    const none = await provider({ hosts: [{ host: 'unix:///nonexistent/docker.sock', capacity: 3 }] }).status();
    expect(none).toMatchObject({
      ok: false,
      problem: { kind: 'desktop.unavailable', remedy: expect.stringContaining('systemctl start docker') as string },
    });
    expect(none.capacity).toBeUndefined();
  });

  for (const path of ['fast', 'portable'] as const) {
    it.skipIf(path === 'fast' && !root)(
      `${path} path: create, observe, act, reset to the same first frame, destroy`,
      async () => {
        const p = provider({ path, run: 'test-run' });
        const d = await p.create(spec);
        expect(desktopPath(d)).toBe(path);
        expect(await containers(`${RUN}=test-run`)).toBe(1);
        const first = await d.observe();
        expect(first).toMatchObject({ width: 640, height: 400 });
        expect(first.data.length).toBe(640 * 400 * 4);
        await d.writeFile('/home/user/Documents/deep/a.txt', Buffer.from('before '));
        await d.spawn(['mousepad', '/home/user/Documents/deep/a.txt']);
        await untilSettled(d, { horizonMs: 250, maxMs: 20_000 });
        await d.perform({ type: 'hotkey', keys: ['ctrl', 'end'] });
        await d.perform({ type: 'type', text: 'Grüße 日本' });
        await untilSettled(d);
        await d.perform({ type: 'hotkey', keys: ['ctrl', 's'] });
        await untilSettled(d, { horizonMs: 100 });
        expect((await d.readFile('/home/user/Documents/deep/a.txt')).toString()).toBe('before Grüße 日本');
        expect((await d.observe()).data.equals(first.data)).toBe(false);
        await d.exec(['xdotool', 'keydown', 'shift']);
        await d.spawn(['xterm']);
        await sh(d, 'until pgrep -t pts/0; do sleep 0.02; done');
        await d.settle({ horizonMs: 250, maxMs: 20_000 });
        // Before a task is judged, what a terminal passes on is waited for on either path.
        expect((await d.settle({ terminalHoldMs: 150, maxMs: 5000 })).ms).toBeGreaterThanOrEqual(149);
        expect(await p.reset(d)).toBe(d);
        expect((await d.observe()).data.equals(first.data)).toBe(true);
        await expect(d.readFile('/home/user/Documents/deep/a.txt')).rejects.toMatchObject({
          error: { details: { code: 'ENOENT' } },
        });
        await p.destroy(d);
        await p.destroy(d); // once more is fine
        expect(await containers(`${RUN}=test-run`)).toBe(0);
        await expect(d.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
      },
    );
  }

  it.skipIf(!root)('both paths show the same picture, pointer included', async () => {
    const [a, b] = [await provider({ path: 'fast' }).create(spec), await provider({ path: 'portable' }).create(spec)];
    for (const d of [a, b]) {
      await d.spawn(['galculator']);
      await sh(d, 'until wmctrl -l | grep -q galculator; do sleep 0.02; done');
      await d.settle({ horizonMs: 250, maxMs: 20_000 });
      await d.perform({ type: 'click', at: { x: 38, y: 302 } });
      await d.settle({ horizonMs: 100 });
    }
    // A button's flash may outlast the settling on a busy machine; what one path draws wrongly stays wrong.
    await expect
      .poll(async () => differing((await a.observe()).data, (await b.observe()).data), { timeout: 20_000 })
      .toBe('nothing');
    expect((await b.observe()).data.equals((await b.observe()).data)).toBe(true); // and again, when nothing changed
    // Encoded inside, it is the same picture.
    const shot = await b.screenshot!();
    expect(isEncoded(shot)).toBe(true);
    const { rgb } = await decodePng((shot as EncodedFrame).png),
      { data } = await b.observe();
    expect(rgb.equals(rgbOf(data))).toBe(true);
    const pixels = await a.screenshot!(); // the fast path reads pixels in this process
    expect(isEncoded(pixels)).toBe(false);
  });

  it('has a network where the run file says so, and nothing else more', async () => {
    const d = await provider().create({ ...spec, network: 'internet' });
    // The route to everything that has none of its own: where a network would lead, whether or not this machine has one.
    expect((await sh(d, 'awk \'$2 == "00000000" { print $1 }\' /proc/net/route')).out).toBe('eth0');
    expect((await sh(d, 'grep -E "CapEff|NoNewPrivs" /proc/self/status')).out.replace(/\s+/g, ' ')).toBe(
      'CapEff: 0000000000000000 NoNewPrivs: 1',
    );
    expect((await sh(d, 'touch /usr/x')).out).toMatch(/Read-only|Permission denied/);
    // A browser's own sandbox is made of user namespaces and an empty root; neither gives more than that.
    const own = (what: string): string => `unshare -U --map-root-user ${what} 2>&1`;
    const intoNothing = "import os; os.mkdir('/tmp/empty'); os.chroot('/tmp/empty'); print(os.listdir('/'))";
    expect((await sh(d, own(`python3 -c "${intoNothing}"`))).out).toBe('[]');
    expect((await sh(d, own('--mount mount -t tmpfs none /mnt'))).out).toMatch(/not permitted|denied/i);
    expect((await sh(d, own('touch /usr/x'))).out).toMatch(/Read-only|Permission denied/);
    for (const [name, ...numbers] of [
      ['bpf', 321, 280],
      ['keyctl', 250, 219],
      ['io_uring_setup', 425, 425],
      ['open_by_handle_at', 304, 265],
    ] as const)
      expect((await sh(d, errnoOf(numbers[process.arch === 'arm64' ? 1 : 0]))).out, name).toBe('1');
  });

  it('is closed: no network, read-only, limited in processes, disk and memory, no way to become root', async () => {
    const p = provider();
    const d = await p.create(spec);
    expect((await sh(d, 'cat /proc/net/dev | tail -n +3 | cut -d: -f1')).out).toBe('lo');
    expect((await sh(d, 'python3 -c "import socket; socket.create_connection((\'1.1.1.1\', 80), 3)"')).out).toMatch(
      /unreachable/i,
    );
    for (const f of ['/etc/x', '/usr/x', '/opt/dart/x'])
      expect((await sh(d, `touch ${f}`)).out, f).toMatch(/Read-only|Permission denied/);
    expect((await sh(d, 'unshare -U true')).out).toMatch(/not permitted/);
    expect((await sh(d, 'id -u; id -un')).out).toBe('1000\nuser');
    expect((await sh(d, 'grep -E "CapEff|CapPrm|NoNewPrivs" /proc/self/status')).out.replace(/\s+/g, ' ')).toBe(
      'CapPrm: 0000000000000000 CapEff: 0000000000000000 NoNewPrivs: 1',
    );
    expect((await sh(d, 'kill -9 1; echo "$?"')).out).toMatch(/1$|not permitted/);
    expect(
      (await sh(d, 'python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.connect(\'/run/dart/agent.sock\')"'))
        .out,
    ).toMatch(/Permission denied/);
    const forks = await sh(
      d,
      'python3 - <<E\nimport os\nn=0\ntry:\n  while n < 1000:\n    if os.fork()==0:\n      import time; time.sleep(20); os._exit(0)\n    n+=1\nexcept OSError as e: print("stopped", n, e.strerror)\nE',
    );
    expect(forks.out).toMatch(/^stopped \d+ Resource temporarily unavailable/);
    expect(Number(forks.out.split(' ')[1])).toBeLessThan(120);
    await expect(d.observe()).resolves.toMatchObject({ width: 640 });
    await p.reset(d); // and every one of them is gone
    expect(Number((await sh(d, 'ls -d /proc/[0-9]* | wc -l')).out)).toBeLessThan(12);
    expect((await sh(d, 'dd if=/dev/zero of=$HOME/big bs=1M count=400 2>&1')).out).toMatch(/No space left/);
  });

  it('its image keeps nothing of the machine that built it: no mirrors, proxy or certificates in any layer', async () => {
    const image = docker.getImage(await ensureImage(docker)),
      steps = (await image.history()) as { CreatedBy: string }[];
    expect(steps.map((s) => s.CreatedBy).join('\n')).not.toMatch(/apt|dart-build|proxy/i);
    // All of the system is one layer, copied from a stage that is no part of the image; two are laid over it.
    expect((await image.inspect()).RootFS.Layers).toHaveLength(3);
    const d = await provider().create(spec);
    expect(
      (
        await sh(
          d,
          'cat /etc/apt/apt.conf.d/* | grep -i proxy; ls /tmp/dart-build /etc/apt/apt.conf.d/99dart-build 2>/dev/null',
        )
      ).out,
    ).toBe('');
  });

  it('memory: the hog is killed, the desktop lives on and can be reset', async () => {
    const p = provider();
    const d = await p.create(spec);
    const first = await d.observe();
    const hog = await d.exec(['python3', '-c', 'b = []\nwhile True: b.append(bytearray(10_000_000))'], {
      timeoutMs: 60_000,
    });
    expect(hog.code).not.toBe(0);
    expect(hog.timedOut).toBe(false);
    expect(await d.blame!()).toBe('its programs used up the memory of the desktop');
    await p.reset(d);
    expect(await d.blame!()).toBeUndefined();
    expect((await d.observe()).data.equals(first.data)).toBe(true);
  });

  it('tells of a program that died and of a desktop that did', async () => {
    const p = provider();
    const d = await p.create(spec);
    const events: DesktopEvent[] = [];
    let tell: () => void = () => {};
    d.onEvent((e) => {
      events.push(e);
      tell();
    });
    const next = (): Promise<void> =>
      new Promise((r) => {
        tell = r;
      });
    let waiting = next();
    const pid = await d.spawn(['sh', '-c', 'kill -SEGV $$']);
    await waiting;
    expect(events).toEqual([{ type: 'exit', pid, name: 'sh', code: null, signal: 'SIGSEGV' }]);
    waiting = next();
    const [c] = await docker.listContainers({ filters: { label: [MINE] } });
    await docker.getContainer(c!.Id).kill();
    await waiting;
    expect(events.at(-1)).toMatchObject({ type: 'lost', error: { kind: 'desktop.lost' } });
    await expect(p.reset(d)).rejects.toMatchObject({ kind: 'desktop.lost' });
    await p.destroy(d);
  });

  it('places desktops on the engine with most room, and says when all is full', async () => {
    const p = provider({ hosts: [{ capacity: 1 }, { host: 'unix:///var/run/docker.sock', capacity: 2 }], run: 'two' });
    expect((await p.status()).capacity).toBe(3);
    const three = [await p.create(spec), await p.create(spec), await p.create(spec)];
    await expect(p.create(spec)).rejects.toMatchObject({
      kind: 'desktop.unavailable',
      message: expect.stringContaining('2 of 2') as string,
    });
    await p.destroy(three[0]!);
    await expect(p.create(spec)).resolves.toMatchObject({ provider: 'docker' });
  });

  it('goes on with the engines that answer', async () => {
    const p = provider({ hosts: [{ host: 'unix:///nonexistent/docker.sock', capacity: 9 }, { capacity: 1 }] });
    expect(await p.status()).toMatchObject({ ok: true, capacity: 1, problem: { kind: 'desktop.unavailable' } });
    await expect(p.create(spec)).resolves.toMatchObject({ provider: 'docker' });
  });

  it('keeps a spare, hands it out, and replaces it', async () => {
    const p = provider({ spares: 1, run: 'spare' });
    const seen = new Set<string>();
    const a = await p.create(spec);
    seen.add(a.id);
    await p.spareReady();
    expect(await containers(`${RUN}=spare`)).toBe(2);
    const b = await p.create(spec); // the spare: started before it was asked for
    seen.add(b.id);
    expect((await b.observe()).data.equals((await a.observe()).data)).toBe(true);
    await p.spareReady();
    expect(await containers(`${RUN}=spare`)).toBe(3);
    expect(seen.size).toBe(2);
    // a spare of another kind is of no use here
    const other = await p.create({ ...spec, screen: { width: 800, height: 600 } });
    expect((await other.observe()).width).toBe(800);
  });

  it('starting can be cancelled and leaves no container', async () => {
    const p = provider({ run: 'cancelled' });
    const stop = new AbortController();
    const creating = p.create(spec, stop.signal);
    stop.abort();
    await expect(creating).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await containers(`${RUN}=cancelled`)).toBe(0);
  });

  it('removes what an engine kept while it did not answer, with the next desktop and at the end', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'dart-engine-')),
      at = join(dir, 'docker.sock'),
      way = new Way(at);
    try {
      await way.open();
      const p = provider({ hosts: [{ host: `unix://${at}`, capacity: 4 }], path: 'fast' }),
        first = await p.create(spec),
        begun = await containers(MINE);
      await way.close();
      await expect(p.destroy(first)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
      expect(await containers(MINE)).toBe(begun);
      await way.open();
      const second = await p.create(spec);
      await vi.waitFor(async () => expect(await containers(MINE)).toBe(begun), { timeout: 20_000 });
      await way.close();
      await expect(p.destroy(second)).rejects.toMatchObject({ kind: 'desktop.unavailable' });
      await way.open();
      await p.dispose();
      expect(await containers(MINE)).toBe(begun - 1);
    } finally {
      await way.close();
      await rm(dir, { recursive: true });
    }
  });

  it('reaps what a crashed process left, and nothing of a living one', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'dart-crash-'));
    try {
      const alive = provider();
      const d = await alive.create(spec);
      // A process of its own makes a container under its own name and is then killed, as a crash would.
      await writeFile(
        join(dir, 'crash.mjs'),
        'process.on("message", () => {}); process.send("up"); setInterval(() => {}, 1e6);',
      );
      const child = fork(join(dir, 'crash.mjs'));
      await new Promise((r) => child.once('message', r));
      const { startTime } = await import('../../../runtime/cluster/providers/dockerHosts.js');
      const owner = ownerLabel({ ...self(), pid: child.pid!, started: startTime(child.pid!) });
      const image = await ensureImage(docker);
      const c = await docker.createContainer({
        Image: image,
        Labels: { app: 'dart-studio', [ROLE]: 'desktop', [OWNER]: owner },
        HostConfig: { NetworkMode: 'none' },
      });
      await c.start();
      expect(await alive.reap()).toBe(0);
      const ended = new Promise((r) => child.once('exit', r));
      child.kill('SIGKILL');
      await ended;
      expect(await alive.reap()).toBe(1);
      await expect(c.inspect()).rejects.toMatchObject({ statusCode: 404 });
      await expect(d.observe()).resolves.toMatchObject({ width: 640 });
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});

/** A way to the machine's engine that can be closed. */
class Way {
  readonly #at: string;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;
  constructor(at: string) {
    this.#at = at;
  }
  async open(): Promise<void> {
    this.#server = createServer((from) => {
      const to = connect('/var/run/docker.sock');
      for (const s of [from, to]) {
        this.#open.add(s);
        s.on('error', () => undefined).on('close', () => {
          this.#open.delete(s);
          from.destroy();
          to.destroy();
        });
      }
      from.pipe(to).pipe(from);
    }).listen(this.#at);
    await once(this.#server, 'listening');
  }
  async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    for (const s of this.#open) s.destroy();
    await closed;
  }
}

const rgbOf = (bgrx: Buffer): Buffer => {
  const out = Buffer.alloc((bgrx.length / 4) * 3);
  for (let i = 0, o = 0; i < bgrx.length; i += 4) {
    out[o++] = bgrx[i + 2]!;
    out[o++] = bgrx[i + 1]!;
    out[o++] = bgrx[i]!;
  }
  return out;
};
