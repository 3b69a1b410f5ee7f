/**
 * The conversation with one page, without `vscode`: handshake by boot id, requests passed on to the runtime, one event
 * subscription, status, live pictures. A hidden page is torn down by VS Code and rebuilt when shown: it then posts
 * `ready` with a new boot id and gets everything again, so nothing is buffered here.
 */
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import * as methods from '../../runtime/protocol/methods.js';
import { requests, type Params, type Result } from '../../runtime/protocol/requests.js';
import type { ControlState } from '../../runtime/protocol/types.js';
import type {
  HostAction,
  PageInput,
  PageKind,
  PageMethod,
  ResourceRoot,
  ToHost,
  ToPage,
} from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { wireError } from '../errorWords.js';
import type { Runtime } from '../runtimePort.js';
import { Refused } from '../refused.js';
import { t } from '../words.js';
import { parseToHost } from './messages.js';
import { fetchPictures, picturesOf } from './remotePictures.js';

export interface PageSessionOptions {
  readonly kind: PageKind;
  readonly input: PageInput;
  readonly runtime: Runtime;
  /** False when the message could not be delivered. */
  readonly post: (m: ToPage) => PromiseLike<boolean>;
  readonly roots: () => readonly ResourceRoot[];
  readonly trusted: () => boolean;
  readonly act: (a: HostAction) => void;
  readonly setTitle: (title: string) => void;
  /** Builds the page anew, whose script did not come: for the first, second … time since there was a page. */
  readonly rebuild: (time: number) => void;
  readonly watchFps: () => number;
  /** Folder of this machine that a page may show files of. */
  readonly cache: string;
  /** Who has a desktop. */
  readonly held: (desktop: string) => ControlState | undefined;
  /** This page took over, or shows, a session. */
  readonly adopt: (s: ControlState) => void;
  readonly log: { warn(message: string): void; error(message: string): void };
}
type Body<T> = T extends { readonly boot: string } ? Omit<T, 'boot'> : never;

/** Pictures a second while a person is in control; the setting is for watching. */
const handsOnFps = 30;

export class PageSession implements Ends {
  readonly #o: PageSessionOptions;
  readonly #own = new Disposables();
  readonly #requests = new Map<number, AbortController>();
  /** Session for which this page counts as one that looks, over this connection. */
  #attached: string | undefined;
  /** Replays that this page asked for, by run and rollout. */
  readonly #replays = new Set<string>();
  #input: PageInput;
  #boot: string | undefined;
  #lost = 0;
  #subscription: Ends | undefined;
  #watch: Ends | undefined;

  constructor(o: PageSessionOptions) {
    this.#o = o;
    this.#input = o.input;
    const { runtime, kind } = o;
    this.#own.defer(runtime.onState(() => this.#daemonChanged()));
    this.#own.defer(
      runtime.on(methods.runStatus, (s) => {
        if (!('run' in this.#input) || this.#input.run === s.run)
          this.#post({ type: 'status', run: s.run, status: s.status, ledger: s.ledger });
      }),
    );
    this.#listen();
    if (kind === 'dashboard' || kind === 'live' || kind === 'try')
      this.#own.defer(
        runtime.on(methods.desktopChanged, (d) => {
          this.#post({ type: 'desktop', desktop: d.desktop, row: d.row });
          // A desktop that was replaced under its name has a new screen to watch.
          if (
            d.row &&
            d.desktop === desktopOf(this.#input)?.desktop &&
            d.row.state !== 'broken' &&
            d.row.state !== 'stopped'
          )
            this.#startWatch();
        }),
      );
  }
  get input(): PageInput {
    return this.#input;
  }
  /** What concerns a person at a desktop, or what people said of a trajectory. */
  #listen(): void {
    const { runtime, kind } = this.#o;
    if (kind === 'live' || kind === 'try')
      this.#own.defer(
        runtime.on(methods.controlChanged, (s) => {
          const shown = desktopOf(this.#input);
          if (shown && (s.session === shown.session || s.desktop === shown.desktop))
            this.#post({ type: 'control', state: s });
        }),
      );
    if (kind !== 'inspector') return;
    const shown = (run: string, rollout: string): boolean =>
      this.#input.kind === 'inspector' && this.#input.run === run && this.#input.rollout === rollout;
    this.#own.defer(
      runtime.on(methods.annotationChanged, (a) => {
        if (shown(a.run, a.rollout))
          this.#post({ type: 'annotation', run: a.run, rollout: a.rollout, revision: a.revision });
      }),
    );
    this.#own.defer(
      runtime.on(methods.replayProgress, (p) => {
        if (shown(p.run, p.rollout) && this.#replays.has(replayKey(p)))
          this.#post({
            type: 'annotation',
            run: p.run,
            rollout: p.rollout,
            replay: { step: p.step, of: p.of, desktop: p.desktop },
          });
      }),
    );
  }
  show(input: PageInput): void {
    const { kind, ...old } = this.#input;
    // What is being tried goes on; another policy is only chosen.
    this.#input =
      input.kind === 'try' && kind === 'try' && 'session' in old
        ? { desktop: old.desktop, session: old.session, ...input }
        : input;
    this.#post({ type: 'show', input: this.#input, roots: this.#o.roots() });
  }
  /** The page has moved to another trajectory by itself, so it is not told. */
  moved(rollout: string): void {
    const i = this.#input;
    if (i.kind === 'inspector' && i.run !== undefined)
      this.#input = { kind: i.kind, run: i.run, rollout, annotate: true, queue: true };
  }
  do(what: string, context?: unknown): void {
    this.#post({ type: 'do', what, context });
  }
  /** Called when the page is being replaced or has gone. */
  gone(): void {
    this.#boot = undefined;
    for (const a of this.#requests.values()) a.abort();
    this.#requests.clear();
    this.#own.drop(this.#subscription);
    this.#own.drop(this.#watch);
    this.#subscription = this.#watch = undefined;
  }
  dispose(): void {
    this.gone();
    this.#own.dispose();
  }

  receive(raw: unknown): void {
    const m = parseToHost(raw, this.#o.kind);
    if (!m) {
      this.#o.log.warn(`${this.#o.kind} page: a message was not understood and dropped`);
      return;
    }
    if (m.type === 'ready') {
      this.gone();
      this.#boot = m.boot;
      this.#lost = 0;
      this.#post({
        type: 'init',
        input: this.#input,
        roots: this.#o.roots(),
        daemon: this.#o.runtime.state,
        trusted: this.#o.trusted(),
      });
      this.#daemonChanged();
      // A desktop that somebody has: the page need not ask who. Its own session it attaches to.
      const held = this.#input.kind === 'live' ? this.#o.held(this.#input.desktop) : undefined;
      if (held) this.#post({ type: 'control', state: held });
    } else if (m.type === 'lost') {
      this.#o.log.warn(`${this.#o.kind} page: its script did not come; it is built anew`);
      this.#o.rebuild(++this.#lost);
    } else if (m.boot === this.#boot) this.#handle(m);
  }
  #handle(m: Exclude<ToHost, { type: 'ready' | 'lost' }>): void {
    switch (m.type) {
      case 'request':
        void this.#request(m.id, m.method, m.params);
        return;
      case 'cancel':
        this.#requests.get(m.id)?.abort();
        return;
      case 'subscribe':
        this.#subscribe(m);
        return;
      case 'action':
        this.#o.act(m.action);
        return;
      case 'title':
        this.#o.setTitle(m.title);
        return;
      case 'fault':
        this.#o.log.error(`${this.#o.kind} page: ${m.message}`);
        return;
    }
  }
  async #request(id: number, method: PageMethod, params: unknown): Promise<void> {
    const boot = this.#boot,
      abort = new AbortController();
    this.#requests.set(id, abort);
    let answer: Body<Extract<ToPage, { type: 'response' }>>;
    const replay =
      method === 'annotation/replay' ? replayKey(params as { run?: unknown; rollout?: unknown }) : undefined;
    try {
      if (requests[method].writes && !this.#o.trusted())
        throw new Refused(
          'untrusted',
          t('This workspace is not trusted; in Restricted Mode trajectories can be viewed, not changed.'),
          t('Trust the workspace to annotate and to record.'),
        );
      if (replay !== undefined) this.#replays.add(replay);
      const result = await this.#carryOut(method, params, abort.signal);
      answer = { type: 'response', id, result };
    } catch (e) {
      answer = { type: 'response', id, error: wireError(e) };
    } finally {
      if (replay !== undefined) this.#replays.delete(replay);
    }
    if (this.#requests.get(id) === abort) this.#requests.delete(id);
    if (this.#boot === boot) this.#post(answer);
  }
  /** The daemon checks the parameters; here only their size was. */
  async #carryOut(method: PageMethod, params: unknown, signal: AbortSignal): Promise<unknown> {
    const call = <M extends PageMethod>(name: M): Promise<Result<M>> =>
      this.#o.runtime.call(name, params as Params<M>, signal);
    switch (method) {
      case 'control/takeOver':
      case 'control/attach': {
        const state = await call(method);
        this.#controlled(method, state);
        return state;
      }
      case 'control/detach': {
        const done = await call(method);
        this.#attached = undefined;
        return done;
      }
      case 'frame/thumbnails': {
        const { runtime, cache } = this.#o;
        return runtime.remote
          ? fetchPictures(runtime, params as Params<typeof method>, picturesOf(cache, runtime.remote.name), signal)
          : call(method);
      }
      default:
        return call(method);
    }
  }
  /** A page that took a desktop over, or attached to a session, shows that session from now on: closing it lets go. */
  #controlled(method: 'control/takeOver' | 'control/attach', state: ControlState): void {
    if (this.#input.kind !== 'live' && this.#input.kind !== 'try') return;
    if (method === 'control/attach') {
      // The runtime counts the windows that show a session; a rebuilt page still counts once.
      if (this.#attached === state.session)
        ignoreFailure(
          this.#o.runtime.request(methods.detachControl, { session: state.session }),
          'a connection that is lost is counted no more',
        );
      this.#attached = state.session;
    }
    const { session, desktop } = state;
    if (session !== this.#input.session) {
      // A page that tries a policy has another desktop each time.
      if (desktop !== this.#input.desktop && this.#input.kind === 'try') this.#input = { ...this.#input, desktop };
      this.#input = { ...this.#input, session };
      if (this.#input.kind === 'try') {
        this.#own.drop(this.#watch);
        this.#watch = undefined;
      }
      this.#startWatch();
    }
    this.#o.adopt(state);
  }
  /** The runtime's client keeps it alive over reconnects; one per page. */
  #subscribe(q: Extract<ToHost, { type: 'subscribe' }>): void {
    this.#own.drop(this.#subscription);
    this.#subscription = this.#own.defer(
      this.#o.runtime.subscribe(
        {
          run: q.run,
          sinceSeq: q.sinceSeq,
          types: q.types,
          rollout: q.rollout || undefined,
        },
        (b) =>
          this.#post({
            type: 'events',
            run: q.run,
            events: b.events,
            nextSeq: b.nextSeq,
            live: b.live,
            ended: b.ended || undefined,
          }),
        (e) => this.#o.log.warn(`${this.#o.kind} page: events of ${q.run}: ${e.message}`),
      ),
    );
  }
  /**
   * Pictures of the live page's desktop while the page and the runtime are there. The client watches again after a
   * reconnect.
   */
  #startWatch(): void {
    const input = desktopOf(this.#input),
      { runtime } = this.#o;
    if (!input || this.#watch || runtime.state !== 'ready' || this.#boot === undefined) return;
    let screen = { width: 0, height: 0 },
      ended = false;
    // A person who acts on the desktop must see the effect at once.
    const watch: Ends = this.#own.defer(
      runtime.watch(
        input.desktop,
        { maxFps: input.session ? handsOnFps : this.#o.watchFps() },
        {
          start: (s) => {
            screen = s;
          },
          // A copy: VS Code passes plain typed arrays on as they are, but a Node Buffer as JSON, and a view with the
          // whole buffer behind it.
          patch: (p, png) =>
            this.#post({
              type: 'screen',
              x: p.x,
              y: p.y,
              width: p.width,
              height: p.height,
              at: p.at,
              png: new Uint8Array(png),
              screen,
            }),
          end: (error) => {
            if (error) this.#o.log.warn(`${this.#o.kind} page: pictures of ${input.desktop} ended: ${error.message}`);
            ended = true;
            if (this.#watch !== undefined && this.#watch === watch) {
              this.#own.drop(watch);
              this.#watch = undefined;
            }
          },
        },
      ),
    );
    if (ended) this.#own.drop(watch);
    else this.#watch = watch;
  }
  #daemonChanged(): void {
    const { state, stateDetail } = this.#o.runtime;
    if (state !== 'ready') this.#attached = undefined;
    this.#post({ type: 'daemon', state, error: stateDetail });
    this.#startWatch();
  }
  #post(body: Body<ToPage>): void {
    const boot = this.#boot;
    if (boot === undefined) return;
    const lost = (): void => {
      if (this.#boot === boot) this.gone();
    };
    // `false`: the page is hidden and torn down. It asks for everything again when it is back.
    void this.#o.post({ ...body, boot }).then((delivered) => {
      if (!delivered) lost();
    }, lost);
  }
}
/** The desktop of which a page shows live pictures. */
const desktopOf = (i: PageInput): { readonly desktop: string; readonly session?: string | undefined } | undefined =>
  (i.kind === 'live' || i.kind === 'try') && i.desktop !== undefined
    ? { desktop: i.desktop, session: i.session }
    : undefined;
const replayKey = (p: { readonly run?: unknown; readonly rollout?: unknown }): string =>
  `${String(p.run)} ${String(p.rollout)}`;
