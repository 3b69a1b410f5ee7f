import { messageOf } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';

/** Lines of the run's log. */
export const indexTrouble = {
  behind: (why: unknown): string =>
    `The run goes on, but its index does not follow: ${messageOf(why)} Lists and figures stand still, and no screens are removed (store.keep).`,
  unwritten: (why: unknown): string =>
    `The run's index could not be saved: ${messageOf(why)} Opening the run takes longer until it can be.`,
};

/** Between two snapshots passes so many times as long as the last one took: a fiftieth of one core. */
const REST = 50;

/** When the index is written: some time after a change, and the more seldom the larger it is, since it is written whole. */
export class Snapshots {
  readonly #least: number;
  readonly #write: () => Promise<unknown>;
  readonly #failed: (why: unknown) => void;
  #said = false;
  #pauseMs: number;
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  /** `leastMs`: the pause while a snapshot takes no time. `failed` is told once until a snapshot succeeds. */
  constructor(leastMs: number, write: () => Promise<unknown>, failed: (why: unknown) => void = () => undefined) {
    this.#least = this.#pauseMs = leastMs;
    this.#write = write;
    this.#failed = failed;
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
      this.#said = false;
    } catch (e) {
      if (!this.#said) this.#failed(e);
      this.#said = true;
      throw e;
    } finally {
      this.#writing = false;
      this.#pauseMs = Math.max(this.#least, REST * (performance.now() - began));
    }
  }
}
