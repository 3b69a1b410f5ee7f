import type { FamilyId, TaskId } from '../../domain/index.js';

/** A task that is tried. */
export interface Attempted {
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly seed: number;
  /** Steps it may have, where that is fewer than all may. */
  readonly cap?: number;
  /** Heading under which results list it. */
  readonly domain?: string;
  /** The task cannot be done: saying so is the success. */
  readonly infeasible?: boolean;
}
export interface AttemptLimits {
  /** Verdicts wanted of each task. */
  readonly attempts: number;
  /** Successes after which a task is not attempted any more. */
  readonly stopAfter: number;
  /** A task is given up after so many errors in a row: it cannot be tried here. */
  readonly errors: number;
  /** Errors of an earlier part count too; without, a task that was given up is tried again. */
  readonly remember: boolean;
}
/**
 * `unsolved`: an error that is the policy's to answer for, such as its time being up; it is not tried again. `away`: the
 * policy's engine did not answer.
 */
export type AttemptEnd = 'success' | 'failure' | 'unsolved' | 'error' | 'away' | 'stopped';

interface Count {
  readonly of: Attempted;
  successes: number;
  failures: number;
  unsolved: number;
  /** Errors in a row. */
  errors: number;
  retried: number;
  running: number;
}
export interface AttemptRow extends Attempted {
  readonly successes: number;
  readonly failures: number;
  /** Attempts that ended in an error which is not tried again. */
  readonly unsolved: number;
  /** Errors of the environment, each of which was tried again unless the task was given up. */
  readonly retried: number;
  readonly givenUp: boolean;
}

/**
 * Which task is tried next: the one tried least, so that what is there when somebody stops is about as much of every
 * task. Pure; what an earlier part of the same collection ended with is told by `ended` alone.
 */
export class Attempts {
  readonly #limits: AttemptLimits;
  readonly #tasks: ReadonlyMap<TaskId, Count>;

  constructor(tasks: readonly Attempted[], limits: AttemptLimits) {
    this.#limits = limits;
    this.#tasks = new Map(
      tasks.map((of) => [
        of.task,
        { of, successes: 0, failures: 0, unsolved: 0, errors: 0, retried: 0, running: 0 } satisfies Count,
      ]),
    );
  }

  /** Begins an attempt; undefined while there is none to begin. */
  next(): Attempted | undefined {
    let least: Count | undefined;
    for (const c of this.#tasks.values()) if (this.#open(c) && (!least || begun(c) < begun(least))) least = c;
    if (least) least.running++;
    return least?.of;
  }
  /** Attempts that may begin now. */
  get open(): number {
    let n = 0;
    for (const c of this.#tasks.values()) if (this.#open(c)) n++;
    return n;
  }
  /** Whether nothing runs and nothing is left to begin. */
  get done(): boolean {
    for (const c of this.#tasks.values()) if (c.running > 0 || this.#open(c)) return false;
    return true;
  }

  /** An attempt that `next` began has ended. */
  ended(task: TaskId, how: AttemptEnd): void {
    const c = this.#tasks.get(task);
    if (!c) return;
    c.running = Math.max(0, c.running - 1);
    count(c, how);
  }
  /** The end of an attempt that an earlier part of the collection made. */
  seen(task: TaskId, how: AttemptEnd): void {
    const c = this.#tasks.get(task);
    if (!c) return;
    const { errors } = c;
    count(c, how);
    // An engine that was away says nothing of the task.
    if (how === 'away') c.errors = errors;
    if (!this.#limits.remember) c.errors = 0;
  }

  rows(): AttemptRow[] {
    return [...this.#tasks.values()].map((c) => ({
      ...c.of,
      successes: c.successes,
      failures: c.failures,
      unsolved: c.unsolved,
      retried: c.retried,
      givenUp: c.errors >= this.#limits.errors,
    }));
  }

  /** A success that is still running counts as none: attempts go on until successes are there. */
  #open(c: Count): boolean {
    const { attempts, stopAfter, errors } = this.#limits;
    return begun(c) < attempts && c.successes < stopAfter && c.errors < errors;
  }
}
const begun = (c: Count): number => c.successes + c.failures + c.unsolved + c.running;

function count(c: Count, how: AttemptEnd): void {
  if (how === 'stopped') return;
  if (how === 'error' || how === 'away') {
    c.errors++;
    c.retried++;
    return;
  }
  c.errors = 0;
  if (how === 'success') c.successes++;
  else if (how === 'failure') c.failures++;
  else c.unsolved++;
}
