import type { Replay, Revision, StepMark } from './annotation.js';
import type { RunPath } from './run.js';
import type { TrajectoryView } from './trajectoryView.js';

/** One revision of a trajectory with all its annotations. */
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
  /** Why it cannot be edited (it is running, the folder is read-only, another process writes it). */
  readonly locked?: {
    readonly message: string;
    readonly remedy: string;
  };
}
