import { Listeners } from './listeners.js';
import { StudioError, type RetireReason, internalError } from '../domain/index.js';
import type {
  BatchId,
  FamilyId,
  GroupId,
  PolicyVersion,
  RolloutId,
  Step,
  TaskId,
  Trajectory,
} from '../domain/index.js';
import { Ages } from './ages.js';
import type { DataConfig } from './config.js';
import { rolloutCapacity, type CapacityInfo } from './capacity.js';
import { batchOf, blockingHeld, claimedEvent, planClaim, type ClaimedBatch, type ClaimOptions } from './claims.js';
import { LOSS_WORDS, lostGroups, measured } from './lostGroups.js';
import { Commits, type EventSink } from './commits.js';
import { GroupCurator } from './groupCurator.js';
import { PoolKeeper } from './poolKeeper.js';
import { dataStats, stateCounts, type DataStats, type StateCounts } from './dataStats.js';
import { inLedger, isError, type LossCause, type NoteEvent, type StepExtra, type TrainedSteps } from './events.js';
import { openReplayed, recover, releaseOf, type Recovered, type RecoveryReport } from './recover.js';
import { DataState, type FormedGroup, type OpenBatch } from './state.js';
import type { PlannerFamily } from './planner.js';
import { recordedEvents, RunningRollouts } from './running.js';
import { SlowDisk } from './slowDisk.js';
import { TrajectoryCache } from './trajectoryCache.js';
import type { DiskRoom } from './store/room.js';
import type { RunStore, RunMeta, RunStoreOptions } from './store/runStore.js';
import type { Before, FrameStore, PoolAnswer, PoolWish, RolloutOrder } from './types.js';

export interface DataManagerOptions {
  /** The run folder. */
  readonly dir: string;
  readonly store: RunStoreOptions & { readonly create?: Omit<RunMeta, 'format'> };
  readonly config: DataConfig;
  /** Families to train on, with their seeds. */
  readonly families: readonly PlannerFamily[];
  readonly taskOf: (family: FamilyId, seed: number) => TaskId;
}
/**
 * The data manager (module 3): what to roll out, what came back, what to train. Decisions and state are pure (planner,
 * curation, ledger in `DataState`); this shell writes every event to the journal before it acknowledges anything. State
 * changes within one turn of the event loop, so a claim or an order is never handed out twice.
 */
export class DataManager {
  readonly #store: RunStore | undefined;
  readonly #commits: Commits;
  /** Told of each event of `note` once it is on disk. */
  readonly noted = new Listeners<NoteEvent>();
  readonly #pool: PoolKeeper;
  readonly #curator: GroupCurator;
  readonly recovery: RecoveryReport;
  readonly #config: DataConfig;
  readonly #state: DataState;
  readonly #trajectories: TrajectoryCache;
  readonly #running = new RunningRollouts();
  readonly #ages: Ages;
  readonly #disk: SlowDisk;
  /** Orders that begin again, and batches claimed before a crash, of a deterministic run. */
  readonly #again: RolloutOrder[];
  readonly #reclaim: BatchId[];
  #starved = false;
  #recorded = 0;
  private constructor(
    store: RunStore | undefined,
    sink: EventSink,
    state: DataState,
    config: DataConfig,
    r: Omit<Recovered, 'events'>,
  ) {
    this.#again = [...r.again];
    this.#reclaim = [...r.claimed];
    this.#store = store;
    this.#state = state;
    this.#config = config;
    this.recovery = r.report;
    this.#commits = new Commits(state, sink);
    this.#disk = new SlowDisk(store, () => this.#commits.changes.tell());
    this.#trajectories = new TrajectoryCache(state, r.trajectories);
    this.#pool = new PoolKeeper(state, this.#commits, this.#trajectories);
    this.#curator = new GroupCurator(state, config, this.#commits, this.#trajectories);
    this.#ages = new Ages(state, {
      staleness: config.staleness,
      minSize: config.groupFilter.minSize,
      trajectories: r.trajectories,
      began: this.#running.began,
    });
  }

  /**
   * A run without a folder, for simulations: the same decisions and the same ledger, its events handed to `sink`. It
   * has no `store` and no `frames`.
   */
  static volatile(o: Omit<DataManagerOptions, 'dir' | 'store'>, sink: EventSink): DataManager {
    return new DataManager(undefined, sink, new DataState(o.config, o.families, o.taskOf), o.config, {
      report: { events: 0, skipped: 0, lost: [], corrupt: [], released: 0, unreadable: [] },
      trajectories: new Map(),
      again: [],
      claimed: [],
    });
  }

  /**
   * Opens a run folder, new or to be resumed. On resume the journal is replayed; rollouts that were queued or running
   * are retired as lost and handed out again in their groups, untrained claims are released, and complete groups are
   * curated.
   */
  static async open(o: DataManagerOptions): Promise<DataManager> {
    const state = new DataState(o.config, o.families, o.taskOf);
    const { store, skipped } = await openReplayed(o.dir, o.store, state);
    try {
      await store.room.keepReserve();
      const recovered = await recover(
        store,
        state,
        { events: store.recovery.records, skipped, missing: store.recovery.missing },
        o.config.deterministic,
      );
      const manager = new DataManager(store, store, state, o.config, recovered);
      await manager.#commits.commit([
        { type: 'run.opened', run: store.meta.id, resumed: store.recovery.records > 0, pid: process.pid },
        ...recovered.events,
      ]);
      await manager.#followUp();
      for (const group of state.planner.openGroups()) await manager.#settle(group);
      return manager;
    } catch (e) {
      await store.close();
      throw e;
    }
  }

  get store(): RunStore {
    if (!this.#store)
      throw new StudioError('internal', 'This data manager has no run folder.', 'Open the run with DataManager.open.');
    return this.#store;
  }
  get frames(): FrameStore {
    return this.store.frames;
  }
  get config(): DataConfig {
    return this.#config;
  }
  /** The room on the run folder's disk: whatever writes there waits in it. */
  get room(): DiskRoom {
    return this.store.room;
  }

  /** Trajectories recorded since the run was opened, errors left out. */
  get recorded(): number {
    return this.#recorded;
  }
  /** ms that the run has taken, as far as the journal knows. */
  get elapsedMs(): number {
    return this.#state.elapsedMs;
  }
  /** Called after every change that may make `nextOrder` or `claimBatch` answer differently. */
  onChange(listener: () => void): () => void {
    return this.#commits.changes.add(listener);
  }

  /** Rollouts that may start now under the staleness bound and `maxConcurrent`; 0 or less = wait for a change. */
  capacity(i: CapacityInfo): number {
    if (this.#disk.slow) return 0;
    return rolloutCapacity(this.#state, this.#config, i, this.#starved);
  }

  /** Whether some of the group's rollouts have not ended; false once it is curated. */
  isOpen(group: GroupId): boolean {
    return this.#state.planner.isOpen(group);
  }

  /** The next rollout to start, or undefined while the bound allows none. `onlyOpen`: no new group. */
  async nextOrder(i: CapacityInfo & { readonly onlyOpen?: boolean }): Promise<RolloutOrder | undefined> {
    const again = this.#again.shift();
    if (again) return again;
    if (this.capacity(i) <= 0 || (i.onlyOpen && this.#state.planner.unissued === 0)) return undefined;
    const events = this.#state.planner.next(),
      last = events.at(-1);
    if (last?.type !== 'rollout.queued') return undefined;
    await this.#commits.commit(events);
    return last.order;
  }

  /** The recorded steps that a branch begins with; undefined when they cannot be read. */
  readonly before = ({ branch }: RolloutOrder): Before | undefined => branch && this.#trajectories.upTo(branch);

  /** Begins a rollout that a fault cut short again, under its own id (deterministic runs only). */
  async restart(rollout: RolloutId): Promise<void> {
    const order = this.#state.orders.get(rollout);
    if (!order) throw internalError(`Rollout ${rollout} is not running and cannot begin again.`);
    this.#running.restart(rollout);
    this.#again.push(order);
    await this.#commits.commit([{ type: 'rollout.restarted', rollout, group: order.group }]);
  }
  /** Groups that were opened so far, and those that are open. */
  groups(): { readonly opened: number; readonly open: readonly GroupId[] } {
    return { opened: this.#state.planner.state().groups, open: this.#state.planner.openGroups() };
  }

  /** `version`: the oldest that may act in it, i.e. that a replica still answers with now. */
  async started(rollout: RolloutId, version: PolicyVersion, desktop?: string, instruction?: string): Promise<void> {
    this.#running.began.set(rollout, version);
    await this.#commits.commit([{ type: 'rollout.started', rollout, version, desktop, instruction }]);
  }

  /** Journals a step as it happens; its frame must already be stored. Awaiting is optional: `record` waits for all. */
  async recordStep(rollout: RolloutId, step: Step, extra?: StepExtra): Promise<void> {
    this.#running.wrote(rollout, step.index);
    await this.#commits.commit([{ type: 'rollout.step', rollout, step, extra }]);
  }

  /**
   * Records a finished trajectory: a rollout of an order, or a probe, demonstration or import. `wish` says whether it
   * joins the pool: by the rules ('auto'), never, or for a person's reason. Resolves when it is on disk, with its group
   * if that became ready. An error outcome retires the rollout; its group retries it.
   */
  async record(
    t: Trajectory,
    wish: PoolWish = 'auto',
  ): Promise<{ readonly group?: GroupId; readonly pool: PoolAnswer }> {
    const refused = this.#pool.refuses(t);
    if (refused) return { pool: refused };
    const written = this.#running.end(t.id);
    if (!isError(t.outcome)) this.#recorded++;
    const order = inLedger(t.provenance) ? this.#state.orders.get(t.id) : undefined;
    // Its group has continued without it.
    const late = order && this.#state.released.has(t.id) && !isError(t.outcome);
    const saved = this.#commits.commit(recordedEvents(t, written, late ? order.group : undefined));
    if (order && !late && !isError(t.outcome)) this.#trajectories.set(t);
    const [pool, pooled] = this.#pool.add(t, wish, wish === 'auto' ? undefined : 'person');
    const settled = order ? this.#settle(order.group) : Promise.resolve(undefined);
    const [, , group] = await Promise.all([saved, pooled, settled]);
    return { pool, group };
  }

  /** Adds a finished trajectory to the pool for a person; the answer says why not if it cannot join. */
  async addToPool(t: Trajectory, wish: PoolWish): Promise<PoolAnswer> {
    const [answer, saved] = this.#pool.add(t, wish, 'person');
    await saved;
    return answer;
  }
  /** Enables or disables entries; unknown ids are skipped. */
  async switchPool(rollouts: readonly RolloutId[], enabled: boolean): Promise<void> {
    await this.#pool.switch(rollouts, enabled);
  }
  /** Removes entries for good: they are no longer injected or imitated. */
  async removeFromPool(rollouts: readonly RolloutId[], reason: string): Promise<void> {
    await this.#pool.remove(rollouts, reason);
  }
  /** Enabled entries that people added to the pool (demonstrations, imports, overrides), as successes. */
  externalSuccesses(): Trajectory[] {
    return this.#pool.external();
  }
  /** Whether a person disabled it in the pool or removed it. */
  rejected(rollout: RolloutId): boolean {
    return this.#state.pool.rejected(rollout);
  }
  /** Called after the pool changed, at most once per turn of the event loop. */
  onPool(listener: () => void): () => void {
    return this.#commits.poolChanges.add(listener);
  }

  /**
   * Marks a rollout as held by a person (`long`: already for long) or free. Training does not wait for a held rollout
   * for ever.
   */
  hold(rollout: RolloutId, how: 'held' | 'long' | 'free'): void {
    this.#running.hold(rollout, how);
    this.#commits.changes.tell();
  }

  /**
   * Retires a rollout without an outcome: stopped by the user, or given up. Its slot is handed out again (after an
   * error: while retries last).
   */
  async retire(rollout: RolloutId, reason: Extract<RetireReason, 'stopped' | 'lost' | 'error'>): Promise<void> {
    const order = this.#state.orders.get(rollout);
    if (!order) throw internalError(`Rollout ${rollout} is not running and cannot be retired.`);
    this.#running.end(rollout);
    await Promise.all([
      this.#commits.commit([{ type: 'rollout.retired', rollout, group: order.group, reason }]),
      this.#settle(order.group),
    ]);
  }

  /**
   * Takes waiting groups for one update, those with the oldest weights first; undefined until there are enough, or
   * while a group that is still rolled out would get too old if others were trained first. Groups beyond the lag bound
   * (only after a resume) are retired first.
   */
  async claimBatch(o: ClaimOptions): Promise<ClaimedBatch | undefined> {
    const mine = this.#reclaim.shift(),
      open = mine && this.#state.claimed.get(mine);
    if (open) return { ...this.#batchOf(open.groups, open.version), id: open.batch };
    const retired = this.#retireExpired(o.version),
      plan = planClaim(this.#state, this.#ages, o),
      blocking = blockingHeld(this.#state, this.#ages, this.#running.held, plan, o);
    if (blocking.length > 0) {
      await Promise.all([retired, ...blocking.map((r) => this.#goOnWithout(r))]);
      return this.claimBatch(o);
    }
    if (!plan.enough || this.#ages.mustWait(plan.waiting, plan.taken.length, o)) {
      // Notify once: a listener that claims again must not be called by its own claim for ever.
      if (!this.#starved) {
        this.#starved = true;
        this.#commits.changes.tell();
      }
      await retired;
      return undefined;
    }
    this.#starved = false;
    const batch = this.#batchOf(plan.taken, o.version),
      claimed = claimedEvent(batch, this.#state, this.#ages, (r) => this.#trajectories.get(r));
    await Promise.all([retired, this.#commits.commit([claimed])]);
    return batch;
  }

  /**
   * Records that the batch made these weights, which are in the folder `checkpoint`; `trajectories` says how each was
   * weighed, for people.
   */
  async trained(
    batch: BatchId,
    version: PolicyVersion,
    trajectories?: readonly TrainedSteps[],
    checkpoint?: string,
  ): Promise<void> {
    const open = this.#openBatch(batch);
    const saved = this.#commits.commit([
      {
        type: 'batch.trained',
        batch,
        rollouts: this.#state.ledger.claimedBy(batch),
        version,
        checkpoint,
        trajectories,
      },
    ]);
    for (const g of open.groups) for (const m of g.members) this.#trajectories.forget(m.rollout);
    await saved;
  }
  /**
   * Gives up what cannot be read back of a claimed batch, or trained: groups with this rollout are retired as lost, it
   * leaves the pool, and the other groups wait again, in front. Returns the groups that were retired.
   */
  async lose(batch: BatchId, rollout: RolloutId, cause: LossCause = 'corrupt'): Promise<readonly GroupId[]> {
    const open = this.#openBatch(batch),
      lost = open.groups.filter((g) => g.members.some((m) => m.rollout === rollout)),
      released = this.release(batch, `trajectory ${rollout}: ${LOSS_WORDS[cause]}`),
      retired = this.#commits.commit(lostGroups(this.#state, lost, { rollout, cause }));
    for (const g of lost) for (const m of g.members) this.#trajectories.forget(m.rollout);
    await Promise.all([released, retired]);
    return lost.map((g) => g.group);
  }
  /** Releases an untrained batch: its groups wait again, in front. */
  async release(batch: BatchId, reason: string): Promise<void> {
    await this.#commits.commit([releaseOf(this.#state, this.#openBatch(batch), reason)]);
  }

  /** Journals anything else: metrics, evaluation points, checkpoints, starts of probes, spans, time used, log lines. */
  async note(e: NoteEvent): Promise<void> {
    const noted = e.type === 'metrics' ? { ...e, values: measured(e.values) } : e;
    await this.#commits.commit([noted]);
    this.noted.tell(noted);
  }

  stats(): DataStats {
    return dataStats(this.#state);
  }
  /** The part of `stats` that costs the same however long the run and its list of families is. */
  counts(): StateCounts {
    return stateCounts(this.#state, this.#reclaim.length);
  }

  async close(reason = 'closed'): Promise<void> {
    await this.#store?.room.end();
    try {
      await this.#commits.commit([{ type: 'run.closed', reason }]);
    } finally {
      await this.#commits.close();
    }
  }

  #batchOf(groups: readonly FormedGroup[], version: PolicyVersion): ClaimedBatch {
    return batchOf(this.#state, groups, version, this.#trajectories.get, (t) => this.#ages.aged(t, version));
  }
  /** In a deterministic run: pools a success whose record a crash cut off from what follows it. */
  async #followUp(): Promise<void> {
    const { justRecorded } = this.#state,
      t = justRecorded && this.#trajectories.all.get(justRecorded);
    if (this.#config.deterministic && t) await this.#pool.add(t, 'auto')[1];
  }

  /** Branches a group off, or curates one that is complete. Returns its id when it is ready for a batch. */
  async #settle(group: GroupId): Promise<GroupId | undefined> {
    const { ready, saved } = this.#curator.settle(group);
    if (ready) this.#starved = false;
    await saved;
    return ready ? group : undefined;
  }

  /** Retires groups beyond the lag bound. */
  #retireExpired(version: PolicyVersion): Promise<void> {
    const expired = this.#ages.expired(version, this.#trajectories.get),
      saved = this.#commits.commit(expired);
    for (const e of expired) if (e.type === 'group.retired') for (const r of e.rollouts) this.#trajectories.forget(r);
    return saved;
  }
  /** Replaces a rollout that a person holds by another one. */
  async #goOnWithout(rollout: RolloutId): Promise<void> {
    const { group } = this.#state.orders.get(rollout)!;
    await Promise.all([this.#commits.commit([{ type: 'rollout.released', rollout, group }]), this.#settle(group)]);
  }
  #openBatch(batch: BatchId): OpenBatch {
    const b = this.#state.claimed.get(batch);
    if (!b) throw internalError(`Batch ${batch} is not claimed.`);
    return b;
  }
}
