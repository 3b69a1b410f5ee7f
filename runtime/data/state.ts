import {
  endedInSuccess,
  id,
  ownFrom,
  type BatchId,
  type FamilyId,
  type GroupId,
  type PolicyVersion,
  type RolloutId,
  type TaskId,
} from '../domain/index.js';
import type { DataConfig } from './config.js';
import { SuccessLengths } from './curation/dynamicLength.js';
import { tallyHindsight, type HindsightTally } from './curation/hindsight.js';
import { SuccessStats } from './curation/successStats.js';
import { countTrained, faultOf, inLedger, isAssisted, isError, ledgerMoves } from './events.js';
import type { EventOf, GroupMember, JournalEvent } from './events.js';
import { ExperiencePool } from './experiencePool.js';
import { Ledger, type LedgerMove } from './ledger.js';
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
  readonly poolLags: readonly number[];
}

/** Totals the UI shows. */
export interface Tally {
  groupsFormed: number;
  groupsDropped: number;
  /** Number of claims, released ones included; names the next batch. */
  batches: number;
  trained: number;
  stepsKept: number;
  stepsSeen: number;
  injections: number;
  trainedSteps: number;
  /** Number of trained rollouts, and of injected successes of the policy, by how many updates they lagged behind. */
  readonly lags: Map<number, number>;
  readonly poolLags: Map<number, number>;
  threshold: number | undefined;
  readonly hindsight: HindsightTally;
}

/**
 * Everything the data manager knows, as a function of the journal's events: a live run and a resume apply the same
 * events through `apply`, so they cannot reach different states.
 */
export class DataState {
  readonly ledger = new Ledger();
  readonly stepLedger = new StepLedger();
  readonly stats: SuccessStats;
  readonly lengths: SuccessLengths;
  readonly pool: ExperiencePool;
  readonly planner: Planner;
  /** Groups that wait to be claimed, in the order in which they were formed. */
  readonly ready = new Map<GroupId, FormedGroup>();
  readonly claimed = new Map<BatchId, OpenBatch>();
  /** Orders of rollouts that have not ended. */
  readonly orders = new Map<RolloutId, RolloutOrder>();
  /** Running rollouts whose groups continued without them. */
  readonly released = new Set<RolloutId>();
  /** The newest rollout of each desktop. */
  readonly onDesktop = new Map<string, RolloutId>();
  /**
   * Rollouts that the journal shows as running although their desktop has begun another one: the record of their end is
   * missing.
   */
  readonly overtaken = new Set<RolloutId>();
  readonly tally: Tally = {
    groupsFormed: 0,
    groupsDropped: 0,
    batches: 0,
    trained: 0,
    stepsKept: 0,
    stepsSeen: 0,
    injections: 0,
    trainedSteps: 0,
    lags: new Map(),
    poolLags: new Map(),
    threshold: undefined,
    hindsight: { failures: 0, asked: 0, held: 0, relabelled: 0, ms: 0 },
  };
  /** Number of the newest batch that was trained; 0 before the first. */
  trainedBatch = 0;
  /** Time the run has used. */
  elapsedMs = 0;
  /**
   * The trajectory recorded last, if nothing changed since: a crash may have cut off the events that follow from it.
   */
  justRecorded: RolloutId | undefined;
  /** Newest weights seen anywhere. */
  version: PolicyVersion = 0;

  constructor(
    config: DataConfig,
    families: readonly PlannerFamily[],
    taskOf: (family: FamilyId, seed: number) => TaskId,
  ) {
    this.stats = new SuccessStats(config.dynamicRollouts.window);
    this.lengths = new SuccessLengths(config.dynamicLength.window);
    this.pool = new ExperiencePool(config.pool, config.hindsight);
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
    this.#applied(e, moves);
  }

  /**
   * Applies, unchecked, an event that the ledger refuses because the events before it are lost in a damaged journal.
   */
  applyDamaged(e: JournalEvent): void {
    const moves = ledgerMoves(e).filter((m) => this.ledger.state(m.rollout)?.at !== 'trained');
    this.ledger.force(moves);
    for (const m of moves) this.planner.saw(m.rollout);
    this.#applied(e, moves);
  }

  #applied(e: JournalEvent, moves: readonly LedgerMove[]): void {
    if (e.type === 'trajectory.recorded' && inLedger(e.head.provenance))
      this.stepLedger.ended(e.head.id, Math.max(0, e.head.steps - ownFrom(e.head)), e.head.human);
    if (e.type === 'group.formed')
      for (const m of e.members) if (!m.injected) this.stepLedger.kept(m.rollout, m.keep.filter(Boolean).length);
    for (const m of moves) this.stepLedger.moved(m);
    if (e.type === 'trajectory.recorded') this.justRecorded = e.head.id;
    else if (!PASSING.has(e.type)) this.justRecorded = undefined;
    applyToPool(this.pool, e);
    // The table gives each handler the events of its own type; the compiler cannot follow that through one lookup.
    const change = changes[e.type] as ((s: DataState, e: JournalEvent) => void) | undefined;
    change?.(this, e);
  }

  /** Called with the weights that a record names. */
  saw(version: PolicyVersion): void {
    this.version = Math.max(this.version, version);
  }
}

/** Records that may come between a trajectory's record and those that follow from it. */
const PASSING: ReadonlySet<JournalEvent['type']> = new Set(['run.time', 'run.opened', 'rollout.step']);

/** What a record changes besides ledger, step ledger and pool; a type without an entry changes nothing. */
type Changes = { readonly [T in JournalEvent['type']]?: (s: DataState, e: EventOf<T>) => void };

const changes: Changes = {
  'run.time'(s, e) {
    s.elapsedMs = Math.max(s.elapsedMs, e.elapsedMs);
  },
  'group.opened'(s, e) {
    s.planner.apply(e);
  },
  'group.branched'(s, e) {
    s.planner.apply(e);
  },
  'rollout.queued'(s, e) {
    s.planner.apply(e);
    s.orders.set(e.order.rollout, e.order);
  },
  'rollout.started'(s, e) {
    s.saw(e.version);
    const o = s.orders.get(e.rollout);
    if (o) s.planner.started(o.group, e.rollout);
    if (e.desktop === undefined) return;
    const before = s.onDesktop.get(e.desktop);
    if (before !== undefined && before !== e.rollout && s.ledger.state(before)?.at === 'running')
      s.overtaken.add(before);
    s.onDesktop.set(e.desktop, e.rollout);
  },
  'rollout.restarted'(s, e) {
    s.planner.restarted(e.group, e.rollout);
  },
  'trajectory.recorded'(s, e) {
    recorded(s, e);
  },
  'rollout.released'(s, e) {
    s.released.add(e.rollout);
    s.planner.retired(e.group, e.rollout, 'stale');
  },
  'rollout.retired'(s, e) {
    s.released.delete(e.rollout);
    s.orders.delete(e.rollout);
    s.planner.retired(e.group, e.rollout, e.reason);
  },
  'group.formed'(s, e) {
    s.planner.close(e.group);
    s.ready.set(e.group, {
      group: e.group,
      family: e.family,
      task: e.task,
      members: e.members,
      threshold: e.threshold,
    });
    s.tally.groupsFormed++;
    s.tally.threshold = e.threshold;
    for (const m of e.members) {
      s.tally.stepsSeen += m.keep.length - (m.from ?? 0);
      s.tally.stepsKept += m.keep.filter(Boolean).length;
      if (m.injected) s.tally.injections++;
    }
  },
  'group.dropped'(s, e) {
    s.planner.close(e.group);
    s.tally.groupsDropped++;
  },
  'group.retired'(s, e) {
    const g = s.ready.get(e.group);
    if (g && e.whole) {
      s.ready.delete(e.group);
      s.tally.groupsDropped++;
    } else if (g)
      s.ready.set(e.group, {
        ...g,
        members: g.members.filter((m) => m.injected || !e.rollouts.includes(m.rollout)),
      });
  },
  'batch.claimed'(s, e) {
    const groups = e.groups.flatMap((g) => {
      const f = s.ready.get(g.group);
      s.ready.delete(g.group);
      // A group is still open here only when the record that formed it is lost: it must not form again.
      s.planner.close(g.group);
      return f ? [f] : [];
    });
    s.claimed.set(e.batch, { batch: e.batch, version: e.version, groups, lags: e.lags, poolLags: e.poolLags ?? [] });
    s.tally.batches = Math.max(s.tally.batches + 1, batchNumber(e.batch));
  },
  'batch.released'(s, e) {
    // Released groups return to the front of the queue.
    const waiting = [...s.ready],
      back = (s.claimed.get(e.batch)?.groups ?? []).filter((g) => isWaiting(s, g));
    s.claimed.delete(e.batch);
    s.ready.clear();
    for (const g of back) s.ready.set(g.group, g);
    for (const [k, g] of waiting) s.ready.set(k, g);
  },
  'batch.trained'(s, e) {
    const b = s.claimed.get(e.batch);
    s.claimed.delete(e.batch);
    s.tally.trained++;
    s.trainedBatch = Math.max(s.trainedBatch, batchNumber(e.batch));
    // Where the claim is lost in a damaged journal, its groups are still waiting.
    if (!b) {
      s.tally.batches = Math.max(s.tally.batches, batchNumber(e.batch));
      for (const g of [...s.ready.values()]) if (!isWaiting(s, g)) s.ready.delete(g.group);
    }
    for (const lag of b?.lags ?? []) s.tally.lags.set(lag, (s.tally.lags.get(lag) ?? 0) + 1);
    for (const lag of b?.poolLags ?? []) s.tally.poolLags.set(lag, (s.tally.poolLags.get(lag) ?? 0) + 1);
    const members = b?.groups.flatMap((g) => g.members) ?? [];
    s.tally.trainedSteps += e.trajectories
      ? countTrained(e.trajectories)
      : members.reduce((n, m) => n + m.keep.filter(Boolean).length, 0);
    s.saw(e.version);
  },
  checkpoint(s, e) {
    s.saw(e.version);
  },
  'rates.seeded'(s, e) {
    for (const [family, outcomes] of Object.entries(e.families)) s.stats.seed(id<FamilyId>(family), outcomes);
  },
};

/** Whether some of its own rollouts still wait to be trained. */
const isWaiting = ({ ledger }: DataState, g: FormedGroup): boolean =>
  g.members.some((m) => !m.injected && ledger.state(m.rollout)?.at === 'grouped');
export const batchNumber = (batch: BatchId): number => Number(/\d+$/.exec(batch)?.[0] ?? 0);

function recorded(s: DataState, { head }: EventOf<'trajectory.recorded'>): void {
  tallyHindsight(s.tally.hindsight, head);
  const success = head.outcome.kind === 'success';
  // Lengths of successes, demonstrations included. Not of a probe, which is held out and must not influence training;
  // of a rollout that a person helped; of a success that the step cap ended after several steps, whose length is
  // unknown; nor of a relabelled one, which was not aiming at that task.
  if (
    endedInSuccess(head.outcome, head.steps) &&
    !['probe', 'hindsight'].includes(head.provenance.kind) &&
    !isAssisted(head)
  )
    s.lengths.add(head.family, head.steps);
  if (!inLedger(head.provenance)) return;
  // The outcome of a branch estimates the value of the state it began in, not the success rate of the task.
  if (!isError(head.outcome) && !isAssisted(head) && !head.branch) s.stats.add(head.family, success);
  const o = s.orders.get(head.id);
  s.orders.delete(head.id);
  if (!o) return;
  if (isError(head.outcome)) s.planner.retired(o.group, head.id, faultOf(head.outcome));
  else s.planner.recorded(o.group, head.id, success);
}
