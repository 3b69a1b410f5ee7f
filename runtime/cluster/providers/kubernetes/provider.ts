import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  DEFAULT_IMAGE,
  id,
  StudioError,
  toRunError,
  type DesktopId,
  type Size,
  cancelled,
} from '../../../domain/index.js';
import { deadline, withDeadline } from '../../../concurrency/deadline.js';
import { ignoreFailure, orUndefined } from '../../../concurrency/failures.js';
import { pauseOrStop } from '../../../concurrency/pause.js';
import { AgentClient } from '../../agentClient.js';
import { SandboxDesktop, type Channels } from '../../drivers/desktop.js';
import { Relay, screenOver } from '../../drivers/portable.js';
import { agentSettler } from '../../drivers/portableSettle.js';
import { X11Client } from '../../drivers/x11Client.js';
import { readRecipe } from '../../imageBuild/recipe.js';
import { roomFor } from '../../images.js';
import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../../types.js';
import { isOrphan, ownerLabel, parseOwner, self, type Owner } from '../dockerHosts.js';
import { imageTag } from '../dockerImage.js';
import { machineAccess, openAccess, type ClusterAccess, type MachineAccess } from './access.js';
import { Api } from './api.js';
import { endFault, lateFault, startFault } from './faults.js';
import { Link } from './link.js';
import { APP, CONTAINER, LINK, OWNER, ownerLabels, podOf, ROLE, selectorOf, type KubernetesConfig } from './podSpec.js';
import type { Pod, PodList } from './pods.js';
import { openPodSocket } from './podSocket.js';
import { PodWatch } from './podWatch.js';
import { Leftovers } from '../leftovers.js';
import { Spares } from '../spares.js';

export interface KubernetesProviderOptions {
  readonly config: KubernetesConfig;
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
  readonly machine?: MachineAccess;
  /** For tests: a cluster without a kubeconfig. */
  readonly access?: () => Promise<ClusterAccess>;
  readonly owner?: Owner;
  /** Time limits of the link into a desktop; for tests. */
  readonly link?: { readonly pingMs?: number; readonly answerMs?: number };
}

/** A cluster with the credentials and names that desktops are made with. */
export interface Cluster {
  readonly api: Api;
  readonly namespace: string;
  readonly pods: PodWatch;
  readonly image: string;
}
interface Made {
  readonly name: string;
  readonly link: Link;
  readonly relay: Relay;
  readonly off: () => void;
}

/**
 * The process that makes desktops. In a cluster a pod's name changes with every restart, so a Job names itself
 * (DART_STUDIO_OWNER), and its next pod removes what the last one left.
 */
export const thisOwner = (env: NodeJS.ProcessEnv = process.env): Owner =>
  env['DART_STUDIO_OWNER'] ? { ...self(), machine: env['DART_STUDIO_OWNER'] } : self();

/** Desktops as pods of a Kubernetes cluster (runtime/cluster/README.md#kubernetes). */
export class KubernetesProvider implements DesktopProvider {
  readonly name = 'kubernetes' as const;
  readonly startsAtOnce = Infinity;
  readonly #o: KubernetesProviderOptions;
  readonly #c: KubernetesConfig;
  readonly owner: Owner;
  readonly #made = new Map<SandboxDesktop, Made>();
  readonly #spares: Spares<SandboxDesktop>;
  readonly #ended = new AbortController();
  #used = 0;
  readonly #left = new Leftovers<string>({ list: () => this.#mine(), remove: (name) => this.#remove(name) });
  #opened: Promise<Cluster> | undefined;

  constructor(o: KubernetesProviderOptions) {
    this.#o = o;
    this.#c = o.config;
    this.#spares = new Spares({
      wanted: this.#c.spares,
      atOnce: Infinity,
      boot: (spec, signal) => this.#boot(spec, signal),
      destroy: (desktop) => this.destroy(desktop),
    });
    this.owner = o.owner ?? thisOwner();
    setMaxListeners(0, this.#ended.signal); // every connection into a desktop listens to it: not a leak
  }

  /** A desktop as it is made: as large as what its image has needs. */
  roomOf(wanted: DesktopSpec): Promise<DesktopSpec> {
    return roomFor(this.#o.image ?? DEFAULT_IMAGE, wanted);
  }

  async status(): Promise<ProviderStatus> {
    try {
      const { api, namespace } = await this.cluster();
      const version = await api.call<{ gitVersion?: string }>('GET', '/version', { what: 'say its version' });
      await api.call('GET', podsOf(namespace), { query: { limit: 1 }, what: 'list pods' });
      const room = this.#c.capacity === undefined ? '' : `, room for ${this.#c.capacity} desktops`;
      return {
        provider: 'kubernetes',
        ok: true,
        detail: `Kubernetes ${version.gitVersion ?? ''} (${api.access.name}), namespace ${namespace}${room}`,
        capacity: this.#c.capacity,
      };
    } catch (e) {
      const problem = toRunError(e);
      return { provider: 'kubernetes', ok: false, detail: problem.message, problem };
    }
  }

  async create(wanted: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    const spec = await this.roomOf(wanted);
    const key = JSON.stringify({ ...spec, labels: undefined });
    const desktop = this.#spares.take(key) ?? (await this.#boot(spec, signal));
    this.#spares.refill(spec, key);
    return desktop;
  }

  async reset(d: Desktop): Promise<Desktop> {
    const desktop = d as SandboxDesktop;
    if (!this.#made.has(desktop))
      throw new StudioError('desktop.lost', `Desktop ${d.id} does not belong to this provider.`, 'Create a new one.');
    await desktop.reset();
    return desktop;
  }

  async destroy(d: Desktop): Promise<void> {
    const desktop = d as SandboxDesktop,
      m = this.#made.get(desktop);
    if (!m) return;
    this.#made.delete(desktop);
    m.off();
    desktop.dispose();
    m.relay.close();
    await this.#left.end(m.name, m.name).finally(() => this.#used--);
  }
  /** The pods of this process. */
  async #mine(): Promise<{ item: string; names: string[] }[]> {
    const mine = ownerLabel(this.owner);
    return (await this.#pods()).flatMap(({ metadata: m }) =>
      m?.name?.startsWith(NAME) && m.annotations?.[OWNER] === mine ? [{ item: m.name, names: [m.name] }] : [],
    );
  }
  async #pods(): Promise<readonly Pod[]> {
    const { api, namespace } = await this.cluster();
    const mine = { [APP]: 'dart-studio', [ROLE]: 'desktop', [OWNER]: ownerLabels(this.owner)[OWNER]! };
    const all = await api.call<PodList>('GET', podsOf(namespace), {
      query: { labelSelector: selectorOf(mine) },
      what: 'list pods',
    });
    return all.items ?? [];
  }

  async reap(): Promise<number> {
    const orphans = (await this.#pods()).filter((p) =>
      isOrphan(parseOwner(p.metadata?.annotations?.[OWNER]), this.owner),
    );
    await Promise.all(orphans.map((p) => this.#remove(p.metadata?.name ?? '')));
    return orphans.length;
  }

  /** Resolves when no spare is being started. */
  spareReady(): Promise<void> {
    return this.#spares.settled();
  }

  async dispose(): Promise<void> {
    this.#ended.abort();
    await this.#spares.end();
    const results = await Promise.allSettled([...this.#made.keys()].map((d) => this.destroy(d)));
    await orUndefined(this.#left.sweep(), 'the API server is away; the next runtime reaps what is left');
    if (this.#opened) (await orUndefined(this.#opened, 'without a cluster there is nothing to close'))?.pods.close();
    const failed = results.find((r): r is PromiseRejectedResult => r.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** The name of a desktop's pod. */
  podOf(d: Desktop): string | undefined {
    return this.#made.get(d as SandboxDesktop)?.name;
  }

  /** Opened by the first who needs it, and again after a failure. */
  cluster(): Promise<Cluster> {
    this.#opened ??= this.#open();
    this.#opened.catch(() => {
      this.#opened = undefined;
    });
    return this.#opened;
  }

  async #open(): Promise<Cluster> {
    const access = await (this.#o.access?.() ?? openAccess(this.#o.machine ?? machineAccess()));
    const api = new Api(access),
      namespace = this.#c.namespace ?? access.namespace ?? 'default',
      image = this.#c.image ?? imageTag(await readRecipe(this.#o.image ?? DEFAULT_IMAGE));
    return { api, namespace, image, pods: new PodWatch(api, namespace, selectorOf(ownerLabels(this.owner))) };
  }

  async #takePlace(): Promise<void> {
    const { capacity } = this.#c;
    if (capacity !== undefined && this.#used >= capacity) await this.#spares.makeRoom();
    if (capacity !== undefined && this.#used >= capacity)
      throw new StudioError(
        'desktop.unavailable',
        `All places for desktops are in use (${this.#used} of ${capacity}).`,
        'Ask for fewer desktops, or raise desktops.kubernetes.capacity.',
      );
    this.#used++;
  }

  async #boot(spec: DesktopSpec, signal?: AbortSignal): Promise<SandboxDesktop> {
    await this.#takePlace();
    const stop = AbortSignal.any([this.#ended.signal, ...(signal ? [signal] : [])]),
      name = `${NAME}${randomBytes(5).toString('hex')}`;
    this.#left.begin(name);
    let created = false,
      link: Link | undefined;
    try {
      const cluster = await this.cluster();
      await cluster.pods.ready();
      const body = podOf(this.#c, spec, { name, image: cluster.image, owner: this.owner });
      created = true; // a call that is cut may have made it all the same
      cluster.pods.add(
        name,
        await cluster.api.call<Pod>('POST', podsOf(cluster.namespace), { body, signal: stop, what: 'create pods' }),
      );
      await this.#started(cluster, name, stop);
      link = await this.#connect(cluster, name, stop);
      ignoreFailure(this.#left.sweep(), 'it is tried again with the next desktop');
      return await this.#desktop(cluster, name, link, spec);
    } catch (e) {
      link?.pipes.close();
      if (created) await orUndefined(this.#left.end(name, name), 'what stopped the boot is reported');
      else this.#left.abandon(name, false);
      this.#used--;
      if (stop.aborted) throw cancelled('Starting a desktop');
      throw e;
    }
  }

  /** Waits until the container runs. Rejects with what keeps it from running. */
  async #started(cluster: Cluster, name: string, stop: AbortSignal): Promise<void> {
    const time = deadline(this.#c.startSeconds * 1000, stop);
    try {
      await cluster.pods.until(
        name,
        (pod) => {
          const fault = startFault(pod, cluster.image);
          if (fault) throw fault;
          return pod?.status?.containerStatuses?.[0]?.state?.running ? true : undefined;
        },
        time.signal,
      );
    } catch (e) {
      if (!time.signal.aborted || stop.aborted) throw e;
      const events = await orUndefined(eventsOf(cluster, name), 'they only add to what is known');
      throw lateFault(cluster.pods.pod(name), this.#c.startSeconds, events);
    } finally {
      time.end();
    }
  }

  async #connect(cluster: Cluster, name: string, stop: AbortSignal): Promise<Link> {
    const pod = { namespace: cluster.namespace, name, container: CONTAINER };
    const link = new Link({
      open: (on, signal) => cluster.api.exec(pod, [...LINK, 'attach'], on, signal),
      patienceMs: this.#c.patienceSeconds * 1000,
      ...this.#o.link,
      onLost: (e) => this.#lost.get(link)?.(e),
    });
    await withDeadline(this.#c.startSeconds * 1000, [stop], (limit) => this.#attach(cluster, name, link, limit));
    return link;
  }
  async #attach(cluster: Cluster, name: string, link: Link, limit: AbortSignal): Promise<void> {
    for (let n = 1; ; n++)
      try {
        await link.open(limit);
        return;
      } catch (e) {
        if (e instanceof StudioError || limit.aborted || n === 5) throw e instanceof StudioError ? e : unreachable(e);
        const fault = endFault(cluster.pods.pod(name));
        if (fault) throw fault;
        await pauseOrStop(100 * 2 ** n, limit); // the node has just started it
      }
  }
  readonly #lost = new WeakMap<Link, (e: StudioError) => void>();

  async #desktop(cluster: Cluster, name: string, link: Link, spec: DesktopSpec): Promise<SandboxDesktop> {
    const relay = new Relay(link.pipes, { deflate: !isNear(cluster.api.access.server), screen: spec.screen }),
      stalledMs = (): number => link.stalledMs();
    let agent: AgentClient | undefined, desktop: SandboxDesktop;
    try {
      agent = new AgentClient(await relay.connect('/run/dart/agent.sock'), stalledMs);
      desktop = new SandboxDesktop({
        id: id<DesktopId>(`k8s-${name.slice(-8)}`),
        provider: 'kubernetes',
        spec,
        agent,
        channels: {
          ...channelsOver(relay, agent, spec.screen, stalledMs),
          openSocket: (path) =>
            openPodSocket(cluster.api, { namespace: cluster.namespace, name }, path, this.#ended.signal),
        },
        stalledMs,
      });
    } catch (e) {
      agent?.close();
      throw endFault(cluster.pods.pod(name)) ?? e;
    }
    this.#lost.set(link, (e) => desktop.lose(e));
    const off = cluster.pods.onChange(name, (pod) => {
      const fault = endFault(pod);
      if (!fault) return;
      desktop.lose(fault);
      link.lose(fault);
    });
    this.#made.set(desktop, { name, link, relay, off });
    try {
      await desktop.reset();
      if (this.#ended.signal.aborted) throw this.#ended.signal.reason as Error;
      return desktop;
    } catch (e) {
      this.#made.delete(desktop);
      off();
      desktop.dispose();
      throw endFault(cluster.pods.pod(name)) ?? e;
    }
  }

  /** Deletes a pod at once; one that is gone is fine. */
  async #remove(name: string): Promise<void> {
    const { api, namespace } = await this.cluster();
    try {
      await api.call('DELETE', `${podsOf(namespace)}/${name}`, {
        query: { gracePeriodSeconds: 0 },
        what: 'delete pods',
      });
    } catch (e) {
      if (!(e instanceof StudioError && e.error.details?.['status'] === 404)) throw e;
    }
  }
}

const NAME = 'dart-desktop-';

export const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;

const channelsOver = (relay: Relay, agent: AgentClient, screen: Size, stalledMs: () => number): Channels => ({
  openX: async () => X11Client.over(await relay.connect('/tmp/.X11-unix/X0'), screen, undefined, stalledMs),
  openScreen: () => screenOver(relay),
  openSettler: (x) => agentSettler(x, agent),
});

/** Whether the cluster is on this machine: deflating screens would only cost time. */
const isNear = (server: URL): boolean => /^(localhost|127\.|\[::1\])/.test(server.hostname);

/** The cluster's warnings about a pod, oldest first. */
async function eventsOf(cluster: Cluster, name: string): Promise<string[]> {
  const list = await cluster.api.call<{ items?: { type?: string; reason?: string; message?: string }[] }>(
    'GET',
    `/api/v1/namespaces/${cluster.namespace}/events`,
    { query: { fieldSelector: `involvedObject.name=${name},type=Warning` }, what: 'list events' },
  );
  return (list.items ?? []).map((e) => `${e.reason ?? 'Warning'}: ${(e.message ?? '').slice(0, 300)}`);
}

const unreachable = (e: unknown): StudioError =>
  new StudioError(
    'desktop.start',
    `No channel into a started desktop could be opened: ${e instanceof Error ? e.message : String(e)}`,
    'Check that the API server can reach its nodes (`kubectl exec` into any pod), and that the image is of this version.',
    { cause: e },
  );

export const createKubernetesProvider = (o: KubernetesProviderOptions): KubernetesProvider => new KubernetesProvider(o);
