/**
 * Wire types of annotations: revisions of a finished trajectory, its replays, the review queue. The recorded trajectory
 * is never changed.
 */
import type { Action, RunError, VerifierReport } from '../domain/index.js';
import type { OutcomeKind, RunPath, TrajectoryRow, TrajectoryView } from './types.js';

export type StepMark = 'key' | 'redundant' | 'wrong';
/**
 * One edit. Steps are named by their index in the recorded trajectory, whatever was deleted since; `action` is the
 * place in the step's actions.
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
  /** This trajectory ends before `step`; from there on it is another one, `<rollout>/b`, `/c` ... */
  | { readonly op: 'split'; readonly step: number }
  | { readonly op: 'reviewed'; readonly value: boolean };

export interface Revision {
  /** 0 is the trajectory as recorded. */
  readonly revision: number;
  readonly at: number;
  readonly ops: readonly AnnotationOp[];
}
/** The edited trajectory, acted out on a fresh desktop. `rollout`: what was recorded of it, with true screens. */
export interface Replay {
  readonly revision: number;
  readonly at: number;
  readonly rollout?: string;
  readonly outcome?: Exclude<OutcomeKind, 'running'>;
  readonly reward?: number;
  readonly report?: VerifierReport;
  readonly error?: RunError;
  readonly pooled?: boolean;
  readonly why?: string;
}

export interface AnnotationView {
  readonly run: RunPath;
  readonly rollout: string;
  /** Revision shown (moved by undo and redo); an edit of an earlier one drops those after it. */
  readonly revision: number;
  readonly revisions: readonly Revision[];
  readonly outcome?: { readonly value: 'success' | 'failure'; readonly reason: string };
  readonly tags: readonly string[];
  readonly note: string;
  readonly marks: Readonly<Record<number, readonly StepMark[]>>;
  readonly deleted: readonly number[];
  readonly reviewed: boolean;
  /** Other parts, after a split. */
  readonly parts: readonly string[];
  /** The trajectory of this revision; its steps keep the index they were recorded with. */
  readonly trajectory: TrajectoryView;
  /** Steps whose thought or actions differ from what was recorded. */
  readonly changed: readonly number[];
  readonly replays: readonly Replay[];
  /** Why nothing can be edited here (running, read-only folder, another process writes it). */
  readonly locked?: {
    readonly message: string;
    readonly remedy: string;
  };
}
/** Beside a row of a list, for trajectories that have any. */
export interface AnnotationMarks {
  readonly revision: number;
  readonly outcome?: 'success' | 'failure';
  readonly tags?: readonly string[];
  readonly note?: boolean;
  readonly marks?: number;
  readonly edited?: boolean;
  readonly reviewed?: boolean;
  readonly replayed?: Exclude<OutcomeKind, 'running'>;
}

/** Why a trajectory is in the queue, and how soon (higher first). */
export interface ReviewItem {
  readonly row: TrajectoryRow;
  readonly priority: number;
  readonly why: string;
  readonly reviewed: boolean;
}
export interface ReviewQueue {
  readonly items: readonly ReviewItem[];
  readonly total: number;
  readonly reviewed: number;
}
