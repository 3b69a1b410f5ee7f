import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';

/**
 * Everything that asks the run to pause: a person, or a full disk. While anything does, no rollout starts and no time
 * counts.
 */
export class Pauses {
  readonly #by = new Set<'person' | 'disk'>();
  readonly #set: (paused: boolean) => void;
  readonly #log: RunLog;

  constructor(set: (paused: boolean) => void, log: RunLog) {
    this.#set = set;
    this.#log = log;
  }

  add(who: 'person' | 'disk', say: string): void {
    if (this.#by.has(who)) return;
    this.#by.add(who);
    if (this.#by.size === 1) this.#set(true);
    this.#log.note(say);
  }
  remove(who: 'person' | 'disk', say: string): void {
    if (!this.#by.delete(who)) return;
    if (this.#by.size === 0) this.#set(false);
    this.#log.note(say);
  }
  diskFull(full: boolean, state: RunState): void {
    state.trouble = full ? 'the disk of the run folder is full' : undefined;
    if (full)
      this.add(
        'disk',
        'The disk of the run folder is full. Nothing is lost: the run is paused and resumes automatically when space is available.',
      );
    else this.remove('disk', 'There is space on the disk again: the run continues.');
  }
}
