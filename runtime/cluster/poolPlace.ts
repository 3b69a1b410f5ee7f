import type { RunError } from '../domain/index.js';
import type { DesktopState } from './types.js';

/** A failure of a place: of what kind and why, with what the desktop said. */
export interface PlaceFailure {
  readonly at: number;
  readonly error: RunError;
}
export interface Place {
  readonly id: number;
  readonly state: DesktopState;
  readonly since: number;
  readonly resets: number;
  readonly replaced: number;
  readonly quarantined: boolean;
  /** The newest failures, oldest first; they stay until a lease has ended well. */
  readonly log: readonly PlaceFailure[];
}
/** A place as its machine keeps it. */
export interface PlaceInPool extends Place {
  state: DesktopState;
  since: number;
  resets: number;
  replaced: number;
  quarantined: boolean;
  log: PlaceFailure[];
  /** Failures in a row since a lease ended well. */
  streak: number;
  /** Resets in place of the current desktop. */
  age: number;
  /** Failures in a row since its last lease. */
  failures: number;
  /** A desktop exists (or is being destroyed). */
  has: boolean;
  /** A create effect was returned, and has not ended. */
  creating: boolean;
  destroying: boolean;
  /** The leased desktop is already dead. */
  lost: boolean;
  /** The pool shrank: the place is to be removed. */
  leaving: boolean;
  lastError?: RunError;
}

export const newPlace = (id: number, now: number): PlaceInPool => ({
  id,
  state: 'starting',
  since: now,
  resets: 0,
  replaced: 0,
  quarantined: false,
  log: [],
  streak: 0,
  age: 0,
  failures: 0,
  has: false,
  creating: false,
  destroying: false,
  lost: false,
  leaving: false,
});

/** Whether the newest failure says that nothing can be had from the engine or the cluster just now. */
export const isAway = (log: readonly PlaceFailure[]): boolean => log.at(-1)?.error.kind === 'desktop.unavailable';
