// `npm run test:kubernetes -- --context NAME [--image REF] [--kill COMMAND --back COMMAND] [--desktops N] [--json FILE]`: the
// provider on a real cluster, with rights to create namespaces. --kill ends the API server, --back starts it again.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, release } from 'node:os';
import { dirname } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { createDockerProvider } from '../../../runtime/cluster/providers/docker.js';
import { openAccess } from '../../../runtime/cluster/providers/kubernetes/access.js';
import { Api } from '../../../runtime/cluster/providers/kubernetes/api.js';
import { manifests } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { podOf } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import type { Pod } from '../../../runtime/cluster/providers/kubernetes/pods.js';
import { KubernetesProvider, podsOf, thisOwner } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { tryCluster } from '../../../runtime/cluster/providers/kubernetes/tryOut.js';
import type { Desktop, DesktopProvider, DesktopSpec } from '../../../runtime/cluster/types.js';
import { parseRunFile, type RunConfig, type RunFile } from '../../../runtime/config/index.js';
import { toRunError } from '../../../runtime/domain/index.js';

const { values: arg } = parseArgs({
  options: {
    context: { type: 'string' },
    image: { type: 'string' },
    kill: { type: 'string' },
    back: { type: 'string' },
    desktops: { type: 'string', default: '8' },
    json: { type: 'string' },
  },
});
const spec: DesktopSpec = { screen: { width: 1280, height: 720 }, memoryMb: 512, pids: 128, cpus: 1 };
const namespace = `dart-test-${process.pid}`,
  count = Number(arg.desktops),
  access = await openAccess({ context: arg.context, plugins: [] }),
  api = new Api(access);
type Options = NonNullable<NonNullable<RunFile['desktops']>['kubernetes']>;
const desktopsOf = (o: Options = {}): RunConfig['desktops'] =>
  parseRunFile(
    {},
    {
      desktops: {
        provider: 'kubernetes',
        count,
        kubernetes: { namespace, spares: 0, ...(arg.image ? { image: arg.image } : {}), ...o },
      },
    },
  ).desktops;
const open: KubernetesProvider[] = [];
const provider = (o: Options = {}): KubernetesProvider => {
  const p = new KubernetesProvider({ config: desktopsOf(o).kubernetes, access: () => Promise.resolve(access) });
  open.push(p);
  return p;
};

const found: Record<string, unknown> = {};
const note = (what: string, value: unknown): void => {
  found[what] = value;
  process.stdout.write(`${what}: ${JSON.stringify(value)}\n`);
};
const timed = async <T>(f: () => Promise<T>): Promise<{ ms: number; value: T }> => {
  const began = performance.now(),
    value = await f();
  return { ms: Math.round((performance.now() - began) * 10) / 10, value };
};
const summary = (ms: readonly number[]): { p50: number; p95: number; n: number } => {
  const s = [...ms].sort((a, b) => a - b),
    at = (q: number): number => s[Math.min(s.length - 1, Math.floor(q * s.length))]!;
  return { p50: at(0.5), p95: at(0.95), n: s.length };
};
const failure = async (p: Promise<unknown>): Promise<object> =>
  p.then(
    () => ({ failed: false }),
    (e: unknown) => {
      const { kind, message, remedy } = toRunError(e);
      return { kind, message, remedy };
    },
  );

/** Reset, observe, click and settle of one desktop. */
async function figures(p: DesktopProvider, d: Desktop): Promise<object> {
  const resets: number[] = [],
    looks: number[] = [],
    clicks: number[] = [];
  for (let i = 0; i < 20; i++) resets.push((await timed(() => p.reset(d))).ms);
  await d.spawn(['mousepad']);
  await d.settle({ horizonMs: 250, maxMs: 20_000 });
  for (let i = 0; i < 100; i++) {
    const look = await timed(() => d.observe());
    looks.push(look.ms);
    d.recycle?.(look.value);
  }
  let detector = '';
  for (let i = 0; i < 40; i++) {
    const click = await timed(async () => {
      await d.perform({ type: 'click', at: { x: 200 + 7 * i, y: 200 } });
      return d.settle();
    });
    clicks.push(click.ms);
    detector = click.value.detector;
  }
  return { resetMs: summary(resets), observeMs: summary(looks), clickAndSettleMs: summary(clicks), detector };
}

async function prepare(): Promise<void> {
  const all = manifests({ desktops: desktopsOf(), job: { image: 'example.com/runtime:1', runFile: '{}' } });
  const pathOf = (o: { apiVersion: string; kind: string }): string => {
    const base = o.apiVersion === 'v1' ? '/api/v1' : `/apis/${o.apiVersion}`;
    const plural = o.kind === 'NetworkPolicy' ? 'networkpolicies' : `${o.kind.toLowerCase()}s`;
    return o.kind === 'Namespace' ? `${base}/namespaces` : `${base}/namespaces/${namespace}/${plural}`;
  };
  const accepted: string[] = [];
  for (const o of all as { apiVersion: string; kind: string }[]) {
    const dry = o.kind === 'Job' || o.kind === 'PersistentVolumeClaim' || o.kind === 'ResourceQuota';
    await api.call('POST', pathOf(o), {
      body: o,
      query: { fieldValidation: 'Strict', ...(dry ? { dryRun: 'All' } : {}) },
      what: `create ${o.kind}`,
    });
    accepted.push(o.kind);
  }
  note('manifests that the API server accepts with strict validation', accepted);
}

async function speed(): Promise<void> {
  const p = provider(),
    one = await timed(() => p.create(spec));
  note('create one, ms', one.ms);
  note('kubernetes', await figures(p, one.value));
  const many = await timed(() => Promise.all(Array.from({ length: count }, () => timed(() => p.create(spec)))));
  note(`create ${count} at once, ms`, { all: many.ms, each: summary(many.value.map((m) => m.ms)) });
  await Promise.all([one.value, ...many.value.map((m) => m.value)].map((d) => p.destroy(d)));
  for (const path of ['portable', 'auto'] as const) {
    const docker = createDockerProvider({ spares: 0, path });
    try {
      const d = await docker.create(spec);
      note(`docker, ${path === 'auto' ? 'fast where it can be' : path}`, await figures(docker, d));
    } catch (e) {
      note(`docker, ${path}`, toRunError(e).message);
    } finally {
      await docker.dispose();
    }
  }
}

async function serverKilled(): Promise<void> {
  if (!arg.kill || !arg.back) return note('API server killed', 'not run: no --kill and --back');
  const p = provider(),
    all = await Promise.all(Array.from({ length: Math.min(4, count) }, () => p.create(spec)));
  let lost = 0;
  for (const d of all) d.onEvent((e) => (lost += e.type === 'lost' ? 1 : 0));
  const before = await Promise.all(all.map((d) => d.observe()));
  const commands = all.map((d) => d.exec(['sh', '-c', 'sleep 3; echo done'], { timeoutMs: 5000 }));
  await promisify(execFile)('sh', ['-c', arg.kill]);
  const away = timed(() => Promise.all(all.map((d) => d.observe())));
  await promisify(execFile)('sh', ['-c', arg.back]);
  const after = await away,
    said = await Promise.all(commands);
  note('API server killed', {
    desktops: all.length,
    lost,
    sameScreens: after.value.filter((f, i) => f.data.equals(before[i]!.data)).length,
    commandsDone: said.filter((r) => r.stdout.toString() === 'done\n').length,
    pausedMs: all.map((d) => Math.round(d.stalledMs!())),
    untilScreensMs: after.ms,
  });
  await Promise.all(all.map((d) => p.destroy(d)));
}

async function faults(): Promise<void> {
  const p = provider({ startSeconds: 30 });
  const d = await p.create(spec),
    lost = new Promise<unknown>((r) => d.onEvent((e) => e.type === 'lost' && r(e.error))),
    began = performance.now();
  await api.call('DELETE', `${podsOf(namespace)}/${p.podOf(d)!}`, { query: { gracePeriodSeconds: 0 }, what: 'delete' });
  const error = await lost;
  note('pod deleted', { lostAfterMs: Math.round(performance.now() - began), error });
  await p.destroy(d);
  note('image missing', await failure(provider({ image: 'registry.invalid/none:1' }).create(spec)));
  const big = { requests: { cpu: '10m', memory: '100Ti' } };
  note('no room', await failure(provider({ ...big, startSeconds: 5 }).create({ ...spec, memoryMb: 200_000_000 })));
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'none' }, spec: { hard: { pods: '0' } } };
  await api.call('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, { body: quota, what: 'create quota' });
  // the controller counts before the quota holds
  let refused: object = {};
  for (let i = 0; i < 20 && !('kind' in refused); i++) {
    const one = provider();
    refused = await failure(one.create(spec));
    await one.dispose();
  }
  note('quota', refused);
  await api.call('DELETE', `/api/v1/namespaces/${namespace}/resourcequotas/none`, { what: 'delete quota' });
  const m = provider(),
    full = await m.create(spec),
    gone = new Promise<unknown>((r) => full.onEvent((e) => e.type === 'lost' && r(e.error)));
  const eaten = full.exec(['python3', '-c', 'x = bytearray(2 << 30)\nprint(len(x))'], { timeoutMs: 60_000 });
  note(
    'out of memory',
    await Promise.race([
      gone,
      eaten.then(
        (r) => ({ code: r.code, stderr: r.stderr.toString().slice(-100) }),
        (e: unknown) => toRunError(e),
      ),
    ]),
  );
  await m.dispose();
}

async function nobodyThere(): Promise<void> {
  const c = desktopsOf({ idleMinutes: 0.05 }).kubernetes,
    { image } = await provider().cluster(),
    name = 'abandoned';
  await api.call('POST', podsOf(namespace), {
    body: podOf(c, spec, { name, image, owner: thisOwner() }),
    what: 'create pods',
  });
  const began = performance.now(),
    events = api.watch<Pod>(podsOf(namespace), {
      query: { fieldSelector: `metadata.name=${name}` },
      signal: AbortSignal.timeout(60_000),
      what: 'watch',
    });
  for await (const e of events)
    if (e.object.status?.phase === 'Succeeded' || e.object.status?.phase === 'Failed') {
      note('a desktop without a runtime ends itself', {
        afterMs: Math.round(performance.now() - began),
        phase: e.object.status.phase,
      });
      break;
    }
}

const version = await api.call<{ gitVersion?: string }>('GET', '/version', { what: 'say its version' });
note('machine', {
  kubernetes: version.gitVersion,
  cores: cpus().length,
  kernel: release(),
  load: loadavg().map((x) => Math.round(x * 10) / 10),
  at: new Date().toISOString().slice(0, 10),
});
let failed: unknown;
try {
  await prepare();
  note('doctor', await tryCluster(desktopsOf(), spec, { provider: provider() }));
  for (const part of [speed, serverKilled, faults, nobodyThere])
    await part().catch((e: unknown) => {
      failed ??= e;
      note(`${part.name} failed`, toRunError(e));
    });
} finally {
  for (const p of open) await p.dispose().catch((e: unknown) => note('dispose', toRunError(e).message));
  await api.call('DELETE', `/api/v1/namespaces/${namespace}`, { what: 'delete the namespace' });
  if (arg.json) {
    await mkdir(dirname(arg.json), { recursive: true });
    await writeFile(arg.json, JSON.stringify(found, null, 2) + '\n');
  }
}
process.exit(failed ? 1 : 0);
