import type { Action } from './action.js';
import type { RunError } from './errors.js';
import type { Outcome, VerifierReport } from './trajectory.js';

/** People's additions to a finished trajectory: edits and replays, as the annotation log stores them. */

export type StepMark = 'key' | 'redundant' | 'wrong';

/**
 * One edit. Steps are named by their index in the recorded trajectory, whatever was deleted since; `action` is an index
 * into the step's actions.
 */
export type AnnotationOp =
  | {
      readonly op: 'outcome';
      /** null: what the verifier said. */
      readonly value: 'success' | 'failure' | null;
      readonly reason: string;
    }
  | { readonly op: 'tags'; readonly tags: readonly string[] }
  | { readonly op: 'note'; readonly text: string }
  | { readonly op: 'mark'; readonly step: number; readonly mark: StepMark; readonly on: boolean }
  | { readonly op: 'thought'; readonly step: number; /** null: as recorded. */ readonly text: string | null }
  /** A moved point, an edited text: the same type of action with other values. */
  | { readonly op: 'action'; readonly step: number; readonly action: number; readonly value: Action }
  | { readonly op: 'delete'; readonly steps: readonly number[] }
  | { readonly op: 'restore'; readonly steps: readonly number[] }
  /** This trajectory ends before `step`; the rest becomes another one, `<rollout>/b`, `/c` ... */
  | { readonly op: 'split'; readonly step: number }
  | { readonly op: 'reviewed'; readonly value: boolean };

export interface Revision {
  /** 0 is the trajectory as recorded. */
  readonly revision: number;
  readonly at: number;
  readonly ops: readonly AnnotationOp[];
}

/** The edited trajectory, acted out on a fresh desktop. `rollout`: the recording of that, with its own screens. */
export interface Replay {
  readonly revision: number;
  readonly at: number;
  readonly rollout?: string;
  readonly outcome?: Outcome['kind'];
  readonly reward?: number;
  readonly report?: VerifierReport;
  readonly error?: RunError;
  readonly pooled?: boolean;
  readonly why?: string;
}

/** A summary shown beside a list row, for trajectories that have annotations. */
export interface AnnotationMarks {
  readonly revision: number;
  readonly outcome?: 'success' | 'failure';
  readonly tags?: readonly string[];
  readonly note?: boolean;
  readonly marks?: number;
  readonly edited?: boolean;
  readonly reviewed?: boolean;
  readonly replayed?: Outcome['kind'];
}

/** Which trajectories are exported, by their annotations (besides outcome and family). */
export interface AnnotationFilter {
  readonly tags?: readonly string[];
  readonly reviewed?: boolean;
  /** Outcomes as corrected, edits applied (default true). */
  readonly revised?: boolean;
  /** Steps with such a mark are left out. */
  readonly without?: readonly ('redundant' | 'wrong')[];
}
