import type { PolicyVersion } from '../../domain/index.js';

export interface AdmissionInput {
  readonly maxConcurrent: number;
  /** Rollouts queued or running. */
  readonly running: number;
  /** Trajectories accepted since the start: trained plus buffered. Retired ones are not accepted. */
  readonly accepted: number;
  readonly version: PolicyVersion;
  readonly eta: number;
  /** B: trajectories per update. */
  readonly perUpdate: number;
}

/**
 * Rollouts that may start now so that none lags more than `eta` updates when it is trained (dart-algorithm.md 5; rule of AReaL's
 * staleness manager): min(maxConcurrent - running, (eta + v + 1) B - (accepted + running)). Negative means: over the bound already.
 */
export const admissionCapacity = (i: AdmissionInput): number =>
  Math.min(i.maxConcurrent - i.running, (i.eta + i.version + 1) * i.perUpdate - (i.accepted + i.running));

/**
 * The same bound in groups: groups that may be opened while `pending` are open, waiting or claimed and one update takes `perUpdate`
 * of them, (eta + 1) perUpdate - pending. First come, first served, a group then waits for at most eta updates.
 */
export const groupCapacity = (i: { readonly pending: number; readonly eta: number; readonly perUpdate: number }): number => (i.eta + 1) * i.perUpdate - i.pending;

/** Updates between the oldest weights that acted in a trajectory and the weights it is about to train. Demonstrations have no lag. */
export function versionLag(versions: readonly (PolicyVersion | undefined)[], current: PolicyVersion): number {
  let lag = 0;
  for (const v of versions) if (v !== undefined) lag = Math.max(lag, current - v);
  return lag;
}
