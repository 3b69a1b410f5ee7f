import type { SettleOptions } from '../cluster/types.js';
import type { DataManager } from '../data/dataManager.js';
import type { FrameStore } from '../data/types.js';
import type { RunPath } from '../domain/index.js';
import type { SchedulerEvent, Steerable } from '../rollout/types.js';

/** The parts of the active run that a person can reach: its rollouts to steer, and its data manager to add to. */
export interface RunAccess {
  readonly run: RunPath;
  readonly data: Pick<DataManager, 'record' | 'addToPool' | 'switchPool' | 'removeFromPool' | 'store'>;
  /** Resolves, never rejects, when its folder is released. */
  readonly ended: Promise<unknown>;
  /** The rollout on this desktop; undefined when there is none. */
  steer(desktop: string): HeldRollout | undefined;
}

/**
 * A running rollout with what a person needs to take it over. `hold` tells the data manager that the trainer may have
 * to continue without it.
 */
export interface HeldRollout extends Steerable {
  readonly instruction: string;
  readonly frames: FrameStore;
  readonly settle: SettleOptions;
  onEvent(l: (e: SchedulerEvent) => void): () => void;
  hold(on: boolean): void;
}
