/** Keys of annotate mode that come before a trajectory's annotations: they wait, instead of being lost. */
import type { Target } from './saver.js';

/** What a key is pressed on. */
export interface Place {
  readonly target: Target;
  /** Index of the selected step. */
  readonly step: number;
}

export class EarlyKeys {
  #place: Place | undefined;
  #waiting: (() => void)[] = [];

  add(place: Place, run: () => void): void {
    if (!same(this.#place, place)) this.#waiting = [];
    this.#place = place;
    this.#waiting.push(run);
  }
  /** Carries out what waits once the place has its annotations; drops it when the page shows another place by now. */
  update(place: Place | undefined, read: boolean): void {
    if (this.#waiting.length === 0) return;
    const isHere = same(this.#place, place);
    if (isHere && !read) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    if (isHere) for (const run of waiting) run();
  }
}
const same = (a: Place | undefined, b: Place | undefined): boolean =>
  a !== undefined &&
  b !== undefined &&
  a.target.run === b.target.run &&
  a.target.rollout === b.target.rollout &&
  a.step === b.step;
