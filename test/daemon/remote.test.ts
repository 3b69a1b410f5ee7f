import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EventsBatch } from '../../extension/daemon/client.js';
import { forwardedRuntime } from '../../extension/daemon/forwarded.js';
import { PodRuntime } from '../../extension/daemon/podRuntime.js';
import { fakeKubectl, type FakeKubectl } from '../helpers/kubernetes/fakeKubectl.js';
import {
  cleanUp,
  entry,
  folder,
  raw,
  removeFolders,
  startDaemon,
  testClient,
  type Daemon,
  type TestClient,
} from '../helpers/daemon/harness.js';
import { run } from '../helpers/daemon/memoryService.js';
import { isAlive } from '../helpers/machine/processes.js';

/** A window that is attached to a runtime elsewhere: its daemon has a folder of its own, which the window never sees. */
beforeAll(async () => {
  await entry();
});
const pods: PodRuntime[] = [];
afterEach(async () => {
  for (const p of pods.splice(0)) p.dispose();
  await cleanUp();
});
afterAll(removeFolders);

const pod = 'dart-studio-train-x7k2p';
interface Cluster {
  readonly daemon: Daemon;
  readonly storage: string;
  readonly kubectl: FakeKubectl;
  runtime(name?: string): PodRuntime;
}
async function cluster(env: Record<string, string> = {}): Promise<Cluster> {
  const storage = folder(),
    dir = folder(),
    daemon = await startDaemon(storage, env),
    kubectl = fakeKubectl(dir, { contexts: ['there'], pods: [pod], storage });
  return {
    daemon,
    storage,
    kubectl,
    runtime: (name = pod) => {
      const p = new PodRuntime({ program: kubectl.program, cwd: dir, context: 'there', namespace: 'team-a' }, name);
      pods.push(p);
      return p;
    },
  };
}
const window = (): Promise<TestClient> => testClient(folder(), { random: () => 0 });

describe('a runtime in a pod', () => {
  it('is talked to in place of the one of this machine, until the window detaches', async () => {
    const there = await cluster(),
      { client } = await window();
    await client.connect({ start: true });
    const own = client.hello!.pid;
    const remote = there.runtime();
    await client.attachTo(remote);
    expect(client.hello!.pid).toBe(there.daemon.child.pid);
    expect(client.remote?.name).toBe(pod);
    expect(await raw(client, 'test/echo', { x: 1 })).toEqual({ x: 1 });
    const [forward] = there.kubectl.forwards();
    client.detach();
    await client.connect();
    expect(client.hello!.pid).toBe(own);
    expect(client.remote).toBeUndefined();
    await expect.poll(() => isAlive(forward!)).toBe(false);
    expect(isAlive(there.daemon.child.pid!)).toBe(true);
  });

  it('is come back to when the way is cut, and no event is missed', async () => {
    const there = await cluster(),
      { client, reaches } = await window();
    await client.attachTo(there.runtime());
    const seen: number[] = [];
    let batches: (b: EventsBatch) => void = () => undefined;
    client.subscribe({ run, sinceSeq: 0 }, (b) => {
      seen.push(...b.events.map((e) => e.seq));
      batches(b);
    });
    await raw(client, 'test/append', { count: 3 });
    const cut = reaches('reconnecting');
    process.kill(there.kubectl.forwards().at(-1)!, 'SIGKILL');
    await cut;
    await reaches('ready');
    expect(there.kubectl.forwards()).toHaveLength(2);
    expect(client.hello!.pid).toBe(there.daemon.child.pid);
    const whole = new Promise<void>((done) => {
      batches = () => {
        if (seen.length >= 5) done();
      };
    });
    await raw(client, 'test/append', { count: 2 });
    await whole;
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    expect(seen).toHaveLength(5);
  });

  it('is tried again while the cluster does not answer, and given up in words when its pod is gone', async () => {
    const there = await cluster(),
      { client, reaches, said } = await window();
    await client.attachTo(there.runtime());
    there.kubectl.become({ fault: 'Unable to connect to the server: i/o timeout' });
    process.kill(there.kubectl.forwards().at(-1)!, 'SIGKILL');
    await expect.poll(() => said.filter((m) => m.includes('i/o timeout')).length).toBeGreaterThan(1);
    expect(client.state).toBe('reconnecting');
    there.kubectl.become({ fault: undefined as never, pods: [] });
    await reaches('failed');
    expect(client.stateDetail).toMatchObject({ kind: 'remote.gone', message: expect.stringContaining(pod) as string });
    // It stays attached until somebody says otherwise: nothing of this machine is started meanwhile.
    expect(client.remote?.name).toBe(pod);
    await expect(client.connect({ start: true })).rejects.toMatchObject({ kind: 'remote.gone' });
  });

  it('that ends with its run is said to have ended', async () => {
    const there = await cluster(),
      { client, reaches } = await window();
    await client.attachTo(there.runtime());
    there.daemon.child.kill('SIGTERM');
    await reaches('failed');
    expect(client.stateDetail).toMatchObject({ kind: 'remote.gone' });
  });

  it('that cannot be attached to changes nothing, and says why', async () => {
    const there = await cluster({ TEST_PROTOCOL: '7' }),
      { client } = await window();
    await client.connect({ start: true });
    const own = client.hello!.pid;
    const refused = async (kind: string, remote = there.runtime()): Promise<void> => {
      await expect(client.attachTo(remote)).rejects.toMatchObject({ kind });
      expect([client.state, client.remote, client.hello!.pid]).toEqual(['ready', undefined, own]);
    };
    await refused('protocol.mismatch');
    // A runtime of another version is left alone: it trains.
    expect(isAlive(there.daemon.child.pid!)).toBe(true);
    await refused('remote.gone', there.runtime('another-pod'));
    there.kubectl.become({ fault: 'Error from server (Forbidden): pods is forbidden' });
    await refused('remote.rights');
    there.kubectl.become({ fault: undefined as never });
    rmSync(join(there.storage, 'daemon.json'));
    await refused('remote.unreachable');
    await refused('remote.program', new PodRuntime({ program: '/no/kubectl', cwd: '/', namespace: 'a' }, pod));
    for (const pid of there.kubectl.forwards()) await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it('is not taken where attaching was cancelled in its last moment', async () => {
    const there = await cluster(),
      { client, states } = await window();
    await client.connect({ start: true });
    const own = client.hello!.pid,
      cancel = new AbortController(),
      pod = there.runtime();
    states.length = 0;
    await expect(
      client.attachTo(
        {
          name: 'late',
          reach: async () => {
            const way = await pod.reach();
            cancel.abort();
            return way;
          },
          dispose: () => pod.dispose(),
        },
        cancel.signal,
      ),
    ).rejects.toMatchObject({ kind: 'cancelled' });
    expect([client.remote, client.hello!.pid, states]).toEqual([undefined, own, []]);
  });

  it('is come back to when a cluster that starts again refuses for a while', async () => {
    const there = await cluster(),
      { client, reaches, said } = await window();
    await client.attachTo(there.runtime());
    there.kubectl.become({ fault: 'error: You must be logged in to the server (Unauthorized)' });
    process.kill(there.kubectl.forwards().at(-1)!, 'SIGKILL');
    await expect.poll(() => said.filter((m) => m.includes('Unauthorized')).length).toBeGreaterThan(1);
    expect(client.state).toBe('reconnecting');
    there.kubectl.become({ fault: undefined as never });
    await reaches('ready');
  });

  it("gives its token to nobody: it is in no argument, no log and no error, nor in this machine's record", async () => {
    const there = await cluster(),
      { client, said } = await window(),
      { token } = there.daemon.record;
    await client.attachTo(there.runtime());
    expect(JSON.stringify(there.kubectl.asked())).not.toContain(token);
    expect(said.join('\n')).not.toContain(token);
    const wrong = { ...there.daemon.record, token: '0'.repeat(64) };
    const e: unknown = await client.attachTo(forwardedRuntime(wrong, wrong.port)).catch((x: unknown) => x);
    expect(e).toMatchObject({ kind: 'remote.token' });
    expect(JSON.stringify(e)).not.toContain(wrong.token);
    expect(client.remote?.name).toBe(pod);
  });
});

describe('a runtime that was forwarded already', () => {
  it('is attached to at its address', async () => {
    const there = await cluster(),
      { client } = await window(),
      remote = there.runtime(),
      { record, port } = await remote.reach();
    expect(port).not.toBe(record.port);
    await client.attachTo(forwardedRuntime(record, port));
    expect(client.hello!.pid).toBe(there.daemon.child.pid);
    expect(readFileSync(join(there.storage, 'daemon.log'), 'utf8')).not.toContain('refused');
    const lost = once(there.daemon.child, 'exit');
    there.daemon.child.kill('SIGKILL');
    await lost;
    await expect.poll(() => client.state).toBe('reconnecting');
    client.detach();
    expect(client.state).toBe('stopped');
  });
  it('is given up after a minute, in words', async () => {
    const there = await cluster();
    let now = 1000;
    const { client, reaches } = await testClient(folder(), { random: () => 0, now: () => now }),
      { record } = there.daemon,
      lost = reaches('reconnecting');
    await client.attachTo(forwardedRuntime(record, record.port));
    there.daemon.child.kill('SIGKILL');
    await lost;
    now += 61_000;
    await reaches('failed');
    expect(client.stateDetail).toMatchObject({
      kind: 'remote.unreachable',
      remedy: expect.stringContaining('attach again') as string,
    });
  });
});
