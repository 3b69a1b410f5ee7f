/**
 * The data of the views, updated by the runtime's events: the runs, the selected run's tasks, the desktops. No polling.
 * A burst of events is one refresh; everything is reloaded when the runtime is back.
 */
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import * as methods from '../../runtime/protocol/methods.js';
import type {
  DesktopRow,
  Ledger,
  QueueView,
  RunDetail,
  RunEvent,
  RunPath,
  RunSummary,
  TaskRow,
} from '../../runtime/protocol/types.js';
import type { HostError } from '../../webview/protocol.js';
import { Disposables, type Ends } from '../dispose.js';
import { Emitter } from '../emitter.js';
import { wireError } from '../errorWords.js';
import type { Runtime } from '../runtimePort.js';
import { throttle, type Later } from '../throttle.js';
import { HeardRuns } from './heardRuns.js';
import type { ListedRun } from './savedRuns.js';

/**
 * `runs`: list or selection; `status`: once a second while a run is active; `trajectories`: rows of the selected run
 * came or changed.
 */
export type Change = 'runs' | 'status' | 'detail' | 'tasks' | 'desktops' | 'trajectories' | 'daemon';
export interface ModelOptions {
  readonly runtime: Runtime;
  readonly roots: (active: readonly RunPath[]) => readonly string[];
  readonly selected?: RunPath | undefined;
  readonly keepSelected: (run: RunPath) => void;
  /** Runs as their folders tell them, while no runtime can be asked. */
  readonly saved?: (roots: readonly string[]) => Promise<readonly ListedRun[]>;
  readonly failed: (e: unknown, doing: string) => void;
  readonly later?: Later;
}

const activeStates: ReadonlySet<string> = new Set(['running', 'paused', 'stopping']);
export const isActive = (r: RunSummary): boolean => activeStates.has(r.state);
const rowEvents = [
  'started',
  'ended',
  'group',
  'trained',
  'eval',
  'checkpoint',
  'closed',
] as const satisfies readonly RunEvent['type'][];

export class StudioModel implements Ends {
  readonly #o: ModelOptions;
  readonly #own = new Disposables();
  readonly #changed = new Emitter<Change>();
  /** Runs that are or were active, whether or not they are under the roots. */
  readonly #heard = new HeardRuns();
  readonly #desktops = new Map<string, DesktopRow>();
  readonly #ended = new Emitter<RunSummary>();
  #runs: readonly ListedRun[] = [];
  #archived = false;
  #queue: QueueView | undefined;
  /** The list is that of the folders: no runtime was asked. */
  #fromFolders = false;
  #tasks: readonly TaskRow[] = [];
  #detail: RunDetail | undefined;
  #ledger: Ledger | undefined;
  #chosen: RunPath | undefined;
  #loaded = false;
  #loading: Promise<void> | undefined;
  /** How many lists of runs were asked for, and which of them is shown. */
  #lists = 0;
  #applied = 0;
  #problem: HostError | undefined;
  #subscription: Ends | undefined;
  #subscribedTo: RunPath | undefined;
  /** The events of the followed run came to their end: should it be resumed, it is followed anew. */
  #overHeard = false;
  readonly #listSoon: () => void;
  readonly #tasksSoon: () => void;
  readonly #detailSoon: () => void;

  constructor(o: ModelOptions) {
    this.#o = o;
    this.#chosen = o.selected;
    const soon = (f: () => Promise<void>, ms: number): (() => void) =>
      this.#own.add(
        throttle(
          () => {
            void f();
          },
          ms,
          o.later,
        ),
      );
    this.#listSoon = soon(() => this.reload(), 300);
    this.#tasksSoon = soon(() => this.#loadTasks(), 2000);
    this.#detailSoon = soon(() => this.#loadDetail(), 1000);
    const { runtime } = o;
    this.#own.defer(runtime.onState((s) => this.#stateChanged(s)));
    this.#own.defer(
      runtime.on(methods.runsChanged, (c) => {
        if (activeStates.has(c.state)) {
          this.#heard.add(c.run);
          if (!this.#runs.some((r) => r.run === c.run && isActive(r))) this.#chosen = c.run;
          // Changed at once, before the list is read again: a resumed run is seen to be under way.
          this.#runs = this.#runs.map((r) => (r.run === c.run ? { ...r, state: c.state } : r));
          this.#goOn(c.run);
          this.#changed.fire('runs');
        }
        this.#listSoon();
      }),
    );
    this.#own.defer(
      runtime.on(methods.runStatus, (s) => {
        if (!this.#runs.some((r) => r.run === s.run)) {
          this.#heard.add(s.run);
          this.#listSoon();
          return;
        }
        this.#runs = this.#runs.map((r) =>
          r.run === s.run
            ? { ...r, state: s.status.state, status: s.status, rollouts: s.status.rollouts, version: s.status.version }
            : r,
        );
        if (s.run === this.selected) this.#ledger = s.ledger;
        if (activeStates.has(s.status.state)) this.#goOn(s.run);
        this.#changed.fire('status');
      }),
    );
    this.#own.defer(
      runtime.on(methods.queueChanged, (q) => {
        this.#queue = q;
        this.#changed.fire('runs');
      }),
    );
    this.#own.defer(
      runtime.on(methods.desktopChanged, (d) => {
        this.#keep(d.desktop, d.row);
        this.#changed.fire('desktops');
      }),
    );
    if (runtime.state === 'ready') this.#stateChanged('ready');
  }
  readonly onChange = (l: (c: Change) => void): (() => void) => this.#changed.on(l);
  /** A run that was active is over. */
  readonly onEnded = (l: (r: RunSummary) => void): (() => void) => this.#ended.on(l);

  /** Runs that wait for others; unknown without a runtime. */
  get queue(): QueueView | undefined {
    return this.#queue;
  }
  /** Whether archived runs are listed. */
  get archived(): boolean {
    return this.#archived;
  }
  showArchived(on: boolean): void {
    this.#archived = on;
    this.#changed.fire('runs');
  }
  get runs(): readonly ListedRun[] {
    return this.#runs;
  }
  get active(): RunSummary | undefined {
    return this.#runs.find(isActive);
  }
  get tasks(): readonly TaskRow[] {
    return this.#tasks;
  }
  get detail(): RunDetail | undefined {
    return this.#detail?.summary.run === this.selected ? this.#detail : undefined;
  }
  get ledger(): Ledger | undefined {
    return this.#ledger;
  }
  get desktops(): readonly DesktopRow[] {
    return [...this.#desktops.values()].sort((a, b) =>
      a.desktop.localeCompare(b.desktop, undefined, { numeric: true }),
    );
  }
  /** Whether the runs are listed from their folders, without a runtime. */
  get fromFolders(): boolean {
    return this.#fromFolders;
  }
  /** Whether the runtime was lost and is sought: what it said last of its runs is listed still. */
  get reconnecting(): boolean {
    return this.#o.runtime.state === 'reconnecting';
  }
  /** Whether a list was read since the runtime is there. */
  get loaded(): boolean {
    return this.#loaded;
  }
  get loading(): Promise<void> | undefined {
    return this.#loading;
  }
  /** Why the list could not be read. */
  get problem(): HostError | undefined {
    return this.#problem;
  }
  /** The chosen run; else the active one; else the newest that can be read. */
  get selected(): RunPath | undefined {
    const runs = this.#runs;
    return (runs.find((r) => r.run === this.#chosen) ?? this.active ?? runs.find((r) => !r.damaged) ?? runs[0])?.run;
  }
  summary(run: RunPath | undefined): RunSummary | undefined {
    return this.#runs.find((r) => r.run === run);
  }

  select(run: RunPath): void {
    this.#chosen = run;
    this.#o.keepSelected(run);
    // A listener requests the first page of trajectories: users look at it first, so it is requested first.
    this.#changed.fire('runs');
    this.#follow();
  }
  /** Adds a run that was started here: it is listed even when it is outside the roots. */
  started(run: RunPath): Promise<void> {
    this.#heard.add(run);
    this.#chosen = run;
    this.#o.keepSelected(run);
    return this.reload();
  }
  /** A run, or the runs of a folder, are listed only where they are active or under the roots. */
  readonly forget = (root: string): void =>
    this.#heard.forget(root, (run) => this.#runs.some((r) => r.run === run && isActive(r)));
  async reload(): Promise<void> {
    if (this.#o.runtime.state !== 'ready') {
      await this.#listSaved();
      return;
    }
    const loading = this.#list();
    this.#loading = loading;
    this.#changed.fire('runs');
    await loading;
    if (this.#loading === loading) this.#loading = undefined;
    this.#changed.fire('runs');
  }
  dispose(): void {
    this.#own.dispose();
  }

  /** Lists the runs by their folders, while the runtime cannot be asked. */
  async #listSaved(): Promise<void> {
    const { runtime, saved } = this.#o,
      asked = ['stopped', 'failed', 'incompatible'];
    if (!saved || !asked.includes(runtime.state)) return;
    const runs = await saved(this.#o.roots([]));
    if (!asked.includes(runtime.state)) return;
    this.#runs = runs;
    this.#fromFolders = true;
    this.#changed.fire('runs');
  }
  async #list(): Promise<void> {
    const { runtime } = this.#o,
      asked = ++this.#lists;
    try {
      const { runs } = await runtime.request(methods.listRuns, { roots: this.#o.roots(this.#heard.all) });
      // A newer list was asked for meanwhile, and is there already.
      if (asked < this.#applied) return;
      this.#applied = asked;
      const before = this.#runs;
      this.#runs = runs;
      this.#fromFolders = false;
      this.#loaded = true;
      this.#problem = undefined;
      for (const r of runs) if (!isActive(r) && before.some((b) => b.run === r.run && isActive(b))) this.#ended.fire(r);
      this.#follow();
    } catch (e) {
      if (asked >= this.#applied) this.#problem = wireError(e);
    }
  }
  #stateChanged(state: Runtime['state']): void {
    if (state === 'ready') {
      for (const r of this.#o.runtime.hello?.activeRuns ?? []) this.#heard.add(r);
      void this.reload();
      void this.#loadDesktops();
      ignoreFailure(this.#loadQueue(), 'the next change of the queue tells it');
    } else if (state === 'stopped' || state === 'failed' || state === 'incompatible') {
      this.#runs = [];
      this.#tasks = [];
      this.#detail = this.#ledger = this.#problem = this.#queue = undefined;
      this.#loaded = false;
      this.#heard.clear();
      this.#desktops.clear();
      this.#unfollow();
      void this.#listSaved();
    } else this.#desktops.clear();
    this.#changed.fire('daemon');
    this.#changed.fire('desktops');
    this.#changed.fire('tasks');
    this.#changed.fire('trajectories');
  }
  async #loadQueue(): Promise<void> {
    this.#queue = await this.#o.runtime.request(methods.listQueue, {});
    this.#changed.fire('runs');
  }
  /** A desktop that was stopped for good is not listed. */
  #keep(desktop: string, row: DesktopRow | undefined): void {
    if (row && row.state !== 'stopped') this.#desktops.set(desktop, row);
    else this.#desktops.delete(desktop);
  }
  /** Events of the selected run; a run that is over is read once and ends its subscription by itself. */
  #follow(): void {
    // Without a runtime nothing can be followed; the selected run is followed once there is one.
    if (this.#o.runtime.state !== 'ready') return;
    const run = this.selected;
    if (run === this.#subscribedTo) return;
    this.#unfollow();
    this.#tasks = [];
    this.#ledger = undefined;
    this.#changed.fire('tasks');
    this.#changed.fire('trajectories');
    if (run === undefined) return;
    this.#subscribedTo = run;
    void this.#loadDetail().then(() => this.#subscribe(run));
  }
  #subscribe(run: RunPath): void {
    if (this.#subscribedTo !== run || this.#subscription) return;
    const seq = this.detail?.seq;
    if (seq === undefined) {
      // The run could not be read: the next list of runs tries again.
      this.#subscribedTo = undefined;
      return;
    }
    this.#subscription = this.#own.defer(
      this.#o.runtime.subscribe(
        { run, sinceSeq: seq, types: rowEvents },
        (b) => {
          this.#events(b.events);
          this.#overHeard ||= b.ended === true;
        },
        (e) => {
          this.#o.failed(e, 'follow the run');
          this.#unfollow();
        },
      ),
    );
  }
  /** A run that was followed to its end is under way again. What is shown of it stays until it is read anew. */
  #goOn(run: RunPath): void {
    if (run !== this.#subscribedTo || !this.#overHeard) return;
    this.#unfollow();
    this.#subscribedTo = run;
    void this.#loadDetail().then(() => {
      this.#subscribe(run);
      this.#changed.fire('trajectories');
    });
  }
  #unfollow(): void {
    this.#own.drop(this.#subscription);
    this.#subscription = this.#subscribedTo = undefined;
    this.#overHeard = false;
  }
  #events(events: readonly RunEvent[]): void {
    const has = (...types: RunEvent['type'][]): boolean => events.some((e) => types.includes(e.type));
    if (has('ended', 'group')) this.#tasksSoon();
    if (has('eval', 'checkpoint', 'trained', 'closed')) this.#detailSoon();
    if (has('started', 'ended', 'group', 'trained')) this.#changed.fire('trajectories');
  }
  async #loadDetail(): Promise<void> {
    const run = this.selected;
    if (run === undefined || this.#o.runtime.state !== 'ready') return;
    try {
      const detail = await this.#o.runtime.request(methods.getRun, { run });
      if (this.selected !== run) return;
      this.#detail = detail;
      this.#ledger = detail.ledger;
      this.#tasks = detail.tasks;
      this.#changed.fire('detail');
      this.#changed.fire('tasks');
    } catch (e) {
      this.#o.failed(e, 'read the run');
    }
  }
  async #loadTasks(): Promise<void> {
    const run = this.selected;
    if (run === undefined || this.#o.runtime.state !== 'ready') return;
    try {
      const { tasks } = await this.#o.runtime.request(methods.listTasks, { run });
      if (this.selected !== run) return;
      this.#tasks = tasks;
      this.#changed.fire('tasks');
    } catch (e) {
      this.#o.failed(e, 'list the tasks');
    }
  }
  async #loadDesktops(): Promise<void> {
    try {
      const { desktops } = await this.#o.runtime.request(methods.listDesktops, {});
      this.#desktops.clear();
      for (const d of desktops) this.#keep(d.desktop, d);
      this.#changed.fire('desktops');
    } catch (e) {
      this.#o.failed(e, 'list the desktops');
    }
  }
}
