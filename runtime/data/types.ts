import type {
  BatchId,
  BranchPoint,
  FamilyId,
  Frame,
  FrameRef,
  Group,
  GroupId,
  RolloutId,
  Screenshot,
  TaskId,
  Trajectory,
  RetireReason,
} from '../domain/index.js';
import type { FramePlace } from './store/framePacks.js';

/** Module 3, data manager. */

/** The next rollout: the planner's order for a free desktop. */
export interface RolloutOrder {
  readonly rollout: RolloutId;
  readonly group: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly seed: number;
  /** Step cap (turns). */
  readonly cap: number;
  /** Planned number of rollouts of the group. */
  readonly groupSize: number;
  /** Where a branch begins; absent for a rollout that begins with the task. */
  readonly branch?: BranchPoint;
}

/** The recorded steps that a branch begins with, up to the one of which it takes only the screen. */
export type Before = Pick<Trajectory, 'instruction' | 'steps'>;

/** Every rollout is in exactly one state; generated = trained + in flight + retired at any moment. */
export type RolloutState =
  | { readonly at: 'queued' }
  | { readonly at: 'running' }
  | { readonly at: 'recorded' }
  | { readonly at: 'grouped'; readonly group: GroupId }
  | { readonly at: 'claimed'; readonly batch: BatchId }
  | { readonly at: 'trained' }
  | { readonly at: 'retired'; readonly reason: RetireReason };

export interface LedgerCounts {
  readonly generated: number;
  /** Rollouts that were ever on a desktop. */
  readonly begun: number;
  /** Rollouts that ended in success or failure. */
  readonly judged: number;
  readonly trained: number;
  readonly inFlight: number;
  readonly retired: Readonly<Partial<Record<RetireReason, number>>>;
  readonly byState: Readonly<Record<RolloutState['at'], number>>;
}

/** Whether a trajectory joins the experience pool: by the rules ('auto'), never, or for a person's reason. */
export type PoolWish = 'auto' | 'never' | { readonly override: string };
export interface PoolAnswer {
  readonly pooled: boolean;
  /** Why not. */
  readonly why?: string;
  /** The entry that does the same. */
  readonly twin?: RolloutId;
}

/** Frames are content addressed: writing the same screen twice costs a hash. */
export interface FrameStore {
  put(screen: Screenshot): Promise<FrameRef>;
  /** Reads the pixels as BGRX. Rejects with `store.damaged` when the file is missing or broken. */
  get(ref: FrameRef): Promise<Frame>;
  /**
   * The stored bytes of a frame, a PNG file. Rejects with Node's errors (ENOENT: it is missing), or a
   * `ForeignFileError`.
   */
  read(ref: FrameRef): Promise<Buffer>;
  /** The file that `put` keeps of a frame, kept or not. */
  encode?(f: Frame): Promise<Uint8Array>;
  /** Where a frame lies in a pack, for any thread, as far as is known without a look at the disk. */
  packed?(hash: string): FramePlace | undefined;
  /**
   * Frames that are put through the result are not removed before its `end` or shortly after, whether or not a
   * trajectory that shows them is recorded.
   */
  hold?(): HeldFrames;
}
export interface HeldFrames extends Pick<FrameStore, 'put'> {
  /** Idempotent. */
  end(): void;
}

export type { Group, Trajectory };
