import type { Trajectory } from './trajectory.js';

/** The clock of a deterministic run (run/logicalTime.ts) counts an hour a rollout and a second a step. */
export const LOGICAL_ROLLOUT_MS = 3_600_000,
  LOGICAL_STEP_MS = 1000;

type Timed = Pick<Trajectory, 'startedAt' | 'endedAt' | 'resetMs' | 'verifyMs'> & { readonly steps: number };
/** Whether its times are of that clock: a real one does not begin on the hour, to take a second a step and nothing else. */
export const isLogical = (t: Timed): boolean =>
  t.resetMs === 0 &&
  t.verifyMs === 0 &&
  t.startedAt % LOGICAL_ROLLOUT_MS === 0 &&
  t.endedAt - t.startedAt === t.steps * LOGICAL_STEP_MS;
