/**
 * Work on pixels, cut into jobs of a few ms and run in turn, so that many screens at once do not hold up the event
 * loop: each turn of the loop spends at most `budgetMs` on all jobs together.
 */
export class Slices {
  readonly #budgetMs: number;
  readonly #jobs: (() => void)[] = [];
  #scheduled = false;
  constructor(budgetMs = 6) {
    this.#budgetMs = budgetMs;
  }

  run<T>(job: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(() => {
        try {
          resolve(job());
        } catch (e) {
          reject(e);
        }
      });
      if (!this.#scheduled) {
        this.#scheduled = true;
        setImmediate(() => {
          this.#turn();
        });
      }
    });
  }

  /** `job(from, to)` over 0..n in pieces of at most `piece`. */
  async over(n: number, piece: number, job: (from: number, to: number) => void): Promise<void> {
    for (let from = 0; from < n; from += piece)
      await this.run(() => {
        job(from, Math.min(n, from + piece));
      });
  }

  #turn(): void {
    const end = performance.now() + this.#budgetMs;
    do this.#jobs.shift()?.();
    while (this.#jobs.length > 0 && performance.now() < end);
    if (this.#jobs.length > 0)
      setImmediate(() => {
        this.#turn();
      });
    else this.#scheduled = false;
  }
}

/** One instance, because the process has one event loop. */
export const slices = new Slices();
/** Pixels per job: about 1 ms of work. */
export const slicePixels = 256 * 1024;
