import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { answerFault, awayFault } from '../../../runtime/cluster/providers/kubernetes/faults.js';
import { Link, type ChannelEvents, type LinkChannel } from '../../../runtime/cluster/providers/kubernetes/link.js';
import { StudioError } from '../../../runtime/domain/index.js';

const PROGRAM = resolve('runtime/cluster/images/desk/overlay/opt/dart/link.py');
/** Relays answer with what they are told, and say who they are first. */
const ECHO = `
import os
os.write(1, b'%8d' % os.getpid())
while True:
    d = os.read(0, 65536)
    if not d: break
    while d: d = d[os.write(1, d):]
`;
/** Ends with the process that started it. */
const AGENT = 'import ctypes, time\nctypes.CDLL(None).prctl(1, 9)\ntime.sleep(600)\n';
let dir: string;
const here: ChildProcess[] = [],
  links: Link[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-link-'));
  await cp(PROGRAM, join(dir, 'link.py'));
  await writeFile(join(dir, 'agent.py'), AGENT);
  await writeFile(join(dir, 'relay.py'), ECHO);
});
afterEach(() => {
  for (const l of links.splice(0)) l.pipes.close();
  for (const p of here.splice(0)) p.kill('SIGKILL');
  vi.useRealTimers();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const python = (...args: string[]): ChildProcess => {
  const p = spawn('python3', ['-S', '-E', join(dir, 'link.py'), ...args], { env: { ...process.env, DART_RUN: dir } });
  here.push(p);
  return p;
};
const serve = (seconds = 60): ChildProcess => python('serve', String(seconds));
let channel: ChildProcess | undefined;
let opened = 0;
const attach = (on: ChannelEvents): Promise<LinkChannel> => {
  const p = python('attach');
  opened++;
  channel = p;
  p.stdout!.on('data', on.data);
  p.stdin!.on('error', () => undefined);
  p.on('close', () => on.ended(new Error('closed')));
  return Promise.resolve({ send: (b) => void p.stdin!.write(b), close: () => void p.kill('SIGKILL') });
};
const linkOf = (o: Partial<ConstructorParameters<typeof Link>[0]> = {}): { link: Link; got: () => Buffer } => {
  const link = new Link({ open: attach, patienceMs: 20_000, backoffMs: () => 1, ...o });
  links.push(link);
  const parts: Buffer[] = [];
  link.pipes.output.on('data', (d: Buffer) => parts.push(d));
  return { link, got: () => Buffer.concat(parts) };
};
/** Time goes on as far as a test says: how often a link tries again depends on no machine. */
const stopTime = (): unknown =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldClearNativeTimers: true });
const until = async (test: () => boolean): Promise<void> => {
  while (!test()) await new Promise((r) => setImmediate(r));
};
const never = new AbortController().signal;

describe('link into a pod', () => {
  it('carries every byte both ways through cuts at any moment, in order, and never to another relay', async () => {
    serve();
    const { link, got } = linkOf();
    await link.open(never);
    const said = randomBytes(3_000_000);
    for (let at = 0; at < said.length; at += 50_000) {
      link.pipes.input.write(said.subarray(at, at + 50_000));
      // some before the bytes went, some while they are on their way
      if (at % 300_000 === 0) {
        await until(() => link.isUp);
        channel!.kill('SIGKILL');
        if (at % 600_000 === 0) await until(() => !link.isUp);
      } else if (at % 500_000 === 0) await until(() => got().length > at * 0.7);
    }
    await until(() => got().length >= said.length + 8);
    expect(got().subarray(8).equals(said)).toBe(true);
    expect(opened).toBeGreaterThan(5);
    expect(link.stalledMs()).toBeGreaterThan(0);
  });

  it('keeps a channel that is back: the patience of its cut has ended', async () => {
    serve();
    const patienceMs = 54_321,
      set = vi.spyOn(globalThis, 'setTimeout'),
      cleared = vi.spyOn(globalThis, 'clearTimeout');
    try {
      const { link, got } = linkOf({ patienceMs });
      await link.open(never);
      await until(() => got().length === 8);
      channel!.kill('SIGKILL');
      await until(() => !link.isUp);
      await until(() => link.isUp && cleared.mock.calls.length > 0);
      // The first half of its time (concurrency/timeLimit.ts).
      const timers = set.mock.calls.flatMap(([, ms], i) => (ms === patienceMs / 2 ? [set.mock.results[i]!.value] : []));
      expect(timers).toHaveLength(1);
      await expect.poll(() => cleared).toHaveBeenCalledWith(timers[0]);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it('cuts a channel that is silent though nobody says so, and goes on over the next', async () => {
    serve();
    let frozen = false;
    const cuts: string[] = [];
    const { link, got } = linkOf({
      pingMs: 50,
      answerMs: 4000,
      onCut: (e) => cuts.push(e.message),
      open: (on) =>
        attach({
          ended: on.ended,
          data: (b) => {
            if (!frozen) on.data(b);
          },
        }),
    });
    await link.open(never);
    await until(() => got().length === 8);
    frozen = true;
    link.pipes.input.write(Buffer.from('hello'));
    await until(() => cuts.length === 1);
    frozen = false;
    await until(() => got().length === 13);
    expect(got().subarray(8).toString()).toBe('hello');
    expect(cuts).toEqual(['it does not answer']);
  });

  it('is lost when a cut lasts longer than its patience, and says both why', async () => {
    serve();
    stopTime();
    let away = false,
      attempts = 0;
    const lost: StudioError[] = [];
    const { link } = linkOf({
      patienceMs: 200,
      onLost: (e) => lost.push(e),
      open: (on) => {
        attempts++;
        return away ? Promise.reject(new Error('connection refused')) : attach(on);
      },
    });
    await link.open(never);
    link.pipes.output.on('error', () => undefined);
    away = true;
    channel!.kill('SIGKILL');
    await until(() => !link.isUp);
    await vi.advanceTimersByTimeAsync(199);
    expect(lost).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(lost[0]!.kind).toBe('desktop.lost');
    expect(lost[0]!.message).toMatch(/cut \(closed\).*within 0 s: connection refused/);
    // The first, and one each millisecond.
    expect(attempts).toBe(200);
  });

  it('is not ended by what a server that starts again refuses, and reports the last refusal', async () => {
    serve();
    const refuse = (status: number): StudioError =>
      answerFault(status, { message: `no (${status})` }, 'attach', 'test');
    const refusals = [refuse(401), refuse(403), refuse(408), refuse(429), awayFault('test', new Error('reset'))];
    let away = false;
    const lost: StudioError[] = [];
    const open = (on: ChannelEvents): Promise<LinkChannel> => {
      const next = away ? refusals.shift() : undefined;
      return next ? Promise.reject(next) : attach(on);
    };
    const { link, got } = linkOf({ open, onLost: (e) => lost.push(e) });
    await link.open(never);
    await until(() => got().length === 8);
    away = true;
    channel!.kill('SIGKILL');
    await until(() => !link.isUp);
    await until(() => link.isUp || lost.length > 0);
    expect([lost, refusals]).toEqual([[], []]);
    link.pipes.input.write(Buffer.from('hello'));
    await until(() => got().length === 13);

    stopTime();
    let attempts = 0;
    const ends: StudioError[] = [];
    const other = linkOf({
      patienceMs: 200,
      open: (on) => (attempts++ === 0 ? attach(on) : Promise.reject(refuse(403))),
      onLost: (e) => ends.push(e),
    });
    await other.link.open(never);
    other.link.pipes.output.on('error', () => undefined);
    channel!.kill('SIGKILL');
    await until(() => !other.link.isUp);
    await vi.advanceTimersByTimeAsync(200);
    expect(ends[0]).toMatchObject({ kind: 'desktop.lost' });
    expect(ends[0]!.message).toMatch(/within 0 s: test does not allow to attach: no \(403\)\.$/);
  });

  it('is lost at the first attempt that finds its pod gone', async () => {
    serve();
    let attempts = 0;
    const lost: StudioError[] = [];
    const { link } = linkOf({
      open: (on) =>
        attempts++ === 0
          ? attach(on)
          : Promise.reject(answerFault(404, { message: 'pods "desktop-1" not found' }, 'attach', 'test')),
      onLost: (e) => lost.push(e),
    });
    await link.open(never);
    link.pipes.output.on('error', () => undefined);
    channel!.kill('SIGKILL');
    await until(() => lost.length === 1);
    expect(lost[0]!.message).toContain('pod is gone');
    expect(attempts).toBe(2);
  });

  it('ends at once when the pod is gone, while it tries to come back', async () => {
    serve();
    let away = false;
    const { link } = linkOf({ open: (on) => (away ? new Promise(() => undefined) : attach(on)) });
    await link.open(never);
    const ended = once(link.pipes.output as never, 'error');
    away = true;
    channel!.kill('SIGKILL');
    await until(() => !link.isUp);
    link.lose(new StudioError('desktop.lost', 'The node evicted the desktop.', 'x'));
    expect((await ended)[0]).toMatchObject({ message: 'The node evicted the desktop.' });
  });

  it('gives a new runtime a relay of its own, and the old one hears that its session is over', async () => {
    serve();
    const lost: StudioError[] = [];
    const first = linkOf({ onLost: (e) => lost.push(e) });
    await first.link.open(never);
    first.link.pipes.output.on('error', () => undefined);
    await until(() => first.got().length === 8);
    const second = linkOf();
    await second.link.open(never);
    await until(() => second.got().length === 8 && lost.length === 1);
    expect(second.got().equals(first.got())).toBe(false);
    expect(lost[0]!.message).toContain('does not know the session');
  });

  it('ends the desktop when nobody was heard for long enough, and with its agent', async () => {
    const idle = serve(0.3),
      began = performance.now();
    expect((await once(idle, 'exit'))[0]).toBe(0);
    expect(performance.now() - began).toBeGreaterThan(250);
    await writeFile(join(dir, 'agent.py'), 'import sys\nsys.exit(3)\n');
    expect((await once(serve(), 'exit'))[0]).toBe(3);
  });

  it('takes nothing that the other end cannot have meant', async () => {
    const bad = async (answer: Buffer): Promise<string> => {
      const lost: StudioError[] = [];
      const { link } = linkOf({
        onLost: (e) => lost.push(e),
        open: (on) => Promise.resolve({ send: () => setImmediate(() => on.data(answer)), close: () => undefined }),
      });
      link.pipes.output.on('error', () => undefined);
      await link.open(never).catch(() => undefined);
      await until(() => lost.length > 0);
      return lost[0]!.message;
    };
    const hello = (theirs: number): Buffer => {
      const b = Buffer.alloc(29);
      b[0] = 1;
      b.writeUInt32LE(24, 1);
      b.writeBigUInt64LE(BigInt(theirs), 21);
      return b;
    };
    expect(await bad(hello(5))).toContain('5 of 0 bytes');
    expect(await bad(Buffer.from([2, 0, 0, 0, 0x7f]))).toContain('a message of');
    expect(await bad(Buffer.from([1, 2, 0, 0, 0, 1, 1]))).toContain('damaged');
    expect(await bad(Buffer.from([9, 0, 0, 0, 0]))).toContain('message 9');
  });
});
