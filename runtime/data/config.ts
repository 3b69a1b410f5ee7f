/**
 * Options of the data manager. Every mechanism of runtime/data/README.md#curation can be switched off by its `enabled`.
 */
export interface DynamicRolloutsConfig {
  readonly enabled: boolean;
  /** N of a family that is not yet mastered (paper: 8), also used when the mechanism is off. */
  readonly max: number;
  readonly min: number;
  /** Below this success rate N stays at `max` (paper: 0.6). */
  readonly threshold: number;
  /** Success rate is taken over this many latest rollouts of the family. */
  readonly window: number;
  /** With fewer outcomes than this the rate says nothing yet and N stays at `max`. */
  readonly minRollouts: number;
}
export interface DynamicLengthConfig {
  readonly enabled: boolean;
  /** Step cap of every rollout until a family has a success, and of exploring rollouts. */
  readonly global: number;
  readonly floor: number;
  /** Turns added to the longest success. */
  readonly slack: number;
  /** Share of rollouts that run with the global cap, so that a cap can loosen again. */
  readonly exploreShare: number;
  /** Only the latest so many successes count; 0 = all. */
  readonly window: number;
}
export interface HighEntropyConfig {
  readonly enabled: boolean;
  /** Steps under this quantile of the group's step entropies are dropped (paper: 0.2). */
  readonly quantile: number;
}
export interface GroupFilterConfig {
  /** Off: groups without variance are kept (their advantages are 0). The cut to `maxSize` always holds. */
  readonly enabled: boolean;
  /** Most trajectories of a group in a batch. */
  readonly maxSize: number;
  /** A group with fewer trajectories has no baseline and is dropped. */
  readonly minSize: number;
}
export type PoolSelection = 'shortest' | 'newest' | 'novelty';
export interface PoolConfig {
  readonly enabled: boolean;
  /** Keep the policy's own successes too, not only demonstrations and imports. */
  readonly addSuccesses: boolean;
  readonly select: PoolSelection;
  /** An entry is injected at most this often. */
  readonly maxUses: number;
  /** Entries made by a policy this many versions ago are no longer used; 0 = no limit. Demonstrations do not age. */
  readonly maxAge: number;
  /** Entries kept per family. */
  readonly perFamily: number;
}
export interface StalenessConfig {
  readonly enabled: boolean;
  /** Updates a rollout may lag behind the weights it trains (eta). */
  readonly eta: number;
  /** B of runtime/data/README.md#staleness-bound: trajectories one update takes. */
  readonly perUpdate: number;
  /**
   * Groups one update takes, when batches are counted in groups: then at most (eta + 1) of these may be open, waiting
   * or claimed. B alone lets too much in once dynamic rollouts make groups small: as many trajectories are then several
   * updates' worth.
   */
  readonly groupsPerUpdate?: number;
  /**
   * A trajectory lagging more than this at claim time is retired as stale; by default `eta`, since admission keeps it
   * there.
   */
  readonly maxLag?: number;
}
export interface PlannerConfig {
  readonly seed: number | string;
  /**
   * `passes`: every family once per shuffled pass. `variance`: families with large p(1-p) more often, none under
   * `floor`.
   */
  readonly order: 'passes' | 'variance';
  /** Weight every family has at least in `variance` order, beside p(1-p) <= 0.25. */
  readonly floor: number;
  /** Weights are raised to this in `variance` order: larger gives uncertain families more of the budget. Default 1. */
  readonly power?: number;
  /**
   * Rollouts of a group handed out first; the rest follows unless the group's outcome is decided by then. Default: all
   * at once.
   */
  readonly probe?: number;
  /** The rest is left out when a mixed outcome is less likely than this. Default 0.5. */
  readonly decided?: number;
  /** Error rollouts of one group that are replaced; after that the group goes on with fewer. */
  readonly maxRetries: number;
}
export interface DataConfig {
  readonly dynamicRollouts: DynamicRolloutsConfig;
  readonly dynamicLength: DynamicLengthConfig;
  readonly highEntropy: HighEntropyConfig;
  readonly groupFilter: GroupFilterConfig;
  readonly pool: PoolConfig;
  readonly staleness: StalenessConfig;
  readonly planner: PlannerConfig;
}

/** The paper's values where it has some (runtime/data/README.md#curation). */
export const defaultDataConfig: DataConfig = {
  dynamicRollouts: { enabled: true, max: 8, min: 1, threshold: 0.6, window: 32, minRollouts: 8 },
  dynamicLength: { enabled: true, global: 30, floor: 3, slack: 2, exploreShare: 0.1, window: 0 },
  highEntropy: { enabled: true, quantile: 0.2 },
  groupFilter: { enabled: true, maxSize: 8, minSize: 2 },
  pool: { enabled: true, addSuccesses: true, select: 'shortest', maxUses: 8, maxAge: 50, perFamily: 16 },
  staleness: { enabled: true, eta: 2, perUpdate: 64 },
  planner: { seed: 0, order: 'passes', floor: 0.05, maxRetries: 2 },
};
