import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CancellationTokenSource, type ResponseError } from 'vscode-jsonrpc/node';
import * as methods from '../../runtime/protocol/methods.js';
import { decodeScreen } from '../../runtime/protocol/binary.js';
import {
  cleanUp,
  daemonLog,
  entry,
  folder,
  marks,
  removeFolders,
  startDaemon,
  when,
  wire,
  type Wire,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';

beforeAll(async () => {
  await entry();
});
afterEach(cleanUp);
afterAll(removeFolders);

const failure = async (p: Promise<unknown>): Promise<{ code: number; message: string; data: methods.ErrorData }> => {
  try {
    await p;
  } catch (e) {
    const { code, message, data } = e as ResponseError<methods.ErrorData>;
    return { code, message, data: data! };
  }
  throw new Error('it did not fail');
};
const hear = <T>(w: Wire, look: () => T | undefined): Promise<T> => w.hear(look);
type Batch = { subscription: number; events: { seq: number }[]; nextSeq: number; live: boolean; ended?: boolean };
const batches = (w: Wire): Batch[] =>
  w.notes.filter((n) => n.method === methods.events.method).map((n) => n.params as Batch);

describe('hello', () => {
  it('tells who serves, and comes before everything else', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record);
    expect(await failure(w.rpc.sendRequest('test/echo', { a: 1 }))).toMatchObject({
      data: { kind: 'params.invalid', remedy: 'Say hello first.' },
    });
    expect(await w.hello()).toMatchObject({
      protocol: 1,
      pid: d.child.pid,
      activeRuns: [],
      storage: dir,
      build: { version: '1.2.3', time: 1000 },
    });
    expect(await w.rpc.sendRequest('test/echo', { a: 1 })).toEqual({ a: 1 });
  });
  it('is waited for only so long; who said it may be silent', async () => {
    const d = await startDaemon(folder(), { TEST_HELLO_MS: '6000' }),
      w = await wire(d.record);
    await w.hello();
    const talks = await wire(d.record);
    await expect(talks.hello(99)).rejects.toMatchObject({ data: { kind: 'protocol.mismatch' } });
    const silent = await wire(d.record);
    expect(await silent.closed).toBe(1006); // the last one to come; the time of the others is over too
    expect(await w.rpc.sendRequest('test/echo', {})).toEqual({});
  });
  it('an older and a newer protocol are refused by kind, and the daemon stays', async () => {
    const d = await startDaemon(folder(), { TEST_PROTOCOL: '5' });
    for (const protocol of [4, 6]) {
      const w = await wire(d.record);
      expect(await failure(w.hello(protocol))).toMatchObject({ data: { kind: 'protocol.mismatch' } });
      expect(await failure(w.rpc.sendRequest('test/echo', {}))).toMatchObject({ data: { kind: 'params.invalid' } });
    }
    expect((await (await wire(d.record)).hello(5)).protocol).toBe(5);
  });
});

describe('requests', () => {
  it('foreseen errors carry kind and remedy; unforeseen ones are internal, without a stack, and logged with one', async () => {
    const dir = folder(),
      w = await wire((await startDaemon(dir)).record);
    await w.hello();
    expect(await failure(w.rpc.sendRequest('run/get', { run }))).toMatchObject({
      message: 'There is no such run.',
      data: { kind: 'not.found', remedy: 'List the runs again.' },
    });
    const e = await failure(w.rpc.sendRequest('task/list', {}));
    expect(e).toMatchObject({ message: 'an unforeseen thing', data: { kind: 'internal' } });
    expect(JSON.stringify(e)).not.toContain('at ');
    await when(dir, () => /task\/list: Error: an unforeseen thing\n\s+at /.test(daemonLog(dir)));
    expect(await failure(w.rpc.sendRequest('run/dance', {}))).toMatchObject({
      code: -32601,
      data: { kind: 'not.found' },
    });
    for (const params of [[1], ['a', 'b'], undefined])
      expect(
        await failure(params ? w.rpc.sendRequest('run/get', ...params) : w.rpc.sendRequest('run/get')),
      ).toMatchObject({ data: { kind: 'params.invalid' } });
    for (const p of [
      {},
      { run, sinceSeq: -1 },
      { run, sinceSeq: 0.5 },
      { run, sinceSeq: 0, types: 'step' },
      { run, sinceSeq: 0, types: [1] },
      { run: 1, sinceSeq: 0 },
    ])
      expect(await failure(w.rpc.sendRequest(methods.subscribe.method, p))).toMatchObject({
        data: { kind: 'params.invalid' },
      });
    expect(
      await failure(w.rpc.sendRequest(methods.subscribe.method, { run: '/runs/none', sinceSeq: 0 })),
    ).toMatchObject({ data: { kind: 'not.found' } });
    expect(await failure(w.rpc.sendRequest(methods.watchDesktop.method, { desktop: 'none' }))).toMatchObject({
      data: { kind: 'not.found' },
    });
  });
  it('cancelling reaches the handler, and so does leaving', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record),
      cancel = new CancellationTokenSource();
    await w.hello();
    const answer = failure(w.rpc.sendRequest('run/evaluate', { run }, cancel.token));
    await hear(w, () => w.notes.find((n) => n.method === 'run/evaluateProgress'));
    cancel.cancel();
    expect(await answer).toMatchObject({ code: -32800, data: { kind: 'cancelled' } });
    expect(marks(dir)).toEqual(['evaluating', 'aborted']);
    const other = await wire(d.record);
    await other.hello();
    other.rpc.sendRequest('run/evaluate', { run }).catch(() => undefined);
    await when(dir, () => marks(dir).length === 3);
    other.socket.terminate();
    await when(dir, () => marks(dir).length === 4);
    expect(marks(dir).at(-1)).toBe('aborted');
    expect(w.notes.filter((n) => n.method === 'run/evaluateProgress')).toHaveLength(1); // progress is for who asked
  });
  it('5 MB come through whole', async () => {
    const w = await wire((await startDaemon(folder())).record);
    await w.hello();
    const all = await Promise.all(
      [5_000_000, 5_000_001, 3].map((bytes) => w.rpc.sendRequest<{ text: string }>('trajectory/list', { bytes })),
    );
    expect(all.map((r) => r.text.length)).toEqual([5_000_000, 5_000_001, 3]);
  });
});

describe('a client that sends garbage', () => {
  it('is shut out; the daemon and the others do not notice', async () => {
    const d = await startDaemon(folder()),
      good = await wire(d.record);
    await good.hello();
    const junk: (string | Buffer)[] = [
      '',
      '{',
      'null',
      '[]',
      '42',
      '"x"',
      '{"jsonrpc":"1.0","id":1,"method":"test/echo"}',
      '{"jsonrpc":"2.0","id":{},"method":"x"}',
      '{"jsonrpc":"2.0","id":null,"method":"x"}',
      '{"jsonrpc":"2.0","method":"$/cancelRequest"}',
      '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{}}',
      '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":null}}',
      '{"jsonrpc":"2.0","id":1,"method":"$/cancelRequest","params":{"id":1}}',
      '{"jsonrpc":"2.0","method":7}',
      '{"jsonrpc":"2.0","id":1,"method":"x","params":3}',
      '[{"jsonrpc":"2.0","id":1,"method":"test/echo"}]',
      '\u0000'.repeat(1000),
      '['.repeat(100_000),
      Buffer.from([1, 2, 3]),
    ];
    for (const j of junk) {
      const bad = await wire(d.record);
      bad.socket.send(j);
      expect([1003, 1007], String(j).slice(0, 40)).toContain(await bad.closed);
    }
    const huge = await wire(d.record);
    huge.socket.send('x'.repeat(17 << 20));
    expect([1006, 1009]).toContain(await huge.closed);
    const raw = await wire(d.record);
    (raw.socket as unknown as { _socket: { write(b: Buffer): void } })._socket.write(
      Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 1, 2]),
    ); // not even a frame
    expect([1002, 1006]).toContain(await raw.closed);
    // Odd but harmless: answers nobody waits for, cancels of nothing, notifications nobody knows, prototype tricks.
    for (const j of [
      '{"jsonrpc":"2.0","id":99,"result":1}',
      '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}',
      '{"jsonrpc":"2.0","method":"what","params":{}}',
      '{"jsonrpc":"2.0","id":"__proto__","method":"__proto__","params":{"__proto__":{}}}',
    ])
      good.socket.send(j);
    expect(await good.rpc.sendRequest('test/echo', { still: 'here' })).toEqual({ still: 'here' });
  });
});

describe('events', () => {
  it('come from the asked sequence number on, in batches, then live, then end with the run', async () => {
    const w = await wire((await startDaemon(folder())).record);
    await w.hello();
    await w.rpc.sendRequest('run/start', {});
    const { head } = await w.rpc.sendRequest<{ head: number }>('test/append', { count: 449 });
    const { subscription, headSeq } = await w.rpc.sendRequest(methods.subscribe, { run, sinceSeq: 10 });
    expect(headSeq).toBe(head);
    await hear(w, () => batches(w).find((b) => b.live));
    expect(batches(w).every((b) => b.subscription === subscription && b.events.length <= 200)).toBe(true);
    expect(batches(w).map((b) => b.live)).toEqual([false, false, true]);
    await w.rpc.sendRequest('test/append', { count: 2 });
    await w.rpc.sendRequest('run/stop', { run });
    await hear(w, () => batches(w).find((b) => b.ended));
    const seqs = batches(w).flatMap((b) => b.events.map((e) => e.seq));
    expect(seqs[0]).toBeGreaterThanOrEqual(10);
    expect(seqs.every((s, i) => i === 0 || s > seqs[i - 1]!)).toBe(true);
    expect(batches(w).at(-1)!.nextSeq).toBe(seqs.at(-1)! + 1);
  });
  it('stop when unsubscribed and when the client leaves', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record),
      other = await wire(d.record);
    await w.hello();
    await other.hello();
    await w.rpc.sendRequest('run/start', {});
    const { subscription } = await w.rpc.sendRequest(methods.subscribe, { run, sinceSeq: 0 });
    await other.rpc.sendRequest(methods.subscribe, { run, sinceSeq: 0 });
    await hear(w, () => batches(w)[0]);
    await hear(other, () => batches(other)[0]);
    await w.rpc.sendRequest(methods.unsubscribe, { subscription });
    await when(dir, () => marks(dir).length === 1);
    other.socket.terminate();
    await when(dir, () => marks(dir).length === 2);
    expect(marks(dir)).toEqual(['events ended', 'events ended']);
    const before = batches(w).length;
    await w.rpc.sendRequest('test/append', { count: 5 });
    expect(batches(w)).toHaveLength(before);
  });
});

describe('a slow client', () => {
  it('gets events at its own pace, the newest of every state, and holds nobody up', async () => {
    const d = await startDaemon(folder()),
      slow = await wire(d.record),
      quick = await wire(d.record);
    await slow.hello();
    await quick.hello();
    await quick.rpc.sendRequest('run/start', {});
    await slow.rpc.sendRequest(methods.watchDesktop, { desktop: 'd1' });
    await slow.rpc.sendRequest(methods.subscribe, { run, sinceSeq: 0 });
    await hear(slow, () => slow.binary[0]);
    slow.socket.pause();
    // Far more than the sockets between the two can hold: pictures, events, states.
    const blob = 'y'.repeat(100_000);
    let head = 0;
    for (let i = 1; i <= 300; i++) {
      await quick.rpc.sendRequest('test/paint', { value: i });
      await quick.rpc.sendRequest('test/status', { n: i, blob });
      ({ head } = await quick.rpc.sendRequest<{ head: number }>('test/append', { count: 10 }));
    }
    expect(quick.notes.filter((n) => n.method === 'run/status')).toHaveLength(300); // it saw each
    slow.socket.resume();
    await hear(slow, () => batches(slow).find((b) => b.nextSeq === head));
    const seqs = batches(slow).flatMap((b) => b.events.map((e) => e.seq));
    expect(new Set(seqs).size).toBe(seqs.length);
    expect(seqs.length).toBe(3001); // each of them
    await hear(slow, () => slow.notes.find((n) => n.method === 'run/status' && (n.params as { n: number }).n === 300));
    expect(slow.notes.filter((n) => n.method === 'run/status').length).toBeLessThan(200);
    await hear(slow, () => slow.binary.find((b) => decodeScreen(b)!.header.at === 300));
    expect(slow.binary.length).toBeLessThan(200);
    expect(slow.binary.map((b) => decodeScreen(b)!.header.at)).toEqual(
      slow.binary.map((b) => decodeScreen(b)!.header.at).sort((a, b) => a - b),
    );
  });
});

describe('a watched desktop', () => {
  it('is binary frames of this stream, and ends by name', async () => {
    const w = await wire((await startDaemon(folder())).record);
    await w.hello();
    const { stream, width, height } = await w.rpc.sendRequest(methods.watchDesktop, { desktop: 'd1', maxFps: 5 });
    expect([width, height]).toEqual([640, 480]);
    const first = decodeScreen(await hear(w, () => w.binary[0]))!;
    expect(first.header).toEqual({ stream, x: 1, y: 2, width: 64, height: 48, at: 0 });
    expect(first.png).toHaveLength(100_000);
    await w.rpc.sendRequest('test/paint', { value: 7 });
    expect(decodeScreen(await hear(w, () => w.binary[1]))!.png[99_999]).toBe(7);
    await w.rpc.sendRequest('test/paint', { value: -1 });
    expect(await hear(w, () => w.notes.find((n) => n.method === methods.streamEnded.method))).toMatchObject({
      params: { stream },
    });
  });
});
