import type { Action, FamilyId, Outcome, RunError, TaskId } from '../domain/index.js';
import type { Desktop } from '../cluster/types.js';

/** One task ready to run: OSWorld's fields, with its id and family. */
export interface Task {
  readonly id: TaskId;
  readonly family: FamilyId;
  readonly instruction: string;
  /** OSWorld config[] and evaluator{}, as in the file; interpreted by the task engine. */
  readonly config: readonly SetupStep[];
  readonly evaluator: Evaluator;
  readonly relatedApps: readonly string[];
  /**
   * Heading of the task in results: the folder of its file, as in OSWorld's examples. Undefined for tasks of a suite.
   */
  readonly domain?: string;
  readonly infeasible: boolean;
  /** Global step cap suggested by the suite (turns). */
  readonly maxSteps?: number;
  /** OSWorld's `proxy`: the task visits the live web. */
  readonly proxy?: boolean;
}
export interface SetupStep {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}
export interface Evaluator {
  readonly func: string | readonly string[];
  readonly result?: unknown;
  readonly expected?: unknown;
  readonly options?: unknown;
  readonly conj?: 'and' | 'or';
  readonly postconfig?: readonly SetupStep[];
}

/** Where tasks come from: the built-in suite, or a folder of task files. */
export interface TaskSource {
  /** Families with the seeds of each split. */
  readonly families: readonly {
    readonly id: FamilyId;
    readonly split: 'train' | 'heldout';
    /** Held out, and not considered when the families to train on were chosen. */
    readonly fresh?: boolean;
    readonly apps: readonly string[];
    readonly steps: number;
    readonly infeasible: boolean;
  }[];
  /** A concrete task. `seed` picks texts, numbers, names and window positions; ignored where there are no templates. */
  task(family: FamilyId, seed: number): Task;
  byId(id: TaskId): Task;
  /**
   * Other tasks to train on that begin on the very desktop of this one, and differ from it in what is asked for: a
   * failure of this task may be a success of one of them. `byId` knows them; nobody rolls them out.
   */
  siblings?(task: Task): readonly Task[];
}

/** Runs setup and judges. Both reject with `task.setup` / `task.verify` / `desktop.lost`, never with a reward. */
export interface TaskEngine {
  check(task: Task): readonly string[];
  setup(task: Task, desktop: Desktop, signal: AbortSignal): Promise<void>;
  /** The task's instruction once it is set up; by default its own. */
  instruction?(task: Task, desktop: Desktop): string;
  /** Whether the task has ended by itself: asked after each action, and then the policy is not. By default never. */
  over?(task: Task, desktop: Desktop, signal: AbortSignal): Promise<boolean>;
  /**
   * Share of what the verifier looks for that holds now, 0 to 1; undefined where it cannot be asked mid-episode, or has no
   * answer. Changes nothing on the desktop. By default it cannot.
   */
  progress?(task: Task, desktop: Desktop, signal: AbortSignal): Promise<number | undefined>;
  /** `lastAction` decides FAIL semantics; a missing result file is reward 0. */
  verify(
    task: Task,
    desktop: Desktop,
    lastAction: Action | undefined,
    signal: AbortSignal,
  ): Promise<Extract<Outcome, { kind: 'success' | 'failure' }>>;
}

/**
 * A scripted solution: returns actions for the current state of the desktop. Used to prove a task solvable and to make
 * demonstrations, never by the policy.
 */
export interface Oracle {
  next(desktop: Desktop): Promise<Action>;
}
export interface OracleSource {
  oracle(task: Task): Oracle;
  /** Almost right: must be judged a failure. */
  nearMiss(task: Task): Oracle;
}

export interface CheckRow {
  readonly id: string;
  readonly status: 'runnable' | 'unsupported';
  readonly needs: readonly string[];
  /**
   * `here`: as things are; `with`: once what `with` says is done or given; `not`: for the reasons in `why`. Of one that
   * runs here, `with` says what judges it.
   */
  readonly runs: 'here' | 'with' | 'not';
  readonly with: readonly string[];
  readonly why: readonly string[];
  readonly error?: RunError;
}
