import { afterEach, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { KubernetesProvider } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { OWNER, ownerLabels } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import { ownerLabel, self } from '../../../runtime/cluster/providers/dockerHosts.js';
import { readImage } from '../../../runtime/cluster/images.js';
import { tryCluster } from '../../../runtime/cluster/providers/kubernetes/tryOut.js';
import { endFault } from '../../../runtime/cluster/providers/kubernetes/faults.js';
import type { RunFile } from '../../../runtime/config/index.js';
import type { StudioError } from '../../../runtime/domain/index.js';
import { ApiServer, ends, stuck } from '../../helpers/kubernetes/apiServer.js';

const spec = { screen: { width: 640, height: 400 }, memoryMb: 300, pids: 120 };
const owner = self();
let api: ApiServer | undefined;
const open: KubernetesProvider[] = [];
afterEach(async () => {
  for (const p of open.splice(0)) await p.dispose();
  await api?.close();
  api = undefined;
});

type Options = NonNullable<NonNullable<RunFile['desktops']>['kubernetes']>;
async function cluster(o: Options = {}): Promise<{ api: ApiServer; provider: KubernetesProvider }> {
  api ??= await ApiServer.open();
  const { kubernetes } = parseRunFile(
    {},
    { desktops: { kubernetes: { spares: 0, image: 'r.example/desk:1', ...o } } },
  ).desktops;
  const provider = new KubernetesProvider({ config: kubernetes, access: () => api!.access(), owner });
  open.push(provider);
  return { api, provider };
}
const failure = async (p: Promise<unknown>): Promise<StudioError> =>
  p.then(
    () => {
      throw new Error('it did not fail');
    },
    (e: unknown) => e as StudioError,
  );

describe('Kubernetes: what keeps a desktop from starting', () => {
  it.each([
    [
      'imageMissing',
      'desktop.image',
      /cannot have the desktop image r\.example\/desk:1 \(ErrImagePull\).*not found/,
      /desktop build --push/,
    ],
    ['oldImage', 'desktop.image', /older than this version/, /--push/],
    ['evicted', 'desktop.lost', /evicted.*ephemeral-storage/, /requests/],
    ['oom', 'desktop.lost', /OOMKilled/, /memoryMb/],
    ['nodeLost', 'desktop.lost', /node is lost.*unresponsive/, /replaces it/],
  ] as const)('%s', async (what, kind, message, remedy) => {
    const { api, provider } = await cluster();
    api.faults.start = { ...stuck, ...ends }[what];
    const e = await failure(provider.create(spec));
    expect(e).toMatchObject({ kind });
    expect(e.message).toMatch(message);
    expect(e.error.remedy).toMatch(remedy);
    expect(api.pods.size).toBe(0);
  });

  it('no node has room: waits as long as the run file says, then tells what the scheduler said', async () => {
    const { api, provider } = await cluster({ startSeconds: 0.3 });
    api.faults.start = stuck.unschedulable;
    const e = await failure(provider.create(spec));
    expect(e).toMatchObject({ kind: 'desktop.start' });
    expect(e.message).toContain('Insufficient memory');
    expect(api.pods.size).toBe(0);
  });

  it('a pod that never starts: the last warning of its events is the reason', async () => {
    const { api, provider } = await cluster({ startSeconds: 0.3 });
    api.faults.start = stuck.creating;
    api.faults.events = [{ type: 'Warning', reason: 'FailedCreatePodSandBox', message: 'plugin type="bridge" failed' }];
    const e = await failure(provider.create(spec));
    expect(e.message).toMatch(/did not start within 0\.3 s \(ContainerCreating\): FailedCreatePodSandBox: plugin/);
  });

  it('quota, rights, namespace: what the server said, and what to do', async () => {
    const { api, provider } = await cluster();
    api.faults.quota = 0;
    const full = await failure(provider.create(spec));
    expect(full).toMatchObject({ kind: 'desktop.unavailable' });
    expect(full.message).toContain('quota allows no more desktops: pods');
    expect(full.error.remedy).toContain('kubernetes manifests');
    api.faults = { forbidden: ['create pods'] };
    const forbidden = await failure(provider.create(spec));
    expect(forbidden).toMatchObject({ kind: 'desktop.unavailable' });
    expect(forbidden.message).toContain('does not allow to create pods');
    api.faults = { forbidden: ['list pods'] };
    expect((await (await cluster()).provider.status()).problem?.message).toContain('does not allow to list pods');
    api.faults = {};
    const elsewhere = await failure((await cluster({ namespace: 'nowhere' })).provider.create(spec));
    expect(elsewhere.message).toContain('namespaces "nowhere" not found');
  });

  it('is as large as the applications of its image need, whatever the run file says', async () => {
    api ??= await ApiServer.open();
    const { kubernetes } = parseRunFile(
      {},
      { desktops: { kubernetes: { spares: 0, image: 'r.example/x:1' } } },
    ).desktops;
    const provider = new KubernetesProvider({
      config: kubernetes,
      image: 'osworld',
      access: () => api!.access(),
      owner,
    });
    open.push(provider);
    api.faults.start = stuck.imageMissing;
    await failure(provider.create(spec));
    const { floor } = await readImage('osworld'),
      pod = api.made[0]!.spec!;
    expect(floor.memoryMb).toBeGreaterThan(spec.memoryMb);
    expect(pod.containers![0]!.resources!.limits!['memory']).toBe(`${floor.memoryMb}Mi`);
    expect(pod.volumes!.find((v) => v.name === 'home-user')!.emptyDir!.sizeLimit).toBe(`${floor.diskMb}Mi`);
  });

  it('doctor names the namespace where neither the run file nor the context does', async () => {
    const { api, provider } = await cluster();
    api.faults.forbidden = ['list events'];
    const desktops = parseRunFile({}, { desktops: { kubernetes: { image: 'r.example/desk:1' } } }).desktops,
      named = await tryCluster(desktops, spec, { provider });
    expect(named.map((f) => f.name)).toEqual(['Kubernetes', 'rights in desktops']);
    api.namespace = 'default';
    const nameless = new KubernetesProvider({
      config: desktops.kubernetes,
      access: async () => ({ ...(await api.access()), namespace: undefined }),
      owner,
    });
    open.push(nameless);
    const found = await tryCluster(desktops, spec, { provider: nameless });
    expect(found.map((f) => f.name)).toEqual(['namespace', 'Kubernetes', 'rights in default']);
    expect(found[0]).toMatchObject({
      level: 'doubtful',
      detail: expect.stringContaining('desktops go to default') as string,
      remedy: expect.stringMatching(/namespace to dart-desktops,.*manifests/) as string,
    });
  });

  it('an API server that is away is said to be, and works again when it is back', async () => {
    const { api, provider } = await cluster();
    expect((await provider.status()).ok).toBe(true);
    await api.kill();
    const s = await provider.status();
    expect(s).toMatchObject({ ok: false, problem: { kind: 'desktop.unavailable' } });
    expect(s.problem!.message).toMatch(/API server of test does not answer: \w/);
    expect(s.problem!.remedy).not.toContain('the call is retried');
    await api.back();
    expect((await provider.status()).ok).toBe(true);
  });

  it('asks an overloaded server again when it says so', async () => {
    const { api, provider } = await cluster();
    api.faults.throttle = 2;
    expect((await provider.status()).ok).toBe(true);
  });

  it('holds no more desktops than its capacity', async () => {
    const { api, provider } = await cluster({ capacity: 1, startSeconds: 5 });
    api.faults = { start: stuck.creating };
    const first = new AbortController(),
      starting = failure(provider.create(spec, first.signal));
    while (api.pods.size === 0) await new Promise((r) => setImmediate(r));
    expect((await failure(provider.create(spec))).message).toContain('1 of 1');
    first.abort();
    expect(await starting).toMatchObject({ kind: 'cancelled' });
    expect(api.pods.size).toBe(0);
  });
});

describe('Kubernetes: watching', () => {
  it('asks for nothing while nothing happens, and hears through ended watches and forgotten versions', async () => {
    const { api, provider } = await cluster();
    api.faults = { start: stuck.creating };
    const stop = new AbortController(),
      starting = failure(provider.create(spec, stop.signal));
    while (api.watching === 0 || api.pods.size === 0) await new Promise((r) => setImmediate(r));
    const before = api.calls.length;
    api.endWatches();
    while (api.watching === 0) await new Promise((r) => setTimeout(r, 5));
    expect(api.calls.slice(before)).toEqual(['watch pods']);
    api.compact();
    while (api.watching === 0) await new Promise((r) => setTimeout(r, 5));
    expect(api.calls.slice(before)).toEqual(['watch pods', 'list pods', 'watch pods']);
    // while nobody watches, the pod fails: the next list says so
    api.setStatus([...api.pods.keys()][0]!, ends.evicted);
    expect((await starting).message).toContain('evicted');
  });

  it('waits for a server that has not caught up with its own lists, and does not ask it without end', async () => {
    const { api, provider } = await cluster();
    api.faults = { start: stuck.creating, lags: true };
    const starting = failure(provider.create(spec));
    while (api.calls.filter((c) => c === 'watch pods').length < 2) await new Promise((r) => setImmediate(r));
    const before = api.calls.length;
    await new Promise((r) => setTimeout(r, 300));
    expect(api.calls.length - before).toBeLessThan(8);
    api.faults = {};
    while (api.watching === 0) await new Promise((r) => setTimeout(r, 5));
    api.setStatus([...api.pods.keys()][0]!, ends.evicted);
    expect((await starting).message).toContain('evicted');
  });

  it('hears of a pod that went while the server was away', async () => {
    const { api, provider } = await cluster();
    api.faults = { start: stuck.creating };
    const starting = failure(provider.create(spec));
    while (api.watching === 0 || api.pods.size === 0) await new Promise((r) => setImmediate(r));
    await api.kill();
    await api.delete([...api.pods.keys()][0]!);
    api.compact();
    await api.back();
    expect(await starting).toMatchObject({ kind: 'desktop.lost', message: expect.stringContaining('gone') as string });
  });
});

describe('Kubernetes: orphans', () => {
  it('removes pods of this machine whose process is gone, and no others', async () => {
    const { api, provider } = await cluster();
    const pod = (name: string, o: typeof owner): void =>
      api.add({
        metadata: {
          name,
          labels: { 'app.kubernetes.io/name': 'dart-studio', 'dart-studio/role': 'desktop', ...ownerLabels(o) },
          annotations: { [OWNER]: ownerLabel(o) },
        },
      });
    pod('mine', owner);
    pod('dead', { ...owner, started: '1' });
    pod('before-reboot', { ...owner, boot: 'x' });
    pod('elsewhere', { ...owner, machine: 'other', boot: 'x' });
    expect(await provider.reap()).toBe(2);
    expect([...api.pods.keys()]).toEqual(['mine', 'elsewhere']);
  });
});

describe('Kubernetes: how a pod ended', () => {
  it.each(Object.entries(ends))('%s is a lost desktop with a reason, never anything else', (_, status) => {
    expect(endFault({ status })).toMatchObject({ kind: 'desktop.lost' });
  });
  it('a running pod has none; one taken down by the cluster says why', () => {
    expect(endFault({ status: { phase: 'Running' } })).toBeUndefined();
    const conditions = [{ type: 'DisruptionTarget', status: 'True', message: 'Preempted by pod x' }];
    expect(endFault({ status: { phase: 'Running', conditions } })?.message).toContain('Preempted by pod x');
    expect(endFault(undefined)?.message).toContain('gone');
  });
});
