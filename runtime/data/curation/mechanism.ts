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

/** What is known of a family when its next group is planned. */
export interface FamilyFacts {
  readonly successes: Pick<SuccessRate, 'n' | 'rate'>;
  /** Turns of its longest success; undefined before a first one. */
  readonly longest: number | undefined;
  /** The task's own step limit, when it has one. */
  readonly limit: number | undefined;
}
/** The next group of a family: how many rollouts, and how many turns each may have. */
export interface GroupPlan {
  readonly size: number;
  readonly cap: number;
}

export interface Retired {
  readonly rollout: RolloutId;
  readonly reason: RetireReason;
}
export interface CuratedMember {
  readonly trajectory: Trajectory;
  /** From the experience pool: not one of the group's own rollouts. */
  readonly injected: boolean;
  readonly reward: number;
  /** Of each step: whether it is trained. */
  readonly keep: readonly boolean[];
}
/** A group on its way through curation. */
export interface GroupDraft {
  readonly members: readonly CuratedMember[];
  /** Members that left, and why. */
  readonly retired: readonly Retired[];
  /** Set when the whole group goes: nothing after it is asked. */
  readonly dropped?: RetireReason;
  /** Entropy threshold of the group, journalled with it. */
  readonly threshold?: number;
  /** Numbers about this group, journalled as metrics `curation.<name>`; name them `<mechanism>.<number>`. */
  readonly stats: Readonly<Record<string, number>>;
}
export interface CurateContext {
  /** A pool success that does the group's task, or nothing; asked at most once. */
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
  at(position: number): Promise<{ readonly type: string; readonly lags?: readonly number[] } | undefined>;
}
/** What a chart reads from a run folder. Values of a histogram are put into bins by who asks. */
export type ChartReading =
  | Exclude<CurationChartData, { form: 'histogram' }>
  | { readonly form: 'values'; readonly values: readonly number[]; readonly mark?: ChartMark };
export interface ChartDescription<K extends MechanismName> extends Pick<CurationChart, 'unit' | 'words'> {
  /** Unique within its mechanism. */
  readonly name: string;
  /** `options`: the mechanism's, of the run that is read. */
  readonly read: (run: ChartSource, options: RunConfig['curation'][K]) => Promise<ChartReading>;
}

/**
 * One mechanism of adaptive curation: what it does, and what it shows of itself. Its options stand under the same name
 * in config/curation. A mechanism that acts elsewhere than on the plan of a group or on a group that is complete is
 * asked there by name (staleness: on admission and on claims).
 */
export interface Mechanism<K extends MechanismName> {
  /** The plan of a family's next group. */
  readonly plan?: (plan: GroupPlan, family: FamilyFacts, options: CurationConfig[K]) => GroupPlan;
  /** A group all of whose rollouts ended; called in the order of the registry. Switched off, it gives `group` back. */
  readonly curate?: (group: GroupDraft, options: CurationConfig[K], c: CurateContext) => GroupDraft;
  readonly charts: readonly ChartDescription<K>[];
}

export const numbers = (column: readonly unknown[] | undefined): number[] => (column ?? []).map(Number);
