/**
 * Longest stretch of work at a time: a busy machine makes several times that of it, and nobody should wait for longer
 * than 20 ms.
 */
const TURN_MS = 5;

/** Long work in short stretches: awaited between its pieces, it gives way once its time is up. */
export class Turns {
  #began = performance.now();
  /** Whether others are to be let in now; asked in a loop, so that a piece costs no promise. */
  get over(): boolean {
    return performance.now() - this.#began > TURN_MS;
  }
  async next(): Promise<void> {
    await new Promise<void>((go) => {
      setImmediate(go);
    });
    this.#began = performance.now();
  }
}
