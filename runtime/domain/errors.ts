/**
 * Errors are values: a stable kind for programs, a message for people, and what to do next.
 * `StudioError` carries one across `throw`; every module throws only these for foreseeable failures.
 */
export type ErrorKind =
  | 'config.invalid' // the run file or a command-line argument is wrong
  | 'task.invalid' // a task file cannot be read
  | 'task.unsupported' // a task needs a setup step, getter or metric we do not have
  | 'task.setup' // a setup step failed on the desktop
  | 'task.verify' // the verifier itself failed (never a reward of 0)
  | 'desktop.unavailable' // no provider works on this machine
  | 'desktop.image' // the desktop image or root file system is missing or broken
  | 'desktop.start' // a desktop did not come up
  | 'desktop.lost' // a desktop died or stopped answering
  | 'desktop.exec' // a command inside the desktop could not be run at all
  | 'rollout.diverged' // a branch met another screen than the recorded one
  | 'policy.lost' // a replica died
  | 'policy.invalid' // the model answered something that is not an action
  | 'policy.remote' // a remote endpoint failed
  | 'trainer.lost' // the trainer process died, or the training server lost the model
  | 'trainer.invalid' // a batch or checkpoint the trainer cannot use
  | 'trainer.remote' // a training server failed, or answered something that is not its protocol
  | 'engine.unavailable' // ONNX Runtime cannot be loaded, or the Python engine cannot be set up or started
  | 'store.damaged' // a file of a run folder is missing, damaged or not ours
  | 'store.io' // a file cannot be read or written
  | 'store.newer' // a run folder of a newer version
  | 'run.busy' // another process owns this run folder
  | 'run.lost' // another process has taken this run folder over, or changed its journal
  | 'cancelled' // ended before its time, because somebody wanted that
  | 'timeout' // something took longer than its limit
  | 'internal'; // a fault of this program

export interface RunError {
  readonly kind: ErrorKind;
  /** The error, in words. */
  readonly message: string;
  /** The reader's next step. */
  readonly remedy: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export class StudioError extends Error {
  readonly error: RunError;
  constructor(
    kind: ErrorKind,
    message: string,
    remedy: string,
    options?: { details?: Record<string, unknown>; cause?: unknown },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'StudioError';
    this.error = { kind, message, remedy, details: options?.details };
  }
  get kind(): ErrorKind {
    return this.error.kind;
  }
}

const AGAIN = 'Start it again when you are ready.';
const REPORT = 'This is a fault of DART Studio: please report it with the log.';

/** Ended before its time, because somebody wanted that. `what` begins the sentence: "The build". */
export const cancelled = (what: string, o: { cause?: unknown; remedy?: string } = {}): StudioError =>
  new StudioError('cancelled', `${what} was cancelled.`, o.remedy ?? AGAIN, { cause: o.cause });

/** A state that only a fault of this program can bring about. */
export const internalError = (message: string): StudioError => new StudioError('internal', message, REPORT);

/**
 * A fault of a request, not of the run: wrong parameters, something that does not exist, or a state that does not allow
 * it. It has a remedy like `StudioError` but is never written into a run.
 */
export class ServiceError extends Error {
  readonly kind: 'params.invalid' | 'not.found' | 'busy' | 'draining';
  readonly remedy: string;
  constructor(kind: ServiceError['kind'], message: string, remedy: string) {
    super(message);
    this.name = 'ServiceError';
    this.kind = kind;
    this.remedy = remedy;
  }
}

/** `details` of an error of a model server that says more than its kind. */
export const MODEL_FAULTS = {
  /** One answer was not there in time, which says nothing of the server's other calls. */
  late: { late: true },
  /** The prompt has outgrown the model's context: the episode can go no further. */
  outgrown: { outgrown: true },
} as const;
export const isLate = (e: RunError): boolean => e.details?.['late'] === true;
export const isOutgrown = (e: RunError): boolean => e.details?.['outgrown'] === true;

/** Anything thrown as a RunError; an unforeseen error becomes `internal` and keeps its stack in details. */
export function toRunError(e: unknown): RunError {
  if (e instanceof StudioError) return e.error;
  if (e instanceof Error && e.name === 'AbortError')
    return { kind: 'cancelled', message: 'The operation was cancelled.', remedy: AGAIN };
  const err = e instanceof Error ? e : new Error(String(e));
  return {
    kind: 'internal',
    message: err.message,
    remedy: REPORT,
    details: { stack: err.stack ?? '' },
  };
}
