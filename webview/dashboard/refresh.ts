/** Limits how often a request repeats. Pure but for the clock it is given. */
export interface Beat {
  readonly now: () => number;
  readonly after: (ms: number, run: () => void) => unknown;
  readonly hidden: () => boolean;
}
/** Runs a request at most every so often, once more when it was asked meanwhile, and not while the page is hidden. */
export class Refresh {
  readonly #run: () => Promise<void>;
  readonly #everyMs: number;
  readonly #clock: Beat;
  #last = -Infinity;
  #asked = false;
  #busy = false;
  #waiting = false;
  constructor(run: () => Promise<void>, every: number, clock: Beat) {
    this.#run = run;
    this.#everyMs = every;
    this.#clock = clock;
  }
  ask(): void {
    this.#asked = true;
    this.#go();
  }
  /** It is run by somebody else: the next time is as long after that. */
  ran(): void {
    this.#last = this.#clock.now();
  }
  /** The page is visible again. */
  wake(): void {
    if (this.#asked) this.#go();
  }
  #go(): void {
    if (this.#busy || this.#waiting || this.#clock.hidden()) return;
    const wait = this.#last + this.#everyMs - this.#clock.now();
    if (wait > 0) {
      this.#waiting = true;
      this.#clock.after(wait, () => {
        this.#waiting = false;
        if (this.#asked) this.#go();
      });
      return;
    }
    this.#asked = false;
    this.#busy = true;
    this.#last = this.#clock.now();
    const done = (): void => {
      this.#busy = false;
      if (this.#asked) this.#go();
    };
    this.#run().then(done, done);
  }
}
