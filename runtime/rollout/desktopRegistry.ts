import {
  StudioError,
  type Action,
  type DesktopId,
  type Frame,
  type PolicyVersion,
  type RunError,
  type Size,
  type ProviderKind,
  type DesktopRow,
  type DesktopWork,
} from '../domain/index.js';
import type {
  Change,
  Desktop,
  DesktopEvent,
  DesktopInput,
  DesktopPool,
  DesktopProvider,
  DesktopSpec,
  DesktopState,
  ExecOptions,
  ExecResult,
  PoolStatus,
  SettleOptions,
  SettleReport,
} from '../cluster/types.js';
import type { SchedulerEvent } from './types.js';

type Row = Omit<DesktopRow, 'run'>;
/** States of a desktop that remains in the pool. */
const LASTING: ReadonlySet<DesktopState> = new Set(['ready', 'leased', 'resetting']);
/**
 * A scan of all desktops slower than this, ms (there are hundreds), is not repeated before REST_FACTOR times its own
 * length has passed.
 */
const SLOW_SCAN_MS = 1,
  REST_FACTOR = 20;
/** What a leased desktop is used for. */
interface Use {
  rollout: string;
  task: string;
  instruction: string;
  cap: number;
  step: number;
  version: PolicyVersion;
  phase: DesktopWork;
  since: number;
}

/**
 * The desktops of a run as people see them: what each one does, its screen, and a way to replace it. It sits between
 * pool and provider, so it knows every desktop whichever pool created it, and follows the events of pools and
 * scheduler.
 */
export class DesktopRegistry {
  readonly #pools = new Set<DesktopPool>();
  readonly #desktops = new Map<string, TrackedDesktop>();
  readonly #uses = new Map<string, Use>();
  readonly #shown = new Map<string, string>();
  readonly #listeners = new Set<(desktop: string, row: Row | undefined) => void>();
  #provider: DesktopRow['provider'] = 'local';
  #due = false;
  /** Desktops whose row may have changed; `all`: any of them, or which there are. */
  readonly #dirty = new Set<string>();
  #all = false;
  #restUntil = -Infinity;

  /** The provider as pools should use it. */
  wrap(p: DesktopProvider): DesktopProvider {
    this.#provider = p.name;
    const known = (d: Desktop): TrackedDesktop => (d instanceof TrackedDesktop ? d : new TrackedDesktop(d));
    const keep = (d: TrackedDesktop): TrackedDesktop => {
      this.#desktops.set(d.id, d);
      return d;
    };
    return {
      name: p.name,
      ...(p.startsAtOnce === undefined ? {} : { startsAtOnce: p.startsAtOnce }),
      ...(p.sameFirstFrame === undefined ? {} : { sameFirstFrame: p.sameFirstFrame }),
      status: () => p.status(),
      reap: () => p.reap(),
      dispose: () => p.dispose(),
      create: async (spec: DesktopSpec, signal?: AbortSignal) => keep(new TrackedDesktop(await p.create(spec, signal))),
      reset: async (d, signal) => {
        const t = known(d),
          inner = await p.reset(t.inner, signal);
        if (inner === t.inner) return t;
        this.#desktops.delete(d.id);
        return keep(new TrackedDesktop(inner));
      },
      destroy: async (d) => {
        this.#desktops.delete(d.id);
        await p.destroy(known(d).inner);
      },
    };
  }

  attach(pool: DesktopPool): void {
    this.#pools.add(pool);
    pool.onEvent((e) => {
      // A desktop that is there and was there before: its row alone changes. Else rows come or go.
      const alone = e.type === 'state' && LASTING.has(e.state) && this.#shown.has(e.desktop);
      this.#changed(alone ? e.desktop : undefined);
    });
    this.#changed();
  }
  detach(pool: DesktopPool): void {
    this.#pools.delete(pool);
    this.#changed();
  }

  onScheduler(
    e: SchedulerEvent,
    instruction: (e: Extract<SchedulerEvent, { type: 'started' }>) => string,
    version: PolicyVersion,
  ): void {
    if (e.type === 'started')
      this.begin(e.desktop, {
        rollout: e.order.rollout,
        task: e.order.task,
        instruction: instruction(e),
        cap: e.order.cap,
        version,
        since: e.at,
      });
    else if (e.type === 'step') this.progress(e.desktop, e.step.index + 1, e.step.version);
    else if (e.type === 'lane') {
      const use = this.#uses.get(e.desktop);
      if (e.phase === 'released' || e.phase === 'idle') this.#uses.delete(e.desktop);
      else if (use) {
        use.phase = e.phase === 'perform' ? 'act' : e.phase;
        use.since = e.at;
      }
    } else return;
    this.#changed(e.desktop);
  }
  begin(desktop: string, use: Omit<Use, 'step' | 'phase'>): void {
    this.#uses.set(desktop, { ...use, step: 0, phase: 'setup' });
    this.#changed(desktop);
  }
  /** What its task asks for, where that is known only once it is set up. */
  asks(desktop: string, instruction: string): void {
    const u = this.#uses.get(desktop);
    if (!u || u.instruction === instruction) return;
    u.instruction = instruction;
    this.#changed(desktop);
  }
  progress(desktop: string, step: number, version?: PolicyVersion): void {
    const u = this.#uses.get(desktop);
    if (u) {
      u.step = step;
      if (version !== undefined) u.version = version;
      this.#changed(desktop);
    }
  }
  phase(desktop: string, phase: DesktopWork): void {
    const u = this.#uses.get(desktop);
    if (u) {
      u.phase = phase;
      u.since = Date.now();
      this.#changed(desktop);
    }
  }
  end(desktop: string): void {
    this.#uses.delete(desktop);
    this.#changed(desktop);
  }

  rows(): Row[] {
    return [...this.#pools].flatMap((pool) => pool.status().desktops.map((d) => this.#rowOf(d)));
  }
  #rowOf(d: PoolStatus['desktops'][number]): Row {
    const base = { desktop: d.id, provider: this.#provider, resets: d.resets, replaced: d.replaced },
      use = d.state === 'leased' ? this.#uses.get(d.id) : undefined;
    if (use)
      return {
        ...base,
        state: use.phase,
        since: use.since,
        rollout: use.rollout,
        task: use.task,
        instruction: use.instruction,
        step: use.step,
        cap: use.cap,
        version: use.version,
      };
    return { ...base, state: d.state === 'ready' || d.state === 'leased' ? 'idle' : d.state, since: d.since };
  }

  desktop(id: string): Desktop | undefined {
    return this.#desktops.get(id);
  }
  /**
   * Ends its rollout with an error, which is retried, and replaces the desktop. False when there is no such desktop.
   */
  restart(id: string): boolean {
    const d = this.#desktops.get(id);
    d?.lose(
      new StudioError(
        'desktop.lost',
        'The desktop was restarted by hand.',
        'Its rollout is retried on another desktop.',
      ).error,
    );
    return d !== undefined;
  }

  /**
   * Calls the listener with the new row of a desktop that changed, or undefined when the desktop is gone. Changes
   * within one turn of the event loop are reported once.
   */
  onChange(listener: (desktop: string, row: Row | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Reports a change of `desktop`. Without it every desktop is looked at again, which is not repeated at once. */
  #changed(desktop?: string): void {
    if (this.#listeners.size === 0) return;
    if (desktop === undefined) this.#all = true;
    else this.#dirty.add(desktop);
    if (this.#due) return;
    this.#due = true;
    const wait = this.#all ? this.#restUntil - performance.now() : 0;
    if (wait <= 0) queueMicrotask(() => this.#report());
    else setTimeout(() => this.#report(), wait).unref();
  }
  #report(): void {
    this.#due = false;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    if (this.#all) {
      this.#all = false;
      const began = performance.now(),
        now = new Map(this.rows().map((r) => [r.desktop as string, r]));
      for (const id of [...this.#shown.keys()]) if (!now.has(id)) this.#show(id, undefined);
      for (const [id, row] of now) this.#show(id, row);
      const took = performance.now() - began;
      if (took > SLOW_SCAN_MS) this.#restUntil = began + REST_FACTOR * took;
    } else
      for (const id of dirty)
        for (const pool of this.#pools) {
          const d = pool.statusOf(id as DesktopId);
          if (d) this.#show(id, this.#rowOf(d));
        }
  }
  #show(id: string, row: Row | undefined): void {
    const key = row && JSON.stringify(row);
    if (this.#shown.get(id) === key) return;
    if (key === undefined) this.#shown.delete(id);
    else this.#shown.set(id, key);
    this.#tell(id, row);
  }
  #tell(id: string, row: Row | undefined): void {
    for (const l of [...this.#listeners]) l(id, row);
  }
}

/** A desktop that can be declared lost from outside: every later call rejects with that error. */
class TrackedDesktop implements Desktop {
  readonly inner: Desktop;
  readonly id: DesktopId;
  readonly provider: ProviderKind;
  readonly screen: Size;
  readonly screenshot?: NonNullable<Desktop['screenshot']>;
  readonly recycle?: (f: Frame) => void;
  readonly input?: (events: readonly DesktopInput[]) => Promise<void>;
  readonly changes?: (signal: AbortSignal) => Promise<Change>;
  readonly answers?: () => Promise<void>;
  readonly freeze?: () => Promise<void>;
  readonly thaw?: () => Promise<void>;
  readonly relieve?: () => Promise<void>;
  readonly blame?: (how?: 'late') => Promise<string | undefined>;
  readonly stalledMs?: () => number;
  readonly browse?: Desktop['browse'];
  #lost: RunError | undefined;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  constructor(inner: Desktop) {
    this.inner = inner;
    this.id = inner.id;
    this.provider = inner.provider;
    this.screen = inner.screen;
    if (inner.screenshot) this.screenshot = (how) => this.#use((d) => d.screenshot!(how));
    if (inner.recycle)
      this.recycle = (f) => {
        inner.recycle!(f);
      };
    if (inner.input) this.input = (events) => this.#use((d) => d.input!(events));
    if (inner.changes) this.changes = (signal) => this.#use((d) => d.changes!(signal));
    if (inner.answers) this.answers = () => this.#use((d) => d.answers!());
    if (inner.freeze) this.freeze = () => this.#use((d) => d.freeze!());
    if (inner.thaw) this.thaw = () => this.#use((d) => d.thaw!());
    if (inner.relieve) this.relieve = () => this.#use((d) => d.relieve!());
    if (inner.blame) this.blame = (how) => inner.blame!(how);
    if (inner.stalledMs) this.stalledMs = () => inner.stalledMs!();
    if (inner.browse) this.browse = (commands, o) => this.#use((d) => d.browse!(commands, o));
  }
  lose(error: RunError): void {
    this.#lost = error;
    for (const l of [...this.#listeners]) l({ type: 'lost', error });
  }
  async #use<T>(f: (d: Desktop) => Promise<T>): Promise<T> {
    if (this.#lost) throw new StudioError(this.#lost.kind, this.#lost.message, this.#lost.remedy);
    return f(this.inner);
  }
  observe(): Promise<Frame> {
    return this.#use((d) => d.observe());
  }
  perform(a: Action): Promise<void> {
    return this.#use((d) => d.perform(a));
  }
  settle(o?: SettleOptions): Promise<SettleReport> {
    return this.#use((d) => d.settle(o));
  }
  exec(cmd: readonly string[], o?: ExecOptions): Promise<ExecResult> {
    return this.#use((d) => d.exec(cmd, o));
  }
  spawn(cmd: readonly string[], o?: Pick<ExecOptions, 'cwd' | 'env'>): Promise<number> {
    return this.#use((d) => d.spawn(cmd, o));
  }
  readFile(path: string): Promise<Buffer> {
    return this.#use((d) => d.readFile(path));
  }
  writeFile(path: string, data: Buffer): Promise<void> {
    return this.#use((d) => d.writeFile(path, data));
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    const off = this.inner.onEvent(l);
    this.#listeners.add(l);
    return () => {
      off();
      this.#listeners.delete(l);
    };
  }
}
