import { randomBytes } from 'node:crypto';
import type { RunConfig } from '../../../config/index.js';
import { toRunError, type RunError } from '../../../domain/index.js';
import { deadline } from '../../../concurrency/deadline.js';
import { orUndefined } from '../../../concurrency/failures.js';
import { imageOf } from '../../imageExtra.js';
import type { Owner } from '../dockerHosts.js';
import type { DesktopSpec } from '../../types.js';
import { withinCapacity, NAMESPACE, RIGHTS } from './manifests.js';
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
  /** Desktops beside those of rollouts and the spares. */
  readonly more?: number;
  /** How long pods may take to find a node, in ms. */
  readonly roomMs?: number;
}

const APPLY = 'Apply what `dart-studio kubernetes manifests` prints.';
/**
 * Tries to connect to the API server, by its address in every pod, and to the address in its arguments, where there is one.
 * Prints a word for each: open, closed, or unknown. Both listen, or will in a moment: what refuses a connection is a policy.
 */
const CALL_OUT = `
import os, socket, sys, time
def reach(host, port):
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), 3).close()
            return 'open'
        except ConnectionRefusedError:
            time.sleep(0.1)
        except OSError:
            return 'closed'
    return 'closed'
api = os.environ.get('KUBERNETES_SERVICE_HOST')
print(reach(api, os.environ.get('KUBERNETES_SERVICE_PORT', '443')) if api else 'unknown')
print(reach(*sys.argv[1:3]) if len(sys.argv) > 2 else 'unknown')
`;
const NETWORK = 'network of desktops',
  NEIGHBOUR_PORT = 7000,
  /** Program of the trial pods: it listens, so that others can try to connect. */
  LISTEN = `import socket, time; s = socket.create_server(('', ${NEIGHBOUR_PORT})); time.sleep(600)`;
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
    const trial = new TrialPods(cluster, { k: c.kubernetes, spec: await provider.roomOf(spec), owner: provider.owner });
    try {
      found.push(...(await checkDesktop({ provider, cluster, spec, trial, k: c.kubernetes })));
      if (found.every((f) => f.level !== 'wrong' || f.name === NETWORK))
        found.push(
          await checkRoom(trial, withinCapacity(c, c.count + c.kubernetes.spares + (o.more ?? 0)), o.roomMs ?? ROOM_MS),
        );
    } finally {
      await trial.remove();
      trial.watch.close();
    }
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

interface TrialPodOptions {
  readonly k: KubernetesConfig;
  readonly spec: DesktopSpec;
  readonly owner: Owner;
}
/** Pods that are made to see what becomes of them: as large as desktops, and with no desktop in them. */
class TrialPods {
  readonly watch: PodWatch;
  readonly #cluster: Cluster;
  readonly #how: TrialPodOptions;
  readonly #round = randomBytes(4).toString('hex');
  readonly #labels: Readonly<Record<string, string>>;
  readonly #names: string[] = [];
  #made = 0;

  constructor(cluster: Cluster, how: TrialPodOptions) {
    this.#cluster = cluster;
    this.#how = how;
    this.#labels = { [APP]: 'dart-studio', [ROLE]: 'desktop', 'dart-studio/trial': this.#round };
    this.watch = new PodWatch(cluster.api, cluster.namespace, selectorOf(this.#labels));
  }

  async make(): Promise<string> {
    const { k, spec, owner } = this.#how,
      name = `dart-trial-${this.#round}-${this.#made++}`,
      body = podOf(k, spec, {
        name,
        image: this.#cluster.image,
        owner,
        command: ['/usr/bin/python3', '-S', '-E', '-c', LISTEN],
        labels: this.#labels,
      });
    this.#names.push(name);
    await this.watch.ready();
    const path = podsOf(this.#cluster.namespace);
    this.watch.add(name, await this.#cluster.api.call<Pod>('POST', path, { body, what: 'create pods' }));
    return name;
  }
  async remove(): Promise<void> {
    const remove = async (name: string): Promise<void> => {
      const gone = this.#cluster.api.call('DELETE', `${podsOf(this.#cluster.namespace)}/${name}`, {
        query: { gracePeriodSeconds: 0 },
        what: 'delete pods',
      });
      await orUndefined(gone, 'it was never made, or reap() removes it');
    };
    await inTurns(this.#names.splice(0), AT_ONCE, remove);
  }
}

async function checkDesktop({
  provider,
  cluster,
  spec,
  trial,
  k,
}: {
  readonly provider: KubernetesProvider;
  readonly cluster: Cluster;
  readonly spec: DesktopSpec;
  readonly trial: TrialPods;
  readonly k: KubernetesConfig;
}): Promise<ClusterFinding[]> {
  const began = performance.now();
  try {
    const desktop = await provider.create(spec),
      seconds = ((performance.now() - began) / 1000).toFixed(1);
    const image: ClusterFinding = { name: 'desktop', level: 'ok', detail: `${cluster.image}, ready in ${seconds} s` };
    const other = await neighbour(trial, k.startSeconds * 1000),
      network = await checkNetwork(cluster, provider.podOf(desktop)!, other);
    await trial.remove();
    await provider.destroy(desktop);
    return [image, network];
  } catch (e) {
    return [wrong('desktop', toRunError(e))];
  }
}

/** Address of another pod in the place of a desktop; undefined when none starts. */
async function neighbour(trial: TrialPods, ms: number): Promise<string | undefined> {
  const time = deadline(ms),
    runs = (p: Pod | undefined): string | undefined =>
      p?.status?.phase === 'Running' ? (p.status.podIP ?? '') : undefined,
    address = trial.make().then((name) => trial.watch.until(name, runs, time.signal)),
    found = await orUndefined(address, 'then nothing is known of it');
  time.end();
  return found === '' ? undefined : found;
}

async function checkNetwork(cluster: Cluster, name: string, other: string | undefined): Promise<ClusterFinding> {
  const to = other === undefined ? [] : [other, String(NEIGHBOUR_PORT)],
    command = ['/usr/bin/python3', '-S', '-E', '-c', CALL_OUT, ...to];
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
  return networkFinding(said.trim().split(/\s+/));
}

/** The finding about the network, from the words that CALL_OUT prints. */
function networkFinding([api, desktop]: readonly (string | undefined)[]): ClusterFinding {
  const answers = [
      { to: 'the API server', answer: api },
      { to: 'other desktops', answer: desktop },
    ],
    those = (which: 'open' | 'closed'): string[] => answers.filter((a) => a.answer === which).map((a) => a.to),
    [reached, closed] = [those('open'), those('closed')],
    name = NETWORK;
  if (reached.length > 0)
    return {
      name,
      level: 'wrong',
      detail: `a desktop reaches ${reached.join(' and ')}: no NetworkPolicy holds it back`,
      remedy: `${APPLY} If it is applied already, the cluster's network plug-in does not enforce policies (Calico, Cilium and others do).`,
    };
  if (closed.length === answers.length)
    return { name, level: 'ok', detail: `a desktop does not reach ${closed.join(' or ')}` };
  return {
    name,
    level: 'doubtful',
    detail: `it could not be seen whether a desktop reaches ${closed.length === 0 ? 'the network' : answers.find((a) => a.to !== closed[0])!.to}`,
    remedy: APPLY,
  };
}

/** Whether so many pods find a node. */
async function checkRoom(trial: TrialPods, count: number, ms: number): Promise<ClusterFinding> {
  const time = deadline(ms);
  const one = async (): Promise<string | undefined> => {
    let name: string | undefined;
    try {
      name = await trial.make();
      await trial.watch.until(name, (p) => (scheduled(p)?.status === 'True' ? true : undefined), time.signal);
      return undefined;
    } catch (e) {
      return time.signal.aborted
        ? (scheduled(name === undefined ? undefined : trial.watch.pod(name))?.message ?? 'it found no node in time')
        : toRunError(e).message;
    }
  };
  try {
    const answers = await inTurns(Array.from({ length: count }), AT_ONCE, one),
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
