import { ignoreFailure } from '../../domain/index.js';

/** Between two snapshots passes so many times as long as the last one took: a fiftieth of one core. */
const REST = 50;

/** When the index is written: some time after a change, and the more seldom the larger it is, since it is written whole. */
export class Snapshots {
  readonly #least: number;
  readonly #write: () => Promise<unknown>;
  #pauseMs: number;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  /** `leastMs`: the pause while a snapshot takes no time. */
  constructor(leastMs: number, write: () => Promise<unknown>) {
    this.#least = this.#pauseMs = leastMs;
    this.#write = write;
  }

  changed(): void {
    if (this.#writing) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      ignoreFailure(this.#snapshot(), 'the index is rebuilt from the journal where it lags behind');
    }, this.#pauseMs).unref();
  }
  stop(): void {
    clearTimeout(this.#timer);
  }

  async #snapshot(): Promise<void> {
    const began = performance.now();
    this.#writing = true;
    try {
      await this.#write();
    } finally {
      this.#writing = false;
      this.#pauseMs = Math.max(this.#least, REST * (performance.now() - began));
    }
  }
}
