/**
 * Longest work without a pause. A busy machine may take several times as long, and nothing should block the event loop
 * for more than 20 ms.
 */
const TURN_MS = 5;

/** Resolves when the event loop has turned once: what waited for it has had its turn. */
export const nextTurn = (): Promise<void> => new Promise((done) => setImmediate(done));

/** Splits long work: awaited between pieces, it lets the event loop turn once the time is up. */
export class Turns {
  #began = performance.now();
  /** Whether it is time to let the event loop turn; checked in a loop, so that a piece needs no promise. */
  get over(): boolean {
    return performance.now() - this.#began > TURN_MS;
  }
  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}
