import type { FamilyId, PolicyVersion } from '../domain/index.js';
import type { HindsightTally } from './curation/hindsight.js';
import type { PoolStats } from './experiencePool.js';
import type { DataState } from './state.js';
import type { StepCounts } from './stepLedger.js';
import type { LedgerCounts } from './types.js';

export interface FamilyStats {
  readonly family: FamilyId;
  /** Over the window; undefined without outcomes. */
  readonly rate: number | undefined;
  readonly posterior: number;
  readonly outcomes: number;
  readonly total: number;
  /** N and step cap of its next group. */
  readonly size: number;
  readonly cap: number;
  readonly longest: number | undefined;
}
/** One snapshot for the UI and the progress line; plain JSON. */
export interface DataStats {
  readonly version: PolicyVersion;
  readonly families: readonly FamilyStats[];
  /** Success rate over all windows, weighted by outcomes. */
  readonly rate: number | undefined;
  readonly ledger: LedgerCounts;
  /** The same in steps of rollouts that ended. */
  readonly stepLedger: StepCounts;
  readonly pool: PoolStats;
  readonly groups: {
    readonly open: number;
    readonly ready: number;
    readonly claimed: number;
    readonly formed: number;
    readonly dropped: number;
  };
  readonly batches: number;
  readonly steps: {
    /** Steps of formed groups, including injected trajectories. */
    readonly seen: number;
    readonly kept: number;
    readonly trained: number;
    /** kept / seen of formed groups. */
    readonly share: number | undefined;
  };
  /** Entropy threshold of the group formed last. */
  readonly threshold: number | undefined;
  /** Number of trained rollouts by how many updates they lagged. */
  readonly staleness: readonly Lagging[];
  /**
   * The same of the policy's own successes that joined from the pool. Beyond the staleness bound they are trained without
   * behaviour log-probs, as any pre-collected success is.
   */
  readonly poolStaleness: readonly Lagging[];
}

export interface Lagging {
  readonly lag: number;
  readonly rollouts: number;
}
const byLag = (lags: ReadonlyMap<number, number>): Lagging[] =>
  [...lags].sort((a, b) => a[0] - b[0]).map(([lag, rollouts]) => ({ lag, rollouts }));

/** The counts that are asked for at every change. */
export interface StateCounts {
  readonly ledger: LedgerCounts;
  /** Batches that were trained, and those that are claimed to be. */
  readonly trained: number;
  readonly claimed: number;
  /** Groups that wait for a batch. */
  readonly ready: number;
  readonly hindsight: Readonly<HindsightTally>;
}
/** `again`: batches that were claimed before a crash and are claimed once more before they are trained. */
export const stateCounts = (s: DataState, again: number): StateCounts => ({
  ledger: s.ledger.counts(),
  trained: s.tally.trained,
  claimed: s.claimed.size - again,
  ready: s.ready.size,
  hindsight: { ...s.tally.hindsight },
});

export function dataStats(s: DataState): DataStats {
  const t = s.tally;
  const families = [...new Set([...s.planner.families(), ...s.stats.families()])].map((family): FamilyStats => {
    const r = s.stats.of(family);
    return {
      family,
      rate: r.rate,
      posterior: r.posterior,
      outcomes: r.n,
      total: r.total,
      ...s.planner.outlook(family),
      longest: s.lengths.longest(family),
    };
  });
  const outcomes = families.reduce((n, f) => n + f.outcomes, 0);
  return {
    version: s.version,
    families,
    ledger: s.ledger.counts(),
    stepLedger: s.stepLedger.counts(),
    pool: s.pool.stats(s.version),
    batches: t.batches,
    rate: outcomes === 0 ? undefined : families.reduce((n, f) => n + (f.rate ?? 0) * f.outcomes, 0) / outcomes,
    groups: {
      open: s.planner.openGroups().length,
      ready: s.ready.size,
      claimed: [...s.claimed.values()].reduce((n, b) => n + b.groups.length, 0),
      formed: t.groupsFormed,
      dropped: t.groupsDropped,
    },
    steps: {
      seen: t.stepsSeen,
      kept: t.stepsKept,
      trained: t.trainedSteps,
      share: t.stepsSeen === 0 ? undefined : t.stepsKept / t.stepsSeen,
    },
    threshold: t.threshold,
    staleness: byLag(t.lags),
    poolStaleness: byLag(t.poolLags),
  };
}
