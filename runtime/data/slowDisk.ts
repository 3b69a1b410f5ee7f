import type { RunStore } from './store/runStore.js';

/**
 * A write of the journal or of screens takes milliseconds; one that takes longer than this means more than a full disk
 * queue.
 */
const SLOW_MS = 3000;

/**
 * Whether the disk is behind with the journal or with screens. No rollout starts then: running ones wait for their
 * screens anyway, and everything that waits to be written takes memory. Nothing else waits for the disk.
 */
export class SlowDisk {
  readonly #store: Pick<RunStore, 'behindMs' | 'onDurable'> | undefined;
  readonly #written: () => void;
  #waiting: (() => void) | undefined;

  /** `written`: called after the next write, when `slow` was true. */
  constructor(store: Pick<RunStore, 'behindMs' | 'onDurable'> | undefined, written: () => void) {
    this.#store = store;
    this.#written = written;
  }

  get slow(): boolean {
    if (!this.#store || this.#store.behindMs <= SLOW_MS) return false;
    this.#waiting ??= this.#store.onDurable(() => {
      this.#waiting?.();
      this.#waiting = undefined;
      this.#written();
    });
    return true;
  }
}
