import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EventsBatch } from '../../extension/daemon/client.js';
import * as methods from '../../runtime/protocol/methods.js';
import {
  cleanUp,
  entry,
  folder,
  marks,
  raw,
  record,
  removeFolders,
  startDaemon,
  startWindow,
  testClient,
  when,
  wire,
  type TestClient,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';

beforeAll(async () => {
  await entry();
});
afterEach(cleanUp);
afterAll(removeFolders);

const newer = { version: '2.0.0', time: 2000 };
/** The fixture's own: it carries a number. */
const status = { method: 'run/status' } as const,
  numberOf = (p: unknown): number => (p as { n: number }).n;
const kill = (c: TestClient): number => {
  const { pid } = c.client.hello!;
  process.kill(pid, 'SIGKILL');
  return pid;
};
/** Resolves when it holds, looked at after every call of `again`. */
function latch(): { again(): void; until(so: () => boolean): Promise<void> } {
  let wake: () => void = () => undefined;
  return {
    again: () => wake(),
    until: async (so) => {
      while (!so())
        await new Promise<void>((go) => {
          wake = go;
        });
    },
  };
}

describe('attach and start', () => {
  it('without a daemon and without leave to start one it is stopped, and attaches when another window starts it', async () => {
    const dir = folder(),
      a = await testClient(dir),
      b = await testClient(dir);
    await expect(a.client.connect()).rejects.toMatchObject({ kind: 'daemon.stopped', remedy: 'Start the runtime.' });
    expect(a.client.state).toBe('stopped');
    await expect(raw(a.client, 'test/echo', {})).rejects.toMatchObject({ kind: 'daemon.stopped' });
    await b.client.connect({ start: true });
    await a.reaches('ready');
    expect(a.client.hello!.pid).toBe(b.client.hello!.pid);
    expect(b.states).toEqual(['attaching', 'starting', 'attaching', 'ready']);
  });
  it('windows that start at the same time share one daemon', async () => {
    const dir = folder(),
      all = await Promise.all([1, 2, 3].map(() => testClient(dir)));
    await Promise.all(all.map((c) => c.client.connect({ start: true })));
    expect(new Set(all.map((c) => c.client.hello!.pid)).size).toBe(1);
    expect(all.flatMap((c) => c.said).filter((l) => l.includes('started the runtime'))).toHaveLength(1);
    expect(existsSync(join(dir, 'start.lock'))).toBe(false);
  });
  it('so do windows that are processes; the daemon outlives the one that started it', async () => {
    const dir = folder(),
      all = await Promise.all([1, 2, 3].map(() => startWindow(dir)));
    try {
      const starters = all.filter((w) => w.started !== undefined);
      expect(new Set(all.map((w) => w.daemon)).size).toBe(1);
      expect(starters.map((w) => w.started)).toEqual([all[0]!.daemon]);
      starters[0]!.child.kill('SIGKILL');
      await once(starters[0]!.child, 'close');
      const c = await testClient(dir);
      await c.client.connect();
      expect(c.client.hello!.pid).toBe(all[0]!.daemon);
    } finally {
      for (const w of all) w.child.kill('SIGKILL');
    }
  });
  it('a reloaded window finds the same daemon and its run; closing a window leaves it alone', async () => {
    const dir = folder(),
      before = await testClient(dir);
    await before.client.connect({ start: true });
    await raw(before.client, 'run/start', {});
    const { pid } = before.client.hello!;
    before.client.dispose();
    const after = await testClient(dir);
    await after.client.connect();
    expect(after.client.hello).toMatchObject({ pid, activeRuns: [run] });
    await after.client.connect({ start: true }); // already there
    expect(after.client.hello!.pid).toBe(pid);
  });
  it("the leavings of a dead starter and of a dead daemon are in nobody's way", async () => {
    const dir = folder();
    mkdirSync(join(dir, 'start.lock'));
    writeFileSync(join(dir, 'start.lock', 'pid'), '2147483646'); // no such process
    writeFileSync(
      join(dir, 'daemon.json'),
      JSON.stringify({
        pid: 2147483646,
        port: 9,
        token: 'a'.repeat(64),
        protocol: 1,
        minClient: 1,
        build: newer,
        startedAt: 0,
      }),
      { mode: 0o600 },
    );
    const c = await testClient(dir);
    await c.client.connect({ start: true });
    expect(c.client.state).toBe('ready');
  });
  it('another program on the port of a stale record is not taken for a daemon', async () => {
    const dir = folder(),
      stranger = await startDaemon(folder()); // any server that does not know the token
    writeFileSync(join(dir, 'daemon.json'), JSON.stringify({ ...stranger.record, token: 'b'.repeat(64) }), {
      mode: 0o600,
    });
    const c = await testClient(dir);
    await c.client.connect({ start: true });
    expect(c.client.hello!.pid).not.toBe(stranger.child.pid);
  });
  it('a record that others may read or write is not believed', async () => {
    const dir = folder(),
      d = await startDaemon(folder());
    writeFileSync(join(dir, 'daemon.json'), JSON.stringify(d.record), { mode: 0o644 });
    await expect((await testClient(dir)).client.connect()).rejects.toMatchObject({ kind: 'daemon.stopped' });
  });
  it('a daemon that cannot start: failed, with its own words, and by hand it can be tried again', async () => {
    const dir = folder(),
      c = await testClient(dir, { env: { TEST_FAIL_START: '1' } });
    await expect(c.client.connect({ start: true })).rejects.toMatchObject({
      kind: 'daemon.failed',
      message: expect.stringContaining('the part that fails') as string,
    });
    expect(c.client.state).toBe('failed');
    expect(c.client.stateDetail!.message).toContain('the part that fails');
    const other = await testClient(dir);
    await other.client.connect({ start: true });
    await c.reaches('ready'); // it saw the record of the other one's
  });
  it('a program that is not there: failed, by name', async () => {
    const c = await testClient(folder(), { node: '/nowhere/node' });
    await expect(c.client.connect({ start: true })).rejects.toMatchObject({
      kind: 'daemon.failed',
      message: expect.stringContaining('/nowhere/node') as string,
    });
  });
});

describe('requests', () => {
  it('errors have kind and remedy; a fired signal rejects at once and reaches the daemon', async () => {
    const dir = folder(),
      c = await testClient(dir);
    await c.client.connect({ start: true });
    await expect(c.client.request(methods.getRun, { run })).rejects.toMatchObject({
      name: 'DaemonError',
      kind: 'not.found',
      remedy: 'List the runs again.',
    });
    const stop = new AbortController(),
      answer = c.client.request(methods.evaluate, { run }, stop.signal);
    await when(dir, () => marks(dir).includes('evaluating'));
    stop.abort();
    await expect(answer).rejects.toMatchObject({ kind: 'cancelled' });
    await when(dir, () => marks(dir).includes('aborted'));
    await expect(raw(c.client, 'test/echo', {}, AbortSignal.abort())).rejects.toMatchObject({ kind: 'cancelled' });
  });
  it('one made while the client starts the daemon waits for it', async () => {
    const c = await testClient(folder()),
      ready = c.client.connect({ start: true });
    expect(await raw(c.client, 'test/echo', { early: 1 })).toEqual({ early: 1 });
    await ready;
  });
  it('two windows see the same broadcast', async () => {
    const dir = folder(),
      a = await testClient(dir),
      b = await testClient(dir),
      l = latch();
    await a.client.connect({ start: true });
    await b.client.connect();
    const heard: [string, number][] = [];
    a.client.on(status, (p) => {
      heard.push(['a', numberOf(p)]);
      l.again();
    });
    const off = b.client.on(status, (p) => {
      heard.push(['b', numberOf(p)]);
      l.again();
    });
    await raw(a.client, 'test/status', { n: 1 });
    await l.until(() => heard.length === 2);
    off();
    await raw(b.client, 'test/status', { n: 2 });
    await l.until(() => heard.length === 3);
    expect(heard.sort()).toEqual([
      ['a', 1],
      ['a', 2],
      ['b', 1],
    ]);
  });
});

describe('the daemon dies', () => {
  it('in flight fails, the daemon is started again, and a subscription goes on without a gap or a double', async () => {
    const dir = folder(),
      c = await testClient(dir),
      l = latch(),
      batches: EventsBatch[] = [];
    await c.client.connect({ start: true });
    await raw(c.client, 'run/start', {});
    await raw(c.client, 'test/append', { count: 450 });
    c.client.subscribe({ run, sinceSeq: 0 }, (b) => {
      batches.push(b);
      l.again();
    });
    await l.until(() => batches.some((b) => b.live));
    const pids = new Set<number>();
    for (let round = 0; round < 2; round++) {
      const hanging = c.client.request(methods.evaluate, { run });
      await when(dir, () => marks(dir).filter((m) => m === 'evaluating').length > round);
      const append = raw(c.client, 'test/append', { count: 500 }).catch(() => undefined);
      pids.add(kill(c));
      await expect(hanging).rejects.toMatchObject({ kind: 'connection.lost' });
      await append;
      expect(c.client.state).toBe('reconnecting');
      await expect(raw(c.client, 'test/echo', {})).rejects.toMatchObject({ kind: 'connection.lost' });
      await c.reaches('ready');
      await raw(c.client, 'test/append', { count: 7 });
    }
    const { head } = (await raw(c.client, 'test/append', { count: 1 })) as { head: number };
    await l.until(() => batches.at(-1)!.nextSeq === head);
    pids.add(c.client.hello!.pid);
    expect(pids.size).toBe(3);
    const seen = batches.flatMap((b) => b.events.map((e) => e.seq));
    const reader = await wire(record(dir)!),
      all: number[] = [];
    await reader.hello();
    reader.rpc.onNotification(methods.events, (b) => {
      all.push(...b.events.map((e) => e.seq));
      l.again();
    });
    await reader.rpc.sendRequest(methods.subscribe, { run, sinceSeq: 0 });
    await l.until(() => all.at(-1) === head - 1);
    expect(seen).toEqual(all);
    expect(c.states).not.toContain('failed');
  });
  it('a watched desktop starts again with a whole picture', async () => {
    const dir = folder(),
      c = await testClient(dir),
      l = latch(),
      seen: string[] = [];
    await c.client.connect({ start: true });
    const off = c.client.watch(
      'd1',
      { maxFps: 5 },
      {
        start: (s) => {
          seen.push(`start ${s.width}x${s.height}`);
          l.again();
        },
        patch: (h, png) => {
          seen.push(`${h.at} ${png.length}`);
          l.again();
        },
        end: (e) => {
          seen.push(`end ${e?.kind}`);
          l.again();
        },
      },
    );
    await l.until(() => seen.length === 2);
    kill(c);
    await l.until(() => seen.length === 4);
    expect(seen).toEqual(['start 640x480', '0 100000', 'start 640x480', '0 100000']);
    await raw(c.client, 'test/paint', { value: 3 });
    await l.until(() => seen.length === 5);
    off();
    await raw(c.client, 'test/paint', { value: 4 });
    await raw(c.client, 'test/echo', {});
    expect(seen).toHaveLength(5);
    c.client.watch(
      'none',
      {},
      {
        start: () => seen.push('start'),
        patch: () => seen.push('patch'),
        end: (e) => {
          seen.push(`end ${e?.kind}`);
          l.again();
        },
      },
    );
    await l.until(() => seen.length === 6);
    expect(seen[5]).toBe('end not.found');
  });
  it('four times in five minutes: failed, with what to do; by hand it starts again', async () => {
    const c = await testClient(folder(), { random: () => 0 });
    await c.client.connect({ start: true });
    for (let i = 0; i < 3; i++) {
      kill(c);
      await c.reaches('reconnecting');
      await c.reaches('ready');
    }
    kill(c);
    await c.reaches('failed');
    expect(c.client.stateDetail).toMatchObject({
      kind: 'daemon.failed',
      message: 'The runtime stopped 3 times within 5 minutes.',
    });
    await c.client.connect({ start: true });
    expect(c.client.state).toBe('ready');
  });
  it('a window that may start none waits for another one that does', async () => {
    const dir = folder(),
      a = await testClient(dir),
      b = await testClient(dir);
    await a.client.connect({ start: true });
    await b.client.connect();
    kill(a);
    await b.reaches('reconnecting');
    await Promise.all([a.reaches('ready'), b.reaches('ready')]);
    expect(b.said.some((m) => m.includes('started the runtime'))).toBe(false);
  });
  it('a fault is told apart from a stop', async () => {
    const c = await testClient(folder()),
      details: (string | undefined)[] = [];
    await c.client.connect({ start: true });
    c.client.onState((s, e) => {
      if (s === 'reconnecting') details.push(e?.message);
    });
    await raw(c.client, 'test/throw', {});
    await c.reaches('reconnecting');
    expect(details[0]).toBe('The runtime ended with an error: out of nowhere.');
    await c.reaches('ready');
  });
});

describe('stop', () => {
  it('stops for every window, and none starts it again by itself', async () => {
    const dir = folder(),
      a = await testClient(dir),
      b = await testClient(dir);
    await a.client.connect({ start: true });
    await b.client.connect({ start: true });
    await raw(a.client, 'run/start', {});
    await b.client.shutdown();
    await a.reaches('stopped');
    expect(b.client.state).toBe('stopped');
    expect(marks(dir)).toEqual(['closed']);
    expect(record(dir)).toBeUndefined();
    await a.client.connect({ start: true });
    await b.reaches('ready');
    expect(b.client.hello!.pid).toBe(a.client.hello!.pid);
  });
  it('while a lost daemon is being looked for ends that too', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      c = await testClient(dir, { random: () => 0.99 });
    await c.client.connect();
    d.child.kill('SIGKILL');
    await c.reaches('reconnecting');
    await c.client.shutdown();
    expect(c.client.state).toBe('stopped');
  });
  it('also a daemon one is not connected to; and where there is none it is nothing', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      c = await testClient(dir);
    await c.client.shutdown();
    expect(await d.ended).toBe(0);
    await c.client.shutdown();
    expect(c.client.state).toBe('stopped');
  });
});
