/**
 * Wire types of the daemon protocol: plain JSON, shared by runtime, extension and webview. A run is named by the
 * absolute path of its folder. Times are ms since the epoch, durations ms, shares and rates in [0, 1]. Lists that may
 * be absent are absent, never null.
 */
import type {
  ActivityName,
  CurationChart,
  EvalPoint,
  GroupView,
  OutcomeKind,
  PolicyVersion,
  RunError,
  RunPath,
  RunPhase,
  RunState,
  RunStatus,
  StepView,
  TrajectoryRow,
} from '../domain/index.js';

export type { ChartMark, ChartUnit, CurationChart, CurationChartData, RetireReason } from '../domain/index.js';
// Vocabulary that is stored as well as sent.
export type * from '../domain/annotation.js';
export type * from '../domain/annotationView.js';
export type * from '../domain/control.js';
export type * from '../domain/desktopImage.js';
export type * from '../domain/desktopRow.js';
import type { RunLabel } from './runLabel.js';
export type { ProviderChoice } from '../domain/provider.js';
export type * from '../domain/run.js';
export type * from '../domain/trajectoryView.js';
export type * from './annotations.js';
export type * from './control.js';
export type * from './pool.js';
export type * from './runLabel.js';
export type * from './queue.js';
export type * from './table.js';
export type * from './divergence.js';
export type * from './try.js';

export interface RunSummary {
  readonly run: RunPath;
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  /** When it was closed last, ms since the epoch; absent while it is active and where it was interrupted. */
  readonly endedAt?: number;
  readonly state: RunState;
  readonly rollouts: number;
  readonly version: PolicyVersion;
  readonly lastEval?: EvalPoint;
  /** Success per evaluation, oldest first. */
  readonly evals: readonly number[];
  /** Present only while this daemon runs it. */
  readonly status?: RunStatus;
  readonly damaged?: RunError;
  /** Why it failed. */
  readonly error?: RunError;
  /** Imported or recorded trajectories in which nothing was ever trained: there is nothing to resume or evaluate. */
  readonly collection?: boolean;
  /** Whether it has learned and none of its checkpoints is left: it cannot be resumed, evaluated or tried. */
  readonly weightless?: boolean;
  /** Damage found by `run/check`; absent also where nobody checked. */
  readonly damage?: JournalDamage;
  readonly seed?: number;
  /** The label people gave it; `name` is theirs already. */
  readonly label?: RunLabel;
}

/** Stretches of a run's journal that cannot be read; what they held is missing everywhere. */
export interface JournalDamage {
  readonly bytes: number;
  readonly stretches: number;
}
/** When a phase of a run began, ms since the epoch. */
export interface PhaseSpan {
  readonly phase: Extract<RunPhase, 'reading' | 'demonstrations' | 'warm start' | 'training'>;
  readonly from: number;
}
export interface RunTimeline {
  /** Phases in the order in which they began. */
  readonly phases: readonly PhaseSpan[];
  /** Stretches in which no process worked on the run: between a stop or crash and the resume. */
  readonly outages: readonly { readonly from: number; readonly to: number }[];
  /**
   * The time that shares and rates of the newest RL are of: since it began, or was resumed, until it was over; absent
   * before. Without `to` it goes on, its process was killed, or the journal is older than 0.2.
   */
  readonly measured?: { readonly from: number; readonly to?: number; readonly resumed: boolean };
}

/** generated = trained + in flight + retired, always; `closes` says that the sum was checked. */
export interface Ledger {
  readonly generated: number;
  /**
   * Rollouts that began on a desktop; the others were planned and never begun. Every list of runs shows this number.
   */
  readonly begun?: number;
  readonly trained: number;
  readonly inFlight: number;
  readonly byState: Readonly<Record<string, number>>;
  readonly retired: Readonly<Record<string, number>>;
  readonly closes: boolean;
  /** Ended rollouts in which a person acted, and how many steps were theirs; absent without any. */
  readonly human?: {
    readonly rollouts: number;
    readonly steps: number;
  };
}

export interface TaskEvaluation {
  readonly version: PolicyVersion;
  readonly episodes: number;
  readonly successes: number;
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  /** Mean of their rewards; absent where each is 0 or 1. */
  readonly score?: number;
}
export interface TaskRow {
  readonly family: string;
  /** Application and one line of what is asked. */
  readonly title?: string;
  /** Applications that its file names. */
  readonly apps?: readonly string[];
  /** The folder of its file: OSWorld's are named by application. */
  readonly domain?: string;
  readonly heldOut?: boolean;
  readonly infeasible?: boolean;
  /** Whether no rollout was made in this run: its trajectories are imported ones and demonstrations. */
  readonly external?: boolean;
  readonly rollouts: number;
  readonly successes: number;
  /** Mean of their rewards; absent where each is 0 or 1. */
  readonly score?: number;
  /** Success rate of the newest `recent` rollouts: the planner's window. */
  readonly rate?: number;
  readonly low?: number;
  readonly high?: number;
  readonly recent?: number;
  /** The newest evaluation that had episodes of this family, with its 95 % interval. */
  readonly evaluation?: TaskEvaluation;
  /** N and step cap that its next group gets. */
  readonly groupSize?: number;
  readonly cap?: number;
  readonly meanSteps?: number;
  readonly poolEntries?: number;
  /** Rolling success, oldest first, at most 24 points. */
  readonly spark: readonly number[];
}
export interface RunDetail {
  readonly summary: RunSummary;
  readonly ledger: Ledger;
  readonly evals: readonly EvalPoint[];
  readonly tasks: readonly TaskRow[];
  /** Why its tasks cannot be read: those that were run are listed without their words. */
  readonly tasksUnread?: RunError | undefined;
  readonly config: unknown;
  readonly timeline: RunTimeline;
  readonly checkpoints: readonly { readonly version: PolicyVersion; readonly path: string }[];
  /** Journal sequence number this answer is true for: subscribe with `sinceSeq: seq`. */
  readonly seq: number;
}

/** Disk use of a run, and the folder of the runtime that says so. */
export interface RunFootprint {
  /** Bytes of all its files. */
  readonly bytes: number;
  /** Whether it has more files than were counted. */
  readonly atLeast?: boolean;
  /** Free bytes of the run's disk. */
  readonly freeBytes?: number;
  /** Parameters of an embedded policy. */
  readonly parameters?: number;
  readonly machine: { readonly processor: string; readonly cores: number; readonly memoryBytes: number };
}

/**
 * One series as columns; `at` in ms since the epoch, same length as `value`. At most 2000 points, min-max downsampled.
 */
export interface Series {
  readonly name: string;
  readonly at: readonly number[];
  readonly value: readonly number[];
  readonly version?: readonly PolicyVersion[];
}
/**
 * Rolling success with a 95 % band, one point per rollout ended (downsampled). `family` absent = all feasible tasks,
 * each family weighing the same.
 */
export interface SuccessCurve {
  readonly family?: string;
  readonly infeasible?: boolean;
  readonly window: number;
  /** A mean over families: how many there are, and how many newest rollouts of each one count. */
  readonly balanced?: { readonly families: number; readonly each: number };
  readonly at: readonly number[];
  readonly rollout: readonly number[];
  readonly mean: readonly number[];
  readonly low: readonly number[];
  readonly high: readonly number[];
}

export type LaneKind = 'desktop' | 'replica' | 'trainer';
export type Activity = ActivityName;
/**
 * Spans of one lane as columns: what[i] during start[i] .. start[i] + ms[i]; `rollout[i]` '' when it belongs to none,
 * version[i] -1 when there is none.
 */
export interface Lane {
  readonly id: string;
  readonly kind: LaneKind;
  /**
   * For a desktop: its place among those that were there at the same time, from 0. A desktop that replaced another one
   * has its place. Absent in events, and for replicas and trainer.
   */
  readonly slot?: number;
  readonly what: readonly Activity[];
  readonly start: readonly number[];
  readonly ms: readonly number[];
  readonly rollout: readonly string[];
  readonly version: readonly number[];
  /** Calls under way in each span, in the mean: of spans that stand for calls that overlap. Absent: 1 in each. */
  readonly calls?: readonly number[];
}
export interface Lanes {
  readonly from: number;
  readonly to: number;
  readonly lanes: readonly Lane[];
  /** Weight syncs: replica lane, start, ms, version. */
  readonly syncs: readonly {
    readonly lane: string;
    readonly start: number;
    readonly ms: number;
    readonly version: PolicyVersion;
  }[];
  /** Calls that a replica may have under way at the same time; absent where it answers one after the other. */
  readonly concurrency?: number;
  /** Whether short spans were merged for this width. */
  readonly merged: boolean;
}

export interface Histogram {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}
export interface CurationView {
  /** Charts of each mechanism, in the order of the run file's options. */
  readonly charts: readonly CurationChart[];
  /** Truncated importance weights of the newest updates. */
  readonly tis?: Histogram;
}
export interface TrajectoryFilter {
  readonly outcome?: readonly OutcomeKind[];
  readonly family?: string;
  readonly task?: string;
  readonly group?: string;
  readonly provenance?: readonly TrajectoryRow['provenance'][];
  readonly version?: { readonly min?: number; readonly max?: number };
  readonly tag?: string;
  /** Whether it has annotations of any kind. */
  readonly annotated?: boolean;
  readonly reviewed?: boolean;
  /** Whether a person took or chose steps of a policy's rollout. */
  readonly assisted?: boolean;
  /** Matched in instruction, task and id. */
  readonly text?: string;
}
export type TrajectorySort = 'newest' | 'oldest' | 'longest' | 'entropy' | 'reward';

/**
 * An event of a run, for subscribers; `seq` is the journal's sequence number (gaps are records that are not for the
 * UI).
 */
export type RunEvent = { readonly seq: number; readonly at: number } & (
  | { readonly type: 'started'; readonly row: TrajectoryRow; readonly desktop?: string }
  | { readonly type: 'step'; readonly rollout: string; readonly step: StepView }
  | { readonly type: 'ended'; readonly row: TrajectoryRow }
  | { readonly type: 'group'; readonly group: GroupView; readonly injected: number; readonly keptShare?: number }
  | {
      readonly type: 'trained';
      readonly batch: string;
      readonly version: PolicyVersion;
      readonly rollouts: readonly string[];
      /** Folder of the checkpoint that holds these weights. */
      readonly path?: string;
    }
  | {
      readonly type: 'metrics';
      readonly source: string;
      readonly version?: PolicyVersion;
      readonly values: Readonly<Record<string, number>>;
      readonly lists?: Readonly<Record<string, readonly number[]>>;
    }
  | { readonly type: 'eval'; readonly point: EvalPoint }
  | { readonly type: 'checkpoint'; readonly version: PolicyVersion; readonly path: string }
  | { readonly type: 'spans'; readonly lanes: readonly Lane[]; readonly syncs: Lanes['syncs'] }
  | { readonly type: 'note'; readonly level: 'info' | 'warn' | 'error'; readonly message: string }
  | { readonly type: 'closed'; readonly reason: string }
);
export type RunEventType = RunEvent['type'];

export interface ConfigProblem {
  /** Names and indices of the value, or of the key that should not be there; empty: the file itself. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** Line from 1, where it is known without a path. */
  readonly line?: number;
}
export interface CheckRow {
  readonly name: string;
  readonly ok: boolean;
  readonly level: 'required' | 'optional';
  readonly detail: string;
  readonly remedy?: string;
}
export interface BuildProgress {
  readonly phase: string;
  readonly message: string;
  readonly fraction?: number;
}

// Several runs beside one another.
/**
 * How far a run was at moments of it, as columns of one length, ascending: what its curves are placed by. `workedMs`
 * leaves out the time in which no process worked on it; `actions` are steps that were trained on, `tokens` what the
 * policy chose in them. Runs of before tokens were recorded have none.
 */
export interface RunProgressCurve {
  readonly at: readonly number[];
  readonly workedMs: readonly number[];
  readonly updates: readonly number[];
  readonly rollouts: readonly number[];
  readonly actions: readonly number[];
  readonly tokens?: readonly number[];
}
export type ComparedTask = Pick<
  TaskRow,
  'family' | 'title' | 'heldOut' | 'infeasible' | 'rollouts' | 'rate' | 'low' | 'high' | 'recent' | 'evaluation'
>;
export interface ComparedRun {
  readonly run: RunPath;
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly state: RunState;
  readonly seed?: number;
  readonly version: number;
  readonly rollouts: number;
  /** Runs of one group have run files that differ in nothing but seed, name and folder. */
  readonly group: number;
  readonly progress: RunProgressCurve;
  /** Success over all feasible tasks, each family weighing the same. */
  readonly success: SuccessCurve;
  readonly evals: readonly EvalPoint[];
  readonly tasks: readonly ComparedTask[];
  /** Every metric that the run recorded, by name. */
  readonly series: readonly Series[];
}
/** A key of the run file on which the runs do not agree, defaults filled in. */
export interface ConfigDifference {
  /** Names with dots between them: `trainer.lr`. */
  readonly key: string;
  /** Values in the order of the runs, as JSON; '' where the key has none. */
  readonly values: readonly string[];
}
export interface Comparison {
  readonly runs: readonly ComparedRun[];
  readonly config: readonly ConfigDifference[];
  /** Runs that cannot be read. */
  readonly missing: readonly { readonly run: RunPath; readonly error: RunError }[];
}
