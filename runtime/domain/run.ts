import type { RunError } from './errors.js';
import type { PolicyVersion } from './ids.js';

/** The name and status of a run. Times are ms since the epoch, durations ms, shares in [0, 1]. */

/** The kinds of alert of a run. `finished` is sent when it is over, however it ended. */
export type AlertKind = 'finished' | 'stalled' | 'entropy' | 'kl' | 'disk' | 'target';

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
  /** All of them: one that ended in an error is no success. */
  readonly episodes: number;
  readonly successes: number;
  /** Episodes that ended in an error, whatever the policy did. */
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

/** The status of an active run, once a second; for a run that has ended, its last status. */
export interface RunStatus {
  readonly state: RunState;
  readonly phase: RunPhase;
  /** Progress of the phase, in words. */
  readonly detail?: string;
  readonly elapsedMs: number;
  /** Budget in ms, when it is one of time. */
  readonly budgetMs?: number;
  /** Its other limits now: a run that was given more minutes has none. Runtimes before 0.2 do not say. */
  readonly limits?: { readonly rollouts?: number; readonly updates?: number };
  readonly version: PolicyVersion;
  readonly rollouts: number;
  readonly running: number;
  readonly waitingGroups: number;
  readonly errors: number;
  readonly rolloutsPerHour: number;
  readonly stepsPerMinute: number;
  readonly trainedActionsPerMinute: number;
  /**
   * Bounds of the three rates (runtime/rollout/README.md#throughput-bound, X*) as measured in this run; absent until
   * enough is measured.
   */
  readonly bounds?: {
    readonly rolloutsPerHour: number;
    readonly stepsPerMinute: number;
    readonly trainedActionsPerMinute: number;
    /** Which part is the bottleneck. */
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

/** Names that may be given to a run by hand: letters, digits, spaces, '.', '_' and '-'. */
export const isRunName = (name: string): boolean => /^[\w][\w .-]{0,99}$/.test(name);
