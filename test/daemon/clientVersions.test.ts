import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as methods from '../../runtime/protocol/methods.js';
import {
  cleanUp,
  entry,
  folder,
  marks,
  raw,
  removeFolders,
  startDaemon,
  testClient,
  when,
  wire,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';

beforeAll(async () => {
  await entry();
});
afterEach(cleanUp);
afterAll(removeFolders);

const older = { version: '1.0.0', time: 500 },
  newer = { version: '2.0.0', time: 2000 };

describe('builds and protocols', () => {
  it('a newer window takes the place of an idle older daemon', async () => {
    const dir = folder(),
      old = await startDaemon(dir, { TEST_BUILD: '500' }),
      c = await testClient(dir);
    await c.client.connect({ start: true });
    expect(await old.ended).toBe(0);
    expect(c.client.hello).toMatchObject({ build: { time: 1000 } });
    expect(c.client.stateDetail).toBeUndefined();
  });
  it('but not of one that trains: it attaches, says so, and takes over when the run ends', async () => {
    const dir = folder(),
      old = await startDaemon(dir, { TEST_BUILD: '500' }),
      before = await testClient(dir, { build: older });
    await before.client.connect({ start: true });
    await raw(before.client, 'run/start', {});
    const c = await testClient(dir);
    await c.client.connect({ start: true });
    expect(c.client.hello).toMatchObject({ pid: old.child.pid, activeRuns: [run] });
    expect(c.client.stateDetail).toMatchObject({
      kind: 'daemon.older',
      remedy: 'It restarts automatically when the run ends.',
    });
    expect(before.client.state).toBe('ready');
    await raw(c.client, 'run/stop', { run });
    expect(await old.ended).toBe(0);
    await c.reaches('reconnecting');
    await c.reaches('ready');
    expect(c.client.hello!.build.time).toBe(1000);
    expect(c.client.stateDetail).toBeUndefined();
    await before.reaches('ready'); // the older window follows, and replaces nothing
    await raw(before.client, 'test/echo', {});
    expect(before.client.hello!.pid).toBe(c.client.hello!.pid);
    expect(before.said.some((m) => m.includes('started the runtime'))).toBe(false);
  });
  it('an older window, and one that may start none, leave the daemon as it is', async () => {
    const dir = folder(),
      d = await startDaemon(dir, { TEST_BUILD: '1000' });
    const old = await testClient(dir, { build: older }),
      looking = await testClient(dir, { build: newer });
    await old.client.connect({ start: true });
    await looking.client.connect();
    expect([old.client.hello!.pid, looking.client.hello!.pid]).toEqual([d.child.pid, d.child.pid]);
    expect(old.client.stateDetail).toBeUndefined();
  });
  it('a daemon of another protocol: incompatible when it is newer, replaced when it is older and idle', async () => {
    const dir = folder(),
      d = await startDaemon(dir, { TEST_PROTOCOL: '7', TEST_BUILD: '2000' }),
      c = await testClient(dir);
    await expect(c.client.connect({ start: true })).rejects.toMatchObject({
      kind: 'protocol.mismatch',
      remedy: expect.stringContaining('Reload the window') as string,
    });
    expect(c.client.state).toBe('incompatible');
    await expect(raw(c.client, 'test/echo', {})).rejects.toMatchObject({
      remedy: expect.stringContaining('Reload the window') as string,
    });
    const w = await wire(d.record);
    await w.rpc.sendRequest(methods.shutdown, {});
    await c.reaches('ready'); // the one in the way is gone

    const other = folder(),
      old = await startDaemon(other, { TEST_PROTOCOL: '7', TEST_BUILD: '500' }),
      e = await testClient(other);
    await e.client.connect({ start: true });
    expect(await old.ended).toBe(0);
    expect(e.client.hello!.protocol).toBe(1);
  });
  it('a daemon on its way out is waited for', async () => {
    const dir = folder(),
      d = await startDaemon(dir, { TEST_SLOW_CLOSE: '1' }),
      w = await wire(d.record);
    await w.hello();
    w.rpc.sendRequest(methods.shutdown, {}).catch(() => undefined);
    await when(dir, () => marks(dir).includes('closing'));
    const looking = await testClient(dir),
      c = await testClient(dir);
    await expect(looking.client.connect()).rejects.toMatchObject({ kind: 'daemon.stopped' });
    const ready = c.client.connect({ start: true });
    await new Promise<void>((go) => {
      const off = c.client.onState((_s, e) => {
        if (e?.kind === 'draining') {
          off();
          go();
        }
      });
    });
    d.child.kill('SIGKILL');
    await ready;
    expect(c.client.hello!.pid).not.toBe(d.child.pid);
    await looking.reaches('ready');
  });
});
