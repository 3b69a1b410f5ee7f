import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { podOf } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import type { Pod } from '../../../runtime/cluster/providers/kubernetes/pods.js';
import { podsOf, thisOwner } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { toRunError } from '../../../runtime/domain/index.js';
import { api, arg, count, desktopsOf, failure, namespace, note, provider, spec, timed } from './context.js';
import { limit } from './quota.js';

/** Kills the API server while commands run and screens are asked for. */
export async function serverKilled(): Promise<void> {
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

/** Faults of single desktops, each with what is said of it. */
export async function faults(): Promise<void> {
  await podDeleted();
  await cannotStart();
  await overQuota();
  await outOfMemory();
}

async function podDeleted(): Promise<void> {
  const p = provider({ startSeconds: 30 });
  const d = await p.create(spec),
    lost = new Promise<unknown>((r) => d.onEvent((e) => e.type === 'lost' && r(e.error))),
    began = performance.now();
  await api.call('DELETE', `${podsOf(namespace)}/${p.podOf(d)!}`, { query: { gracePeriodSeconds: 0 }, what: 'delete' });
  const error = await lost;
  note('pod deleted', { lostAfterMs: Math.round(performance.now() - began), error });
  await p.destroy(d);
}

async function cannotStart(): Promise<void> {
  note('image missing', await failure(provider({ image: 'registry.invalid/none:1' }).create(spec)));
  const big = { requests: { cpu: '10m', memory: '100Ti' } };
  note('no room', await failure(provider({ ...big, startSeconds: 5 }).create({ ...spec, memoryMb: 200_000_000 })));
}

async function overQuota(): Promise<void> {
  await limit(0);
  note('quota', await failure(provider().create(spec)));
  await limit(undefined);
}

async function outOfMemory(): Promise<void> {
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

/** Leaves a desktop alone. */
export async function nobodyThere(): Promise<void> {
  const c = desktopsOf({ idleMinutes: 0.05 }).kubernetes,
    { image } = await provider().cluster(),
    name = 'abandoned',
    body = podOf(c, spec, { name, image, owner: thisOwner() });
  const made = await api.call<Pod>('POST', podsOf(namespace), { body, what: 'create pods' }),
    began = performance.now(),
    query = { fieldSelector: `metadata.name=${name}`, resourceVersion: made.metadata?.resourceVersion ?? '0' },
    signal = AbortSignal.timeout(60_000);
  // A server may end a watch before anything happened.
  for (;;)
    for await (const e of api.watch<Pod>(podsOf(namespace), { query, signal, what: 'watch' })) {
      const phase = e.object.status?.phase;
      if (phase !== 'Succeeded' && phase !== 'Failed') continue;
      note('a desktop without a runtime ends itself', { afterMs: Math.round(performance.now() - began), phase });
      return;
    }
}
