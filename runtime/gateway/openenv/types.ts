/** The messages of OpenEnv (package openenv 0.10, `openenv/core/env_server`), without how episodes are run. */

/** After a reset or a step. */
export interface Observed {
  readonly observation: Readonly<Record<string, unknown>>;
  /** 0 to 1 once the episode is over; before that undefined. */
  readonly reward: number | undefined;
  readonly done: boolean;
}
/** Answers with errors as OpenEnv names them. */
export type ErrorCode =
  'INVALID_JSON' | 'UNKNOWN_TYPE' | 'VALIDATION_ERROR' | 'EXECUTION_ERROR' | 'CAPACITY_REACHED' | 'SESSION_ERROR';

/** The state where no episode has begun. */
export const NO_EPISODE = { episode_id: null, step_count: 0, task: null, done: false };

/** One session's environment: an episode after the other on a desktop. Calls come one at a time. */
export interface Environment {
  /** Begins an episode; one that goes on is given up. Rejects with what was wrong with the request or the desktop. */
  reset(request: Readonly<Record<string, unknown>>): Promise<Observed>;
  /** Rejects with `policy.invalid` for what is no action: nothing has happened then. */
  step(action: Readonly<Record<string, unknown>>): Promise<Observed>;
  state(): Readonly<Record<string, unknown>>;
  /** Gives the desktop back. Idempotent. */
  close(): Promise<void>;
}
export interface Environments {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** JSON schemas. */
  readonly schema: { readonly action: object; readonly observation: object; readonly state: object };
  /** Sessions at once. */
  readonly capacity: number;
  open(): Environment;
}
