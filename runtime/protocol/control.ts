/** Requests of a window when a person records a demonstration or keeps one. */
import type { ControlSessionId, ProviderChoice, RunPath } from '../domain/index.js';

export interface RecordParams {
  /**
   * Run folder, active or not, whose tasks are demonstrated and which keeps the demonstration. Absent: the collection
   * `collection` is made or used.
   */
  readonly run?: RunPath;
  /** Folder of run folders in which a collection named 'demonstrations' is made or used when no run is given. */
  readonly base?: string;
  readonly family: string;
  /** Default: a seed that has no demonstration yet. */
  readonly seed?: number;
  readonly provider?: ProviderChoice;
}
/** A success joins the pool by itself; a failure is kept only when asked for and joins only with a reason. */
export interface KeepParams {
  readonly session: ControlSessionId;
  readonly pool: 'auto' | 'never' | 'override';
  /** Reason, with `override`. */
  readonly reason?: string;
  readonly note?: string;
  readonly tags?: readonly string[];
  /** The person's verdict on a policy that was tried, where no verifier judged. */
  readonly verdict?: 'success' | 'failure';
}
