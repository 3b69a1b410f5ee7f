/** The queue of runs as a state machine: no clock, no file, no run. */
import type { QueuedRun, QueueItem, QueueView } from '../protocol/types.js';

export interface Entry extends QueueItem {
  readonly start: QueuedRun;
}
export interface QueueState {
  readonly items: readonly Entry[];
  readonly paused: boolean;
}
export const emptyQueue: QueueState = { items: [], paused: false };
/** Entries that are over are kept for so long as others follow them. */
const mostOver = 20,
  mostWaiting = 200;

const waits = (e: Entry): boolean => e.state === 'waiting';
const over = (e: Entry): boolean => e.state === 'done' || e.state === 'failed';

/** The one to begin now, of those not `held`; none while another runs or the queue is paused. */
export const nextOf = (q: QueueState, held: ReadonlySet<string> = new Set()): Entry | undefined =>
  q.paused || q.items.some((e) => e.state === 'running') ? undefined : q.items.find((e) => waits(e) && !held.has(e.id));
export const hasRoom = (q: QueueState, more: number): boolean => q.items.filter(waits).length + more <= mostWaiting;

export const added = (q: QueueState, entries: readonly Entry[]): QueueState => ({
  ...q,
  items: [...q.items, ...entries],
});
/** Takes an entry out; one that runs must be stopped instead. */
export const removed = (q: QueueState, id: string): QueueState => ({
  ...q,
  items: q.items.filter((e) => e.id !== id || e.state === 'running'),
});
/** Moves an entry `by` places further among those that wait. */
export function moved(q: QueueState, id: string, by: number): QueueState {
  const waiting = q.items.filter(waits),
    from = waiting.findIndex((e) => e.id === id);
  if (from < 0) return q;
  const [one] = waiting.splice(from, 1);
  waiting.splice(Math.max(0, Math.min(waiting.length, from + by)), 0, one!);
  return { ...q, items: [...q.items.filter((e) => !waits(e)), ...waiting] };
}
export const changed = (q: QueueState, id: string, to: Partial<Entry>): QueueState => ({
  ...q,
  items: tidied(q.items.map((e) => (e.id === id ? { ...e, ...to } : e))),
});
export const begun = (q: QueueState, id: string, run: string): QueueState =>
  replaced(q, id, ({ error: _error, ...e }) => ({ ...e, state: 'running', run }));
/** Puts an entry back to waiting, in its place. */
export const waitsAgain = (q: QueueState, id: string): QueueState =>
  replaced(q, id, ({ run: _run, ...e }) => ({ ...e, state: 'waiting' }));
/** Why those of `ids` that wait cannot begin yet; undefined once they can. */
export const waitFor = (q: QueueState, ids: ReadonlySet<string>, error?: string): QueueState => ({
  ...q,
  items: q.items.map((e): Entry => {
    if (!waits(e) || !ids.has(e.id)) return e;
    const { error: _error, ...rest } = e;
    return { ...rest, ...(error === undefined ? {} : { error }) };
  }),
});
const replaced = (q: QueueState, id: string, by: (e: Entry) => Entry): QueueState => ({
  ...q,
  items: q.items.map((e) => (e.id === id ? by(e) : e)),
});
/** Entries that are over come first; the oldest of them are forgotten. */
function tidied(items: readonly Entry[]): readonly Entry[] {
  return [...items.filter(over).slice(-mostOver), ...items.filter((e) => !over(e))];
}
/**
 * After a restart: a run of the queue that is active, or is resumed, goes on as what it was; of one that never began,
 * its entry waits again, where it was; any other one is over.
 */
export const recovered = (q: QueueState, of: (run: string) => 'active' | 'never began' | 'over'): QueueState => ({
  ...q,
  items: tidied(
    q.items.map((e): Entry => {
      if (e.state !== 'running') return e;
      const now = e.run === undefined ? 'never began' : of(e.run);
      if (now === 'active') return e;
      if (now === 'over') return { ...e, state: 'done' };
      const { run: _run, ...rest } = e;
      return { ...rest, state: 'waiting' };
    }),
  ),
});
export const viewOf = (q: QueueState): QueueView => ({
  paused: q.paused,
  items: q.items.map(({ start: _start, ...item }) => item),
});
