import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as methods from '../../runtime/protocol/methods.js';
import { discoveryFile, exitAlreadyRunning } from '../../runtime/protocol/version.js';
import { otherNetwork, otherProcesses, otherUser } from '../helpers/machine/namespaces.js';
import { node24 } from '../helpers/machine/otherNode.js';
import {
  cleanUp,
  daemonLog,
  entry,
  folder,
  marks,
  record,
  removeFolders,
  spawnDaemon,
  startDaemon,
  when,
  wire,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';

beforeAll(async () => {
  await entry();
});
afterEach(cleanUp);
afterAll(removeFolders);

const last = async (w: Awaited<ReturnType<typeof wire>>): Promise<unknown> => {
  await w.closed;
  return w.notes.find((n) => n.method === methods.goingDown.method)?.params;
};

describe('one daemon per folder', () => {
  it('a second one leaves with its own code and the first goes on', async () => {
    const dir = folder(),
      first = await startDaemon(dir),
      second = await spawnDaemon(dir);
    expect(await second.ended).toBe(exitAlreadyRunning);
    expect(record(dir)).toEqual(first.record);
    expect((await (await wire(first.record)).hello()).pid).toBe(first.child.pid);
  });
  it('of several at once exactly one stays', async () => {
    const dir = folder(),
      all = await Promise.all([1, 2, 3, 4].map(() => spawnDaemon(dir)));
    const r = await when(dir, () => record(dir));
    const losers = await Promise.all(all.filter((d) => d.child.pid !== r.pid).map((d) => d.ended));
    expect(losers).toEqual([3, 3, 3]);
    expect((await (await wire(r)).hello()).pid).toBe(r.pid);
  });
  it('also for a Node of another generation and from other namespaces, which take over when it is killed', async () => {
    const node = await node24();
    const elsewhere = [{ node }, { in: otherNetwork }, { node, in: otherProcesses }];
    const dir = folder(),
      first = await startDaemon(dir);
    const refused = await Promise.all(elsewhere.map(async (o) => (await spawnDaemon(dir, {}, o)).ended));
    expect(refused).toEqual([exitAlreadyRunning, exitAlreadyRunning, exitAlreadyRunning]);
    first.child.kill('SIGKILL');
    await first.ended;
    for (const o of elsewhere) {
      const before = record(dir)?.token,
        next = await spawnDaemon(dir, {}, o);
      await when(dir, () => record(dir) && record(dir)!.token !== before);
      expect(await (await spawnDaemon(dir)).ended).toBe(exitAlreadyRunning);
      next.child.kill('SIGKILL');
      await next.ended;
    }
  });
  it('also beside one of version 0.1, but not because another user has its name', async () => {
    const dir = folder(),
      name = `dart-studio-${process.getuid!()}-${createHash('sha256').update(realpathSync(dir)).digest('hex').slice(0, 32)}`;
    const hold = [
      process.execPath,
      '-e',
      `process.stdin.resume().on('end', () => process.exit());
       require('net').createServer(() => {}).listen('\\0${name}', () => console.log('held'))`,
    ];
    for (const [command, ended] of [
      [hold, exitAlreadyRunning],
      [otherUser(hold), undefined],
    ] as const) {
      const holder = spawn(command[0]!, command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] }),
        gone = once(holder, 'close');
      await once(holder.stdout, 'data');
      if (ended === undefined) await startDaemon(dir);
      else expect(await (await spawnDaemon(dir)).ended).toBe(ended);
      holder.stdin.end();
      await gone;
    }
  });
  it('after SIGKILL its record is stale, and the next one takes over at once', async () => {
    const dir = folder(),
      first = await startDaemon(dir);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(record(dir)).toEqual(first.record);
    const next = await startDaemon(dir);
    expect(next.record.token).not.toBe(first.record.token);
    expect((await (await wire(next.record)).hello()).pid).toBe(next.child.pid);
  });
  it('other folders have their own', async () => {
    const [a, b] = await Promise.all([startDaemon(folder()), startDaemon(folder())]);
    expect(a.record.port).not.toBe(b.record.port);
  });
});

describe('the end', () => {
  it('with no client and no work it comes by itself, and the record goes', async () => {
    const dir = folder(),
      d = await spawnDaemon(dir, { TEST_IDLE_MINUTES: '0.005' });
    expect(await d.ended).toBe(0);
    expect(record(dir)).toBeUndefined();
    expect(daemonLog(dir)).toMatch(/going down: idle[^]*ended with code 0/);
  });
  it('a client keeps it, and so does a run nobody watches', async () => {
    const dir = folder(),
      d = await startDaemon(dir, { TEST_IDLE_MINUTES: '0.1' }),
      w = await wire(d.record);
    await w.hello();
    await w.rpc.sendRequest('run/start', {});
    w.socket.close();
    await w.closed;
    // Longer than the idle time, measured by a daemon beside it that has nothing to do.
    expect(await (await spawnDaemon(folder(), { TEST_IDLE_MINUTES: '0.11' })).ended).toBe(0);
    const back = await wire(d.record);
    expect((await back.hello()).activeRuns).toEqual([run]);
    await back.rpc.sendRequest('run/stop', { run });
    expect(await (await spawnDaemon(folder(), { TEST_IDLE_MINUTES: '0.11' })).ended).toBe(0);
    expect(await back.rpc.sendRequest('test/echo', {})).toEqual({});
    back.socket.close();
    expect(await d.ended).toBe(0);
  });
  it('of one that is there for some work comes with that alone, also where no run is active and a newer one waits', async () => {
    const dir = folder(),
      d = await startDaemon(dir, { TEST_IDLE_MINUTES: '0.005', TEST_WORK: 'over' });
    expect(await (await spawnDaemon(folder(), { TEST_IDLE_MINUTES: '0.01' })).ended).toBe(0);
    const w = await wire(d.record);
    expect(await w.rpc.sendRequest(methods.drain, {})).toEqual({ waitingFor: [], busy: true });
    await w.hello();
    expect(await w.rpc.sendRequest('test/echo', { x: 1 })).toEqual({ x: 1 });
    writeFileSync(join(dir, 'over'), '7');
    expect(await d.ended).toBe(7);
    expect(await last(w)).toMatchObject({ reason: 'shutdown' });
  });
  it('an idle daemon exits at once when it is asked to drain', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record);
    expect(await w.rpc.sendRequest(methods.drain, {})).toEqual({ waitingFor: [] }); // also before, or without, a hello
    await w.closed;
    expect(await d.ended).toBe(0);
    expect(record(dir)).toBeUndefined();
  });
  it('drain while a run is active: nothing new starts, everything else goes on, and it ends with the run', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record);
    await w.hello();
    await w.rpc.sendRequest('run/start', {});
    expect(await w.rpc.sendRequest(methods.drain, {})).toEqual({ waitingFor: [run], busy: true });
    expect(marks(dir)).toContain('draining'); // what the service begins by itself waits, too
    for (const m of ['run/start', 'run/resume', 'run/evaluate', 'desktop/build'])
      await expect(w.rpc.sendRequest(m, {})).rejects.toMatchObject({ data: { kind: 'draining' } });
    expect(await w.rpc.sendRequest('test/append', { count: 3 })).toBeTruthy();
    const other = await wire(d.record);
    expect((await other.hello()).activeRuns).toEqual([run]); // a window may still come to look
    await w.rpc.sendRequest('run/stop', { run });
    expect(await last(other)).toEqual({ reason: 'drained' });
    expect(await d.ended).toBe(0);
  });
  it('shutdown stops the run first, answers when that is done, and tells every client', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      w = await wire(d.record),
      other = await wire(d.record);
    await w.hello();
    await other.hello();
    await w.rpc.sendRequest('run/start', {});
    await w.rpc.sendRequest(methods.shutdown, {});
    expect(marks(dir)).toEqual(['closed']);
    expect(await last(other)).toEqual({ reason: 'shutdown' });
    expect(other.notes.map((n) => n.method)).toContain('run/changed');
    expect(await d.ended).toBe(0);
    expect(record(dir)).toBeUndefined();
  });
  it('SIGTERM stops without grace; a second signal does not wait', async () => {
    const dir = folder(),
      d = await startDaemon(dir);
    d.child.kill('SIGTERM');
    expect(await d.ended).toBe(0);
    expect(marks(dir)).toEqual(['closed now']);

    const slow = folder(),
      e = await startDaemon(slow, { TEST_SLOW_CLOSE: '1' }),
      w = await wire(e.record);
    await w.hello();
    w.rpc.sendRequest(methods.shutdown, {}).catch(() => undefined);
    await when(slow, () => marks(slow).includes('closing'));
    const late = await wire(e.record);
    // a window that comes now is told so
    await expect(late.hello()).rejects.toMatchObject({ data: { kind: 'draining' } });
    e.child.kill('SIGINT'); // the first signal takes the grace away
    await when(slow, () => marks(slow).includes('closed now'));
    e.child.kill('SIGINT');
    expect(await e.ended).toBe(1);
  });
  it('a fault nobody caught ends it cleanly with a code; a rejection of aborted work does not', async () => {
    for (const method of ['test/throw', 'test/reject']) {
      const dir = folder(),
        d = await startDaemon(dir),
        w = await wire(d.record);
      await w.hello();
      await w.rpc.sendRequest('run/start', {});
      await w.rpc.sendRequest('test/reject', { abort: true });
      expect(await w.rpc.sendRequest('test/echo', { well: true })).toEqual({ well: true });
      await w.rpc.sendRequest(method, {});
      expect(await last(w)).toMatchObject({ reason: 'fault' });
      expect(await d.ended).toBe(1);
      expect(marks(dir)).toEqual(['closed now']);
      expect(daemonLog(dir)).toMatch(/uncaught (exception|rejection): Error: (out of nowhere|nobody waits)\n\s+at /);
      expect(record(dir)).toBeUndefined();
    }
  });
  it('the record of another daemon is left alone', async () => {
    const dir = folder(),
      d = await startDaemon(dir),
      other = { ...d.record, token: 'a'.repeat(64) };
    writeFileSync(join(dir, discoveryFile), JSON.stringify(other), { mode: 0o600 });
    d.child.kill('SIGTERM');
    await d.ended;
    expect(JSON.parse(readFileSync(join(dir, discoveryFile), 'utf8'))).toEqual(other);
  });
  it('a daemon that cannot start says why, leaves, and lets go of the lock', async () => {
    const dir = folder(),
      d = await spawnDaemon(dir, { TEST_FAIL_START: '1' });
    expect(await d.ended).toBe(1);
    expect(d.output()).toContain('The runtime could not start: the part that fails');
    await startDaemon(dir);
  });
});

describe('diagnostics', () => {
  it('carry the end of the log', async () => {
    const w = await wire((await startDaemon(folder())).record);
    await w.hello();
    const { files } = await w.rpc.sendRequest(methods.diagnostics, {});
    expect(files['machine.txt']).toBe('a machine');
    expect(files['daemon.log']).toMatch(/serving on 127\.0\.0\.1:\d+/);
  });
});
