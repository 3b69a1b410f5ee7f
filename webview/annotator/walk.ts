/**
 * The review queue as one walks through it: the daemon's list as it was when the walk began, what it listed besides
 * where that ended, and what was reviewed since. Pure.
 */
import type { ReviewItem, ReviewQueue } from '../../runtime/protocol/types.js';

/** Most rows that are listed at once; at their end the daemon is asked for more. */
export const queueLimit = 200;
/** The daemon lists no more at once. */
const queueMost = 1000;
export interface Walk {
  readonly items: readonly ReviewItem[];
  /** Reviewed, also before this walk. */
  readonly reviewed: number;
  /** Trajectories of this walk, also those that are not listed yet. */
  readonly open: number;
  /** Reviewed in this walk. */
  readonly done: ReadonlySet<string>;
}

export const begin = (q: ReviewQueue): Walk => ({
  items: q.items,
  reviewed: q.reviewed,
  open: Math.max(q.items.filter((i) => !i.reviewed).length, q.total - q.reviewed),
  done: new Set(),
});
export const placeOf = (w: Walk, rollout: string): number => w.items.findIndex((i) => i.row.rollout === rollout);
/**
 * The neighbour in the list; for one that is not in it, the first. `unreviewed`: going on after a review skips what is
 * reviewed.
 */
export function neighbour(w: Walk, rollout: string, direction: 1 | -1, unreviewed = false): ReviewItem | undefined {
  for (let i = placeOf(w, rollout) + direction; i >= 0 && i < w.items.length; i += direction)
    if (!unreviewed || !(w.done.has(w.items[i]!.row.rollout) || w.items[i]!.reviewed)) return w.items[i];
  return undefined;
}
export function mark(w: Walk, rollout: string, reviewed: boolean): Walk {
  const done = new Set(w.done);
  if (reviewed) done.add(rollout);
  else done.delete(rollout);
  return { ...w, done };
}
/** Rows to ask for at the end of a walk: those that were skipped are listed again. */
export const limitAfter = (w: Walk): number => Math.min(queueMost, queueLimit + skipped(w).length);
/** The walk with what the daemon lists besides by now. */
export function continued(w: Walk, q: ReviewQueue): Walk {
  const open = q.items.filter((i) => !i.reviewed),
    fresh = open.filter((i) => placeOf(w, i.row.rollout) < 0),
    left = open.length - fresh.length;
  return fresh.length === 0
    ? w
    : {
        ...w,
        items: [...w.items, ...fresh],
        open: w.items.length + Math.max(fresh.length, q.total - q.reviewed - left),
      };
}
/** Skipped in this walk. */
export const skipped = (w: Walk): ReviewItem[] => w.items.filter((i) => !i.reviewed && !w.done.has(i.row.rollout));
