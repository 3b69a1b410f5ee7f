/** Wire types of the review queue. */
import type { TrajectoryRow } from '../domain/index.js';

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
