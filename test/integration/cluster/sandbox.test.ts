import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocalProvider, createProvider, procSettler, TaskWatch } from '../../../runtime/cluster/index.js';
import { memoryGroups } from '../../../runtime/cluster/providers/cgroups.js';
import { HOLD_MS } from '../../../runtime/cluster/drivers/settle.js';
import type { AgentClient, X11Client } from '../../../runtime/cluster/index.js';
import { stateDir } from '../../../runtime/cluster/providers/sandboxRecords.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import {
  localProvider,
  nextEvent,
  sandboxRecord,
  sh,
  SMALL,
  untilSettled,
  whyNoLocalDesktops,
} from '../../helpers/cluster/desktops.js';
import { statOf } from '../../helpers/machine/processes.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

// A process that the kernel ends is no zombie at once, so those count that still answer.
const SHARERS = `
import os, signal, time
children = []
for i in range(5):
    r, w = os.pipe()
    asked, ask = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ask)
        have = b'x' * (100 << 20)
        os.write(w, b'1')
        os.read(asked, 1)
        os.write(w, b'2')
        time.sleep(60)
    os.close(w)
    os.close(asked)
    os.read(r, 1)
    children.append((pid, r, ask))
alive = 0
for pid, r, ask in children:
    try:
        os.write(ask, b'?')
        alive += os.read(r, 1) == b'2'
    except BrokenPipeError:
        pass
print(alive)
for pid, r, ask in children:
    os.kill(pid, signal.SIGKILL)
`;

describe.skipIf(why)('a local desktop', () => {
  const p = localProvider();
  let d: Desktop;
  beforeAll(async () => {
    d = await p.create({ ...SMALL, memoryMb: 300, pids: 128 });
  });
  afterAll(() => p.dispose());

  it('starts from the same first frame after 30 dirty episodes', async () => {
    const first = (await d.observe()).data;
    const fds = await openInAgent(d);
    for (let i = 0; i < 30; i++) {
      await sh(
        d,
        `mkdir -p ~/x/y /tmp/z && echo ${i} > ~/Desktop/f${i}.txt && echo > /tmp/z/t && mkdir -m 0 ~/locked ~/x/y/none && rm -rf Documents && xdotool keydown shift mousemove ${i * 10} 50`,
      );
      await d.spawn(['setsid', 'sh', '-c', "trap '' TERM HUP; while :; do sleep 1; done"]);
      if (i % 3 === 0) await d.spawn(['xterm']);
      if (i % 5 === 0) {
        await d.perform({ type: 'type', text: 'ж→' });
        await d.settle();
      }
      await p.reset(d);
      expect((await d.observe()).data.equals(first), `frame after reset ${i}`).toBe(true);
      expect(
        await sh(d, 'ls -A ~/Desktop /tmp | grep -v X11; ls -d Documents; xdotool getmouselocation --shell | head -2'),
      ).toMatch(/Documents\nX=320\nY=200$/);
    }
    // What was spawned last may still be ending.
    await expect.poll(() => openInAgent(d)).toEqual(fds);
    await expect.poll(() => sh(d, 'ps -e -o stat= | grep -c Z || true')).toBe('0');
  });

  it('has no network and sees nothing of the host', async () => {
    expect((await sh(d, 'tail -n +3 /proc/net/dev | cut -d: -f1')).trim()).toBe('lo');
    expect(
      await sh(d, `python3 -c "import socket; socket.create_connection(('192.0.2.1', 80), 2)" 2>&1 | tail -1`),
    ).toMatch(/Network is unreachable/);
    expect(Number(await sh(d, 'ps -e | wc -l'))).toBeLessThan(10);
    expect(await sh(d, 'hostname; id -un; echo $HOME $DISPLAY')).toBe('desktop\nuser\n/home/user :0');
    expect(await sh(d, 'ls /root /work 2>&1 | grep -v "cannot"')).toBe('');
  });

  it('can write its home and temporary folders only', async () => {
    expect(
      await sh(
        d,
        'for f in /usr /etc /opt /var /dev /home / /proc/sys/kernel; do touch $f/probe 2>/dev/null && echo $f; done; for f in ~ /tmp /var/tmp /dev/shm; do touch $f/probe || echo no $f; done; echo x 2>/dev/null > /proc/sys/kernel/hostname && echo sysctl; true',
      ),
    ).toBe('');
    expect(await sh(d, 'grep -E "^(CapEff|NoNewPrivs)" /proc/self/status | tr -d "\\t"')).toBe(
      'CapEff:0000000000000000\nNoNewPrivs:1',
    );
    if (process.getuid!() === 0) expect(hostUid(d)).not.toBe(0);
  });

  it('contains a full disk', async () => {
    const out = await sh(
      d,
      'for f in ~/big /tmp/big /dev/shm/big /run/big; do head -c 200M /dev/zero 2>/dev/null > $f || echo full; done; stat -c %s ~/big',
    );
    expect(out.split('\n').slice(0, 4)).toEqual(['full', 'full', 'full', 'full']);
    expect(Number(out.split('\n')[4])).toBeLessThanOrEqual(64 << 20);
    await p.reset(d);
    expect(await sh(d, 'echo fine > ~/ok && cat ~/ok')).toBe('fine');
  });

  it('survives a program that wants all memory', async () => {
    const r = await d.exec(['python3', '-c', 'b = []\nwhile True: b.append(bytearray(1 << 24))'], {
      timeoutMs: 60_000,
    });
    expect(r.timedOut).toBe(false);
    expect(r.code).not.toBe(0);
    await untilSettled(d);
    expect((await d.observe()).width).toBe(640);
  });

  it('several programs have no more memory together than one alone', async () => {
    // 100 MB each, of 300: those that the kernel ended are not counted. Who is not root may lack groups: doctor says so.
    const alive = await d.exec(['python3', '-c', SHARERS], { timeoutMs: 60_000 });
    expect(Number(alive.stdout)).toBeLessThanOrEqual(process.getuid!() === 0 && (await memoryGroups()) ? 2 : 5);
    await untilSettled(d);
  });

  it('survives a fork bomb', async () => {
    await d.exec(['bash', '-c', ':(){ :|:& };:'], { timeoutMs: 500 }).catch(() => undefined);
    await p.reset(d);
    expect(Number(await sh(d, 'ps -e | wc -l'))).toBeLessThan(10);
  });

  it('says that it did not settle while something works', async () => {
    await d.spawn(['sh', '-c', 'while :; do :; done']);
    const r = await d.settle({ maxMs: 150 });
    expect(r).toMatchObject({ settled: false, detector: 'exact' });
    await p.reset(d);
    await untilSettled(d);
  });

  it("the agent's own detector says the same", async () => {
    const agent = (d as unknown as { agent: AgentClient }).agent;
    const { detector } = await untilSettled(agent, { horizonMs: 20, maxMs: 2000 });
    expect(detector).toBe(process.arch === 'x64' ? 'exact' : 'hold');
    const pid = await d.spawn(['sh', '-c', 'while :; do :; done']);
    expect(await agent.settle({ horizonMs: 20, maxMs: 150 })).toMatchObject({ settled: false });
    await sh(d, `kill -9 ${pid}`);
    await untilSettled(agent, { horizonMs: 20, maxMs: 2000 });
  });

  it('settles by hold where time-outs cannot be read', async () => {
    const { session } = d as unknown as { session: { x: X11Client } };
    const root = insideProc(d);
    const s = procSettler(session.x, new TaskWatch(root, '1', false));
    const quiet = await s.settle();
    expect(quiet).toMatchObject({ settled: true, detector: 'hold' });
    expect(quiet.ms).toBeGreaterThanOrEqual(HOLD_MS);
    const pid = await d.spawn(['sh', '-c', 'while :; do sleep 0.005; done']);
    // A loaded machine may starve the loop for longer than the hold; not every time, though.
    await expect
      .poll(() => s.settle({ maxMs: 200 }), { timeout: 60_000 })
      .toMatchObject({ settled: false, detector: 'hold' });
    await sh(d, `kill -9 ${pid}`);
    s.close();
  });

  it('applications cannot talk to the agent or end it', async () => {
    expect(await sh(d, 'ls /run/dart; kill -TERM 1; kill -KILL 1; kill -HUP 1; echo still here')).toBe(
      'still here', // not even the screen's memory is there
    );
    await untilSettled(d);
  });

  it('gives buffers back for reuse only when told to', async () => {
    const a = await d.observe(),
      b = await d.observe();
    expect(a.data.buffer === b.data.buffer).toBe(false);
    d.recycle!(a);
    expect((await d.observe()).data === a.data).toBe(true);
    expect((await d.observe()).data === a.data).toBe(false);
  });

  it('runs commands: input, output, exit code, folder, environment, time-out, cancellation', async () => {
    const r = await d.exec(['sh', '-c', 'cat; echo err >&2; pwd; echo $A; exit 3'], {
      stdin: 'in\n',
      cwd: '/tmp',
      env: { A: 'b c' },
    });
    expect([r.code, r.stdout.toString(), r.stderr.toString(), r.timedOut]).toEqual([
      3,
      'in\n/tmp\nb c\n',
      'err\n',
      false,
    ]);
    expect((await d.exec(['sh', '-c', 'sleep 30 & echo hi'])).stdout.toString()).toBe('hi\n');
    const big = Buffer.alloc(3 << 20, 'x');
    expect((await d.exec(['cat'], { stdin: big })).stdout.equals(big)).toBe(true);
    // Until it came so far as to say something.
    let said = '';
    for (let timeoutMs = 200; said === ''; timeoutMs *= 2) {
      const slow = await d.exec(['sh', '-c', 'echo begun; sleep 300 | cat'], { timeoutMs });
      expect(slow.timedOut).toBe(true);
      said = slow.stdout.toString();
    }
    expect(said).toBe('begun\n');
    const stop = new AbortController();
    const long = d.exec(['sleep', '30'], { signal: stop.signal });
    stop.abort();
    await expect(long).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(d.exec(['no-such-program'])).rejects.toMatchObject({
      kind: 'desktop.exec',
      error: { details: { code: 'ENOENT' } },
    });
    await expect.poll(() => sh(d, 'ps -e | grep -c sleep')).toBe('1'); // the one left in the background
    await p.reset(d);
  });

  it('reads and writes files', async () => {
    const data = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i & 255));
    await d.writeFile('/home/user/new/deep/f.bin', data);
    expect((await d.readFile('/home/user/new/deep/f.bin')).equals(data)).toBe(true);
    expect(await sh(d, 'stat -c %U new/deep/f.bin new')).toBe('user\nuser');
    // In several parts, over one that was longer.
    for (const n of [50, 40]) {
      const long = Buffer.alloc(n * data.length, data);
      await d.writeFile('/home/user/new/deep/f.bin', long);
      expect((await d.readFile('/home/user/new/deep/f.bin')).equals(long)).toBe(true);
    }
    await expect(d.readFile('/home/user/none')).rejects.toMatchObject({
      kind: 'desktop.exec',
      error: { details: { code: 'ENOENT' } },
    });
  });

  it('reports a crash of an application', async () => {
    const pid = await d.spawn(['sleep', '60']);
    const exit = nextEvent(d, (e) => e.type === 'exit' && e.pid === pid);
    await sh(d, `kill -SEGV ${pid}`);
    expect(await exit).toEqual({ type: 'exit', pid, name: 'sleep', code: null, signal: 'SIGSEGV' });
  });

  it('is lost when the X server dies, and comes back with a reset', async () => {
    const lost = nextEvent(d, (e) => e.type === 'lost');
    await d.exec(['pkill', '-9', 'Xvfb'], { verifier: true }).catch(() => undefined);
    expect(await lost).toMatchObject({ error: { kind: 'desktop.lost' } });
    await expect(d.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
    await expect(d.perform({ type: 'wait', ms: 0 })).rejects.toMatchObject({ kind: 'desktop.lost' });
    await p.reset(d);
    expect((await d.observe()).data.length).toBe(640 * 400 * 4);
  });

  it('is lost for good when the sandbox dies', async () => {
    const victim = await p.create(SMALL);
    const lost = nextEvent(victim, (e) => e.type === 'lost');
    process.kill(sandboxRecord(victim.id).processes[0]!.pid, 'SIGKILL');
    await lost;
    await expect(victim.exec(['true'])).rejects.toMatchObject({ kind: 'desktop.lost' });
    await expect(p.reset(victim)).rejects.toMatchObject({ kind: 'desktop.lost' });
    await p.destroy(victim);
  });

  it('leaves no process, record or control group behind', async () => {
    const one = await p.create(SMALL);
    const { processes, cgroups } = sandboxRecord(one.id);
    await p.destroy(one);
    expect(processes).toHaveLength(2);
    for (const m of processes) expect(() => process.kill(m.pid, 0)).toThrow();
    expect(readdirSync(await stateDir())).not.toContain(`${one.id}.json`);
    for (const c of cgroups) expect(() => readdirSync(c)).toThrow();
  });

  it('reaps what a dead process left behind, and nothing else', async () => {
    const orphan = spawn('sleep', ['60']);
    const { started } = statOf(orphan.pid!)!;
    const ended = once(orphan, 'exit');
    writeFileSync(
      `${await stateDir()}/local-orphan.json`,
      JSON.stringify({
        id: 'local-orphan',
        owner: { pid: 1, started: 'never' },
        processes: [{ pid: orphan.pid, started }],
        cgroups: [],
      }),
    );
    expect(await p.reap()).toBeGreaterThanOrEqual(1);
    await ended;
    expect(orphan.signalCode).toBe('SIGKILL');
    expect((await d.observe()).width).toBe(640);
  });

  it('is chosen by name, and says what is missing', async () => {
    const chosen = await createProvider({ provider: 'local' });
    expect(chosen.name).toBe('local');
    await chosen.dispose();
    const missing = { rootfs: () => Promise.resolve('/nowhere') };
    expect(await createLocalProvider(missing).status()).toMatchObject({
      ok: false,
      problem: { kind: 'desktop.image' },
    });
    await expect(createProvider({ provider: 'local', local: missing })).rejects.toMatchObject({
      kind: 'desktop.image',
    });
    await expect(createLocalProvider(missing).create(SMALL)).rejects.toMatchObject({ kind: 'desktop.start' });
  });

  it('starting can be cancelled, and leaves nothing', async () => {
    const mine = async (): Promise<string[]> =>
      (await readdir(await stateDir())).filter((f) => f.endsWith('.json') && ownerOf(f) === process.pid);
    const before = await mine();
    const stop = new AbortController();
    const starting = p.create(SMALL, stop.signal);
    setImmediate(() => stop.abort());
    await expect(starting).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await mine()).toEqual(before);
  });

  it('offers AT-SPI when asked to', async () => {
    const a = await p.create({ ...SMALL, a11y: true });
    await a.spawn(['galculator']);
    const names = await sh(
      a,
      `for i in 1 2 3 4 5 6 7 8 9 10; do python3 -c "
import pyatspi
print([x.name for x in pyatspi.Registry.getDesktop(0)])" 2>/dev/null | grep galculator && break; sleep 0.2; done`,
    );
    expect(names).toMatch(/galculator/);
    await p.destroy(a);
  });
});

/** The desktop's own /proc, seen from here: that of its PID 1. */
const insideProc = (d: Desktop): string => `/proc/${sandboxRecord(d.id).processes[1]!.pid}/root/proc`;

/** Descriptors that the agent has open, as it reads them itself: nobody else inside may look. */
async function openInAgent(d: Desktop): Promise<number[]> {
  const open: number[] = [];
  for (let fd = 0; fd < 64; fd++)
    await d.readFile(`/proc/self/fdinfo/${fd}`).then(
      () => open.push(fd),
      () => undefined,
    );
  return open;
}

/** Who made a record; others' come and go while we read. */
function ownerOf(file: string): number | undefined {
  try {
    return (
      JSON.parse(readFileSync(`/dev/shm/dart-studio-${process.getuid!()}/${file}`, 'utf8')) as {
        owner: { pid: number };
      }
    ).owner.pid;
  } catch {
    return undefined;
  }
}

/** The uid on the host of a desktop's bubblewrap. */
const hostUid = (d: Desktop): number =>
  Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${sandboxRecord(d.id).processes[0]!.pid}/status`, 'utf8'))![1]);
