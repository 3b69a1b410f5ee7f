/**
 * The conversation with one page, without `vscode`: handshake by boot id, requests passed on to the runtime, one event
 * subscription, status, live pictures. A hidden page is torn down by VS Code and rebuilt when shown: it then posts
 * `ready` with a new boot id and gets everything again. Nothing is buffered here but the answers to requests that take
 * long (`longMethods`), which go on meanwhile.
 */
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import * as methods from '../../runtime/protocol/methods.js';
import { requests, type Params, type Result } from '../../runtime/protocol/requests.js';
import type { ControlState, SavedTableFilter } from '../../runtime/protocol/types.js';
import type {
  HostAction,
  InputOf,
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
import { LivePictures } from './livePictures.js';
import { LongRequests } from './longRequests.js';
import { parseToHost } from './messages.js';
import { inPage } from './panelKinds.js';
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
  /** The session of the person who has a desktop. */
  readonly held: (desktop: string) => ControlState | undefined;
  /** This page took over, or shows, a session. */
  readonly adopt: (s: ControlState) => void;
  /** Filters of tables, saved with the workspace. */
  readonly savedFilters: () => readonly SavedTableFilter[];
  readonly log: { warn(message: string): void; error(message: string): void };
}
type Body<T> = T extends { readonly boot: string } ? Omit<T, 'boot'> : never;
type Pushed<T extends ToPage['type']> = Body<Extract<ToPage, { type: T }>>;

/** Pictures a second while a person is in control; the setting is for watching. */
const handsOnFps = 30;

export class PageSession implements Ends {
  readonly #o: PageSessionOptions;
  readonly #own = new Disposables();
  readonly #requests = new Map<number, AbortController>();
  readonly #long = new LongRequests(
    (a) => this.#send(a),
    ({ method }, { result }) => {
      if (method === 'try/start' && result !== undefined) this.#look(result as ControlState);
    },
  );
  /** Session for which this page counts as one that looks, over this connection. */
  #attached: string | undefined;
  /** Replays that this page asked for, by run and rollout, and how far each is. */
  readonly #replays = new Map<string, Pushed<'annotation'> | undefined>();
  #input: PageInput;
  #boot: string | undefined;
  #lost = 0;
  #subscription: Ends | undefined;
  readonly #pictures: LivePictures;

  constructor(o: PageSessionOptions) {
    this.#o = o;
    this.#input = o.input;
    const { runtime, kind, log } = o;
    this.#pictures = new LivePictures(
      runtime,
      (m) => this.#post(m),
      (words) => log.warn(`${kind} page: ${words}`),
    );
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
  /** Passes on changes of control sessions and of annotations. */
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
        if (!this.#replays.has(replayKey(p))) return;
        const { run, rollout, ...replay } = p,
          progress = { type: 'annotation', run, rollout, replay } as const;
        this.#replays.set(replayKey(p), progress);
        if (shown(run, rollout)) this.#post(progress);
      }),
    );
  }
  show(input: PageInput): void {
    const session = sessionOf(this.#input);
    this.#input = inPage(this.#input, input);
    this.#post({ type: 'show', input: this.#told, roots: this.#o.roots() });
    if (sessionOf(this.#input) !== session) this.#watchAgain();
  }
  /** The input with what the page is told besides. */
  get #told(): PageInput {
    return this.#input.kind === 'table' ? { ...this.#input, saved: this.#o.savedFilters() } : this.#input;
  }
  /** Takes over the reader's choices in the page, but for sessions, known here already, and documents. */
  #now(input: PageInput): void {
    const i = this.#input;
    if (i.kind === 'try' && input.kind === 'try') this.#input = { ...i, run: input.run, version: input.version };
    else if (i.kind !== 'live' && !('document' in i && i.document)) this.#input = input;
  }
  savedFiltersChanged(): void {
    if (this.#input.kind === 'table') this.#post({ type: 'savedFilters', saved: this.#o.savedFilters() });
  }
  /** The page has moved to another trajectory by itself, so it is not told. */
  moved(rollout: string): void {
    const i = this.#input;
    if (i.kind === 'inspector' && i.run !== undefined && i.rollout !== rollout)
      this.#input = { kind: i.kind, run: i.run, rollout, annotate: true, queue: true };
  }
  do(what: string, context?: unknown): void {
    this.#post({ type: 'do', what, context });
  }
  /** Called when the page is being replaced or has gone. What takes long goes on for the page that comes back. */
  gone(): void {
    this.#boot = undefined;
    for (const [id, a] of this.#requests) {
      if (this.#long.has(id)) continue;
      a.abort();
      this.#requests.delete(id);
    }
    this.#own.drop(this.#subscription);
    this.#pictures.stop();
    this.#subscription = undefined;
  }
  dispose(): void {
    this.#long.clear();
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
        input: this.#told,
        roots: this.#o.roots(),
        daemon: this.#o.runtime.state,
        trusted: this.#o.trusted(),
        jobs: this.#long.jobs,
      });
      this.#daemonChanged();
      const replay = this.#input.kind === 'inspector' ? this.#replays.get(replayKey(this.#input)) : undefined;
      if (replay) this.#post(replay);
      this.#long.tell();
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
      case 'now':
        this.#now(m.input);
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
    let answer: Pushed<'response'>;
    this.#long.began(id, method, params);
    const replay =
      method === 'annotation/replay' ? replayKey(params as { run?: unknown; rollout?: unknown }) : undefined;
    try {
      if (requests[method].writes && !this.#o.trusted())
        throw new Refused(
          'untrusted',
          t('This workspace is not trusted; in Restricted Mode trajectories can be viewed, not changed.'),
          t('Trust the workspace to annotate and to record.'),
        );
      if (replay !== undefined) this.#replays.set(replay, undefined);
      const result = await this.#carryOut(method, params, abort.signal);
      answer = { type: 'response', id, result };
    } catch (e) {
      answer = { type: 'response', id, error: wireError(e) };
    } finally {
      if (replay !== undefined) this.#replays.delete(replay);
    }
    if (this.#requests.get(id) === abort) this.#requests.delete(id);
    if (this.#long.has(id)) await this.#long.ended(answer);
    else if (this.#boot === boot) this.#post(answer);
  }
  /** Looks at a session in place of the hidden page: a session that nobody looks at ends after a minute. */
  #look({ session }: ControlState): void {
    ignoreFailure(
      this.#carryOut('control/attach', { session }, new AbortController().signal),
      'the page attaches when it is back',
    );
  }
  /** The daemon checks the parameters; here only their size was. */
  async #carryOut(method: PageMethod, params: unknown, signal: AbortSignal): Promise<unknown> {
    const call = <M extends PageMethod>(name: M): Promise<Result<M>> =>
      this.#o.runtime.call(name, params as Params<M>, signal);
    switch (method) {
      case 'control/takeOver':
      case 'control/attach': {
        const state = await call(method).catch((e: unknown) => {
          if (method === 'control/attach' && wireError(e).kind === 'not.found') this.#letGo(params);
          throw e;
        });
        this.#controlled(method, state);
        return state;
      }
      case 'control/detach':
        this.#letGo(params);
        return call(method);
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
      this.#watchAgain();
    }
    this.#o.adopt(state);
  }
  /** The page shows this session no more, or there is none. */
  #letGo(params: unknown): void {
    const { session } = params as { readonly session?: unknown };
    if (this.#attached === session) this.#attached = undefined;
    if (session === undefined || session !== sessionOf(this.#input)) return;
    const { session: _, ...left } = this.#input as InputOf<'live' | 'try'>;
    // The desktop of a try goes with it.
    this.#input = left.kind === 'try' ? { ...left, desktop: undefined } : left;
    this.#watchAgain();
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
  /** Somebody acts on the desktop now, or no more: its pictures come at another pace. */
  #watchAgain(): void {
    this.#pictures.stop();
    this.#startWatch();
  }
  /** Pictures of the live page's desktop while the page and the runtime are there. */
  #startWatch(): void {
    const input = desktopOf(this.#input);
    if (!input || this.#o.runtime.state !== 'ready' || this.#boot === undefined) return;
    // A person who acts on the desktop must see the effect at once.
    this.#pictures.start(input.desktop, input.session ? handsOnFps : this.#o.watchFps());
  }
  #daemonChanged(): void {
    const { state, stateDetail } = this.#o.runtime;
    if (state !== 'ready') this.#attached = undefined;
    this.#post({ type: 'daemon', state, error: stateDetail });
    this.#startWatch();
  }
  #post(body: Body<ToPage>): void {
    void this.#send(body);
  }
  /** False where the page is hidden and torn down. It asks for everything again when it is back. */
  async #send(body: Body<ToPage>): Promise<boolean> {
    const boot = this.#boot;
    if (boot === undefined) return false;
    let delivered = false;
    try {
      delivered = await this.#o.post({ ...body, boot });
    } catch {
      // Its panel is closed.
    }
    if (!delivered && this.#boot === boot) this.gone();
    return delivered;
  }
}
const sessionOf = (i: PageInput): string | undefined => (i.kind === 'live' || i.kind === 'try' ? i.session : undefined);
/** The desktop of which a page shows live pictures. */
const desktopOf = (i: PageInput): { readonly desktop: string; readonly session?: string | undefined } | undefined =>
  (i.kind === 'live' || i.kind === 'try') && i.desktop !== undefined
    ? { desktop: i.desktop, session: i.session }
    : undefined;
const replayKey = (p: { readonly run?: unknown; readonly rollout?: unknown }): string =>
  `${String(p.run)} ${String(p.rollout)}`;
