/** Virtual time for code that takes a `Clock`: nothing waits, timers fire in order when the test advances. */
import type { Clock } from '../../../runtime/rollout/clock.js';

export class VirtualClock implements Clock {
  #t = 1_000_000;
  #seq = 0;
  readonly #timers = new Map<number, { at: number; fn: () => void }>();

  now(): number {
    return this.#t;
  }
  after(ms: number, fn: () => void): () => void {
    const key = this.#seq++;
    this.#timers.set(key, { at: this.#t + Math.max(0, ms), fn });
    return () => this.#timers.delete(key);
  }
  /** A pause on this clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((r) => this.after(ms, r));
  }
  get pending(): number {
    return this.#timers.size;
  }

  /** Let `ms` pass; every timer due meanwhile fires, with the promises it settles. */
  async advance(ms: number): Promise<void> {
    const end = this.#t + ms;
    await flush();
    for (;;) {
      const due = [...this.#timers]
        .filter(([, x]) => x.at <= end)
        .sort(([ka, a], [kb, b]) => a.at - b.at || ka - kb)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#t = Math.max(this.#t, due[1].at);
      due[1].fn();
      await flush();
    }
    this.#t = end;
  }
  /** Advance from timer to timer until `done` holds; throws when nothing is left to happen. */
  async until(done: () => boolean, limitMs = 3_600_000): Promise<void> {
    const limit = this.#t + limitMs;
    await flush();
    while (!done()) {
      const next = Math.min(...[...this.#timers.values()].map((x) => x.at));
      if (!Number.isFinite(next) || next > limit)
        throw new Error(`nothing more happens at virtual ${this.#t} (next timer: ${next})`);
      await this.advance(next - this.#t);
    }
  }
}

/** Everything that can run without time passing has run. */
export const flush = (): Promise<void> => new Promise((r) => setImmediate(r));
