/**
 * Wire types of the daemon protocol: plain JSON, shared by runtime, extension and webview. A run is named by the
 * absolute path of its folder. Times are ms since the epoch, durations ms, shares and rates in [0, 1]. Lists that may
 * be absent are absent, never null.
 */
import type {
  Action,
  CurationChart,
  PolicyVersion,
  RunError,
  Size,
  VerifierReport,
  ProvenanceKind,
  ProviderKind,
  ActivityName,
} from '../domain/index.js';
import type { AnnotationMarks } from './annotations.js';

export type { ChartMark, ChartUnit, CurationChart, CurationChartData, RetireReason } from '../domain/index.js';
export type * from './annotations.js';
export type * from './control.js';
export type * from './pool.js';

/** A run folder's absolute path. */
export type RunPath = string;

export type RunPhase =
  'starting' | 'reading' | 'demonstrations' | 'warm start' | 'training' | 'evaluating' | 'stopping' | 'done';
/** `interrupted`: its daemon died; it can be resumed. `elsewhere`: another process (a CLI) is writing it. */
export type RunState =
  'running' | 'paused' | 'stopping' | 'finished' | 'stopped' | 'failed' | 'interrupted' | 'elsewhere';

export interface EvalPoint {
  readonly label: string;
  readonly at: number;
  readonly version: PolicyVersion;
  readonly episodes: number;
  readonly successes: number;
  readonly errors: number;
  readonly low: number;
  readonly high: number;
  readonly perFamily: Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;
  /** Tasks that cannot be done, apart. */
  readonly infeasible?: {
    readonly episodes: number;
    readonly successes: number;
  };
}

/** What an active run says of itself once a second; for runs that are over, its last words. */
export interface RunStatus {
  readonly state: RunState;
  readonly phase: RunPhase;
  /** What the phase is doing, in words. */
  readonly detail?: string;
  readonly elapsedMs: number;
  /** Budget in ms, when it is one of time. */
  readonly budgetMs?: number;
  readonly version: PolicyVersion;
  readonly rollouts: number;
  readonly running: number;
  readonly waitingGroups: number;
  readonly errors: number;
  readonly rolloutsPerHour: number;
  readonly stepsPerMinute: number;
  readonly trainedActionsPerMinute: number;
  /** Bounds of the three rates (dart-algorithm.md 5, X*) as measured in this run; absent until they can be told. */
  readonly bounds?: {
    readonly rolloutsPerHour: number;
    readonly stepsPerMinute: number;
    readonly trainedActionsPerMinute: number;
    /** What binds. */
    readonly by: 'desktops' | 'replicas' | 'trainer';
  };
  /** Rolling success of training rollouts; absent before the first ended. */
  readonly success?: number;
  readonly curve: readonly number[];
  readonly desktopUtilisation: number;
  readonly replicaUtilisation: number;
  readonly trainerUtilisation: number;
  readonly replicaVersions: readonly PolicyVersion[];
  readonly error?: RunError;
}
export interface RunSummary {
  readonly run: RunPath;
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly state: RunState;
  readonly rollouts: number;
  readonly version: PolicyVersion;
  readonly lastEval?: EvalPoint;
  /** Success per evaluation, oldest first. */
  readonly evals: readonly number[];
  /** Only while this daemon runs it. */
  readonly status?: RunStatus;
  readonly damaged?: RunError;
  /** Why it failed. */
  readonly error?: RunError;
}

/** generated = trained + in flight + retired, always; `closes` says that the sum was checked. */
export interface Ledger {
  readonly generated: number;
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

export interface TaskRow {
  readonly family: string;
  /** Application and one line of what is asked. */
  readonly title?: string;
  readonly apps?: readonly string[];
  readonly heldOut?: boolean;
  readonly infeasible?: boolean;
  /** Nothing was rolled out in this run: these are trajectories that people brought, all of them. */
  readonly brought?: boolean;
  readonly rollouts: number;
  readonly successes: number;
  /** Of the planner's window. */
  readonly rate?: number;
  readonly low?: number;
  readonly high?: number;
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
  readonly config: unknown;
  readonly checkpoints: readonly { readonly version: PolicyVersion; readonly path: string }[];
  /** Journal sequence number this answer is true for: subscribe with `sinceSeq: seq`. */
  readonly seq: number;
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
 * Rolling success with a 95 % Wilson band, one point per rollout ended (downsampled). `family` absent = all feasible
 * tasks.
 */
export interface SuccessCurve {
  readonly family?: string;
  readonly infeasible?: boolean;
  readonly window: number;
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
  readonly what: readonly Activity[];
  readonly start: readonly number[];
  readonly ms: readonly number[];
  readonly rollout: readonly string[];
  readonly version: readonly number[];
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
  /** Whether short spans were merged for this width. */
  readonly merged: boolean;
}

export interface Histogram {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}
export interface CurationView {
  /** What each mechanism shows of itself, in the order of the run file's options. */
  readonly charts: readonly CurationChart[];
  /** Truncated importance weights of the newest updates. */
  readonly tis?: Histogram;
}

export type OutcomeKind = 'success' | 'failure' | 'error' | 'running';
export interface TrajectoryRow {
  readonly rollout: string;
  readonly task: string;
  readonly family: string;
  readonly instruction: string;
  readonly outcome: OutcomeKind;
  readonly reward?: number;
  readonly truncated?: boolean;
  readonly errorKind?: string;
  readonly provenance: ProvenanceKind;
  readonly state?: string;
  readonly group?: string;
  readonly steps: number;
  readonly cap: number;
  readonly kept?: number;
  readonly entropy?: number;
  readonly versions?: readonly [PolicyVersion, PolicyVersion];
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly tags?: readonly string[];
  /** What people said of it. */
  readonly annotated?: AnnotationMarks;
  /** A person acted in some of its steps (a rollout that was taken over): left out of success rates. */
  readonly assisted?: boolean;
  /** `<rollout>@<revision>`: the edited trajectory that this one acted out again (provenance human). */
  readonly of?: string;
}
export interface TrajectoryFilter {
  readonly outcome?: readonly OutcomeKind[];
  readonly family?: string;
  readonly task?: string;
  readonly group?: string;
  readonly provenance?: readonly TrajectoryRow['provenance'][];
  readonly version?: { readonly min?: number; readonly max?: number };
  readonly tag?: string;
  /** With annotations of any kind; false: without. */
  readonly annotated?: boolean;
  readonly reviewed?: boolean;
  /** Matched in instruction, task and id. */
  readonly text?: string;
}
export type TrajectorySort = 'newest' | 'oldest' | 'longest' | 'entropy' | 'reward';

/**
 * A frame by content; the picture is the file `<framesDir>/<first 2 of hash>/<hash>.png`. Pixels never travel in JSON.
 */
export interface FrameLink extends Size {
  readonly hash: string;
}
export interface TokenView {
  /** What was chosen, in words: an action type, a place, a key, a word. */
  readonly label: string;
  readonly logprob: number;
  readonly entropy: number;
  /** The most probable alternatives, this one among them; `at` = its place on the screen in pixels where it is one. */
  readonly alternatives?: readonly {
    readonly label: string;
    readonly probability: number;
    readonly at?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  }[];
}
export interface StepView {
  readonly index: number;
  readonly at: number;
  readonly frame: FrameLink;
  /** Screen after the action: the next step's frame, or the last screen. */
  readonly after?: FrameLink;
  readonly thought?: string;
  readonly actions: readonly Action[];
  readonly origin: 'policy' | 'human' | 'oracle';
  readonly settled: boolean;
  readonly tokens?: readonly TokenView[];
  /** Mean token entropy: what curation compares with the threshold (dart-algorithm.md 3). */
  readonly entropy?: number;
  /** Kept by the entropy mask; absent before its group was formed. */
  readonly kept?: boolean;
  readonly version?: PolicyVersion;
  readonly advantage?: number;
  /** Truncated importance weight, mean over the step's tokens; absent before it was trained. */
  readonly weight?: number;
  readonly timings: {
    readonly observe: number;
    readonly queue: number;
    readonly decide: number;
    readonly perform: number;
    readonly settle: number;
  };
  readonly replica?: string;
  readonly desktop?: string;
}
export interface TrajectoryView {
  readonly row: TrajectoryRow;
  readonly steps: readonly StepView[];
  /** Entropy threshold of its group, or of the newest group while it runs. */
  readonly threshold?: number;
  readonly report?: VerifierReport;
  readonly error?: RunError;
  readonly advantage?: number;
  readonly resetMs?: number;
  readonly verifyMs?: number;
  /** Absolute folder of the frames (relative to the file in a `.traj.jsonl`). */
  readonly framesDir: string;
  /** Siblings, this one among them. */
  readonly group?: GroupView;
  /** Live: more steps will come; subscribe with `sinceSeq: seq`. */
  readonly live: boolean;
  readonly seq?: number;
}
export interface GroupView {
  readonly id: string;
  readonly family: string;
  readonly task: string;
  readonly state: string;
  readonly threshold?: number;
  readonly members: readonly {
    readonly rollout: string;
    readonly outcome: OutcomeKind;
    readonly reward?: number;
    readonly advantage?: number;
    readonly steps: number;
    readonly injected: boolean;
    readonly retired?: string;
  }[];
}

export type DesktopWork =
  | 'starting'
  | 'idle'
  | 'resetting'
  | 'setup'
  | 'observe'
  | 'decide'
  | 'act'
  | 'settle'
  | 'verify'
  | 'broken'
  | 'stopped';
export interface DesktopRow {
  readonly desktop: string;
  readonly run: RunPath;
  readonly provider: ProviderKind;
  readonly state: DesktopWork;
  readonly since: number;
  readonly resets: number;
  readonly replaced: number;
  readonly rollout?: string;
  readonly task?: string;
  readonly instruction?: string;
  readonly step?: number;
  readonly cap?: number;
  readonly version?: PolicyVersion;
}

/**
 * What happens in a run, for subscribers; `seq` is the journal's sequence number (gaps are records that are not for the
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
