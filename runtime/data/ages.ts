import { ownFrom, type GroupId, type PolicyVersion, type RolloutId, type Trajectory } from '../domain/index.js';
import type { StalenessConfig } from './config.js';
import { leavesRoom, oldestVersion } from './curation/staleness.js';
import { hasVariance } from './curation/groupFilter.js';
import type { JournalEvent } from './events.js';
import type { DataState } from './state.js';

/** The part of a claim that concerns age. */
export interface ClaimAge {
  readonly version: PolicyVersion;
  /** Oldest version a replica may still answer with. Default `version`. */
  readonly behavior?: PolicyVersion;
}

/**
 * The age of the weights that acted in waiting groups, and what follows from it: which trajectories are too old to be
 * trained, and which groups an update must wait for. Changes nothing.
 */
export class Ages {
  readonly #state: DataState;
  readonly #staleness: StalenessConfig;
  readonly #minSize: number;
  readonly #trajectories: ReadonlyMap<RolloutId, Trajectory>;
  /** Oldest version that may act in a running rollout. */
  readonly #began: ReadonlyMap<RolloutId, PolicyVersion>;
  /** Oldest version that acted in each trajectory; cached because every claim needs it. */
  readonly #oldest = new WeakMap<Trajectory, PolicyVersion>();
  constructor(
    state: DataState,
    o: {
      readonly staleness: StalenessConfig;
      /** Members a group needs. */
      readonly minSize: number;
      readonly trajectories: ReadonlyMap<RolloutId, Trajectory>;
      readonly began: ReadonlyMap<RolloutId, PolicyVersion>;
    },
  ) {
    this.#state = state;
    this.#staleness = o.staleness;
    this.#minSize = o.minSize;
    this.#trajectories = o.trajectories;
    this.#began = o.began;
  }

  /**
   * Updates that a trajectory lags behind `version`. The steps that a branch acted out do not count: they are trained
   * with the rollout they come from.
   */
  lag(t: Trajectory, version: PolicyVersion): number {
    return Math.max(0, version - this.#oldestIn(t));
  }
  /** As `lag`, for a trajectory that joins a group from the pool: there all of its steps are trained. */
  poolLag(t: Trajectory, version: PolicyVersion): number {
    return Math.max(0, version - oldestVersion(t.steps.map((s) => s.version)));
  }
  /** Whether a trajectory lags more than may be trained with its behaviour log-probs. */
  overBound(t: Trajectory, version: PolicyVersion): boolean {
    return this.#tooOld(this.lag(t, version));
  }
  /** As `overBound`, for a trajectory that joins a group from the pool. */
  aged(t: Trajectory, version: PolicyVersion): boolean {
    return this.#tooOld(this.poolLag(t, version));
  }
  #tooOld(lag: number): boolean {
    const { enabled, eta, maxLag = eta } = this.#staleness;
    return enabled && lag > maxLag;
  }
  /** Oldest version that acted, or may act, in any of these rollouts; those not started count as `unknown`. */
  oldestOf(rollouts: Iterable<RolloutId>, unknown: PolicyVersion): PolicyVersion {
    let oldest = unknown;
    for (const r of rollouts) {
      const t = this.#trajectories.get(r),
        v = t ? this.#oldestIn(t) : this.#began.get(r);
      if (v !== undefined && v < oldest) oldest = v;
    }
    return oldest;
  }

  /**
   * Trajectories of waiting groups that lag too far, and the groups that are useless without them. `of` returns a
   * trajectory, which must be in memory.
   */
  expired(version: PolicyVersion, of: (rollout: RolloutId) => Trajectory): JournalEvent[] {
    if (!this.#staleness.enabled) return [];
    return [...this.#state.ready.values()].flatMap((g): JournalEvent[] => {
      const inGroup = this.#state.ledger.inGroup(g.group);
      const stale = inGroup.filter((r) => this.overBound(of(r), version));
      if (stale.length === 0) return [];
      const rest = g.members.filter((m) => !stale.includes(m.rollout));
      const whole = rest.length < this.#minSize || !hasVariance(rest.map((m) => m.reward));
      return [{ type: 'group.retired', group: g.group, rollouts: whole ? inGroup : stale, reason: 'stale', whole }];
    });
  }

  /**
   * Whether a claim now would make a group that is still open older than the bound. Groups are claimed oldest first, so
   * an update must wait for an old group when too few updates would be left for it. With admission, this keeps the
   * bound for every trained step without discarding any.
   */
  mustWait(waiting: readonly PolicyVersion[], taken: number, o: ClaimAge, without?: ReadonlySet<GroupId>): boolean {
    const { enabled, eta, groupsPerUpdate } = this.#staleness,
      { planner } = this.#state;
    if (!enabled || groupsPerUpdate === undefined) return false;
    const behavior = o.behavior ?? o.version;
    const open = planner
        .openGroups()
        .filter((g) => !without?.has(g))
        .map((g) => this.oldestOf(planner.members(g), behavior)),
      newest = waiting[taken - 1] ?? o.version;
    // Waiting helps only when the awaited group would be claimed before those that could be taken now.
    return (
      open.some((v) => v < newest) &&
      !leavesRoom([...open, ...waiting.slice(taken)], { version: o.version + 1, eta, perUpdate: groupsPerUpdate })
    );
  }

  #oldestIn(t: Trajectory): PolicyVersion {
    let v = this.#oldest.get(t);
    if (v === undefined) this.#oldest.set(t, (v = oldestVersion(t.steps.slice(ownFrom(t)).map((s) => s.version))));
    return v;
  }
}
