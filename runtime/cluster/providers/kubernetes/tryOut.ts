import { randomBytes } from 'node:crypto';
import type { RunConfig } from '../../../config/index.js';
import { deadline, orUndefined, toRunError, type RunError } from '../../../domain/index.js';
import { imageOf } from '../../imageExtra.js';
import type { DesktopSpec } from '../../types.js';
import { NAMESPACE, RIGHTS } from './manifests.js';
import { APP, CONTAINER, podOf, ROLE, selectorOf, type KubernetesConfig } from './podSpec.js';
import type { Pod } from './pods.js';
import { PodWatch } from './podWatch.js';
import { createKubernetesProvider, podsOf, type Cluster, type KubernetesProvider } from './provider.js';

/** One finding about a cluster. A doubtful one keeps no run from starting. */
export interface ClusterFinding {
  readonly name: string;
  readonly level: 'ok' | 'wrong' | 'doubtful';
  readonly detail: string;
  readonly remedy?: string;
}
export interface TryOutOptions {
  readonly provider?: KubernetesProvider;
  /** How long pods may take to find a node, in ms. */
  readonly roomMs?: number;
}

const APPLY = 'Apply what `dart-studio kubernetes manifests` prints.';
/** Asks the API server by its address in every pod. An answer of any kind says that packets leave the pod. */
const CALL_OUT = `
import os, socket
host, port = os.environ.get('KUBERNETES_SERVICE_HOST'), os.environ.get('KUBERNETES_SERVICE_PORT', '443')
if not host:
    print('unknown')
else:
    try:
        socket.create_connection((host, int(port)), 3).close()
        print('open')
    except ConnectionRefusedError:
        print('open')
    except OSError:
        print('closed')
`;
const CALL_OUT_MS = 20_000,
  ROOM_MS = 30_000,
  AT_ONCE = 16;

/**
 * Tries on a cluster what desktops need: rights, one desktop from its image, that no network can be reached from it,
 * and room for all of them. What it starts is removed again.
 */
export async function tryCluster(
  c: RunConfig['desktops'],
  spec: DesktopSpec,
  o: TryOutOptions = {},
): Promise<ClusterFinding[]> {
  const provider =
    o.provider ?? createKubernetesProvider({ config: { ...c.kubernetes, spares: 0 }, image: imageOf(c) });
  const found: ClusterFinding[] = [];
  try {
    const cluster = await provider.cluster(),
      s = await provider.status();
    if (c.kubernetes.namespace === undefined && cluster.api.access.namespace === undefined)
      found.push(unnamed(cluster.namespace));
    if (!s.ok) return [...found, wrong('Kubernetes', s.problem!)];
    found.push({ name: 'Kubernetes', level: 'ok', detail: s.detail });
    const rights = await checkRights(cluster);
    found.push(rights);
    if (rights.level === 'wrong') return found;
    found.push(...(await checkDesktop(provider, cluster, spec)));
    if (found.every((f) => f.level !== 'wrong'))
      found.push(
        await checkRoom(cluster, c.kubernetes, await provider.roomOf(spec), provider, c.count, o.roomMs ?? ROOM_MS),
      );
  } catch (e) {
    found.push(wrong('Kubernetes', toRunError(e)));
  } finally {
    await orUndefined(provider.dispose(), 'reap() removes what is left');
  }
  return found;
}

const wrong = (name: string, e: RunError): ClusterFinding => ({
  name,
  level: 'wrong',
  detail: e.message,
  remedy: e.remedy,
});

/** `manifests` prepares a namespace of its own: desktops elsewhere have neither its policy nor its quota. */
const unnamed = (used: string): ClusterFinding => ({
  name: 'namespace',
  level: 'doubtful',
  detail: `desktops go to ${used}: neither the run file nor the context names a namespace`,
  remedy: `Set desktops.kubernetes.namespace to ${NAMESPACE}, which \`dart-studio kubernetes manifests\` prepares, or to another of yours.`,
});

async function checkRights(cluster: Cluster): Promise<ClusterFinding> {
  const asked = RIGHTS.flatMap(({ resource, verbs }) => verbs.map((verb) => ({ verb, resource })));
  const answers = await Promise.all(
    asked.map(async ({ verb, resource }) => {
      const [name, subresource] = resource.split('/');
      const body = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace: cluster.namespace, verb, resource: name, subresource } },
      };
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const r = await cluster.api.call<{ status?: { allowed?: boolean } }>('POST', path, {
        body,
        what: 'say which rights there are',
      });
      return r.status?.allowed === true ? [] : [`${verb} ${resource}`];
    }),
  );
  const missing = answers.flat(),
    name = `rights in ${cluster.namespace}`;
  if (missing.length === 0)
    return { name, level: 'ok', detail: asked.map((a) => `${a.verb} ${a.resource}`).join(', ') };
  return { name, level: 'wrong', detail: `missing: ${missing.join(', ')}`, remedy: APPLY };
}

async function checkDesktop(
  provider: KubernetesProvider,
  cluster: Cluster,
  spec: DesktopSpec,
): Promise<ClusterFinding[]> {
  const began = performance.now();
  try {
    const desktop = await provider.create(spec),
      seconds = ((performance.now() - began) / 1000).toFixed(1);
    const image: ClusterFinding = { name: 'desktop', level: 'ok', detail: `${cluster.image}, ready in ${seconds} s` };
    const network = await checkNetwork(cluster, provider.podOf(desktop)!);
    await provider.destroy(desktop);
    return [image, network];
  } catch (e) {
    return [wrong('desktop', toRunError(e))];
  }
}

async function checkNetwork(cluster: Cluster, name: string): Promise<ClusterFinding> {
  const command = ['/usr/bin/python3', '-S', '-E', '-c', CALL_OUT];
  let said = '';
  const { signal, end } = deadline(CALL_OUT_MS);
  await new Promise<void>((resolve) => {
    const done = (): void => resolve();
    signal.addEventListener('abort', done, { once: true });
    cluster.api
      .exec(
        { namespace: cluster.namespace, name, container: CONTAINER },
        command,
        { data: (b) => (said += b.toString('utf8')), ended: done },
        signal,
      )
      .then(undefined, done);
  });
  end();
  const answer = said.trim();
  if (answer === 'closed')
    return { name: 'network of desktops', level: 'ok', detail: 'the API server cannot be reached from a desktop' };
  if (answer === 'open')
    return {
      name: 'network of desktops',
      level: 'wrong',
      detail: 'a desktop reaches the API server: no NetworkPolicy holds it back',
      remedy: `${APPLY} If it is applied already, the cluster's network plug-in does not enforce policies (Calico, Cilium and others do).`,
    };
  return {
    name: 'network of desktops',
    level: 'doubtful',
    detail: 'it could not be seen whether a desktop reaches the network',
    remedy: APPLY,
  };
}

/** Whether so many pods find a node: they are made, and do nothing. */
async function checkRoom(
  cluster: Cluster,
  k: KubernetesConfig,
  spec: DesktopSpec,
  provider: KubernetesProvider,
  count: number,
  ms: number,
): Promise<ClusterFinding> {
  const round = randomBytes(4).toString('hex'),
    labels = { [APP]: 'dart-studio', [ROLE]: 'desktop', 'dart-studio/trial': round };
  const pods = new PodWatch(cluster.api, cluster.namespace, selectorOf(labels)),
    names = Array.from({ length: count }, (_, i) => `dart-trial-${round}-${i}`),
    time = deadline(ms);
  const one = async (name: string): Promise<string | undefined> => {
    const pod = podOf(k, spec, {
      name,
      image: cluster.image,
      owner: provider.owner,
      command: ['/usr/bin/python3', '-S', '-E', '-c', 'import time; time.sleep(600)'],
      labels,
    });
    try {
      pods.add(
        name,
        await cluster.api.call<Pod>('POST', podsOf(cluster.namespace), { body: pod, what: 'create pods' }),
      );
      await pods.until(name, (p) => (scheduled(p)?.status === 'True' ? true : undefined), time.signal);
      return undefined;
    } catch (e) {
      return time.signal.aborted
        ? (scheduled(pods.pod(name))?.message ?? 'it found no node in time')
        : toRunError(e).message;
    }
  };
  try {
    await pods.ready();
    const answers = await inTurns(names, AT_ONCE, one),
      room = answers.filter((a) => a === undefined).length,
      why = answers.find((a) => a !== undefined);
    if (why === undefined) return { name: 'room for desktops', level: 'ok', detail: `all ${count} found a node` };
    return {
      name: 'room for desktops',
      level: 'wrong',
      detail: `${room} of ${count} found a place: ${why}`,
      remedy: 'Lower desktops.count or desktops.kubernetes.requests, add nodes, or raise the quota.',
    };
  } finally {
    time.end();
    const remove = async (name: string): Promise<void> => {
      const gone = cluster.api.call('DELETE', `${podsOf(cluster.namespace)}/${name}`, {
        query: { gracePeriodSeconds: 0 },
        what: 'delete pods',
      });
      await orUndefined(gone, 'it was never made, or reap() removes it');
    };
    await inTurns(names, AT_ONCE, remove);
    pods.close();
  }
}

const scheduled = (p: Pod | undefined): { status?: string; message?: string } | undefined =>
  p?.status?.conditions?.find((c) => c.type === 'PodScheduled');

/** `work` on all of them, at most `most` at a time; answers in order. */
async function inTurns<T, R>(all: readonly T[], most: number, work: (x: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let i = next++; i < all.length; i = next++) answers[i] = await work(all[i]!);
  };
  await Promise.all(Array.from({ length: Math.min(most, all.length) }, lane));
  return answers;
}
