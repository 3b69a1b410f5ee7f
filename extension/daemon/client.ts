import type { Notification, Request } from '../../runtime/protocol/methods.js';
import type { NotificationName, Notifications, Notice } from '../../runtime/protocol/notifications.js';
import type { HelloResult, Method, Params, Result } from '../../runtime/protocol/requests.js';
import { ignoreFailure, orUndefined, settled } from '../../runtime/protocol/failures.js';
import { discoveryFile } from '../../runtime/protocol/version.js';
import type { DaemonState, HostError } from '../../webview/protocol.js';
import { backoffMs, replaces, RestartGuard } from './decide.js';
import { FolderWatch } from './discovery.js';
import { knock, sendAway, stopped, untilGone, whyLost } from './handshake.js';
import { launch } from './launcher.js';
import type { Session } from './session.js';
import { StateBroadcast } from './stateBroadcast.js';
import { Subscriptions, Watches } from './standing.js';
import {
  asError,
  DaemonError,
  lost,
  type GoingDown,
  type DaemonClientOptions,
  type EventsBatch,
  type EventsQuery,
  type StateListener,
  type WatchListener,
} from './types.js';
export { DaemonError } from './types.js';
export type {
  DaemonClientOptions,
  RequestErrorKind,
  EventsBatch,
  EventsQuery,
  Log,
  StateListener,
  WatchListener,
} from './types.js';

/** How long a window that may not start a daemon looks for another one before its state becomes `stopped`. */
const lookMs = 20_000;
/** Whether a process is there; one that is not known may be. */
function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return (e as NodeJS.ErrnoException).code === 'EPERM';
  }
}
/** How many daemons may come and go while one attaches. */
const mostTurns = 6;

/**
 * The extension's one way to the daemon. Attaches to the daemon of `storage`, starts one when allowed to, comes back
 * after a loss, and keeps event subscriptions and watched desktops alive meanwhile. While it is not connected it
 * notices a daemon that another window starts.
 */
export class DaemonClient {
  readonly #o: DaemonClientOptions;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #guard = new RestartGuard();
  readonly #events = new Subscriptions();
  readonly #watches = new Watches();
  readonly #listeners = new Map<string, Set<(p: unknown) => void>>();
  readonly #state: StateBroadcast;
  #session: Session | undefined;
  #hello: HelloResult | undefined;
  /** The current attempt to connect; one at a time. */
  #attempt: Promise<void> | undefined;
  /** A daemon was requested: a lost one is started again. */
  #mayStart = false;
  /** This window asked the daemon to end: `stop` for good, `replace` for a newer one. */
  #sentAway: 'stop' | 'replace' | undefined;
  #watch: FolderWatch | undefined;
  /** Ends the reconnection after a loss. */
  #giveUp: AbortController | undefined;
  readonly #end = new AbortController();

  constructor(o: DaemonClientOptions) {
    this.#o = o;
    this.#random = o.random ?? Math.random;
    this.#now = o.now ?? Date.now;
    this.#state = new StateBroadcast((m) => o.log('error', m));
  }
  get state(): DaemonState {
    return this.#state.value;
  }
  /** Why, in the states `stopped`, `reconnecting`, `incompatible` and `failed`; in `ready` only `daemon.older`. */
  get stateDetail(): HostError | undefined {
    return this.#state.detail;
  }
  /** Of the daemon we are connected to. */
  get hello(): HelloResult | undefined {
    return this.#hello;
  }
  onState(l: StateListener): () => void {
    return this.#state.on(l);
  }

  /**
   * Attaches, and with `start` starts a daemon where there is none. Resolves when ready (also when it already was).
   * Rejects with why not:
   * `daemon.stopped` when there is none and none may be started, `protocol.mismatch`, `daemon.failed`.
   */
  async connect(o: { readonly start: boolean } = { start: false }): Promise<void> {
    if (o.start) {
      this.#mayStart = true;
      this.#guard.forget();
    }
    while (this.#attempt) await settled(this.#attempt);
    if (this.#end.signal.aborted) throw lost();
    if (!this.#session) await this.#try(() => this.#establish(o.start, false), 'attaching');
  }

  /** Cancelled by the signal; `patient`: what the runtime did until then is its answer, which is waited for. */
  request<M extends Method>(
    type: Pick<Request<M>, 'method'>,
    params: Params<M>,
    signal?: AbortSignal,
    patient?: boolean,
  ): Promise<Result<M>> {
    return this.call(type.method, params, signal, patient);
  }
  /** By wire name. Waits while the client is starting or attaching; otherwise rejects at once when not connected. */
  async call<M extends Method>(
    method: M,
    params: Params<M>,
    signal?: AbortSignal,
    patient?: boolean,
  ): Promise<Result<M>> {
    if (this.#state.value === 'starting' || this.#state.value === 'attaching') await settled(this.#attempt);
    if (!this.#session)
      throw this.#state.value === 'reconnecting'
        ? lost()
        : new DaemonError(
            'daemon.stopped',
            this.#state.detail?.message ?? 'The runtime is not running.',
            this.#state.detail?.remedy ?? 'Start the runtime.',
          );
    return this.#session.request(method, params, signal, patient);
  }
  /** Notifications of the daemon; listeners stay over reconnects. */
  on<N extends NotificationName>(type: Pick<Notification<N>, 'method'>, l: (p: Notifications[N]) => void): () => void {
    const all = this.#listeners.get(type.method) ?? new Set(),
      own = (p: unknown): void => l(p as Notifications[N]);
    this.#listeners.set(type.method, all.add(own));
    return () => all.delete(own);
  }
  /**
   * Events of a run from `sinceSeq` on, each once and in order, whatever happens to the connection. `failed`: the run
   * is gone or damaged, nothing follows.
   */
  subscribe(
    q: EventsQuery,
    l: (b: EventsBatch) => void,
    failed: (e: DaemonError) => void = (e) => this.#o.log('warn', `events of ${q.run}: ${e.message}`),
  ): () => void {
    return this.#events.add(q, l, failed);
  }
  /** Live pictures of a desktop; after a reconnect `start` is called again. */
  watch(desktop: string, o: { readonly maxFps?: number }, l: WatchListener): () => void {
    return this.#watches.add(desktop, o.maxFps, l);
  }

  /**
   * Stops what is active cleanly and ends the daemon; resolves when it is gone. It is not started again until
   * `connect({start: true})`.
   */
  async shutdown(): Promise<void> {
    this.#mayStart = false;
    this.#giveUp?.abort();
    while (this.#attempt && !this.#session) await settled(this.#attempt);
    const session = this.#session ?? (await knock(this.#o.storage, this.#o.log));
    if (!session) {
      this.#state.become('stopped');
      return;
    }
    this.#sentAway = 'stop';
    await session.request('daemon/shutdown', {}).catch((e: unknown) => {
      if (!(e instanceof DaemonError && e.kind === 'connection.lost')) {
        this.#sentAway = undefined;
        throw e;
      }
    });
    await session.closed;
    if (session !== this.#session) {
      this.#sentAway = undefined;
      this.#state.become('stopped');
    }
  }
  /** Disconnects from the daemon, which keeps running. */
  dispose(): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    this.#giveUp?.abort();
    this.#watch?.close();
    this.#session?.close();
    this.#drop();
    this.#state.clear();
    this.#listeners.clear();
  }

  // connecting

  /** Makes an attempt to connect; the state shows its result. */
  #try(how: () => Promise<void>, state: DaemonState, detail?: HostError): Promise<void> {
    const attempt: Promise<void> = Promise.resolve()
      .then(how)
      .catch(async (e: unknown) => {
        const why = asError(e),
          to = why.kind === 'daemon.stopped' ? 'stopped' : why.kind === 'protocol.mismatch' ? 'incompatible' : 'failed';
        this.#o.log(to === 'stopped' ? 'info' : 'error', `daemon: ${why.message}`);
        this.#state.become(to, why.hostError);
        await this.#lookOut();
        throw why;
      })
      .finally(() => {
        if (this.#attempt === attempt) this.#attempt = undefined;
      });
    this.#attempt = attempt;
    this.#state.become(state, detail);
    return attempt;
  }

  /** Makes one connection, or rejects with why not. `again`: it was not requested, so a start counts as a restart. */
  async #establish(start: boolean, again: boolean): Promise<void> {
    const may = (): boolean => start && this.#mayStart;
    let session = await knock(this.#o.storage, this.#o.log),
      started = false;
    for (let turn = 0; turn < mostTurns; turn++) {
      this.#goOn(session);
      if (!session) {
        if (!may()) throw stopped();
        if (again && !this.#guard.allow(this.#now()))
          throw new DaemonError(
            'daemon.failed',
            'The runtime stopped 3 times within 5 minutes.',
            'Check the log, then start it again.',
          );
        if (this.#state.value !== 'reconnecting') this.#state.become('starting');
        ({ session, started } = await launch({ ...this.#o, random: this.#random, now: this.#now }));
        this.#goOn(session);
        if (this.#state.value !== 'reconnecting') this.#state.become('attaching');
      }
      const hello = await session.greet(this.#o.build, this.#o.client).catch((e: unknown) => asError(e)),
        newer = !started && may() && replaces(this.#o.build, session.record.build);
      this.#goOn(session);
      if (!(hello instanceof DaemonError)) {
        if (!newer || !(await sendAway(session, this.#o.log))) {
          this.#adopt(session, hello, newer);
          return;
        }
      } else if (hello.kind === 'draining' && may()) {
        if (this.#state.value !== 'reconnecting')
          this.#state.become('attaching', {
            ...hello.hostError,
            message: 'The previous runtime is still shutting down.',
            remedy: 'Wait until its run has closed.',
          });
        await untilGone(session);
      } else if (!(
        hello.kind === 'connection.lost' ||
        (hello.kind === 'protocol.mismatch' && newer && (await sendAway(session, this.#o.log)))
      )) {
        session.close();
        throw hello.kind === 'draining' ? stopped() : hello;
      }
      session = await knock(this.#o.storage, this.#o.log);
      started = false;
    }
    throw new DaemonError(
      'daemon.failed',
      'The runtime was replaced repeatedly while this window connected.',
      'Reload all windows so that they use the same version of the extension.',
    );
  }
  #goOn(session?: Session): void {
    if (this.#end.signal.aborted) {
      session?.close();
      throw lost();
    }
  }

  #adopt(session: Session, hello: HelloResult, older: boolean): void {
    this.#watch?.close();
    this.#watch = undefined;
    this.#sentAway = older ? 'replace' : undefined;
    this.#session = session;
    this.#hello = hello;
    session.onNotification = (n) => this.#hear(n);
    session.onScreen = (h, png) => this.#watches.patch(h, png);
    void session.closed.then((g) => this.#lose(session, g));
    this.#state.become(
      'ready',
      older
        ? {
            kind: 'daemon.older',
            message: `The runtime is of an older build (${hello.build.version}) because a run is active.`,
            remedy: 'It restarts automatically when the run ends.',
          }
        : undefined,
    );
    this.#events.attach(session);
    this.#watches.attach(session);
  }
  #drop(): void {
    this.#session = undefined;
    this.#hello = undefined;
    this.#events.attach(undefined);
    this.#watches.attach(undefined);
  }

  // being connected

  #hear(n: Notice): void {
    if (n.method === 'events/batch') this.#events.take(n.params);
    else if (n.method === 'desktop/streamEnded') this.#watches.ended(n.params);
    for (const l of this.#listeners.get(n.method) ?? []) l(n.params);
  }
  #lose(session: Session, last: GoingDown | undefined): void {
    if (session !== this.#session) return;
    const sentAway = this.#sentAway;
    this.#sentAway = undefined;
    this.#drop();
    if (this.#end.signal.aborted) return;
    this.#o.log(
      last ? 'info' : 'warn',
      `daemon: the connection ended${last ? ` (${last.reason}${last.message ? `: ${last.message}` : ''})` : ''}`,
    );
    if (sentAway === 'stop' || last?.reason === 'shutdown' || last?.reason === 'idle') {
      this.#state.become('stopped', stopped().hostError);
      void this.#lookOut();
      return;
    }
    // Drained by a newer window, which starts the next daemon: we only attach, or the two would replace each other in
    // turns.
    const start = this.#mayStart && (last?.reason !== 'drained' || sentAway === 'replace');
    ignoreFailure(
      this.#try(
        () => this.#reconnect(start, sentAway !== 'replace', last === undefined ? session.record.pid : undefined),
        'reconnecting',
        whyLost(last, start),
      ),
      'the state says it',
    );
  }
  /** `pid`: of the daemon that was lost. While it lives it may answer again, and while it is replaced another one. */
  async #reconnect(start: boolean, again: boolean, pid: number | undefined): Promise<void> {
    const giveUp = new AbortController(),
      givenUp = new Promise<void>((go) => giveUp.signal.addEventListener('abort', () => go()));
    this.#giveUp = giveUp;
    const since = this.#now(),
      watch = await FolderWatch.open(this.#o.storage);
    try {
      for (let n = 1; ; n++) {
        try {
          await this.#establish(start, again);
          return;
        } catch (e) {
          const kind = asError(e).kind,
            over = start
              ? !this.#mayStart || (kind === 'daemon.failed' && this.#guard.spent(this.#now()))
              : this.#now() - since > lookMs || !isAlive(pid);
          if (giveUp.signal.aborted || this.#end.signal.aborted || kind === 'protocol.mismatch' || over) throw e;
          this.#o.log('info', `daemon: not there yet (${asError(e).message})`);
        }
        let looked = false;
        await watch.until(async () => (looked ? true : void (looked = true)), backoffMs(n, this.#random), givenUp);
      }
    } finally {
      watch.close();
    }
  }
  /** Not connected and not trying: attaches when another window has started a daemon. */
  async #lookOut(): Promise<void> {
    const watch = await orUndefined(FolderWatch.open(this.#o.storage), 'a start makes the folder and looks again');
    if (!watch || this.#session || this.#end.signal.aborted) {
      watch?.close();
      return;
    }
    this.#watch?.close(); // each time: the folder may have been removed and created again
    this.#watch = watch;
    watch.onChange((name) => {
      if ((name === null || name === discoveryFile) && !this.#attempt && !this.#session) this.#glance();
    });
  }
  /** Called when the record changed while we were not connected. A missing record means nothing. */
  #glance(): void {
    const replace = this.#state.value === 'incompatible' && this.#mayStart; // the one in our way may be gone
    const attempt: Promise<void> = this.#establish(replace, false)
      .catch((e: unknown) => {
        const why = asError(e);
        if (why.kind === 'protocol.mismatch') this.#state.become('incompatible', why.hostError);
        else if (why.kind === 'daemon.stopped' && this.#state.value === 'incompatible')
          this.#state.become('stopped', why.hostError);
        else if (why.kind !== 'daemon.stopped') this.#o.log('warn', `daemon: ${why.message}`);
      })
      .finally(() => {
        if (this.#attempt === attempt) this.#attempt = undefined;
      });
    this.#attempt = attempt;
  }
}
