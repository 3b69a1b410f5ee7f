import type { Clock } from './clock.js';

/** Pauses in ms, each used after another failure in a row. */
const PAUSES_MS = [1000, 2000, 5000, 15_000, 30_000];

/** A pause before the next attempt, longer each time until something has worked. */
export class GrowingPause {
  readonly #clock: Clock;
  readonly #over: () => void;
  #inARow = 0;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, over: () => void) {
    this.#clock = clock;
    this.#over = over;
  }
  get on(): boolean {
    return this.#stop !== undefined;
  }
  /** Begins a pause and returns its length, ms; 0 when a pause is already under way. */
  begin(): number {
    if (this.#stop) return 0;
    const ms = PAUSES_MS[Math.min(this.#inARow++, PAUSES_MS.length - 1)]!;
    this.#stop = this.#clock.after(ms, () => {
      this.#stop = undefined;
      this.#over();
    });
    return ms;
  }
  /** Something has worked: the next pause is the shortest again. */
  reset(): void {
    this.#inARow = 0;
  }
  cancel(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
