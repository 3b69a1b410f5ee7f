import { ChangeListeners } from './changeListeners.js';
import type { JournalEvent } from './events.js';
import type { DataState } from './state.js';

/**
 * Where events go: the journal of a run folder, or nowhere in simulations. `append` resolves when the event is safe.
 */
export interface EventSink {
  append(e: JournalEvent): Promise<unknown>;
  close(): Promise<void>;
}

/** Events that cannot change the answer to an order or a claim. */
const QUIET: ReadonlySet<JournalEvent['type']> = new Set([
  'run.time',
  'training.began',
  'training.ended',
  'rollout.step',
  'rollout.started',
  'trajectory.started',
  'spans',
  'metrics',
  'eval',
  'model.served',
  'log',
]);
const changesPool = (e: JournalEvent): boolean =>
  e.type === 'pool.added' ||
  e.type === 'pool.removed' ||
  e.type === 'pool.switched' ||
  (e.type === 'group.formed' && e.members.some((m) => m.injected));

/** State changes only here: an event is applied at once, written, and then reported to listeners. */
export class Commits {
  /** Called after a change that may change the answer to an order or a claim. */
  readonly changes = new ChangeListeners();
  /** Called after the experience pool changed. */
  readonly poolChanges = new ChangeListeners();
  readonly #state: DataState;
  readonly #sink: EventSink;

  constructor(state: DataState, sink: EventSink) {
    this.#state = state;
    this.#sink = sink;
  }

  /** Applies events at once, in order, and resolves when they are on disk. */
  async commit(events: readonly JournalEvent[]): Promise<void> {
    if (events.length === 0) return;
    const saved = events.map((e) => {
      this.#state.apply(e);
      return this.#sink.append(e);
    });
    if (events.some((e) => !QUIET.has(e.type))) this.changes.tell();
    if (this.poolChanges.size > 0 && events.some(changesPool)) this.poolChanges.tell();
    await Promise.all(saved);
  }
  close(): Promise<void> {
    return this.#sink.close();
  }
}
