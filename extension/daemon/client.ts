import type { Notification, Request } from '../../runtime/protocol/methods.js';
import type { NotificationName, Notifications, Notice } from '../../runtime/protocol/notifications.js';
import type { HelloResult, Method, Params, Result } from '../../runtime/protocol/requests.js';
import { ignoreFailure, orUndefined, settled } from '../../runtime/protocol/failures.js';
import { discoveryFile } from '../../runtime/protocol/version.js';
import type { DaemonState, HostError } from '../../webview/protocol.js';
import { backoffMs, RestartGuard } from './decide.js';
import { FolderWatch } from './discovery.js';
import { establish, type Found } from './establish.js';
import { knock, olderWords, stopped, whyLost } from './handshake.js';
import { alive } from './launcher.js';
import { untilConnected } from './reconnect.js';
import { goneWords, openRemote, remotePatience, wanted, otherVersion, type RemoteRuntime } from './remote.js';
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
  /** The runtime that replaces this machine's own. */
  #remote: RemoteRuntime | undefined;

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
  /** The `hello` of the daemon we are connected to. */
  get hello(): HelloResult | undefined {
    return this.#hello;
  }
  /** The runtime elsewhere that this client talks to, in place of this machine's own. */
  get remote(): RemoteRuntime | undefined {
    return this.#remote;
  }
  onState(l: StateListener): () => void {
    return this.#state.on(l);
  }

  /**
   * Talks to that runtime from now on, and comes back to it after a loss, until `detach`. Rejects with why not; then
   * nothing has changed. It is never replaced or started from here.
   */
  async attachTo(remote: RemoteRuntime, signal?: AbortSignal): Promise<void> {
    try {
      const found = await this.#reach(remote, signal);
      wanted(found.session, signal);
      this.#giveUp?.abort();
      while (this.#attempt) await settled(this.#attempt);
      wanted(found.session, signal);
      this.#goOn(found.session);
      this.#leave();
      this.#remote = remote;
      this.#adopt(found);
    } catch (e) {
      remote.dispose();
      throw e;
    }
  }
  /** Back to this machine's own runtime, to which nobody is connected yet. */
  detach(): void {
    if (!this.#remote) return;
    this.#giveUp?.abort();
    this.#leave();
    void this.#lookOut();
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
  /** Calls a method by its wire name, once a start or attach under way has ended. Rejects when not connected. */
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
    this.#remote?.dispose();
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
    const remote = this.#remote,
      found = remote
        ? await this.#reach(remote)
        : await establish({
            ...this.#o,
            random: this.#random,
            now: this.#now,
            mayStart: () => start && this.#mayStart,
            mayLaunch: () => !again || this.#guard.allow(this.#now()),
            become: (state, detail) => {
              if (this.#state.value !== 'reconnecting') this.#state.become(state, detail);
            },
            goOn: (session) => this.#goOn(session),
          });
    if (remote !== this.#remote) {
      found.session.close();
      throw lost();
    }
    this.#adopt(found);
  }
  async #reach(remote: RemoteRuntime, signal?: AbortSignal): Promise<Found> {
    const session = await openRemote(remote, this.#o.log, signal);
    try {
      this.#goOn(session);
      return { session, hello: await session.greet(this.#o.build, this.#o.client), older: false };
    } catch (e) {
      session.close();
      throw otherVersion(remote, asError(e));
    }
  }
  #goOn(session?: Session): void {
    if (this.#end.signal.aborted) {
      session?.close();
      throw lost();
    }
  }

  #adopt({ session, hello, older }: Found): void {
    this.#watch?.close();
    this.#watch = undefined;
    this.#sentAway = older ? 'replace' : undefined;
    this.#session = session;
    this.#hello = hello;
    session.onNotification = (n) => this.#hear(n);
    session.onScreen = (h, png) => this.#watches.patch(h, png);
    void session.closed.then((g) => this.#lose(session, g));
    this.#state.become('ready', older ? olderWords(hello) : undefined);
    this.#events.attach(session);
    this.#watches.attach(session);
  }
  /** Leaves one runtime for another: views forget what the one before said. */
  #leave(): void {
    const session = this.#session,
      remote = this.#remote;
    this.#watch?.close();
    this.#watch = this.#remote = this.#sentAway = undefined;
    this.#mayStart = false;
    this.#drop();
    session?.close();
    remote?.dispose();
    this.#state.become('attaching');
    this.#state.become('stopped', stopped().hostError);
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
    if (this.#remote && last && last.reason !== 'fault') {
      this.#state.become('failed', goneWords(this.#remote, last.message).hostError);
      return;
    }
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
    const giveUp = (this.#giveUp = new AbortController()),
      since = this.#now(),
      remote = this.#remote,
      patience = remote && remotePatience(remote, since);
    const isOver = (kind: DaemonError['kind']): boolean => {
      if (patience) return patience(kind, this.#now());
      return start
        ? !this.#mayStart || (kind === 'daemon.failed' && this.#guard.spent(this.#now()))
        : this.#now() - since > lookMs || !(pid === undefined || alive(pid));
    };
    await untilConnected({
      attempt: () => this.#establish(start, again),
      isOver: ({ kind }) =>
        giveUp.signal.aborted || this.#end.signal.aborted || kind === 'protocol.mismatch' || isOver(kind),
      waitMs: (n) => backoffMs(n, this.#random),
      signal: giveUp.signal,
      watched: remote ? undefined : this.#o.storage,
      log: this.#o.log,
    });
  }
  /** While not connected and not trying: attaches when another window has started a daemon. */
  async #lookOut(): Promise<void> {
    const watch = await orUndefined(FolderWatch.open(this.#o.storage), 'a start makes the folder and looks again');
    if (!watch || this.#session || this.#remote || this.#end.signal.aborted) {
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
