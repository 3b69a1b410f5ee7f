import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { printable } from '../foreign/terminalText.js';
import { toRunError, ServiceError } from '../domain/index.js';
import { ignoreFailure, settled } from '../concurrency/failures.js';
import { nextTurn } from '../concurrency/turns.js';
import * as methods from '../protocol/methods.js';
import { capabilities, exitAlreadyRunning, protocolVersion, type Build } from '../protocol/version.js';
import { lockStorage, type Lock } from '../service/storageLock.js';
import type { AlertTargets } from '../service/alerts/alertSender.js';
import type { Handler, StudioService } from '../service/types.js';
import { thisBuild } from './build.js';
import type { ConnectionHost } from './connection.js';
import { privateFolder, removeDiscovery, writeDiscovery } from './discovery.js';
import { ServerFault } from './faults.js';
import { DaemonLog, type LogLevel } from './log.js';
import { MetricsPort } from './metricsPort.js';
import { DaemonServer } from './server.js';
import { ShutdownCoordinator, type ShutdownRequest } from './shutdown.js';

/** Oldest protocol a client may speak. */
const minClient = 1;
const defaultIdleMinutes = 10;

export interface ServeOptions {
  /** Folder of the discovery record, the lock and the log. */
  readonly storage: string;
  /** The daemon ends after this long without a client and anything to do. */
  readonly idleMinutes?: number;
  /** Port of figures for Prometheus; none without it. */
  readonly metricsPort?: number;
  /** Targets of alerts until a window tells its machine's settings. */
  readonly alerts?: AlertTargets;
  /** ms a client has to say hello. */
  readonly helloMs?: number;
  /** Creates the service. */
  createService(o: {
    readonly cacheDir: string;
    /** Folder of what must outlive this daemon. */
    readonly storage: string;
    readonly alerts?: AlertTargets;
    log(level: LogLevel, message: string): void;
  }): StudioService | Promise<StudioService>;
  /** Identity of this daemon; the bundle's by default. */
  readonly identity?: {
    readonly protocol: number;
    readonly minClient: number;
    readonly build: Build;
  };
  /**
   * The daemon's purpose, begun when clients can attach. Its end, with an exit code, is the daemon's own, which ends
   * for no other reason but a request or a fault.
   */
  work?(service: StudioService): Promise<number>;
  exit(code: number): void;
}

/**
 * The daemon, until it ends: `exit` is then called with its code, 3 at once when another daemon serves this folder.
 * Everything that lasts belongs to it: windows come and go, a run goes on.
 */
export async function serve(o: ServeOptions): Promise<void> {
  const storage = resolve(o.storage),
    token = randomBytes(32).toString('hex');
  await privateFolder(storage);
  const lock = await lockStorage(storage);
  if (!lock) {
    process.stderr.write(`Another DART Studio runtime serves ${storage}.\n`);
    o.exit(exitAlreadyRunning);
    return;
  }
  await new Daemon(o, { storage, token, lock, log: await DaemonLog.open(storage, [token]) }).start();
}

/** Held by only one daemon of a storage folder at a time. */
interface Held {
  readonly storage: string;
  /** Clients prove with it that they may read the discovery record. */
  readonly token: string;
  readonly lock: Lock;
  readonly log: DaemonLog;
}

class Daemon {
  readonly #o: ServeOptions;
  readonly #held: Held;
  readonly #identity: NonNullable<ServeOptions['identity']>;
  readonly #startedAt = Date.now();
  readonly #shutdown: ShutdownCoordinator;
  #server: DaemonServer | undefined;
  #metrics: MetricsPort | undefined;
  #service: StudioService | undefined;
  #opening: Promise<void> | undefined;
  /** A newer build waits: nothing new is started, and the daemon ends when the running work does. */
  #draining = false;
  #idleTimer: NodeJS.Timeout | undefined;
  /** The newest `run/stop`: who asked for the end of the run is answered before the end of the daemon. */
  #stopping: Promise<unknown> | undefined;

  constructor(o: ServeOptions, held: Held) {
    this.#o = o;
    this.#held = held;
    this.#identity = o.identity ?? { protocol: protocolVersion, minClient, build: thisBuild };
    this.#shutdown = new ShutdownCoordinator({
      log: held.log.write,
      cleanup: (r) => this.#cleanUp(r),
      hurry: () => {
        this.#service
          ?.close({ now: true })
          .catch((e: unknown) => held.log.write('error', `stopping at once: ${String(e)}`));
      },
      leave: () => this.#leave(),
      exit: (code) => {
        held.log.writeNow('info', `ended with code ${code}`);
        o.exit(code);
      },
    });
  }

  /** Resolves when it serves, or when its end has begun because it could not. */
  async start(): Promise<void> {
    for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(s, () => this.#shutdown.signal(s));
    process.on('uncaughtException', (e) => this.#shutdown.fault(e, 'exception'));
    process.on('unhandledRejection', (e) => this.#shutdown.fault(e, 'rejection'));
    try {
      const { storage, log } = this.#held;
      this.#service = await this.#o.createService({
        cacheDir: join(storage, 'cache'),
        storage,
        alerts: this.#o.alerts,
        log: log.write,
      });
      await (this.#opening = this.#open(this.#service));
    } catch (e) {
      const { message, remedy } = toRunError(e);
      process.stderr.write(printable(`The runtime could not start: ${message}\n${remedy}\n`));
      this.#shutdown.fault(e, 'exception');
    }
  }

  async #open(service: StudioService): Promise<void> {
    const { storage, token, log } = this.#held,
      { protocol, minClient: oldest, build } = this.#identity,
      checkIdle = (): void => this.#checkIdle(service);
    const server = await DaemonServer.listen({ token, host: this.#host(service), onClients: checkIdle });
    this.#server = server;
    service.onBroadcast((b) => server.broadcast(b));
    service.onIdle(checkIdle);
    await writeDiscovery(storage, {
      pid: process.pid,
      port: server.port,
      token,
      protocol,
      minClient: oldest,
      build,
      startedAt: this.#startedAt,
    });
    log.write(
      'info',
      `serving on 127.0.0.1:${server.port}, pid ${process.pid}, build ${build.version} of ${new Date(build.time).toISOString()}, Node ${process.versions.node}`,
    );
    await this.#openMetrics(service);
    checkIdle();
    if (this.#o.work) void this.#endAfter(this.#o.work(service));
    else ignoreFailure(service.recover?.() ?? Promise.resolve(), 'each run is reported by itself');
  }
  async #endAfter(work: Promise<number>): Promise<void> {
    const code = await work.catch((e: unknown) => {
      const { message, remedy } = toRunError(e);
      process.stderr.write(printable(`\n${message}\n${remedy}\n`));
      return 1;
    });
    await settled(this.#stopping);
    await this.#shutdown.request({
      reason: 'shutdown',
      message: 'its run is over',
      now: false,
      code,
      deadlineMs: 60_000,
    });
  }

  /** A port that is taken costs the figures, and nothing else. */
  async #openMetrics(service: StudioService): Promise<void> {
    const { metricsPort: port } = this.#o,
      { storage, log } = this.#held;
    if (port === undefined) return;
    try {
      this.#metrics = await MetricsPort.listen({ port, storage, service });
      log.write('info', `figures for Prometheus at http://127.0.0.1:${this.#metrics.port}/metrics`);
    } catch (e) {
      log.write('warn', `no figures for Prometheus on port ${port}: ${toRunError(e).message}`);
    }
  }

  #host(service: StudioService): ConnectionHost {
    const { log } = this.#held,
      handlers = withLog(service.handlers, log),
      stop = handlers.get(methods.stopRun.method);
    if (stop) handlers.set(methods.stopRun.method, (p, c) => (this.#stopping = stop(p, c)));
    return {
      service,
      handlers,
      log: log.write,
      helloMs: this.#o.helloMs ?? 10_000,
      greet: (p) => this.#greet(p, service),
      drain: () => {
        this.#draining = true;
        service.drain?.();
        setImmediate(() => this.#checkIdle(service)); // after the answer
        return { waitingFor: [...service.active], busy: this.#isBusy(service) || undefined };
      },
      shutdown: () => this.#shutdown.request({ reason: 'shutdown', now: false, code: 0, deadlineMs: 300_000 }),
      refuses: (method) => this.#refuses(method),
    };
  }

  /** Throws when this client speaks another protocol, or the daemon is going down. */
  #greet(p: methods.HelloParams, service: StudioService): methods.HelloResult {
    const { protocol, minClient: oldest, build } = this.#identity;
    if (this.#shutdown.inProgress) throw goingAway();
    if (p.protocol < oldest || p.protocol > protocol)
      throw new ServerFault(
        'protocol.mismatch',
        `The runtime speaks protocol ${oldest} to ${protocol}, this window ${p.protocol}.`,
        p.protocol < oldest
          ? 'Reload the window to use the extension that is installed now.'
          : 'Restart the runtime when its run has ended.',
      );
    return {
      protocol,
      build,
      capabilities: [...capabilities],
      pid: process.pid,
      startedAt: this.#startedAt,
      activeRuns: [...service.active],
      recovered: [...(service.recovered ?? [])],
      storage: this.#held.storage,
    };
  }

  /** Why a request is not served now. */
  #refuses(method: string): Error | undefined {
    if (!startsWork.has(method)) return undefined;
    if (this.#shutdown.inProgress) return goingAway();
    return this.#draining
      ? new ServiceError(
          'draining',
          'A newer DART Studio is waiting to take over, so nothing new is started.',
          'Try again when the run has ended: the newer runtime starts automatically.',
        )
      : undefined;
  }

  /** The daemon's purpose may go on when no run does: its policy is measured. */
  #isBusy(service: StudioService): boolean {
    return service.busy || this.#o.work !== undefined;
  }
  /** Called whenever something that keeps the daemon alive comes or goes. */
  #checkIdle(service: StudioService): void {
    clearTimeout(this.#idleTimer);
    if (this.#shutdown.inProgress || this.#isBusy(service)) return;
    if (this.#draining) void this.#shutdown.request({ reason: 'drained', now: false, code: 0, deadlineMs: 30_000 });
    else if (this.#server?.clients === 0)
      this.#idleTimer = setTimeout(
        () => {
          if (this.#server?.clients === 0 && !service.busy)
            void this.#shutdown.request({ reason: 'idle', now: false, code: 0, deadlineMs: 30_000 });
        },
        (this.#o.idleMinutes ?? defaultIdleMinutes) * 60_000,
      );
  }

  async #cleanUp(r: ShutdownRequest): Promise<void> {
    clearTimeout(this.#idleTimer);
    this.#server?.goingDown(r.reason, r.message);
    await this.#service?.close({ now: r.now, keep: r.keep });
  }

  async #leave(): Promise<void> {
    const { storage, token, lock, log } = this.#held;
    // A signal may come while the daemon starts.
    await settled(this.#opening);
    await nextTurn(); // whoever asked for the end gets its answer
    // Removed early: the next daemon may start before the last client has heard that this one is gone.
    await removeDiscovery(storage, token);
    await lock.release();
    await this.#server?.close();
    await this.#metrics?.close();
    await log.close();
  }
}

const startsWork: ReadonlySet<string> = new Set(
  [methods.startRun, methods.resumeRun, methods.evaluate, methods.buildDesktop].map((m) => m.method),
);
const goingAway = (): ServiceError =>
  new ServiceError('draining', 'The runtime is shutting down.', 'Start it again in a moment.');

/** Diagnostics with the end of our own log, which is clean of secrets when it is written. */
function withLog(of: StudioService['handlers'], log: DaemonLog): Map<string, Handler> {
  const handlers = new Map(of),
    diagnostics = of.get(methods.diagnostics.method);
  if (diagnostics)
    handlers.set(methods.diagnostics.method, async (p, c) => {
      const r = (await diagnostics(p, c)) as { readonly files: Readonly<Record<string, string>> };
      await log.flush();
      const text = await readFile(log.file, 'utf8').catch(() => '');
      return { files: { ...r.files, 'daemon.log': text.slice(-200_000) } };
    });
  return handlers;
}
