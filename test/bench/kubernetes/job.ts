import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { DaemonClient } from '../../../extension/daemon/client.js';
import { PodRuntime } from '../../../extension/daemon/podRuntime.js';
import { DaemonError } from '../../../extension/daemon/types.js';
import { manifests } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { selectorOf } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import type { Pod, PodList } from '../../../runtime/cluster/providers/kubernetes/pods.js';
import { PodWatch } from '../../../runtime/cluster/providers/kubernetes/podWatch.js';
import { podsOf } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { messageOf, RUNTIME_POD } from '../../../runtime/domain/index.js';
import { orUndefined } from '../../../runtime/concurrency/failures.js';
import { withDeadline } from '../../../runtime/concurrency/deadline.js';
import * as methods from '../../../runtime/protocol/methods.js';
import { cleanUp, testClient } from '../../helpers/daemon/harness.js';
import { faultyRunFile } from '../../helpers/kubernetes/faultyRun.js';
import { replay } from '../../helpers/run/cli.js';
import { api, arg, desktopsOf, found, namespace, note, optionsOf, timed } from './context.js';
import { pathOf } from './objects.js';
import { cluster } from './runWithFaults.js';

const PART = 'Job',
  VOLUME = `${namespace}-runs`,
  /** Rollouts after which it has been seen to train. */
  ENOUGH = 40,
  WAIT_MS = 180_000,
  AGAIN_MS = 250,
  TRAIN_MS = 600_000;

/** The runtime's Job trains in the cluster with its own credentials; a window attaches to it, watches it and stops it. */
export async function job(): Promise<void> {
  const { job: image, volume } = arg;
  if (image === undefined) return note(PART, found[PART] ?? 'not run: no --job');
  const dir = await mkdtemp(join(tmpdir(), 'dart-kubernetes-job-')),
    pods = new PodWatch(api, namespace, selectorOf(RUNTIME_POD.labels));
  try {
    await pods.ready();
    await begin(image);
    const started = await timed(() => podOfJob(pods)),
      place = { program: 'kubectl', cwd: dir, context: arg.context, namespace },
      { client } = await testClient(dir),
      attached = await timed(() => attach(client, new PodRuntime(place, started.value))),
      trained = await timed(() => training(client)),
      { run, rollouts, version } = trained.value;
    const shown = await client.request(methods.listTrajectories, { run });
    await client.request(methods.stopRun, { run });
    const ended = await until(
      pods,
      started.value,
      (p) => p?.status?.phase === 'Succeeded' || p?.status?.phase === 'Failed',
    );
    const judged = {
      exitCode: ended?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode,
      desktopsLeft: (await cluster.pods()).length,
      ...(volume === undefined ? {} : await journalOf(join(volume, basename(run)))),
    };
    note(PART, {
      image,
      podRunsAfterMs: started.ms,
      attachedAfterMs: attached.ms,
      secondsAttached: Math.round(trained.ms / 1000),
      rollouts,
      version,
      rowsShown: shown.rows.length,
      ...judged,
    });
    // A run that was stopped ends as by a signal.
    const good = { exitCode: 130, desktopsLeft: 0, closed: 'stopped', errors: 0 };
    const wrong = Object.entries(judged).filter(([k, v]) => k in good && good[k as keyof typeof good] !== v);
    if (wrong.length > 0) throw new Error(`the Job: ${JSON.stringify(Object.fromEntries(wrong))}`);
  } catch (e) {
    process.stdout.write(`The Job said last: ${await lastWords().catch(messageOf)}\n`);
    throw e;
  } finally {
    await cleanUp();
    pods.close();
    await remove('/apis/batch/v1', `namespaces/${namespace}/jobs/dart-studio-train`);
    if (volume !== undefined) await remove('/api/v1', `persistentvolumes/${VOLUME}`);
    await rm(dir, { recursive: true, force: true });
  }
}

const remove = (base: string, path: string): Promise<unknown> =>
  orUndefined(
    api.call('DELETE', `${base}/${path}`, { query: { propagationPolicy: 'Background' }, what: 'delete the Job' }),
    'it was never made',
  );

async function lastWords(): Promise<string> {
  const which = [...(arg.context === undefined ? [] : ['--context', arg.context]), '--namespace', namespace],
    { stdout } = await promisify(execFile)('kubectl', [...which, 'logs', 'job/dart-studio-train', '--tail', '20']);
  return stdout;
}

/** Creates the Job and what it needs, with a volume where the command line names its folder. */
async function begin(image: string): Promise<void> {
  const file = faultyRunFile(optionsOf()),
    all = manifests({ desktops: desktopsOf(), job: { image, runFile: JSON.stringify(file) } }).map(small) as Created[],
    claim = all.find((o) => o.kind === 'PersistentVolumeClaim')!;
  const volume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: VOLUME },
    spec: {
      capacity: { storage: '50Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: arg.volume },
      claimRef: { namespace, name: claim.metadata.name },
    },
  };
  const ofJob = all.filter((o) => ['PersistentVolumeClaim', 'Job'].includes(o.kind) || o.data);
  for (const o of [...(arg.volume === undefined ? [] : [volume]), ...ofJob])
    await api.call('POST', pathOf(o), { body: o, what: `create ${o.kind}` });
}
/** Of a node with two cores it would reserve both, and leave desktops none. */
const small = (o: object): unknown =>
  JSON.parse(JSON.stringify(o), (key, value: unknown) =>
    key === 'requests' && 'cpu' in (value as object) ? { cpu: '500m', memory: '1Gi' } : value,
  );
interface Created {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: object;
}

/** Name of its pod, once that runs. */
async function podOfJob(pods: PodWatch): Promise<string> {
  const name = await withDeadline(WAIT_MS, [], async (signal) => {
    for (;;) {
      signal.throwIfAborted();
      const all = await api.call<PodList>('GET', podsOf(namespace), {
          query: { labelSelector: selectorOf(RUNTIME_POD.labels) },
          what: 'list pods',
        }),
        first = all.items?.[0]?.metadata?.name;
      if (first !== undefined) return first;
      await sleep(AGAIN_MS, undefined, { signal });
    }
  });
  await until(pods, name, (p) => p?.status?.phase === 'Running');
  return name;
}
const until = (pods: PodWatch, name: string, so: (p: Pod | undefined) => boolean): Promise<Pod | undefined> =>
  withDeadline(WAIT_MS, [], async (signal) => (await pods.until(name, (p) => (so(p) ? { p } : undefined), signal)).p);

/** A runtime that has just started does not listen yet: whoever attaches tries again. */
function attach(client: DaemonClient, runtime: PodRuntime): Promise<void> {
  return withDeadline(WAIT_MS, [], async (signal) => {
    for (;;) {
      const failed = await client.attachTo(runtime, signal).then(
        () => undefined,
        (e: unknown) => e,
      );
      if (failed === undefined) return;
      if (!(failed instanceof DaemonError) || failed.kind !== 'remote.unreachable' || signal.aborted) throw failed;
      await sleep(AGAIN_MS, undefined, { signal });
    }
  });
}

/** What the window is told, once enough rollouts have ended and the policy has learned from some. */
function training(client: DaemonClient): Promise<{ run: string; rollouts: number; version: number }> {
  return withDeadline(
    TRAIN_MS,
    [],
    (signal) =>
      new Promise((done, fail) => {
        signal.addEventListener('abort', () => fail(signal.reason as Error));
        client.onState((state) => {
          if (state === 'failed') fail(new Error(client.stateDetail?.message ?? 'the runtime is gone'));
        });
        client.on(methods.runStatus, ({ run, status }) => {
          const { rollouts, version } = status;
          if (rollouts >= ENOUGH && version > 1) done({ run, rollouts, version });
        });
      }),
  );
}

/** What the run folder on the volume says. */
async function journalOf(run: string): Promise<object> {
  const events = await replay(run),
    recorded = events.of('trajectory.recorded');
  return {
    closed: events
      .of('run.closed')
      .map((e) => e.reason)
      .join(),
    trajectories: recorded.length,
    errors: recorded.filter((e) => e.head.outcome.kind === 'error').length,
  };
}
