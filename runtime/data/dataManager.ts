import { id, random, rewardOf, StudioError, type RetireReason } from '../domain/index.js';
import type {
  BatchId,
  FamilyId,
  GroupId,
  PolicyVersion,
  Provenance,
  RolloutId,
  Step,
  TaskId,
  Trajectory,
} from '../domain/index.js';
import { Ages } from './ages.js';
import type { DataConfig } from './config.js';
import { curateGroup, overridden } from './curation/curateGroup.js';
import { admissionCapacity, groupCapacity } from './curation/staleness.js';
import { dataStats } from './dataStats.js';
import type { DataStats } from './dataStats.js';
import { headOf, inLedger, isError } from './events.js';
import type { JournalEvent, StepExtra, TrainedSteps } from './events.js';
import { pooling } from './pooling.js';
import { recover } from './recover.js';
import type { RecoveryReport } from './recover.js';
import { DataState } from './state.js';
import type { PlannerFamily } from './planner.js';
import { RunStore } from './store/runStore.js';
import type { RunMeta, RunStoreOptions } from './store/runStore.js';
import type { FrameStore, PoolAnswer, PoolWish, RolloutOrder } from './types.js';

export interface DataManagerOptions {
  /** The run folder. */
  readonly dir: string;
  readonly store: RunStoreOptions & { readonly create?: Omit<RunMeta, 'format'> };
  readonly config: DataConfig;
  /** Families to train on, with their seeds. */
  readonly families: readonly PlannerFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
}
export interface CapacityInfo {
  /** Rollouts that may be under way at once, e.g. desktops. */
  readonly maxConcurrent: number;
  readonly version: PolicyVersion;
  /** Oldest version a replica may still answer with, while weights are being published. Default `version`. */
  readonly behavior?: PolicyVersion;
}
/**
 * Where events go: the journal of a run folder, or, in simulations, nowhere. `append` resolves when the event is safe.
 */
export interface EventSink {
  append(e: JournalEvent): Promise<unknown>;
  close(): Promise<void>;
}
export interface ClaimOptions {
  readonly version: PolicyVersion;
  /** All given minima must be met. Default: one group. */
  readonly minGroups?: number;
  readonly minTrajectories?: number;
  /** At most so many groups; by default no more than the minima need. */
  readonly maxGroups?: number;
  /** As in CapacityInfo. */
  readonly behavior?: PolicyVersion;
}
const changesPool = (e: JournalEvent): boolean =>
  e.type === 'pool.added' ||
  e.type === 'pool.removed' ||
  e.type === 'pool.switched' ||
  (e.type === 'group.formed' && e.members.some((m) => m.injected));
/** Events after which neither an order nor a claim could be answered differently. */
const QUIET: ReadonlySet<JournalEvent['type']> = new Set([
  'rollout.step',
  'rollout.started',
  'trajectory.started',
  'activity',
  'spans',
  'metrics',
  'eval',
  'log',
]);

/**
 * A trajectory in a claimed group. `keep` says for each step whether it is trained; all false: it counts for the
 * baseline only.
 */
export interface ClaimedMember {
  readonly trajectory: Trajectory;
  readonly keep: readonly boolean[];
  readonly injected: boolean;
  readonly reward: number;
  readonly provenance: Provenance;
}
export interface ClaimedGroup {
  readonly id: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly members: readonly ClaimedMember[];
  readonly threshold?: number;
}
export interface ClaimedBatch {
  readonly id: BatchId;
  readonly version: PolicyVersion;
  readonly groups: readonly ClaimedGroup[];
  /** Steps with keep = true. */
  readonly steps: number;
}

/**
 * Module 3 as the run uses it: what to roll out, what came back, what to train. Decisions and state are pure (planner,
 * curation, ledger in `DataState`); this is the shell that writes every event to the journal before it acknowledges
 * anything. State changes within one turn of the event loop, so a claim or an order is never given twice.
 */
export class DataManager {
  readonly #store: RunStore | undefined;
  readonly #sink: EventSink;
  readonly recovery: RecoveryReport;
  readonly #config: DataConfig;
  readonly #state: DataState;
  /** Trajectories that may still be needed: of open, ready and claimed groups, and of the pool. */
  readonly #trajectories: Map<RolloutId, Trajectory>;
  /** Steps already journalled, per running rollout. */
  readonly #written: Map<RolloutId, Set<number>>;
  /** Oldest version that may act in a running rollout. */
  readonly #began = new Map<RolloutId, PolicyVersion>();
  readonly #ages: Ages;
  readonly #listeners = new Set<() => void>();
  readonly #poolListeners = new Set<() => void>();
  /** Rollouts that a person holds; true: for so long that nobody waits for them any more. */
  readonly #held = new Map<RolloutId, boolean>();
  #starved = false;
  #told = false;
  #poolTold = false;

  private constructor(
    store: RunStore | undefined,
    sink: EventSink,
    state: DataState,
    config: DataConfig,
    r: { report: RecoveryReport; trajectories: Map<RolloutId, Trajectory> },
  ) {
    this.#store = store;
    this.#sink = sink;
    this.#state = state;
    this.#config = config;
    this.recovery = r.report;
    this.#trajectories = r.trajectories;
    this.#written = new Map();
    this.#ages = new Ages(state, {
      staleness: config.staleness,
      minSize: config.groupFilter.minSize,
      trajectories: r.trajectories,
      began: this.#began,
    });
  }

  /**
   * A run without a folder, for simulations: the same decisions and the same ledger, its events handed to `sink`. It
   * has no `store` and no `frames`.
   */
  static volatile(o: Omit<DataManagerOptions, 'dir' | 'store'>, sink: EventSink): DataManager {
    return new DataManager(undefined, sink, new DataState(o.config, o.families, o.taskOf), o.config, {
      report: { events: 0, skipped: 0, lost: [], released: 0, unreadable: [] },
      trajectories: new Map(),
    });
  }

  /**
   * Opens a run folder, new or to be resumed. On resume the journal is replayed; rollouts that were queued or running
   * are retired as lost and handed out again in their groups, claims nobody trained are free again, and completed
   * groups are curated.
   */
  static async open(o: DataManagerOptions): Promise<DataManager> {
    const state = new DataState(o.config, o.families, o.taskOf);
    let skipped = 0;
    const store = await RunStore.open(
      o.dir,
      o.store,
      (e) => {
        // Behind a damaged stretch an event can refer to one that is gone; it is left out, and the ledger still closes.
        try {
          state.apply(e);
        } catch (err) {
          if (!(err instanceof StudioError)) throw err;
          skipped++;
        }
        // Steps and the like are most of a journal and change no state.
      },
      ['rollout.step', 'activity', 'spans', 'trajectory.started', 'metrics', 'eval', 'log'],
    );
    try {
      const recovered = await recover(store, state, { events: store.recovery.records, skipped });
      const manager = new DataManager(store, store, state, o.config, recovered);
      await manager.#commit([
        { type: 'run.opened', run: store.meta.id, resumed: store.recovery.records > 0, pid: process.pid },
        ...recovered.events,
      ]);
      for (const group of state.planner.openGroups()) await manager.#settle(group);
      return manager;
    } catch (e) {
      await store.close();
      throw e;
    }
  }

  get store(): RunStore {
    if (!this.#store)
      throw new StudioError(
        'internal',
        'This data manager keeps no run folder.',
        'Open the run with DataManager.open.',
      );
    return this.#store;
  }
  get frames(): FrameStore {
    return this.store.frames;
  }
  get config(): DataConfig {
    return this.#config;
  }

  /** Called after every change that may make `nextOrder` or `claimBatch` answer differently. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Rollouts that may start now under the staleness bound and `maxConcurrent`; 0 or less = wait for a change. */
  capacity(i: CapacityInfo): number {
    const b = this.#state.ledger.counts().byState,
      running = b.queued + b.running,
      c = this.#config.staleness;
    if (!c.enabled) return i.maxConcurrent - running;
    // Batches vary in size, so what was trained is counted as B per update; then the rule is running + buffered <= (eta
    // + 1) B.
    const accepted = i.version * c.perUpdate + b.recorded + b.grouped + b.claimed;
    const capacity = Math.min(
      this.#groupSlots(i),
      admissionCapacity({
        maxConcurrent: i.maxConcurrent,
        running,
        accepted,
        version: i.behavior ?? i.version,
        eta: c.eta,
        perUpdate: c.perUpdate,
      }),
    );
    // A bound too tight for one batch must not stop the run: when nothing runs and the trainer asked in vain, one more
    // may start, on the newest weights.
    return capacity <= 0 && running === 0 && b.claimed === 0 && this.#starved && (i.behavior ?? i.version) === i.version
      ? Math.min(1, i.maxConcurrent)
      : capacity;
  }

  /** Rollouts that may start by the bound in groups: what open groups still lack, and whole groups beyond. */
  #groupSlots({ version, behavior = version }: CapacityInfo): number {
    const { groupsPerUpdate } = this.#config.staleness,
      { planner, ready, claimed } = this.#state;
    if (groupsPerUpdate === undefined) return Infinity;
    // Who starts on weights that are a version old already may wait that much less.
    const eta = this.#config.staleness.eta - (version - behavior);
    const pending =
      planner.openGroups().length + ready.size + [...claimed.values()].reduce((n, b) => n + b.groups.length, 0);
    return (
      planner.unissued +
      Math.max(0, groupCapacity({ pending, eta, perUpdate: groupsPerUpdate })) * this.#config.dynamicRollouts.max
    );
  }

  /** Whether some of the group's rollouts are still to come; false once it was curated. */
  isOpen(group: GroupId): boolean {
    return this.#state.planner.isOpen(group);
  }

  /** The next rollout to start, or undefined while the bound allows none. `onlyOpen`: no new group. */
  async nextOrder(i: CapacityInfo & { readonly onlyOpen?: boolean }): Promise<RolloutOrder | undefined> {
    if (this.capacity(i) <= 0 || (i.onlyOpen && this.#state.planner.unissued === 0)) return undefined;
    const events = this.#state.planner.next(),
      last = events.at(-1);
    if (last?.type !== 'rollout.queued') return undefined;
    await this.#commit(events);
    return last.order;
  }

  /** `version`: the oldest that may act in it, i.e. that a replica still answers with now. */
  async started(rollout: RolloutId, version: PolicyVersion, desktop?: string, instruction?: string): Promise<void> {
    this.#began.set(rollout, version);
    await this.#commit([
      {
        type: 'rollout.started',
        rollout,
        version,
        ...(desktop ? { desktop } : {}),
        ...(instruction ? { instruction } : {}),
      },
    ]);
  }

  /** A step as it happens; its frame must have been put. May be awaited or not: `record` waits for all. */
  async recordStep(rollout: RolloutId, step: Step, extra?: StepExtra): Promise<void> {
    const written = this.#written.get(rollout) ?? new Set<number>();
    this.#written.set(rollout, written.add(step.index));
    await this.#commit([{ type: 'rollout.step', rollout, step, ...(extra ? { extra } : {}) }]);
  }

  /**
   * A trajectory that ended: a rollout of an order, or a probe, demonstration or import. Whether it joins the pool is
   * `wish`: by the rules ('auto'), never, or for a reason (a person's). Resolves when it is on disk, with its group if
   * that became ready. An error outcome retires the rollout; its group retries it.
   */
  async record(
    t: Trajectory,
    wish: PoolWish = 'auto',
  ): Promise<{ readonly group?: GroupId; readonly pool: PoolAnswer }> {
    const written = this.#written.get(t.id);
    this.#written.delete(t.id);
    this.#began.delete(t.id);
    const order = inLedger(t.provenance) ? this.#state.orders.get(t.id) : undefined;
    const steps = t.steps
      .filter((s) => !written?.has(s.index))
      .map((step): JournalEvent => ({ type: 'rollout.step', rollout: t.id, step }));
    // Its group went on without it.
    const late = order && this.#state.released.has(t.id) && !isError(t.outcome);
    this.#held.delete(t.id);
    const saved = this.#commit([
      ...steps,
      { type: 'trajectory.recorded', head: headOf(t) },
      ...(late
        ? [{ type: 'rollout.retired' as const, rollout: t.id, group: order.group, reason: 'stale' as const }]
        : []),
    ]);
    if (order && !late && !isError(t.outcome)) this.#trajectories.set(t.id, t);
    const [pool, pooled] = this.#pool(t, wish, wish === 'auto' ? undefined : 'person');
    const settled = order ? this.#settle(order.group) : Promise.resolve(undefined);
    const [, , group] = await Promise.all([saved, pooled, settled]);
    return { pool, ...(group ? { group } : {}) };
  }

  /** A finished trajectory joins the pool because a person wants it there, or says why not. */
  async addToPool(t: Trajectory, wish: PoolWish): Promise<PoolAnswer> {
    const [answer, saved] = this.#pool(t, wish, 'person');
    await saved;
    return answer;
  }
  /** Switches entries on or off; ids of none are passed over. */
  async switchPool(rollouts: readonly RolloutId[], enabled: boolean): Promise<void> {
    const entries = rollouts.filter((r) => this.#state.pool.get(r) && this.#state.pool.get(r)!.enabled !== enabled);
    if (entries.length > 0) await this.#commit([{ type: 'pool.switched', entries, enabled }]);
  }
  /** Takes entries out for good: they are neither injected nor imitated any more. */
  async removeFromPool(rollouts: readonly RolloutId[], reason: string): Promise<void> {
    const mine = rollouts.filter((r) => this.#state.pool.get(r)),
      saved = this.#commit(mine.map((entry) => ({ type: 'pool.removed', entry, reason, by: 'person' })));
    for (const r of mine) this.#forget(r);
    await saved;
  }
  /** What people brought into the pool (demonstrations, imports, overrides) and is switched on, as successes. */
  broughtSuccesses(): Trajectory[] {
    return this.#state.pool.entries().flatMap((e) => {
      const t =
        e.enabled && (e.provenance !== 'rollout' || e.override !== undefined)
          ? this.#trajectories.get(e.id)
          : undefined;
      return t ? [overridden(t)] : [];
    });
  }
  /** Switched off in the pool, or taken out of it by a person. */
  rejected(rollout: RolloutId): boolean {
    return this.#state.pool.rejected(rollout);
  }
  /** Called after the pool changed, at most once per turn of the event loop. */
  onPool(listener: () => void): () => void {
    this.#poolListeners.add(listener);
    return () => {
      this.#poolListeners.delete(listener);
    };
  }

  /** A person holds it (`long`: and for long already), or does not any more. Training does not wait for it for ever. */
  hold(rollout: RolloutId, how: 'held' | 'long' | 'free'): void {
    if (how === 'free') this.#held.delete(rollout);
    else this.#held.set(rollout, how === 'long');
    this.#changed();
  }

  /**
   * A rollout that gave no outcome: stopped by the user, or given up. Its slot is handed out again (an error: while
   * retries last).
   */
  async retire(rollout: RolloutId, reason: Extract<RetireReason, 'stopped' | 'lost' | 'error'>): Promise<void> {
    const order = this.#state.orders.get(rollout);
    if (!order)
      throw new StudioError(
        'internal',
        `Rollout ${rollout} is not under way and cannot be retired.`,
        'This is a fault of DART Studio: please report it with the log.',
      );
    this.#written.delete(rollout);
    this.#began.delete(rollout);
    this.#held.delete(rollout);
    await Promise.all([
      this.#commit([{ type: 'rollout.retired', rollout, group: order.group, reason }]),
      this.#settle(order.group),
    ]);
  }

  /**
   * Takes waiting groups for one update, those with the oldest weights first; undefined until there is enough, or while
   * a group still being rolled out would grow too old if others went before it. Groups beyond the lag bound (there are
   * none unless the run was resumed) are retired first.
   */
  async claimBatch(o: ClaimOptions): Promise<ClaimedBatch | undefined> {
    const { ledger, ready } = this.#state;
    const expired = this.#ages.expired(o.version, (r) => this.#trajectory(r)),
      stale = this.#commit(expired);
    for (const e of expired) if (e.type === 'group.retired') for (const r of e.rollouts) this.#forget(r);
    const taken: GroupId[] = [];
    let trajectories = 0;
    const enough = (): boolean => taken.length >= (o.minGroups ?? 1) && trajectories >= (o.minTrajectories ?? 0);
    const waiting = [...ready.values()]
      .map((g) => ({
        g,
        oldest: this.#ages.oldestOf(
          g.members.flatMap((m) => (m.injected ? [] : [m.rollout])),
          o.version,
        ),
      }))
      .sort((a, b) => a.oldest - b.oldest);
    for (const { g } of waiting) {
      if (o.maxGroups === undefined ? enough() : taken.length >= o.maxGroups) break;
      taken.push(g.group);
      trajectories += g.members.length;
    }
    const letGo = this.#goOnWithout(
      waiting.map((w) => w.oldest),
      taken.length,
      o,
      enough(),
    );
    if (letGo) {
      await Promise.all([stale, letGo]);
      return this.claimBatch(o);
    }
    if (
      !enough() ||
      this.#ages.mustWait(
        waiting.map((w) => w.oldest),
        taken.length,
        o,
      )
    ) {
      // Told once: a listener that claims again must not be called by its own claim for ever.
      if (!this.#starved) {
        this.#starved = true;
        this.#changed();
      }
      await stale;
      return undefined;
    }
    this.#starved = false;
    const formed = taken.map((g) => ready.get(g)!);
    const groups = formed.map((g): ClaimedGroup => ({
      id: g.group,
      family: g.family,
      task: g.task,
      ...(g.threshold === undefined ? {} : { threshold: g.threshold }),
      members: g.members.map((m) => {
        const t = this.#trajectory(m.rollout),
          trajectory = m.injected && m.reward > rewardOf(t) ? overridden(t) : t;
        return { trajectory, keep: m.keep, injected: m.injected, reward: m.reward, provenance: trajectory.provenance };
      }),
    }));
    const own = formed.map((g) => ({ group: g.group, rollouts: ledger.inGroup(g.group) }));
    const batch: ClaimedBatch = {
      id: id<BatchId>(`b${String(this.#state.tally.batches + 1).padStart(5, '0')}`),
      version: o.version,
      groups,
      steps: groups.reduce((n, g) => n + g.members.reduce((k, m) => k + m.keep.filter(Boolean).length, 0), 0),
    };
    const lags = own.flatMap((g) => g.rollouts.map((r) => this.#ages.lag(this.#trajectory(r), o.version)));
    await Promise.all([
      stale,
      this.#commit([
        { type: 'batch.claimed', batch: batch.id, groups: own, version: o.version, lags, steps: batch.steps },
      ]),
    ]);
    return batch;
  }

  /** The batch made these weights; `trajectories` says how each was weighed, for people. */
  async trained(batch: BatchId, version: PolicyVersion, trajectories?: readonly TrainedSteps[]): Promise<void> {
    const open = this.#openBatch(batch);
    const saved = this.#commit([
      {
        type: 'batch.trained',
        batch,
        rollouts: this.#state.ledger.claimedBy(batch),
        version,
        ...(trajectories ? { trajectories } : {}),
      },
    ]);
    for (const g of open.groups) for (const m of g.members) this.#forget(m.rollout);
    await saved;
  }
  /** The batch was not trained after all: its groups wait again, in front. */
  async release(batch: BatchId, reason: string): Promise<void> {
    const open = this.#openBatch(batch),
      { ledger } = this.#state,
      mine = new Set(ledger.claimedBy(batch));
    // An injected one may be claimed too, but by the group that rolled it out.
    const groups = open.groups.map((g) => ({
      group: g.group,
      rollouts: g.members.flatMap((m) => (!m.injected && mine.has(m.rollout) ? [m.rollout] : [])),
    }));
    await this.#commit([{ type: 'batch.released', batch, groups, reason }]);
  }

  /**
   * Anything else worth keeping: metrics, evaluation points, checkpoints, probes that start, spans of the lanes, log
   * lines.
   */
  async note(
    e: Extract<
      JournalEvent,
      { type: 'metrics' | 'eval' | 'checkpoint' | 'activity' | 'trajectory.started' | 'spans' | 'log' | 'run.closed' }
    >,
  ): Promise<void> {
    await this.#commit([e]);
  }

  stats(): DataStats {
    return dataStats(this.#state);
  }

  async close(reason = 'closed'): Promise<void> {
    try {
      await this.#commit([{ type: 'run.closed', reason }]);
    } finally {
      await this.#sink.close();
    }
  }

  /** Applies events at once, in order, and resolves when they are on disk. */
  async #commit(events: readonly JournalEvent[]): Promise<void> {
    if (events.length === 0) return;
    const saved = events.map((e) => {
      this.#state.apply(e);
      return this.#sink.append(e);
    });
    if (events.some((e) => !QUIET.has(e.type))) this.#changed();
    if (this.#poolListeners.size > 0 && events.some(changesPool)) this.#poolChanged();
    await Promise.all(saved);
  }
  /** Listeners run after the present turn: they find the change complete, and several changes are told once. */
  #changed(): void {
    if (this.#told) return;
    this.#told = true;
    queueMicrotask(() => {
      this.#told = false;
      for (const l of this.#listeners) l();
    });
  }

  #poolChanged(): void {
    if (this.#poolTold) return;
    this.#poolTold = true;
    queueMicrotask(() => {
      this.#poolTold = false;
      for (const l of this.#poolListeners) l();
    });
  }

  /** Curates a group all of whose rollouts ended. Gives its id when it is ready for a batch. */
  async #settle(group: GroupId): Promise<GroupId | undefined> {
    const { planner, pool, version } = this.#state;
    const complete = planner.complete(group);
    if (!complete) return undefined;
    const { plan, members } = complete;
    const own = members.map((r) => this.#trajectory(r));
    const inject = (): Trajectory | undefined => {
      const e = pool.choose(plan.task, plan.family, version),
        t = e && this.#trajectories.get(e.id);
      return t && overridden(t);
    };
    const curated = curateGroup(own, inject, this.#config, random(`${this.#config.planner.seed}/cut/${group}`));
    const { group: g, family, task } = plan;
    if (curated.kind === 'dropped') {
      const saved = this.#commit([
        {
          type: 'group.dropped',
          group: g,
          family,
          task,
          rewards: curated.rewards,
          retired: curated.retired,
          reason: curated.reason,
        },
      ]);
      for (const t of own) this.#forget(t.id);
      await saved;
      return undefined;
    }
    this.#starved = false;
    const saved = this.#commit([
      {
        type: 'group.formed',
        group: g,
        family,
        task,
        version,
        retired: curated.retired,
        ...(curated.threshold === undefined ? {} : { threshold: curated.threshold }),
        members: curated.members.map((m) => ({
          rollout: m.trajectory.id,
          injected: m.injected,
          reward: m.reward,
          keep: m.keep,
        })),
      },
      ...(Object.keys(curated.stats).length > 0
        ? [{ type: 'metrics' as const, source: 'curation', version, values: curated.stats }]
        : []),
    ]);
    for (const t of own) if (!curated.members.some((m) => m.trajectory === t)) this.#forget(t.id);
    await saved;
    return group;
  }

  /** Pool changes a finished trajectory brings, applied at once. */
  #pool(t: Trajectory, wish: PoolWish, by?: 'person'): [PoolAnswer, Promise<void>] {
    const { events, answer } = pooling(this.#state.pool, t, wish, this.#state.version, by);
    if (events.some((e) => e.type === 'pool.added')) this.#trajectories.set(t.id, t);
    const saved = this.#commit(events);
    for (const e of events) if (e.type === 'pool.removed') this.#forget(e.entry);
    return [answer, saved];
  }

  /**
   * A rollout that a person holds must not keep the trainer waiting: where the staleness bound makes an update wait for
   * its group alone, or, once it was held for long, nothing else is under way, its group goes on without it: another
   * rollout takes its place. Undefined when there is none to let go.
   */
  #goOnWithout(
    waiting: readonly PolicyVersion[],
    taken: number,
    o: ClaimOptions,
    enough: boolean,
  ): Promise<unknown> | undefined {
    if (this.#held.size === 0) return undefined;
    const { ledger, released, orders, planner } = this.#state,
      held = new Map(
        [...this.#held].filter(
          ([r]) => ledger.state(r)?.at === 'running' && !released.has(r) && planner.isOpen(orders.get(r)!.group),
        ),
      );
    const groups = new Set([...held.keys()].map((r) => orders.get(r)!.group));
    const blocking = enough
      ? this.#ages.mustWait(waiting, taken, o) && !this.#ages.mustWait(waiting, taken, o, groups)
        ? [...held.keys()]
        : []
      : ledger.counts().byState.running === this.#held.size
        ? [...held].flatMap(([r, long]) => (long ? [r] : []))
        : [];
    if (blocking.length === 0) return undefined;
    return Promise.all(
      blocking.map((r) => {
        const { group } = orders.get(r)!;
        return Promise.all([this.#commit([{ type: 'rollout.released', rollout: r, group }]), this.#settle(group)]);
      }),
    );
  }
  #trajectory(rollout: RolloutId): Trajectory {
    const t = this.#trajectories.get(rollout);
    if (!t)
      throw new StudioError(
        'internal',
        `Trajectory ${rollout} is needed and not in memory.`,
        'This is a fault of DART Studio: please report it with the log.',
      );
    return t;
  }
  /** Lets go of a trajectory unless the pool, an open, a waiting or a claimed group still needs it. */
  #forget(rollout: RolloutId): void {
    const at = this.#state.ledger.state(rollout)?.at;
    if (this.#state.pool.get(rollout) || at === 'recorded' || at === 'grouped' || at === 'claimed') return;
    for (const g of this.#groups()) if (g.members.some((m) => m.rollout === rollout)) return;
    this.#trajectories.delete(rollout);
  }
  *#groups(): Generator<{ readonly members: readonly { readonly rollout: RolloutId }[] }> {
    yield* this.#state.ready.values();
    for (const b of this.#state.claimed.values()) yield* b.groups;
  }
  #openBatch(batch: BatchId): {
    readonly groups: readonly {
      readonly group: GroupId;
      readonly members: readonly { readonly rollout: RolloutId; readonly injected: boolean }[];
    }[];
  } {
    const b = this.#state.claimed.get(batch);
    if (!b)
      throw new StudioError(
        'internal',
        `Batch ${batch} is not claimed.`,
        'This is a fault of DART Studio: please report it with the log.',
      );
    return b;
  }
}
