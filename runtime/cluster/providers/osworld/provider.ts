import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { apiKeyOf } from '../../../config/apiKey.js';
import { id, StudioError, toRunError, type DesktopId, type RunError, cancelled } from '../../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../../concurrency/failures.js';
import { withDeadline } from '../../../concurrency/deadline.js';
import { lost } from '../../agentClient.js';
import type { Desktop, DesktopProvider, DesktopSpec, ProviderStatus } from '../../types.js';
import { isRemote, ownerLabel, parseHost, self } from '../dockerHosts.js';
import { ownIn, removeContainer, removeOrphans, type NamedEngine } from '../engineContainers.js';
import { engineClient } from '../engineClient.js';
import { engineError } from '../dockerImage.js';
import { Leftovers } from '../leftovers.js';
import { Spares } from '../spares.js';
import { machineDisk, type MachineDisk, type OsworldOptions } from './access.js';
import { RemoteDesktop, isWhole, sizeOf } from './remoteDesktop.js';
import { fieldsOf, MOST_SCREEN, OsworldServer } from './server.js';
import { bootMachine, checkDisk, machineContainer } from './virtualMachine.js';

/** A question whether it is there; a reset, ms. */
const ASK_MS = 10_000,
  RESET_MS = 120_000;

/** Addresses of servers whose desktop somebody in this process has, whichever run it is for. */
const inUse = new Set<string>();

/** A server that somebody else runs. */
interface Place {
  readonly server: OsworldServer;
  /** When it failed last, so that one that is away keeps no other from being asked. */
  failedAt: number;
  /** Whether the server can bring its desktop back to the first screen; undefined until it was asked. */
  resets: boolean | undefined;
  /** Whether the server says when its desktop is at rest. */
  settles: boolean;
}

/**
 * Desktops behind OSWorld's port 5000: servers that run already (`desktop serve --osworld`, OSWorld's own), or OSWorld's
 * virtual machine in containers, each made anew for every rollout (runtime/cluster/README.md#osworld).
 */
export class OsworldProvider implements DesktopProvider {
  readonly name = 'osworld' as const;
  readonly #o: OsworldOptions;
  readonly #machine: MachineDisk;
  readonly #places: readonly Place[];
  readonly #placeOf = new Map<RemoteDesktop, Place>();
  readonly #containers = new Map<RemoteDesktop, { readonly name: string; readonly container: Docker.Container }>();
  readonly #spares: Spares<RemoteDesktop>;
  readonly #ended = new AbortController();
  readonly #me = self();
  #docker: Docker | undefined;
  readonly #left: Leftovers<Docker.Container>;

  constructor(o: OsworldOptions, machine: MachineDisk = machineDisk()) {
    this.#o = o;
    this.#machine = machine;
    const token = apiKeyOf('desktops.osworld.tokenEnv', o.tokenEnv);
    this.#places = o.servers.map((url) => ({
      server: new OsworldServer({ url, token }),
      failedAt: 0,
      resets: undefined,
      settles: false,
    }));
    this.#left = new Leftovers({ list: () => ownIn(this.#named(), this.#me), remove: removeContainer });
    this.#spares = new Spares({
      wanted: o.spares,
      atOnce: 1,
      boot: (spec, signal) => this.#boot(spec, signal),
      destroy: (d) => this.destroy(d),
    });
  }

  /** Desktops of virtual machines take minutes to start and memory for each: as many as there are spares, and one. */
  get startsAtOnce(): number {
    return this.#places.length > 0 ? this.#places.length : 2;
  }

  /**
   * False with `keepState`, which leaves what a rollout left, and for virtual machines, whose first screen has a clock.
   */
  get sameFirstFrame(): boolean {
    return this.#places.length > 0 && !this.#o.keepState;
  }

  async status(): Promise<ProviderStatus> {
    const provider = this.name;
    try {
      if (this.#places.length === 0) {
        checkDisk(this.#machine);
        checkLocal();
        const { Version } = await withDeadline(ASK_MS, [], () => this.#engine().version()).catch((e: unknown) => {
          throw engineError(e);
        });
        return { provider, ok: true, detail: `OSWorld's virtual machine in Docker ${Version}` };
      }
      const found = await Promise.all(this.#places.map((p) => this.#look(p))),
        right = found.filter((f) => f === undefined).length;
      return {
        provider,
        ok: right > 0,
        detail: `${right} of ${this.#places.length} servers of OSWorld answer`,
        capacity: right,
        problem: right > 0 ? undefined : found.find((f) => f !== undefined),
      };
    } catch (e) {
      const problem = toRunError(e);
      return { provider, ok: false, detail: problem.message, problem };
    }
  }
  /** Why a server cannot be used; it is asked each time. */
  async #look(p: Place, signal?: AbortSignal): Promise<RunError | undefined> {
    try {
      const a = await p.server.get('/dart/health', { timeoutMs: ASK_MS, signal });
      const about = a.status === 200 ? fieldsOf(a) : {};
      p.resets = about['status'] === 'ok';
      p.settles = about['settles'] === true;
      if (a.status === 401 || a.status === 403)
        throw new StudioError(
          'desktop.unavailable',
          `The server at ${p.server.url} wants another token.`,
          'Name the environment variable that holds it in desktops.osworld.tokenEnv.',
        );
      const why = await p.server.ready({ timeoutMs: ASK_MS, signal });
      if (why !== undefined)
        throw new StudioError(
          'desktop.unavailable',
          `${p.server.url} is no server of OSWorld, or has no desktop: ${why}.`,
          'Start it (`dart-studio desktop serve --osworld`, or OSWorld itself), and check desktops.osworld.servers.',
        );
      if (!p.resets && !this.#o.keepState)
        throw new StudioError(
          'desktop.unavailable',
          `The server at ${p.server.url} cannot bring its desktop back to where it began, so that each rollout would find what the one before it left.`,
          "Use `dart-studio desktop serve --osworld` or OSWorld's virtual machine in Docker, or accept that with desktops.osworld.keepState.",
        );
      return undefined;
    } catch (e) {
      return toRunError(e);
    }
  }

  async create(spec: DesktopSpec, signal?: AbortSignal): Promise<Desktop> {
    if (this.#places.length > 0) return this.#take(spec, signal);
    const desktop = this.#spares.take(keyOf(spec)) ?? (await this.#boot(spec, signal));
    this.#spares.refill(spec, keyOf(spec));
    return desktop;
  }

  /** A server is asked to reset; a virtual machine is replaced by one that nobody has used. */
  async reset(d: Desktop, signal?: AbortSignal): Promise<Desktop> {
    const desktop = this.#ours(d),
      place = this.#placeOf.get(desktop);
    if (place) {
      await this.#first(place, desktop.screen, signal);
      if (desktop.isLost) throw lost(`The desktop at ${place.server.url} was lost.`);
      desktop.renewed();
      return desktop;
    }
    await this.destroy(desktop);
    return this.create(desktop.spec, signal);
  }

  async destroy(d: Desktop): Promise<void> {
    const desktop = d as RemoteDesktop,
      place = this.#placeOf.get(desktop),
      made = this.#containers.get(desktop);
    desktop.dispose();
    if (place) {
      this.#placeOf.delete(desktop);
      place.server.begin(undefined);
      inUse.delete(place.server.url);
    }
    if (!made) return;
    this.#containers.delete(desktop);
    await this.#left.end(made.name, made.container);
  }

  /** Containers of runtimes that are gone; the servers of others are theirs. */
  async reap(): Promise<number> {
    if (this.#places.length > 0) return 0;
    return removeOrphans(this.#named(), this.#me);
  }

  async dispose(): Promise<void> {
    this.#ended.abort();
    await this.#spares.end();
    const all = [...this.#placeOf.keys(), ...this.#containers.keys()],
      results = await Promise.allSettled(all.map((d) => this.destroy(d)));
    if (this.#docker) await orUndefined(this.#left.sweep(), 'the next runtime reaps what is left');
    const failed = results.find((r): r is PromiseRejectedResult => r.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #take(spec: DesktopSpec, signal: AbortSignal | undefined): Promise<RemoteDesktop> {
    const [free] = this.#places.filter((p) => !inUse.has(p.server.url)).sort((a, b) => a.failedAt - b.failedAt);
    if (!free)
      throw new StudioError(
        'desktop.unavailable',
        `All ${this.#places.length} servers of OSWorld are in use.`,
        'Ask for fewer desktops (desktops.count), or list more in desktops.osworld.servers.',
      );
    inUse.add(free.server.url);
    try {
      const problem = await this.#look(free, signal);
      if (problem) throw new StudioError(problem.kind, problem.message, problem.remedy);
      await this.#first(free, spec.screen, signal);
      const desktop = new RemoteDesktop({ id: this.#name(), spec, server: free.server, settles: free.settles });
      this.#placeOf.set(desktop, free);
      return desktop;
    } catch (e) {
      inUse.delete(free.server.url);
      free.failedAt = performance.now();
      throw e;
    }
  }
  /** Brings a server's desktop to its first screen, of the size that was asked for. */
  async #first(p: Place, wanted: DesktopSpec['screen'], signal?: AbortSignal): Promise<void> {
    p.server.begin(undefined);
    if (p.resets) {
      const a = await p.server.post('/dart/reset', {}, { timeoutMs: RESET_MS, signal });
      if (a.status !== 200) throw lost(`The desktop at ${p.server.url} could not be reset (${a.status}).`);
      p.server.begin(a.episode);
    }
    await checkScreen(p.server, wanted, signal);
  }

  async #boot(spec: DesktopSpec, signal?: AbortSignal): Promise<RemoteDesktop> {
    checkDisk(this.#machine);
    checkLocal();
    const name = this.#name(),
      owned = { name: `dart-studio-${name}`, owner: ownerLabel(this.#me) },
      either = AbortSignal.any([this.#ended.signal, ...(signal ? [signal] : [])]);
    this.#left.begin(owned.name);
    let container: Docker.Container | undefined;
    try {
      ignoreFailure(this.#left.sweep(), 'it is tried again with the next desktop');
      const { startSeconds } = this.#o,
        vm = await bootMachine(this.#engine(), machineContainer(this.#machine, this.#o, owned), {
          startSeconds,
          signal: either,
        });
      ({ container } = vm);
      await checkScreen(vm.server, spec.screen, either);
      const desktop = new RemoteDesktop({ id: name, spec, server: vm.server });
      this.#containers.set(desktop, { name: owned.name, container });
      ignoreFailure(
        vm.ended.then(() => {
          desktop.lose(lost("OSWorld's virtual machine ended."));
        }),
        'it never rejects',
      );
      return desktop;
    } catch (e) {
      if (container) await orUndefined(this.#left.end(owned.name, container), 'what stopped the start is reported');
      else this.#left.abandon(owned.name, true);
      if (either.aborted) throw cancelled('Starting a desktop');
      throw e;
    }
  }

  #name(): DesktopId {
    return id<DesktopId>(`osworld-${randomBytes(4).toString('hex')}`);
  }
  #ours(d: Desktop): RemoteDesktop {
    const desktop = d as RemoteDesktop;
    if (!this.#placeOf.has(desktop) && !this.#containers.has(desktop))
      throw new StudioError('desktop.lost', `Desktop ${d.id} does not belong to this provider.`, 'Create a new one.');
    return desktop;
  }
  /** The engine of this machine: ports of another one's containers cannot be reached. */
  #engine(): Docker {
    return (this.#docker ??= engineClient(undefined));
  }
  #named(): NamedEngine {
    return { name: 'the local engine', docker: this.#engine() };
  }
}

async function checkScreen(
  server: OsworldServer,
  wanted: DesktopSpec['screen'],
  signal: AbortSignal | undefined,
): Promise<void> {
  const { width, height } = sizeOf(
    await server.get('/screenshot', { timeoutMs: ASK_MS, most: MOST_SCREEN, signal, right: isWhole }),
  );
  if (width !== wanted.width || height !== wanted.height)
    throw new StudioError(
      'config.invalid',
      `The screen at ${server.url} is ${width}x${height}, and desktops.screen says ${wanted.width}x${wanted.height}.`,
      `Set desktops.screen to { "width": ${width}, "height": ${height} }.`,
    );
}

/** Ports of another machine's containers cannot be reached. */
function checkLocal(): void {
  const host = process.env['DOCKER_HOST'];
  if (host && isRemote(parseHost(host)))
    throw new StudioError(
      'desktop.unavailable',
      `OSWorld's virtual machine runs in the Docker engine of this machine, and DOCKER_HOST names another (${host}).`,
      'Leave DOCKER_HOST out, or serve desktops there and list them in desktops.osworld.servers.',
    );
}

const keyOf = (s: DesktopSpec): string => `${s.screen.width}x${s.screen.height}`;

export const createOsworldProvider = (o: OsworldOptions): OsworldProvider => new OsworldProvider(o);
