/**
 * Loads the data once, then follows events. What events make stale is requested again, coalesced, only while the page is visible.
 */
import type { Params, Result } from '../../runtime/protocol/requests.js';
import type { RunEventType } from '../../runtime/protocol/types.js';
import type { DaemonState, HostError, PageMethod } from '../protocol.js';
import { RequestFailed, type Host, type Pushed } from '../ui/host.js';
import { clampWindow, fetchWindow, needsFetch, type Window } from '../ui/lanesMath.js';
import { t } from '../ui/words.js';
import { pageBeat as beat } from './beat.js';
import { Refresh } from './refresh.js';
import { isLive, isOver, seriesNames, staleAfter, type Message, type Model, type Stale } from './model.js';

const followed: readonly RunEventType[] = [
  'ended',
  'group',
  'trained',
  'metrics',
  'eval',
  'checkpoint',
  'spans',
  'note',
  'closed',
];
/** Least time between two answers of a kind: a fresher chart is worth less than an idle machine. */
const everyMs: Readonly<Record<Stale, number>> = { curves: 5000, curation: 10_000, tasks: 10_000, detail: 2000 };

/** The files of a run are counted no more often. */
const weighEveryMs = 60_000;
export class Feed {
  readonly #host: Host<'dashboard'>;
  readonly #dispatch: (m: Message) => void;
  readonly #model: () => Model;
  readonly #window: () => number;
  readonly #refresh: Readonly<Record<Stale, Refresh>>;
  #whole = false;
  #weighed = -Infinity;
  #lanesAsked: AbortController | undefined;
  #lanesTimer: ReturnType<typeof setTimeout> | undefined;

  /** `window`: rollouts the success curves' rolling mean takes together. */
  constructor(host: Host<'dashboard'>, model: () => Model, dispatch: (m: Message) => void, window: () => number) {
    this.#host = host;
    this.#model = model;
    this.#dispatch = dispatch;
    this.#window = window;
    this.#refresh = {
      curves: new Refresh(() => this.#curves(), everyMs.curves, beat),
      curation: new Refresh(() => this.#curation(), everyMs.curation, beat),
      tasks: new Refresh(() => this.#tasks(), everyMs.tasks, beat),
      detail: new Refresh(() => this.#detail(false), everyMs.detail, beat),
    };
    document.addEventListener('visibilitychange', () => {
      for (const r of Object.values(this.#refresh)) r.wake();
    });
  }

  async open(run: string, daemon: DaemonState): Promise<void> {
    this.#dispatch({ type: 'open', run, daemon });
    if (daemon === 'ready' && run) await this.load();
  }
  /**
   * Everything; the events that follow begin where the answer ends. The runtime answers one question after the other:
   * what is seen first is asked first.
   */
  async load(): Promise<void> {
    this.#whole = false;
    for (const method of this.#model().lacks.keys()) this.#dispatch({ type: 'lacks', method });
    await Promise.allSettled([this.#detail(true), this.#curves()]);
    await Promise.allSettled([
      this.#series().finally(() => {
        this.#whole = true;
      }),
      this.#curation(),
    ]);
    await this.#footprint();
    if (isOver(this.#model())) await this.#check();
  }
  /** Whether the run's last moment is known. */
  get whole(): boolean {
    return this.#whole;
  }
  pushed(m: Pushed): void {
    const model = this.#model();
    switch (m.type) {
      case 'show':
        if (m.input.kind === 'dashboard') void this.open(m.input.run, model.daemon);
        break;
      case 'daemon': {
        const back = m.state === 'ready' && model.daemon !== 'ready';
        this.#dispatch({ type: 'daemon', state: m.state, error: m.error });
        if (back && model.run) void this.load();
        break;
      }
      case 'status': {
        if (m.run !== model.run) break;
        const resumed = model.detail !== undefined && !isLive(model),
          before = model.status?.phase;
        this.#dispatch({ type: 'status', status: m.status, ledger: m.ledger });
        // The run was over, and its events with it: everything is loaded again.
        if (resumed && isLive(this.#model())) void this.load();
        // When each phase began is part of the detail.
        else if (before !== undefined && before !== m.status.phase) this.#refresh.detail.ask();
        break;
      }
      case 'events': {
        if (m.run !== model.run) break;
        // Right after its `closed` record a run may still report that it is stopping.
        if (m.ended) this.#refresh.detail.ask();
        if (m.events.length === 0) break;
        this.#dispatch({ type: 'events', events: m.events });
        for (const s of staleAfter(m.events)) this.#refresh[s].ask();
        break;
      }
      default:
        break;
    }
  }
  windowChanged(): void {
    if (this.#model().run) void this.#curves();
  }
  /** Lanes for a window; asked a moment after the last move. */
  lanes(w: Window, widthPx: number): void {
    const m = this.#model();
    if (!m.run || !m.detail || !needsFetch(m.lanes, w, m.now)) return;
    clearTimeout(this.#lanesTimer);
    this.#lanesTimer = setTimeout(
      () => {
        this.#lanesAsked?.abort();
        // An answer is as wide as its question: nothing is asked beyond what has happened.
        const mine = (this.#lanesAsked = new AbortController()),
          { now, detail } = this.#model(),
          wide = clampWindow(fetchWindow(w), { from: detail?.summary.createdAt ?? w.from, to: now });
        void this.#ask(
          'run/lanes',
          { run: m.run, from: Math.floor(wide.from), to: Math.ceil(wide.to), width: Math.round(widthPx * 3) },
          (lanes) => {
            if (!mine.signal.aborted) this.#dispatch({ type: 'lanes', lanes });
          },
          mine.signal,
        );
      },
      m.lanes ? 120 : 0,
    );
  }

  async #detail(subscribe: boolean): Promise<void> {
    const { run } = this.#model();
    try {
      const detail = await this.#host.request('run/get', { run });
      if (this.#model().run !== run) return;
      this.#dispatch({ type: 'detail', detail });
      if (!subscribe && performance.now() - this.#weighed > weighEveryMs) void this.#footprint();
      if (subscribe && isLive(this.#model())) this.#host.subscribe({ run, sinceSeq: detail.seq, types: followed });
    } catch (e) {
      if (this.#model().run === run && !this.#model().detail) this.#dispatch({ type: 'failed', error: errorOf(e) });
    }
  }
  #curves(): Promise<void> {
    return this.#ask(
      'run/curves',
      { run: this.#model().run, window: this.#window(), maxPoints: this.#model().curves.length > 0 ? 600 : 1200 },
      (r) => this.#dispatch({ type: 'curves', ...r }),
    );
  }
  #series(): Promise<void> {
    return this.#ask('run/series', { run: this.#model().run, names: seriesNames, maxPoints: 1500 }, (r) =>
      this.#dispatch({ type: 'series', series: r.series }),
    );
  }
  #curation(): Promise<void> {
    return this.#ask('run/curation', { run: this.#model().run }, (curation) =>
      this.#dispatch({ type: 'curation', curation }),
    );
  }
  /**
   * Reads the run's disk use, which looks at every file: after the first drawing, and then with each new evaluation.
   */
  #footprint(): Promise<void> {
    this.#weighed = performance.now();
    return this.#ask('run/footprint', { run: this.#model().run }, (footprint) =>
      this.#dispatch({ type: 'footprint', footprint }),
    );
  }
  /** Last of all: it reads the whole journal. */
  #check(): Promise<void> {
    return this.#ask('run/check', { run: this.#model().run }, ({ damage }) =>
      this.#dispatch({ type: 'checked', damage }),
    );
  }
  #tasks(): Promise<void> {
    return this.#ask('task/list', { run: this.#model().run }, (r) => this.#dispatch({ type: 'tasks', tasks: r.tasks }));
  }
  /**
   * An answer for a run that is no longer shown is dropped; a part that fails does not affect the rest of the page.
   * Nothing is asked of a runtime that is away: that is said elsewhere, and everything is loaded when it is back.
   */
  async #ask<M extends PageMethod<'dashboard'>>(
    method: M,
    params: Params<M> & { readonly run: string },
    took: (r: Result<M>) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.#model().daemon !== 'ready') return;
    try {
      const r = await this.#host.request(method, params, signal);
      if (this.#model().run !== params.run) return;
      if (this.#model().lacks.has(method)) this.#dispatch({ type: 'lacks', method });
      took(r);
    } catch (e) {
      const quiet = e instanceof RequestFailed && quietKinds.has(e.kind);
      if (!quiet && this.#model().run === params.run) this.#dispatch({ type: 'lacks', method, error: errorOf(e) });
    }
  }
}
/** Errors that the page does not show, because nothing went wrong or the banner of the runtime says it. */
const quietKinds: ReadonlySet<string> = new Set(['cancelled', 'connection.lost', 'daemon.stopped']);
const errorOf = (e: unknown): HostError =>
  e instanceof RequestFailed
    ? { kind: e.kind, message: e.message, remedy: e.remedy }
    : { kind: 'internal', message: e instanceof Error ? e.message : String(e), remedy: t('See the log.') };
