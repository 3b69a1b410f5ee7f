import type { MechanismName, RunConfig } from '../../config/index.js';
import type {
  ChartMark,
  CurationChart,
  CurationChartData,
  Random,
  RolloutId,
  Trajectory,
  RetireReason,
} from '../../domain/index.js';
import type { CurationConfig } from '../config.js';
import type { SuccessRate } from './successStats.js';

/** What is known about a family when its next group is planned. */
export interface FamilyFacts {
  readonly successes: Pick<SuccessRate, 'n' | 'rate'>;
  /** Turns of its longest success; undefined before the first. */
  readonly longest: number | undefined;
  /** The task's own step limit, when it has one. */
  readonly limit: number | undefined;
}
/** The next group of a family: how many rollouts, how many turns each may have, and how many of them are branches. */
export interface GroupPlan {
  readonly size: number;
  readonly cap: number;
  readonly branches: number;
}

export interface Retired {
  readonly rollout: RolloutId;
  readonly reason: RetireReason;
}
export interface CuratedMember {
  readonly trajectory: Trajectory;
  /** It comes from the experience pool and is not one of the group's own rollouts. */
  readonly injected: boolean;
  readonly reward: number;
  /** Per step: whether it is trained. */
  readonly keep: readonly boolean[];
}
/** A group during curation. */
export interface GroupDraft {
  readonly members: readonly CuratedMember[];
  /** Members that were retired, and why. */
  readonly retired: readonly Retired[];
  /** Set when the whole group is dropped: later mechanisms are not called. */
  readonly dropped?: RetireReason;
  /** Entropy threshold of the group, journalled with it. */
  readonly threshold?: number;
  /** Numbers about this group, journalled as metrics `curation.<name>`; name them `<mechanism>.<number>`. */
  readonly stats: Readonly<Record<string, number>>;
}
export interface CurateContext {
  /** A pool success for the group's task, or undefined; called at most once. */
  readonly inject: () => Trajectory | undefined;
  readonly random: Random;
}

/** What charts are read from: a run folder's index and journal (RunReader). */
export interface ChartSource {
  readonly index: {
    columns(sql: string): Promise<readonly (readonly unknown[])[]>;
    query(sql: string, params: readonly never[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  };
  /** The journal's record at a position of the index. */
  at(position: number): Promise<
    | {
        readonly type: string;
        readonly lags?: readonly number[];
        readonly poolLags?: readonly number[];
        readonly version?: number;
      }
    | undefined
  >;
}
/** What a chart reads from a run folder. The caller puts a histogram's values into bins. */
export type ChartReading =
  | Exclude<CurationChartData, { form: 'histogram' }>
  | { readonly form: 'values'; readonly values: readonly number[]; readonly mark?: ChartMark };
export interface ChartDescription<K extends MechanismName> extends Pick<CurationChart, 'unit' | 'words'> {
  /** Unique within its mechanism. */
  readonly name: string;
  /** Shown only where this holds: for a mechanism that few runs turn on, an empty chart would be in the way. */
  readonly onlyWhere?: (options: RunConfig['curation'][K]) => boolean;
  /** `options`: the mechanism's options in the run being read. */
  readonly read: (run: ChartSource, options: RunConfig['curation'][K]) => Promise<ChartReading>;
}

/**
 * One mechanism of adaptive curation: its behaviour and its charts. Its options are under the same name in
 * config/curation. A mechanism that acts on something other than the plan of a group or a complete group is called
 * there by name (staleness: on admission and on claims).
 */
export interface Mechanism<K extends MechanismName> {
  /** The plan of a family's next group. */
  readonly plan?: (plan: GroupPlan, family: FamilyFacts, options: CurationConfig[K]) => GroupPlan;
  /** Curates a complete group; called in the order of the registry. When disabled, it returns `group`. */
  readonly curate?: (group: GroupDraft, options: CurationConfig[K], c: CurateContext) => GroupDraft;
  readonly charts: readonly ChartDescription<K>[];
}

export const numbers = (column: readonly unknown[] | undefined): number[] => (column ?? []).map(Number);
