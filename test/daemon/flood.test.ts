import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ResponseError } from 'vscode-jsonrpc/node';
import { socketPath } from '../../runtime/protocol/version.js';
import type * as methods from '../../runtime/protocol/methods.js';
import { cleanUp, entry, folder, removeFolders, startDaemon, wire, type Daemon } from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';

/** Whoever comes in numbers, slowly, or without ever reading. */

beforeAll(async () => {
  await entry();
});
const open: Socket[] = [];
afterEach(async () => {
  for (const s of open.splice(0)) s.destroy();
  await cleanUp();
});
afterAll(removeFolders);

const mb = (d: Daemon): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${d.child.pid}/status`, 'utf8'))![1]) / 1024;
const handles = (d: Daemon): number =>
  readFileSync(`/proc/${d.child.pid}/net/tcp`, 'utf8')
    .split('\n')
    .filter((l) => l.includes(`:${d.record.port.toString(16).toUpperCase().padStart(4, '0')} `) && / 01 /.test(l))
    .length;
async function dial(d: Daemon, first = ''): Promise<Socket> {
  const s = connect(d.record.port, '127.0.0.1');
  open.push(s);
  s.on('error', () => undefined);
  await once(s, 'connect');
  if (first) s.write(first);
  return s;
}
/** Whether it is ended or reset, as one is that is written to while it is ended. */
const closed = (s: Socket): Promise<void> =>
  new Promise((done) => {
    s.once('close', () => done());
  });
/** The event loop is never held up for longer, and in ordinary work not for this long: of its own processor time. */
const LONGEST_MS = 50,
  USUAL_MS = 20;
interface Loop {
  readonly longestMs: number;
  readonly usualMs: number;
}
/** A client that knows the token gets its first answer. */
async function comeIn(d: Daemon): Promise<string> {
  const w = await wire(d.record);
  await w.hello();
  w.socket.terminate();
  return 'in';
}

describe('without the token', () => {
  it('1,000 connections lock nobody out, whether they say nothing or a letter now and then', async () => {
    const d = await startDaemon(folder()),
      before = mb(d),
      all = await Promise.all(
        Array.from({ length: 1000 }, (_, i) => dial(d, i % 2 ? '' : `GET ${socketPath} HTTP/1.1\r\n`)),
      );
    const drip = setInterval(() => {
      for (const s of all) if (s.writable) s.write('X');
    }, 200);
    try {
      // Each has five seconds from its first byte to its last, and then it is gone; who has the token waits for none.
      const gone = Promise.all(all.filter((s) => !s.closed).map(closed)).then(() => 'gone');
      expect(await Promise.race([comeIn(d), gone])).toBe('in');
      expect(mb(d) - before).toBeLessThan(64);
      await gone;
      expect(handles(d)).toBeLessThan(20);
      expect(await comeIn(d)).toBe('in');
    } finally {
      clearInterval(drip);
    }
  });

  it('one that keeps connecting cannot keep others out', async () => {
    const d = await startDaemon(folder());
    let going = true;
    const flood = (async () => {
      while (going) await Promise.all(Array.from({ length: 200 }, () => dial(d)));
    })();
    for (let i = 0; i < 5; i++) expect(await comeIn(d)).toBe('in');
    going = false;
    await flood;
  });
});

describe('with the token', () => {
  it('who sends without reading is read no further, costs little, and gets every answer once it reads', async () => {
    const d = await startDaemon(folder()),
      greedy = await wire(d.record),
      other = await wire(d.record);
    await greedy.hello();
    await other.hello();
    const before = mb(d),
      count = 150_000,
      text = 'x'.repeat(300);
    let answers = 0;
    const done = new Promise<void>((all) =>
      greedy.socket.on('message', () => {
        if (++answers === count) all();
      }),
    );
    greedy.socket.pause();
    await other.rpc.sendRequest('test/loop', {});
    for (let id = 1; id <= count; id++)
      greedy.socket.send(`{"jsonrpc":"2.0","id":${id + 1000},"method":"test/echo","params":{"text":"${text}"}}`);
    let most = 0;
    for (let i = 0; i < 100; i++) {
      await other.rpc.sendRequest('test/echo', {});
      most = Math.max(most, mb(d) - before);
      await new Promise((next) => setTimeout(next, 10));
    }
    expect(most).toBeLessThan(100);
    expect(answers).toBe(0);
    const { longestMs, usualMs } = await other.rpc.sendRequest<Loop>('test/loop', {});
    expect(usualMs).toBeLessThan(USUAL_MS);
    expect(longestMs).toBeLessThan(LONGEST_MS);
    greedy.socket.resume();
    await done;
    expect(answers).toBe(count);
  });

  it('512 requests under way are answered, the next one is told to wait', async () => {
    const w = await wire((await startDaemon(folder())).record);
    await w.hello();
    const asked = Array.from({ length: 520 }, () =>
      w.rpc.sendRequest('run/evaluate', { run }).then(
        () => 'done',
        (e: unknown) => (e as ResponseError<methods.ErrorData>).data?.kind,
      ),
    );
    expect(await Promise.race(asked)).toBe('busy');
    const settled: unknown[] = [];
    for (const a of asked) void a.then((x) => settled.push(x));
    await w.rpc.sendRequest('test/echo', {}).catch(() => undefined);
    expect(settled).toEqual(Array.from({ length: 8 }, () => 'busy'));
  });

  it('a message of two megabytes, and one that is nested as deep as it is long, hold nothing up', async () => {
    const d = await startDaemon(folder()),
      w = await wire(d.record);
    await w.hello();
    const bad = [
      `{"jsonrpc":"2.0","id":1,"method":"test/echo","params":${'['.repeat(1 << 20)}${']'.repeat(1 << 20)}}`.slice(
        0,
        2 << 20,
      ),
      `{"jsonrpc":"2.0","id":1,"method":"run/list","params":{"a":${'['.repeat(9e5)}${']'.repeat(9e5)}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"run/list","params":{"a":[${'{},'.repeat(6e5)}{}]}}`,
      `{"jsonrpc":"2.0","id":1,"method":"run/list","params":{${Array.from({ length: 1e5 }, (_, i) => `"k${i}":${i}`).join()}}}`,
    ];
    for (const text of bad) {
      const b = await wire(d.record);
      await b.hello();
      await w.rpc.sendRequest('test/loop', {});
      b.socket.send(text);
      await w.rpc.sendRequest('test/echo', {});
      await w.rpc.sendRequest('test/echo', {});
      const { longestMs } = await w.rpc.sendRequest<Loop>('test/loop', {});
      expect(longestMs, text.slice(0, 80)).toBeLessThan(LONGEST_MS);
      b.socket.terminate();
    }
  });

  it('refuses the 129th client', async () => {
    const d = await startDaemon(folder()),
      first = await wire(d.record);
    // Who says hello is not cut off, however long the others take to come.
    await first.hello();
    for (let i = 1; i < 128; i++) await (await wire(d.record)).hello();
    await expect(wire(d.record)).rejects.toThrow(/503/);
    first.socket.terminate();
    await expect.poll(() => comeIn(d).catch(() => 'refused')).toBe('in');
  });
});
