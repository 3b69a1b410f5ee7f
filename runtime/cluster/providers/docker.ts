import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import {
  DEFAULT_IMAGE,
  id,
  StudioError,
  toRunError,
  type DesktopId,
  type RunError,
  type Size,
  cancelled,
} from '../../domain/index.js';
import { orUndefined, ignoreFailure } from '../../concurrency/failures.js';
import { deadline, withDeadline, type Deadline } from '../../concurrency/deadline.js';
import { AgentClient } from '../agentClient.js';
import { engineClient } from './engineClient.js';
import { SandboxDesktop, type Channels } from '../drivers/desktop.js';
import { Relay, screenOver } from '../drivers/portable.js';
import { agentSettler } from '../drivers/portableSettle.js';
import { X11Client } from '../drivers/x11Client.js';
import type { OnProgress } from '../imageBuild/recipe.js';
import { notBuilt, partsOf } from '../imageExtra.js';
import { roomFor } from '../images.js';
import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../types.js';
import { containerOptions, openBridge, openRelay } from './dockerContainer.js';
import { FramebufferThreads, type FramebufferThreadsOptions } from '../drivers/framebufferThreads.js';
import { canReach, fastChannels, openAgent } from './dockerFast.js';
import {
  defaultCapacity,
  isRemote,
  ownerLabel,
  parseHost,
  place,
  self,
  type DockerHostOptions,
} from './dockerHosts.js';
import { makeContainer, ownIn, removeContainer, removeOrphans } from './engineContainers.js';
import { engineError, ensureImage, imageStatus, statusOf } from './dockerImage.js';
import { containerUsage } from './usage.js';
import { Leftovers } from './leftovers.js';
import { Spares } from './spares.js';

export type DesktopPath = 'fast' | 'portable';
export interface DockerProviderOptions {
  /** Name of the desktop image; default `desk`. */
  readonly image?: string;
  /** Threads that make files of screens; without them, whoever needs files gets pixels. */
  readonly screens?: FramebufferThreadsOptions;
  /** Engines and how many desktops each may hold; default: the environment's engine. */
  readonly hosts?: readonly DockerHostOptions[];
  /** Desktops kept started beyond those in use, so that a broken one is replaced at once. Default 1. */
  readonly spares?: number;
  /** `auto` (default) takes the fast path where this process can open the container's files and processes. */
  readonly path?: 'auto' | DesktopPath;
  /** Label of the run, for people who look at `docker ps`. */
  readonly run?: string;
  readonly onProgress?: OnProgress;
}

const BOOT_MS = 30_000,
  STATUS_MS = 4_000;

interface Host {
  readonly name: string;
  readonly docker: Docker;
  readonly remote: boolean;
  readonly wanted: number | undefined;
  capacity: number | undefined;
  used: number;
  down: boolean;
  readonly left: Leftovers<Docker.Container>;
  path: DesktopPath | undefined;
  image: Promise<string> | undefined;
}

interface Made {
  readonly host: Host;
  readonly container: Docker.Container;
  readonly name: string;
  readonly path: DesktopPath;
  readonly relay: Relay | undefined;
}

const pathOf = new WeakMap<Desktop, DesktopPath>();
/** The path by which a Docker desktop is driven. */
export const desktopPath = (d: Desktop): DesktopPath | undefined => pathOf.get(d);

export class DockerProvider implements DesktopProvider {
  readonly name = 'docker' as const;
  readonly #hosts: Host[];
  readonly #o: DockerProviderOptions;
  readonly #made = new Map<SandboxDesktop, Made>();
  readonly #spares: Spares<SandboxDesktop>;
  readonly #ended = new AbortController();
  readonly #me = self();
  readonly #threads: FramebufferThreads | undefined;

  constructor(o: DockerProviderOptions = {}) {
    this.#o = o;
    this.#threads = o.screens && new FramebufferThreads(o.screens);
    this.#spares = new Spares({
      wanted: o.spares ?? 1,
      atOnce: 1,
      boot: (spec, signal) => this.#boot(spec, signal),
      destroy: (desktop) => this.destroy(desktop),
    });
    const hosts = o.hosts && o.hosts.length > 0 ? o.hosts : [{}];
    this.#hosts = hosts.map((h) => {
      const address = h.host === undefined ? undefined : parseHost(h.host);
      const docker = engineClient(address),
        name = h.host ?? process.env['DOCKER_HOST'] ?? 'the local engine';
      return {
        name,
        docker,
        left: new Leftovers({ list: () => ownIn({ name, docker }, this.#me), remove: removeContainer }),
        remote: isRemote(address ?? (process.env['DOCKER_HOST'] ? parseHost(process.env['DOCKER_HOST']) : undefined)),
        wanted: h.capacity,
        capacity: h.capacity,
        used: 0,
        down: false,
        path: o.path === 'auto' ? undefined : o.path,
        image: undefined,
      };
    });
  }

  async status(): Promise<ProviderStatus> {
    const found = await Promise.all(this.#hosts.map((h) => this.#look(h)));
    const problem = found.find((f) => f.problem)?.problem;
    const ok = found.some((f) => !f.problem);
    return {
      provider: 'docker',
      ok,
      detail: found.map((f) => f.detail).join('; '),
      capacity: ok ? this.#hosts.reduce((n, h) => n + (h.down ? 0 : (h.capacity ?? 0)), 0) : undefined,
      problem,
    };
  }

  async #look(h: Host): Promise<{ detail: string; problem?: RunError }> {
    try {
      // info() takes options like the rest, although its types omit that.
      const i = await withDeadline(STATUS_MS, [], (abortSignal) =>
        (
          h.docker.info as (
            o: object,
          ) => Promise<{ ServerVersion: string; MemTotal: number; NCPU: number; OSType: string }>
        ).call(h.docker, { abortSignal }),
      );
      if (i.OSType !== 'linux')
        throw new StudioError(
          'desktop.unavailable',
          `The engine at ${h.name} runs ${i.OSType} containers.`,
          'Switch it to Linux containers.',
        );
      await this.#requireLayer(h);
      h.capacity = h.wanted ?? defaultCapacity({ memoryBytes: i.MemTotal, cores: i.NCPU });
      h.down = false;
      return { detail: `Docker ${i.ServerVersion} at ${h.name}, room for ${h.capacity} desktops` };
    } catch (e) {
      h.down = true;
      const error = e instanceof StudioError ? e : engineError(e, h.name);
      return { detail: error.message, problem: toRunError(error) };
    }
  }

  /** A layer of the user's own is not built here, so without it nothing can start. */
  async #requireLayer(h: Host): Promise<void> {
    const parts = partsOf(this.#o.image ?? DEFAULT_IMAGE);
    if (parts.extra !== undefined && !(await imageStatus(h.docker, this.#o.image)).image) throw notBuilt(parts);
  }

  async create(wanted: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    const spec = await roomFor(this.#o.image ?? DEFAULT_IMAGE, wanted);
    const key = specKey(spec);
    const desktop = this.#spares.take(key) ?? (await this.#boot(spec, signal));
    this.#spares.refill(spec, key);
    return desktop;
  }

  async reset(d: Desktop): Promise<Desktop> {
    const desktop = this.#ours(d);
    await desktop.reset();
    return desktop;
  }

  async destroy(d: Desktop): Promise<void> {
    const desktop = d as SandboxDesktop;
    const m = this.#made.get(desktop);
    if (!m) return;
    this.#made.delete(desktop);
    desktop.dispose();
    m.relay?.close();
    await m.host.left.end(m.name, m.container).finally(() => m.host.used--);
  }

  async reap(): Promise<number> {
    const counts = await Promise.all(this.#hosts.map((h) => removeOrphans(h, this.#me)));
    return counts.reduce((a, b) => a + b, 0);
  }

  /** Resolves when no spare is being started. */
  spareReady(): Promise<void> {
    return this.#spares.settled();
  }

  async dispose(): Promise<void> {
    this.#ended.abort();
    await this.#spares.end();
    const results = await Promise.allSettled([...this.#made.keys()].map((d) => this.destroy(d)));
    this.#threads?.close();
    await Promise.all(
      this.#hosts.map((h) => orUndefined(h.left.sweep(), 'the engine is away; the next runtime reaps what is left')),
    );
    const failed = results.find((r): r is PromiseRejectedResult => r.status === 'rejected');
    if (failed) throw failed.reason;
  }

  #ours(d: Desktop): SandboxDesktop {
    if (!this.#made.has(d as SandboxDesktop))
      throw new StudioError('desktop.lost', `Desktop ${d.id} does not belong to this provider.`, 'Create a new one.');
    return d as SandboxDesktop;
  }

  /** Takes a place at an engine; whoever has it gives it back. */
  async #takePlace(): Promise<Host> {
    // An engine that was down may be back, and one that was never queried has no capacity yet.
    await Promise.all(this.#hosts.filter((h) => h.capacity === undefined || h.down).map((h) => this.#look(h)));
    let at = place(this.#hosts.map((h) => ({ capacity: h.capacity ?? 0, used: h.used, down: h.down })));
    if (at === undefined && (await this.#spares.makeRoom()))
      at = place(this.#hosts.map((h) => ({ capacity: h.capacity ?? 0, used: h.used, down: h.down })));
    if (at !== undefined) {
      const host = this.#hosts[at]!;
      host.used++;
      return host;
    }
    if (this.#hosts.every((h) => h.down))
      throw new StudioError(
        'desktop.unavailable',
        `No Docker engine answers (${this.#hosts.map((h) => h.name).join(', ')}).`,
        'Start Docker (`systemctl start docker`), check DOCKER_HOST, or choose `provider: local`.',
      );
    throw new StudioError(
      'desktop.unavailable',
      `All places for desktops are in use (${this.#hosts.map((h) => `${h.name}: ${h.used} of ${h.capacity ?? 0}`).join(', ')}).`,
      'Ask for fewer desktops, or raise the capacity of a host in the run file.',
    );
  }

  async #boot(spec: DesktopSpec, signal?: AbortSignal): Promise<SandboxDesktop> {
    const host = await this.#takePlace();
    let container: Docker.Container | undefined, relay: Relay | undefined, agent: AgentClient | undefined;
    let time: Deadline | undefined, reserved: string | undefined;
    try {
      const either = AbortSignal.any([this.#ended.signal, ...(signal ? [signal] : [])]);
      const image = await this.#imageIn(host, either);
      time = deadline(BOOT_MS, either);
      const limit = time.signal;
      const name = `docker-${randomBytes(4).toString('hex')}`;
      const owned = { name: `dart-studio-${name}`, owner: ownerLabel(this.#me), run: this.#o.run };
      reserved = owned.name;
      host.left.begin(reserved);
      container = await makeContainer(host.docker, containerOptions(image, spec, owned), limit);
      await container.start({ abortSignal: limit } as object);
      ignoreFailure(host.left.sweep(), 'it is tried again with the next desktop');
      const path = (host.path ??= await this.#choosePath(container));
      let channels: Channels, pid: number | undefined;
      if (path === 'fast') {
        pid = await reachablePid(container);
        agent = await openAgent(pid, limit);
        channels = fastChannels(pid, spec.screen, this.#threads);
      } else {
        relay = new Relay(await openRelay(container, limit), { deflate: host.remote, screen: spec.screen });
        agent = new AgentClient(await relay.connect('/run/dart/agent.sock'));
        const made = container;
        channels = {
          ...relayChannels(relay, agent, spec.screen),
          openSocket: (path) => openBridge(made, path, this.#ended.signal),
        };
      }
      const desktop = new SandboxDesktop({
        id: id<DesktopId>(name),
        provider: 'docker',
        spec,
        agent,
        channels,
        usage: containerUsage(container, pid),
      });
      this.#made.set(desktop, { host, container, name: reserved, path, relay });
      pathOf.set(desktop, path);
      try {
        await desktop.reset();
        if (either.aborted) throw either.reason;
      } catch (e) {
        this.#made.delete(desktop);
        desktop.dispose();
        throw e;
      }
      return desktop;
    } catch (e) {
      agent?.close();
      relay?.close();
      if (container && reserved)
        await orUndefined(host.left.end(reserved, container), 'what stopped the boot is reported');
      else if (reserved) host.left.abandon(reserved, true);
      host.used--;
      if (signal?.aborted || this.#ended.signal.aborted) throw cancelled('Starting a desktop');
      // Requests that are cut off say only that they were.
      const error = bootError(time?.signal.aborted && !(e instanceof StudioError) ? time.signal.reason : e, host.name);
      if (!(e instanceof StudioError) && error.kind === 'desktop.unavailable') host.down = true;
      throw error;
    } finally {
      time?.end();
    }
  }

  /** The tag of the desktop image in this engine, built when it is missing. A failed build is tried again next time. */
  #imageIn(host: Host, signal: AbortSignal): Promise<string> {
    host.image ??= ensureImage(host.docker, this.#o.onProgress, signal, { image: this.#o.image });
    host.image.catch(() => {
      host.image = undefined;
    });
    return host.image;
  }

  async #choosePath(container: Docker.Container): Promise<DesktopPath> {
    return canReach((await container.inspect()).State.Pid, container.id) ? 'fast' : 'portable';
  }
}

/** PID 1 of a container whose files and processes this process can open. */
async function reachablePid(container: Docker.Container): Promise<number> {
  const pid = (await container.inspect()).State.Pid;
  if (!canReach(pid, container.id))
    throw new StudioError(
      'desktop.start',
      `The container's files cannot be reached from this process.`,
      'Run as root, or leave the path to `auto`.',
    );
  return pid;
}

const relayChannels = (relay: Relay, agent: AgentClient, screen: Size): Channels => ({
  openX: async () => X11Client.over(await relay.connect('/tmp/.X11-unix/X0'), screen),
  openScreen: () => screenOver(relay),
  openSettler: (x) => agentSettler(x, agent),
});

function bootError(e: unknown, host: string): StudioError {
  if (e instanceof StudioError) return e;
  if (statusOf(e) === undefined && (e as Error).name === 'TimeoutError')
    return new StudioError(
      'desktop.start',
      `A desktop on ${host} did not start within ${BOOT_MS / 1000} s.`,
      'Check the load of that machine, or use fewer desktops.',
      { cause: e },
    );
  return engineError(e, host);
}

const specKey = (s: DesktopSpec): string =>
  JSON.stringify([s.screen.width, s.screen.height, s.a11y ?? false, s.memoryMb, s.pids, s.cpus ?? 0, s.network]);

export const createDockerProvider = (o?: DockerProviderOptions): DockerProvider => new DockerProvider(o);
