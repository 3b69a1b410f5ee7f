import type { BatchId, FamilyId, GroupId, PolicyVersion, RolloutId, TaskId } from '../domain/index.js';
import type { DataConfig } from './config.js';
import { SuccessLengths } from './curation/dynamicLength.js';
import { SuccessStats } from './curation/successStats.js';
import { inLedger, isAssisted, isError, ledgerMoves } from './events.js';
import type { GroupMember, JournalEvent } from './events.js';
import { ExperiencePool } from './experiencePool.js';
import { Ledger } from './ledger.js';
import { Planner } from './planner.js';
import { applyToPool } from './pooling.js';
import type { PlannerFamily } from './planner.js';
import { StepLedger } from './stepLedger.js';
import type { RolloutOrder } from './types.js';

/** A formed group waiting for a batch, or claimed by one. */
export interface FormedGroup {
  readonly group: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly members: readonly GroupMember[];
  readonly threshold?: number;
}
export interface OpenBatch {
  readonly batch: BatchId;
  readonly version: PolicyVersion;
  readonly groups: readonly FormedGroup[];
  readonly lags: readonly number[];
}

/** Totals the UI shows. */
export interface Tally {
  groupsFormed: number;
  groupsDropped: number;
  batches: number;
  stepsKept: number;
  stepsSeen: number;
  injections: number;
  trainedSteps: number;
  /** Updates a trained rollout lagged behind -> how many did. */
  readonly lags: Map<number, number>;
  threshold: number | undefined;
}

/**
 * Everything the data manager knows, as a function of the journal's events: the live path and a resume apply the same
 * events through `apply`, so they cannot come to different states.
 */
export class DataState {
  readonly ledger = new Ledger();
  readonly stepLedger = new StepLedger();
  readonly stats: SuccessStats;
  readonly lengths: SuccessLengths;
  readonly pool: ExperiencePool;
  readonly planner: Planner;
  /** In the order in which they were formed. */
  readonly ready = new Map<GroupId, FormedGroup>();
  readonly claimed = new Map<BatchId, OpenBatch>();
  /** Orders of rollouts that have not ended. */
  readonly orders = new Map<RolloutId, RolloutOrder>();
  /** Rollouts under way whose groups went on without them. */
  readonly released = new Set<RolloutId>();
  readonly tally: Tally = {
    groupsFormed: 0,
    groupsDropped: 0,
    batches: 0,
    stepsKept: 0,
    stepsSeen: 0,
    injections: 0,
    trainedSteps: 0,
    lags: new Map(),
    threshold: undefined,
  };
  /** Newest weights seen anywhere. */
  version: PolicyVersion = 0;

  constructor(
    config: DataConfig,
    families: readonly PlannerFamily[],
    taskOf: (family: FamilyId, seed: number) => TaskId,
  ) {
    this.stats = new SuccessStats(config.dynamicRollouts.window);
    this.lengths = new SuccessLengths(config.dynamicLength.window);
    this.pool = new ExperiencePool(config.pool);
    this.planner = new Planner({
      families,
      taskOf,
      stats: this.stats,
      lengths: this.lengths,
      config,
    });
  }

  /** Throws and changes nothing when the ledger does not allow it. */
  apply(e: JournalEvent): void {
    const moves = ledgerMoves(e);
    this.ledger.moveAll(moves);
    if (e.type === 'trajectory.recorded' && inLedger(e.head.provenance))
      this.stepLedger.ended(e.head.id, e.head.steps, e.head.human);
    if (e.type === 'group.formed')
      for (const m of e.members) if (!m.injected) this.stepLedger.kept(m.rollout, m.keep.filter(Boolean).length);
    for (const m of moves) this.stepLedger.moved(m);
    applyToPool(this.pool, e);
    switch (e.type) {
      case 'group.opened':
        this.planner.apply(e);
        break;
      case 'rollout.queued':
        this.planner.apply(e);
        this.orders.set(e.order.rollout, e.order);
        break;
      case 'rollout.started': {
        this.#saw(e.version);
        const o = this.orders.get(e.rollout);
        if (o) this.planner.started(o.group, e.rollout);
        break;
      }
      case 'trajectory.recorded':
        this.#recorded(e);
        break;
      case 'rollout.released':
        this.released.add(e.rollout);
        this.planner.retired(e.group, e.rollout, 'stale');
        break;
      case 'rollout.retired':
        this.released.delete(e.rollout);
        this.orders.delete(e.rollout);
        this.planner.retired(e.group, e.rollout, e.reason);
        break;
      case 'group.formed': {
        this.planner.close(e.group);
        this.ready.set(e.group, {
          group: e.group,
          family: e.family,
          task: e.task,
          members: e.members,
          ...(e.threshold === undefined ? {} : { threshold: e.threshold }),
        });
        this.tally.groupsFormed++;
        this.tally.threshold = e.threshold;
        for (const m of e.members) {
          this.tally.stepsSeen += m.keep.length;
          this.tally.stepsKept += m.keep.filter(Boolean).length;
          if (m.injected) this.tally.injections++;
        }
        break;
      }
      case 'group.dropped':
        this.planner.close(e.group);
        this.tally.groupsDropped++;
        break;
      case 'group.retired': {
        const g = this.ready.get(e.group);
        if (g && e.whole) {
          this.ready.delete(e.group);
          this.tally.groupsDropped++;
        } else if (g)
          this.ready.set(e.group, {
            ...g,
            members: g.members.filter((m) => m.injected || !e.rollouts.includes(m.rollout)),
          });
        break;
      }
      case 'batch.claimed': {
        const groups = e.groups.flatMap((g) => {
          const f = this.ready.get(g.group);
          this.ready.delete(g.group);
          return f ? [f] : [];
        });
        this.claimed.set(e.batch, { batch: e.batch, version: e.version, groups, lags: e.lags });
        this.tally.batches++;
        break;
      }
      case 'batch.released': {
        // Back to the front of the queue, where they were.
        const waiting = [...this.ready],
          back = this.claimed.get(e.batch)?.groups ?? [];
        this.claimed.delete(e.batch);
        this.ready.clear();
        for (const g of back) this.ready.set(g.group, g);
        for (const [k, g] of waiting) this.ready.set(k, g);
        break;
      }
      case 'batch.trained': {
        const b = this.claimed.get(e.batch);
        this.claimed.delete(e.batch);
        for (const lag of b?.lags ?? []) this.tally.lags.set(lag, (this.tally.lags.get(lag) ?? 0) + 1);
        for (const g of b?.groups ?? [])
          for (const m of g.members) this.tally.trainedSteps += m.keep.filter(Boolean).length;
        this.#saw(e.version);
        break;
      }
      case 'checkpoint':
        this.#saw(e.version);
        break;
      default:
        break;
    }
  }

  #recorded({ head }: Extract<JournalEvent, { type: 'trajectory.recorded' }>): void {
    const success = head.outcome.kind === 'success';
    // A demonstration shows how long a success is; a probe is greedy and held out, so it must not steer training.
    // Where a person helped, neither length nor outcome is the policy's.
    if (success && head.provenance.kind !== 'probe' && !isAssisted(head)) this.lengths.add(head.family, head.steps);
    if (!inLedger(head.provenance)) return;
    if (!isError(head.outcome) && !isAssisted(head)) this.stats.add(head.family, success);
    const o = this.orders.get(head.id);
    this.orders.delete(head.id);
    if (!o) return;
    if (isError(head.outcome)) this.planner.retired(o.group, head.id, 'error');
    else this.planner.recorded(o.group, head.id, success);
  }
  #saw(version: PolicyVersion): void {
    this.version = Math.max(this.version, version);
  }
}
