/** ms since a start, pauses left out: during a pause it stands still. */
export class UnpausedTime {
  readonly #startedAt: number;
  /** The newest pause; an event of the time before it may come when it is over. */
  #pause = { from: Infinity, to: Infinity };
  /** Length of all pauses before the newest. */
  #pausedMs = 0;
  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }
  get paused(): boolean {
    return this.#pause.from !== Infinity && this.#pause.to === Infinity;
  }
  pause(at: number): void {
    if (this.paused) return;
    const { from, to } = this.#pause;
    if (from !== Infinity) this.#pausedMs += to - from;
    this.#pause = { from: at, to: Infinity };
  }
  resume(at: number): void {
    if (this.paused) this.#pause = { ...this.#pause, to: at };
  }
  of(at: number): number {
    const { from, to } = this.#pause;
    return Math.min(at, from) + Math.max(0, at - to) - this.#startedAt - this.#pausedMs;
  }
}
