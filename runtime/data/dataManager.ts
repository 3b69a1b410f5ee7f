import { id, random, StudioError } from '../domain/index.js';
import type { BatchId, FamilyId, GroupId, PolicyVersion, Provenance, RolloutId, Step, TaskId, Trajectory } from '../domain/index.js';
import type { DataConfig } from './config.js';
import { curateGroup } from './curation/curateGroup.js';
import { hasVariance } from './curation/groupFilter.js';
import { admissionCapacity, groupCapacity, versionLag } from './curation/staleness.js';
import { dataStats } from './dataStats.js';
import type { DataStats } from './dataStats.js';
import { headOf, inLedger, isError } from './events.js';
import type { RunEvent, StepExtra } from './events.js';
import { poolEntryOf } from './experiencePool.js';
import { recover } from './recover.js';
import type { RecoveryReport } from './recover.js';
import { DataState } from './state.js';
import type { PlannerFamily } from './planner.js';
import { RunStore } from './store/runStore.js';
import type { RunMeta, RunStoreOptions } from './store/runStore.js';
import type { FrameStore, RetireReason, RolloutOrder } from './types.js';

export interface DataManagerOptions {
  /** The run folder. */
  readonly dir: string;
  readonly store: RunStoreOptions & { readonly create?: Omit<RunMeta, 'format'> };
  readonly config: DataConfig;
  /** Families to train on, with their seeds. */
  readonly families: readonly PlannerFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
}
export interface CapacityInfo { /** Rollouts that may be under way at once, e.g. desktops. */ readonly maxConcurrent: number; readonly version: PolicyVersion }
export interface ClaimOptions {
  readonly version: PolicyVersion;
  /** All given minima must be met. Default: one group. */
  readonly minGroups?: number;
  readonly minTrajectories?: number;
  /** At most so many groups; by default no more than the minima need. */
  readonly maxGroups?: number;
}

/** A trajectory in a claimed group. `keep` says for each step whether it is trained; all false: it counts for the baseline only. */
export interface ClaimedMember { readonly trajectory: Trajectory; readonly keep: readonly boolean[]; readonly injected: boolean; readonly reward: number; readonly provenance: Provenance }
export interface ClaimedGroup { readonly id: GroupId; readonly family: FamilyId; readonly task: TaskId; readonly members: readonly ClaimedMember[]; readonly threshold?: number }
export interface ClaimedBatch { readonly id: BatchId; readonly version: PolicyVersion; readonly groups: readonly ClaimedGroup[]; /** Steps with keep = true. */ readonly steps: number }

/**
 * Module 3 as the run uses it: what to roll out, what came back, what to train. Decisions and state are pure (planner, curation,
 * ledger in `DataState`); this is the shell that writes every event to the journal before it acknowledges anything. State
 * changes within one turn of the event loop, so a claim or an order is never given twice.
 */
export class DataManager {
  readonly store: RunStore;
  readonly recovery: RecoveryReport;
  readonly #config: DataConfig;
  readonly #state: DataState;
  /** Trajectories that may still be needed: of open, ready and claimed groups, and of the pool. */
  readonly #trajectories: Map<RolloutId, Trajectory>;
  /** Steps already journalled, per running rollout. */
  readonly #written: Map<RolloutId, Set<number>>;
  readonly #listeners = new Set<() => void>();
  #starved = false;
  #told = false;

  private constructor(store: RunStore, state: DataState, config: DataConfig, r: { report: RecoveryReport; trajectories: Map<RolloutId, Trajectory> }) {
    this.store = store; this.#state = state; this.#config = config; this.recovery = r.report; this.#trajectories = r.trajectories;
    this.#written = new Map();
  }

  /**
   * Opens a run folder, new or to be resumed. On resume the journal is replayed; rollouts that were queued or running are retired as
   * lost and handed out again in their groups, claims nobody trained are free again, and completed groups are curated.
   */
  static async open(o: DataManagerOptions): Promise<DataManager> {
    const state = new DataState(o.config, o.families, o.taskOf);
    let skipped = 0;
    const store = await RunStore.open(o.dir, o.store, (e) => {
      // Behind a damaged stretch an event can refer to one that is gone; it is left out, and the ledger still closes.
      try { state.apply(e); } catch (err) { if (!(err instanceof StudioError)) throw err; skipped++; }
      // Steps and the like are most of a journal and change no state.
    }, ['rollout.step', 'activity', 'metrics', 'eval', 'log']);
    try {
      const recovered = await recover(store, state, { events: store.recovery.records, skipped });
      const manager = new DataManager(store, state, o.config, recovered);
      await manager.#commit([{ type: 'run.opened', run: store.meta.id, resumed: store.recovery.records > 0, pid: process.pid }, ...recovered.events]);
      for (const group of state.planner.openGroups()) await manager.#settle(group);
      return manager;
    } catch (e) { await store.close(); throw e; }
  }

  get frames(): FrameStore { return this.store.frames; }
  get config(): DataConfig { return this.#config; }

  /** Called after every change that may make `nextOrder` or `claimBatch` answer differently. */
  onChange(listener: () => void): () => void { this.#listeners.add(listener); return () => { this.#listeners.delete(listener); }; }

  /** Rollouts that may start now under the staleness bound and `maxConcurrent`; 0 or less = wait for a change. */
  capacity(i: CapacityInfo): number {
    const b = this.#state.ledger.counts().byState, running = b.queued + b.running, c = this.#config.staleness;
    if (!c.enabled) return i.maxConcurrent - running;
    // Batches vary in size, so what was trained is counted as B per update; then the rule is running + buffered <= (eta + 1) B.
    const accepted = i.version * c.perUpdate + b.recorded + b.grouped + b.claimed;
    const capacity = Math.min(this.#groupSlots(), admissionCapacity({ maxConcurrent: i.maxConcurrent, running, accepted, version: i.version, eta: c.eta, perUpdate: c.perUpdate }));
    // A bound too tight for one batch must not stop the run: when nothing runs and the trainer asked in vain, one more may start.
    return capacity <= 0 && running === 0 && b.claimed === 0 && this.#starved ? Math.min(1, i.maxConcurrent) : capacity;
  }

  /** Rollouts that may start by the bound in groups: what open groups still lack, and whole groups beyond. */
  #groupSlots(): number {
    const { eta, groupsPerUpdate } = this.#config.staleness, { planner, ready, claimed } = this.#state;
    if (groupsPerUpdate === undefined) return Infinity;
    const pending = planner.openGroups().length + ready.size + [...claimed.values()].reduce((n, b) => n + b.groups.length, 0);
    return planner.unissued + Math.max(0, groupCapacity({ pending, eta, perUpdate: groupsPerUpdate })) * this.#config.dynamicRollouts.max;
  }

  /** The next rollout to start, or undefined while the bound allows none. */
  async nextOrder(i: CapacityInfo): Promise<RolloutOrder | undefined> {
    if (this.capacity(i) <= 0) return undefined;
    const events = this.#state.planner.next(), last = events.at(-1);
    if (last?.type !== 'rollout.queued') return undefined;
    await this.#commit(events);
    return last.order;
  }

  async started(rollout: RolloutId, version: PolicyVersion, desktop?: string): Promise<void> {
    await this.#commit([{ type: 'rollout.started', rollout, version, ...(desktop ? { desktop } : {}) }]);
  }

  /** A step as it happens; its frame must have been put. May be awaited or not: `record` waits for all. */
  async recordStep(rollout: RolloutId, step: Step, extra?: StepExtra): Promise<void> {
    const written = this.#written.get(rollout) ?? new Set<number>();
    this.#written.set(rollout, written.add(step.index));
    await this.#commit([{ type: 'rollout.step', rollout, step, ...(extra ? { extra } : {}) }]);
  }

  /**
   * A trajectory that ended: a rollout of an order, or a probe, demonstration or import (by its provenance; successes among these join the
   * pool). Resolves when it is on disk, with its group if that became ready. An error outcome retires the rollout; its group retries it.
   */
  async record(t: Trajectory): Promise<{ readonly group?: GroupId }> {
    const written = this.#written.get(t.id);
    this.#written.delete(t.id);
    const order = inLedger(t.provenance) ? this.#state.orders.get(t.id) : undefined;
    const steps = t.steps.filter((s) => !written?.has(s.index)).map((step): RunEvent => ({ type: 'rollout.step', rollout: t.id, step }));
    const saved = this.#commit([...steps, { type: 'trajectory.recorded', head: headOf(t) }]);
    if (order && !isError(t.outcome)) this.#trajectories.set(t.id, t);
    const changes = this.#pool(t), pooled = this.#commit(changes);
    for (const c of changes) if (c.type === 'pool.removed') this.#forget(c.entry);
    const settled = order ? this.#settle(order.group) : Promise.resolve(undefined);
    const [, , group] = await Promise.all([saved, pooled, settled]);
    return group ? { group } : {};
  }

  /** A rollout that gave no outcome: stopped by the user, or given up. Its slot is handed out again (an error: while retries last). */
  async retire(rollout: RolloutId, reason: Extract<RetireReason, 'stopped' | 'lost' | 'error'>): Promise<void> {
    const order = this.#state.orders.get(rollout);
    if (!order) throw new StudioError('internal', `Rollout ${rollout} is not under way and cannot be retired.`, 'This is a fault of DART Studio: please report it with the log.');
    this.#written.delete(rollout);
    await Promise.all([this.#commit([{ type: 'rollout.retired', rollout, group: order.group, reason }]), this.#settle(order.group)]);
  }

  /** Takes waiting groups, oldest first, for one update; undefined until there is enough. Groups beyond the lag bound are retired first. */
  async claimBatch(o: ClaimOptions): Promise<ClaimedBatch | undefined> {
    const { ledger, ready } = this.#state;
    const expired = this.#expired(o.version), stale = this.#commit(expired);
    for (const e of expired) if (e.type === 'group.retired') for (const r of e.rollouts) this.#forget(r);
    const taken: GroupId[] = [];
    let trajectories = 0;
    const enough = (): boolean => taken.length >= (o.minGroups ?? 1) && trajectories >= (o.minTrajectories ?? 0);
    for (const g of ready.values()) {
      if (o.maxGroups === undefined ? enough() : taken.length >= o.maxGroups) break;
      taken.push(g.group);
      trajectories += g.members.length;
    }
    if (!enough()) {
      // Told once: a listener that claims again must not be called by its own claim for ever.
      if (!this.#starved) { this.#starved = true; this.#changed(); }
      await stale;
      return undefined;
    }
    this.#starved = false;
    const formed = taken.map((g) => ready.get(g)!);
    const groups = formed.map((g): ClaimedGroup => ({
      id: g.group, family: g.family, task: g.task, ...(g.threshold === undefined ? {} : { threshold: g.threshold }),
      members: g.members.map((m) => { const trajectory = this.#trajectory(m.rollout); return { trajectory, keep: m.keep, injected: m.injected, reward: m.reward, provenance: trajectory.provenance }; }),
    }));
    const own = formed.map((g) => ({ group: g.group, rollouts: ledger.inGroup(g.group) }));
    const batch: ClaimedBatch = {
      id: id<BatchId>(`b${String(this.#state.tally.batches + 1).padStart(5, '0')}`), version: o.version, groups,
      steps: groups.reduce((n, g) => n + g.members.reduce((k, m) => k + m.keep.filter(Boolean).length, 0), 0),
    };
    const lags = own.flatMap((g) => g.rollouts.map((r) => this.#lag(r, o.version)));
    await Promise.all([stale, this.#commit([{ type: 'batch.claimed', batch: batch.id, groups: own, version: o.version, lags, steps: batch.steps }])]);
    return batch;
  }

  /** The batch made these weights. */
  async trained(batch: BatchId, version: PolicyVersion): Promise<void> {
    const open = this.#openBatch(batch);
    const saved = this.#commit([{ type: 'batch.trained', batch, rollouts: this.#state.ledger.claimedBy(batch), version }]);
    for (const g of open.groups) for (const m of g.members) this.#forget(m.rollout);
    await saved;
  }
  /** The batch was not trained after all: its groups wait again, in front. */
  async release(batch: BatchId, reason: string): Promise<void> {
    const open = this.#openBatch(batch), { ledger } = this.#state, mine = new Set(ledger.claimedBy(batch));
    const groups = open.groups.map((g) => ({ group: g.group, rollouts: g.members.map((m) => m.rollout).filter((r) => mine.has(r)) }));
    await this.#commit([{ type: 'batch.released', batch, groups, reason }]);
  }

  /** Anything else worth keeping: metrics, evaluation points, checkpoints, activity of a lane, log lines. */
  async note(e: Extract<RunEvent, { type: 'metrics' | 'eval' | 'checkpoint' | 'activity' | 'log' | 'run.closed' }>): Promise<void> { await this.#commit([e]); }

  /** The checkpoint a resumed run goes on from; undefined when there is none. */
  async lastCheckpoint(): Promise<{ readonly version: PolicyVersion; readonly dir: string } | undefined> {
    const e = await this.store.latest('checkpoint');
    return e && { version: e.version, dir: e.dir };
  }

  stats(): DataStats { return dataStats(this.#state); }

  async close(reason = 'closed'): Promise<void> {
    try { await this.#commit([{ type: 'run.closed', reason }]); } finally { await this.store.close(); }
  }

  /** Applies events at once, in order, and resolves when they are on disk. */
  async #commit(events: readonly RunEvent[]): Promise<void> {
    if (events.length === 0) return;
    const saved = events.map((e) => { this.#state.apply(e); return this.store.append(e); });
    this.#changed();
    await Promise.all(saved);
  }
  /** Listeners run after the present turn: they find the change complete, and several changes are told once. */
  #changed(): void {
    if (this.#told) return;
    this.#told = true;
    queueMicrotask(() => { this.#told = false; for (const l of this.#listeners) l(); });
  }

  /** Curates a group all of whose rollouts ended. Gives its id when it is ready for a batch. */
  async #settle(group: GroupId): Promise<GroupId | undefined> {
    const { planner, pool, version } = this.#state;
    const complete = planner.complete(group);
    if (!complete) return undefined;
    const { plan, members } = complete;
    const own = members.map((r) => this.#trajectory(r));
    const inject = (): Trajectory | undefined => { const e = pool.choose(plan.task, plan.family, version); return e && this.#trajectories.get(e.id); };
    const curated = curateGroup(own, inject, this.#config, random(`${this.#config.planner.seed}/cut/${group}`));
    const { group: g, family, task } = plan;
    if (curated.kind === 'dropped') {
      const saved = this.#commit([{ type: 'group.dropped', group: g, family, task, rewards: curated.rewards, retired: curated.retired, reason: curated.reason }]);
      for (const t of own) this.#forget(t.id);
      await saved;
      return undefined;
    }
    this.#starved = false;
    const saved = this.#commit([{
      type: 'group.formed', group: g, family, task, version, retired: curated.retired, ...(curated.threshold === undefined ? {} : { threshold: curated.threshold }),
      members: curated.members.map((m) => ({ rollout: m.trajectory.id, injected: m.injected, reward: m.reward, keep: m.keep })),
    }]);
    for (const t of own) if (!curated.members.some((m) => m.trajectory === t)) this.#forget(t.id);
    await saved;
    return group;
  }

  /** Pool changes a fresh trajectory brings. */
  #pool(t: Trajectory): RunEvent[] {
    if (t.outcome.kind !== 'success') return [];
    const { pool, version } = this.#state, entry = poolEntryOf(t);
    if (!pool.wants(entry)) return [];
    this.#trajectories.set(t.id, t);
    return [...pool.surplus(t.family, version).map((e): RunEvent => ({ type: 'pool.removed', entry: e, reason: 'the family has its share' })), { type: 'pool.added', entry }];
  }

  /** Trajectories of waiting groups that lag too far, and the groups that are worth nothing without them. */
  #expired(version: PolicyVersion): RunEvent[] {
    const c = this.#config.staleness, maxLag = c.maxLag ?? c.eta;
    if (!c.enabled) return [];
    return [...this.#state.ready.values()].flatMap((g): RunEvent[] => {
      const inGroup = this.#state.ledger.inGroup(g.group);
      const stale = inGroup.filter((r) => this.#lag(r, version) > maxLag);
      if (stale.length === 0) return [];
      const rest = g.members.filter((m) => !stale.includes(m.rollout));
      const whole = rest.length < this.#config.groupFilter.minSize || !hasVariance(rest.map((m) => m.reward));
      return [{ type: 'group.retired', group: g.group, rollouts: whole ? inGroup : stale, reason: 'stale', whole }];
    });
  }
  #lag(rollout: RolloutId, version: PolicyVersion): number { return versionLag(this.#trajectory(rollout).steps.map((s) => s.version), version); }

  #trajectory(rollout: RolloutId): Trajectory {
    const t = this.#trajectories.get(rollout);
    if (!t) throw new StudioError('internal', `Trajectory ${rollout} is needed and not in memory.`, 'This is a fault of DART Studio: please report it with the log.');
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
  #openBatch(batch: BatchId): { readonly groups: readonly { readonly group: GroupId; readonly members: readonly { readonly rollout: RolloutId }[] }[] } {
    const b = this.#state.claimed.get(batch);
    if (!b) throw new StudioError('internal', `Batch ${batch} is not claimed.`, 'This is a fault of DART Studio: please report it with the log.');
    return b;
  }
}
