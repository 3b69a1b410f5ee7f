import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { toRunError, ServiceError } from '../domain/index.js';
import * as methods from '../protocol/methods.js';
import { capabilities, exitAlreadyRunning, protocolVersion, type Build } from '../protocol/version.js';
import type { StudioService } from '../service/types.js';
import { thisBuild } from './build.js';
import type { ConnectionHost } from './connection.js';
import { privateFolder, removeDiscovery, writeDiscovery } from './discovery.js';
import { ServerFault } from './faults.js';
import { takeLock } from './lock.js';
import { DaemonLog, type LogLevel } from './log.js';
import { DaemonServer } from './server.js';
import { ShutdownCoordinator } from './shutdown.js';

/** Oldest protocol a client may speak. */
const minClient = 1;
const defaultIdleMinutes = 10;

export interface ServeOptions {
  /** Folder of the discovery record, the lock and the log. */
  readonly storage: string;
  /** With no client and nothing to do for this long, the daemon ends. */
  readonly idleMinutes?: number;
  /** ms a client has to say hello. */
  readonly helloMs?: number;
  /** What is served. */
  createService(o: {
    readonly cacheDir: string;
    log(level: LogLevel, message: string): void;
  }): StudioService | Promise<StudioService>;
  /** Who this says it is; the bundle by default. */
  readonly identity?: {
    readonly protocol: number;
    readonly minClient: number;
    readonly build: Build;
  };
  exit(code: number): void;
}

/**
 * The daemon, until it ends: `exit` is then called with its code, 3 at once when another daemon serves this folder.
 * Everything that lasts belongs to it: windows come and go, a run goes on.
 */
export async function serve(o: ServeOptions): Promise<void> {
  const storage = resolve(o.storage),
    startedAt = Date.now(),
    token = randomBytes(32).toString('hex');
  const identity = o.identity ?? { protocol: protocolVersion, minClient, build: thisBuild };
  await privateFolder(storage);
  const lock = await takeLock(storage);
  if (!lock) {
    process.stderr.write(`Another DART Studio runtime serves ${storage}.\n`);
    o.exit(exitAlreadyRunning);
    return;
  }

  const log = await DaemonLog.open(storage, [token]);
  let server: DaemonServer | undefined,
    service: StudioService | undefined,
    draining = false,
    idle: NodeJS.Timeout | undefined,
    opened: Promise<void> | undefined;
  const end = new ShutdownCoordinator({
    log: log.write,
    cleanup: async (r) => {
      clearTimeout(idle);
      server?.goingDown(r.reason, r.message);
      await service?.close({ now: r.now });
    },
    hurry: () => {
      service?.close({ now: true }).catch((e: unknown) => log.write('error', `stopping at once: ${String(e)}`));
    },
    leave: async () => {
      await opened?.catch(() => undefined); // a signal may come while we start
      await new Promise((next) => setImmediate(next)); // whoever asked for the end gets its answer
      // Nothing is served any more: the next daemon may start before the last client has heard that this one is gone.
      await removeDiscovery(storage, token);
      await lock.release();
      await server?.close();
      await log.close();
    },
    exit: (code) => {
      log.writeNow('info', `ended with code ${code}`);
      o.exit(code);
    },
  });
  for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(s, () => end.signal(s));
  process.on('uncaughtException', (e) => end.fault(e, 'exception'));
  process.on('unhandledRejection', (e) => end.fault(e, 'rejection'));

  try {
    service = await o.createService({ cacheDir: join(storage, 'cache'), log: log.write });
    await (opened = open(service));
  } catch (e) {
    const { message, remedy } = toRunError(e);
    process.stderr.write(`The runtime could not start: ${message}\n${remedy}\n`);
    end.fault(e, 'exception');
  }

  async function open(work: StudioService): Promise<void> {
    const idleMs = (o.idleMinutes ?? defaultIdleMinutes) * 60_000;
    /** Something that keeps the daemon alive came or went. */
    const look = (): void => {
      clearTimeout(idle);
      if (end.under || work.busy) return;
      if (draining) void end.request({ reason: 'drained', now: false, code: 0, deadlineMs: 30_000 });
      else if (server?.clients === 0)
        idle = setTimeout(() => {
          if (server?.clients === 0 && !work.busy)
            void end.request({ reason: 'idle', now: false, code: 0, deadlineMs: 30_000 });
        }, idleMs);
    };
    const host: ConnectionHost = {
      service: work,
      handlers: withLog(work.handlers, log),
      log: log.write,
      helloMs: o.helloMs ?? 10_000,
      greet: (p) => {
        if (end.under) throw goingAway();
        if (p.protocol < identity.minClient || p.protocol > identity.protocol)
          throw new ServerFault(
            'protocol.mismatch',
            `The runtime speaks protocol ${identity.minClient} to ${identity.protocol}, this window ${p.protocol}.`,
            p.protocol < identity.minClient
              ? 'Reload the window to use the extension that is installed now.'
              : 'Restart the runtime when its run has ended.',
          );
        return {
          protocol: identity.protocol,
          build: identity.build,
          capabilities: [...capabilities],
          pid: process.pid,
          startedAt,
          activeRuns: [...work.active],
          storage,
        };
      },
      drain: () => {
        draining = true;
        setImmediate(look); // after the answer
        return { waitingFor: [...work.active], ...(work.busy ? { busy: true } : {}) };
      },
      shutdown: () => end.request({ reason: 'shutdown', now: false, code: 0, deadlineMs: 300_000 }),
      refuses: (method) => {
        if (!startsWork.has(method)) return undefined;
        if (end.under) return goingAway();
        return draining
          ? new ServiceError(
              'draining',
              'A newer DART Studio is waiting to take over, so nothing new is started.',
              'Try again when the run has ended: the newer runtime starts by itself.',
            )
          : undefined;
      },
    };
    server = await DaemonServer.listen({ token, host, onClients: look });
    work.onBroadcast((b) => server?.broadcast(b));
    work.onIdle(look);
    await writeDiscovery(storage, {
      pid: process.pid,
      port: server.port,
      token,
      protocol: identity.protocol,
      minClient: identity.minClient,
      build: identity.build,
      startedAt,
    });
    log.write(
      'info',
      `serving on 127.0.0.1:${server.port}, pid ${process.pid}, build ${identity.build.version} of ${new Date(identity.build.time).toISOString()}, Node ${process.versions.node}`,
    );
    look();
  }
}

const startsWork: ReadonlySet<string> = new Set(
  [methods.startRun, methods.resumeRun, methods.evaluate, methods.buildDesktop].map((m) => m.method),
);
const goingAway = (): ServiceError =>
  new ServiceError('draining', 'The runtime is going down.', 'Start it again in a moment.');

/** Diagnostics with the end of our own log, which is clean of secrets when it is written. */
function withLog(of: StudioService['handlers'], log: DaemonLog): StudioService['handlers'] {
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
