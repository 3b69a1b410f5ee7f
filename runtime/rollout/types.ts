/** The rollout service's inputs and events: episodes, the scheduler and the model pool. */
import type {
  DesktopId,
  PolicyVersion,
  Provenance,
  ReplicaId,
  RolloutId,
  RunError,
  Step,
  Trajectory,
  VerifierReport,
} from '../domain/index.js';
import type { Patience } from '../concurrency/pause.js';
import type { Desktop, DesktopPool, SettleOptions } from '../cluster/types.js';
import type { StepExtra } from '../data/events.js';
import type { Before, FrameStore, RolloutOrder } from '../data/types.js';
import type {
  AnswerBase,
  Decision,
  Policy,
  Replica,
  ReplicaAnswer,
  ReplicaRequest,
  Sampling,
  SyncReport,
  Versioned,
  WeightsRef,
} from '../policy/types.js';
import type { Task, TaskEngine } from '../tasks/types.js';
import type { Clock } from './clock.js';
import type { Steering } from './steering.js';
import type { PublishMode, ReplicaPhase, ReplicaView } from './syncPlanner.js';

// Episodes

export interface EpisodeDeps {
  readonly policy: Policy;
  readonly tasks: TaskEngine;
  readonly frames: FrameStore;
  readonly clock: Clock;
  readonly settle?: SettleOptions;
  /**
   * A desktop that does not answer a call within this time, added to the call's own duration, counts as lost. Default
   * 30 s.
   */
  readonly desktopTimeoutMs?: number;
  /** A rollout whose programs do not come to rest after an action has failed. Default false. */
  readonly mustRest?: boolean;
  /** A rollout that takes longer, from setup to verdict, is an error of kind `timeout`. Default: no limit. */
  readonly timeoutMs?: number;
  /** The verifier is asked for progress after each step of a rollout. Default: at the end only. */
  readonly progressChecks?: ProgressChecks | undefined;
  /** Failures of rollouts are looked back on. Default: they are not. */
  readonly hindsight?: Hindsight;
}
/** How the verifier is asked mid-episode (progressChecks.ts). */
export interface ProgressChecks {
  /** After one answer that takes longer, ms, the verifier is not asked again in that episode. */
  readonly withinMs: number;
}
/** Looks for another task that a failure may have done (hindsight.ts). */
export interface Hindsight {
  /** How many other tasks begin on the same screen, and which of them this verdict leaves possible, likeliest first. */
  siblings(task: Task, report: VerifierReport | undefined): { readonly all: number; readonly likely: readonly Task[] };
  /** Time limit of all verdicts on one failure together, ms. */
  readonly withinMs: number;
}
/** What a decision carries for people besides its step. */
export type StepAbout = Pick<Decision, 'labels' | 'places' | 'replica'> & Pick<StepExtra, 'rejectedLabels'>;
export type EpisodePhase = 'setup' | 'observe' | 'decide' | 'perform' | 'settle' | 'verify';
export interface EpisodeRequest {
  readonly order: RolloutOrder;
  readonly task: Task;
  readonly provenance: Provenance;
  readonly sampling: Sampling;
  readonly signal: AbortSignal;
  /** Called with each step as soon as it is complete. */
  readonly onStep: (step: Step, alternatives?: Decision['alternatives'], about?: StepAbout) => void;
  readonly onPhase: (phase: EpisodePhase) => void;
  /** Lets a person take over at any decision. */
  readonly steering?: Steering;
  /** Only for a branch: the recorded steps that it begins with. */
  readonly before?: Before;
}
export interface EpisodeResult {
  readonly trajectory: Trajectory;
  /** The desktop must be replaced, not reset. */
  readonly broken: boolean;
  /** The same failure as a success of another task that it did. */
  readonly relabelled?: Trajectory;
}

// Scheduler

export interface SchedulerDeps {
  readonly pool: Pick<DesktopPool, 'lease'>;
  readonly episode: EpisodeDeps;
  /** The planner's next rollout, or undefined when it has none now (call `wake` when it has one again). */
  readonly next: () => RolloutOrder | undefined;
  /** How many more training rollouts may start now under the staleness bound. Called often: keep it cheap. */
  readonly admit: () => number;
  readonly taskOf: (o: RolloutOrder) => Task;
  readonly sampling: (o: RolloutOrder) => Sampling;
  /** Of an evaluation's rollout. */
  readonly probeSampling: (o: RolloutOrder, temperature?: number) => Sampling;
  /** The recorded steps that a branch begins with, see `EpisodeRequest.before`; undefined when they cannot be read. */
  readonly before?: (o: RolloutOrder) => Before | undefined;
  readonly clock: Clock;
}

export type RolloutKind = 'rollout' | 'probe';
export type SchedulerEvent =
  | {
      readonly type: 'started';
      readonly kind: RolloutKind;
      readonly order: RolloutOrder;
      readonly desktop: DesktopId;
      /** ms between asking for a desktop and having it. */
      readonly leaseWaitMs: number;
      readonly at: number;
    }
  | {
      readonly type: 'step';
      readonly kind: RolloutKind;
      readonly rollout: RolloutId;
      readonly desktop: DesktopId;
      readonly step: Step;
      readonly alternatives?: Decision['alternatives'];
      readonly about?: StepAbout;
      readonly at: number;
    }
  /** A rollout stopped by `stop` ends with an error outcome of kind `cancelled`. */
  | {
      readonly type: 'ended';
      readonly kind: RolloutKind;
      readonly order: RolloutOrder;
      readonly trajectory: Trajectory;
      readonly relabelled?: Trajectory;
      /** Policy versions of its steps, ascending. */
      readonly versions: readonly PolicyVersion[];
      readonly at: number;
    }
  /**
   * What a leased desktop does from now on, for utilisation lanes; 'idle' = leased without work, 'released' = returned
   * to the pool.
   */
  | {
      readonly type: 'lane';
      readonly desktop: DesktopId;
      readonly phase: EpisodePhase | 'idle' | 'released';
      readonly rollout?: RolloutId;
      readonly at: number;
    }
  | { readonly type: 'leaseFailed'; readonly error: RunError; readonly at: number }
  /** This many training rollouts in a row ended in errors; the next begins in `pauseMs`. */
  | {
      readonly type: 'failing';
      readonly inARow: number;
      /** The error of the last one. */
      readonly error: RunError;
      readonly pauseMs: number;
      readonly at: number;
    };

export interface SchedulerStatus {
  readonly slots: number;
  readonly leasing: number;
  readonly idle: number;
  readonly probesWaiting: number;
  readonly paused: boolean;
  readonly stopping: boolean;
  readonly running: readonly {
    readonly rollout: RolloutId;
    readonly kind: RolloutKind;
    readonly desktop: DesktopId;
    readonly order: RolloutOrder;
    readonly steps: number;
    readonly phase: EpisodePhase;
    readonly since: number;
  }[];
}

/** A rollout under way, for a person to steer. */
export interface Steerable {
  readonly kind: RolloutKind;
  readonly order: RolloutOrder;
  readonly desktop: Desktop;
  /** Steps of the rollout so far; new ones are appended. */
  readonly steps: readonly Step[];
  readonly steering: Steering;
}

// Model pool

export interface ModelPoolOptions<
  Q = ReplicaRequest,
  A extends AnswerBase = ReplicaAnswer,
  W extends Versioned = WeightsRef,
> {
  readonly replicas: readonly ReplicaId[];
  /** Starts (or restarts) a replica with these weights. */
  readonly factory: (id: ReplicaId, weights: W) => Promise<Replica<Q, A, W>>;
  readonly weights: W;
  readonly clock: Clock;
  /** Default 'per-replica'. */
  readonly publishMode?: PublishMode;
  /** Concurrent calls per replica; 2 keeps it busy while answers travel. Default 2. */
  readonly depth?: number;
  /**
   * Calls that a replica serves at the same time, as a model server does; the others of `depth` wait there. A replica
   * is busy when it serves this many. Default 1.
   */
  readonly concurrency?: number;
  /** How many more calls than the least busy replica a session's own replica may have. Default 1. */
  readonly stickySlack?: number;
  /** A replica that does not answer a call within this time counts as hung and is replaced. Default 30 s. */
  readonly callTimeoutMs?: number;
  /** Pauses before restarts; given up after `attempts` starts in a row without an answer. */
  readonly restart?: Patience;
}

export interface ModelPoolStatus {
  readonly replicas: readonly (ReplicaView & {
    readonly calls: number;
    /** Total ms of computing; simultaneous calls count each. */
    readonly busyMs: number;
    readonly restarts: number;
    /** When its phase began. */
    readonly since: number;
  })[];
  /** Calls that each replica serves at the same time. */
  readonly concurrency: number;
  readonly waiting: number;
  /** The newest version published or being published. */
  readonly version: PolicyVersion;
  readonly publishing: boolean;
}
export type ModelPoolEvent =
  | {
      readonly type: 'phase';
      readonly replica: ReplicaId;
      readonly phase: ReplicaPhase;
      readonly version: PolicyVersion;
      readonly at: number;
    }
  /** A call was answered: it computed from `start` for `ms`. */
  | {
      readonly type: 'decided';
      readonly replica: ReplicaId;
      readonly session: string;
      readonly version: PolicyVersion;
      readonly start: number;
      readonly ms: number;
    }
  | { readonly type: 'lost'; readonly replica: ReplicaId; readonly error: RunError; readonly at: number }
  | { readonly type: 'published'; readonly report: SyncReport; readonly at: number };
