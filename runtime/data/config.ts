import type { MechanismName, RunConfig } from '../config/index.js';

/**
 * Options of the data manager: those of the run file under the run file's names, and values that follow from other
 * options (fromConfig.ts). Defaults are in the run file's schema only.
 */
type Curation = RunConfig['curation'];

export type DynamicRolloutsConfig = Readonly<Curation['dynamicRollouts']>;
export type BranchesConfig = Readonly<Curation['branches']>;
export type HighEntropyConfig = Readonly<Curation['highEntropy']>;
export type PoolConfig = Readonly<Curation['pool']>;
export type HindsightConfig = Readonly<Curation['hindsight']>;

export interface DynamicLengthConfig extends Readonly<Curation['dynamicLength']> {
  /** Step cap of every rollout until a family has a success, and of exploring rollouts (`rollout.maxSteps`). */
  readonly global: number;
  /** How many of the latest successes count; 0 = all. */
  readonly window: number;
}
export interface GroupFilterConfig extends Readonly<Curation['groupFilter']> {
  /** Most trajectories of a group in a batch (`curation.dynamicRollouts.max`); holds also when the filter is off. */
  readonly maxSize: number;
  /** A group with fewer trajectories has no baseline and is dropped. */
  readonly minSize: number;
}
export interface StalenessConfig extends Readonly<Curation['staleness']> {
  /** B of runtime/data/README.md#staleness-bound: trajectories one update takes. */
  readonly perUpdate: number;
  /**
   * Groups one update takes, when batches are counted in groups: then at most (eta + 1) of these may be open, waiting
   * or claimed. B alone admits too much once dynamic rollouts make groups small: the same number of trajectories is
   * then enough for several updates.
   */
  readonly groupsPerUpdate?: number;
  /**
   * A trajectory that lags more than this at claim time is retired as stale; default `eta`, which admission keeps to.
   */
  readonly maxLag?: number;
}
export interface PlannerConfig extends Readonly<Pick<Curation, 'planner' | 'uncertainty' | 'pilot'>> {
  readonly seed: number | string;
  /** Error rollouts of one group that are replaced; after that the group goes on with fewer (`rollout.retries`). */
  readonly retries: number;
}

/** Mechanisms that have only the run file's options. */
type Plain = Exclude<MechanismName, 'dynamicLength' | 'groupFilter' | 'staleness'>;
export interface DataConfig extends Readonly<Pick<Curation, Plain>> {
  readonly dynamicLength: DynamicLengthConfig;
  readonly groupFilter: GroupFilterConfig;
  readonly staleness: StalenessConfig;
  readonly planner: PlannerConfig;
  /** Work that a crash interrupted is repeated under its own id (`run.deterministic`). */
  readonly deterministic?: boolean;
}
/** Options of every curation mechanism. */
export type CurationConfig = Pick<DataConfig, MechanismName>;
