import type { Clock } from '../../../runtime/rollout/clock.js';

interface Timer {
  readonly at: number;
  readonly seq: number;
  fn: (() => void) | undefined;
}

/** Timers run per turn of Node's event loop; promises settle between any two of them. */
const BURST = 64;

/**
 * Virtual time for the production code: a timer fires when everything that earlier ones set off has run. Between two
 * timers every promise settles, because Node drains microtasks between two immediates; a burst of immediates per turn
 * of the event loop keeps that cheap. Same timers, same order: equal times fire in the order in which they were set.
 */
export class EventClock implements Clock {
  fired = 0;
  #t = 0;
  #seq = 0;
  #dead = 0;
  #heap: Timer[] = [];

  now(): number {
    return this.#t;
  }
  after(ms: number, fn: () => void): () => void {
    const timer: Timer = { at: this.#t + Math.max(0, ms), seq: this.#seq++, fn };
    this.#push(timer);
    return () => {
      if (timer.fn) {
        timer.fn = undefined;
        this.#dead++;
        if (this.#dead > 4096 && this.#dead * 2 > this.#heap.length) this.#compact();
      }
    };
  }
  sleep(ms: number): Promise<void> {
    return new Promise((r) => {
      this.after(ms, r);
    });
  }
  /** Timers that will fire. */
  get pending(): number {
    return this.#heap.length - this.#dead;
  }

  /**
   * Fires everything due until `end` (virtual ms), or until `done` holds; then time stands at `end`, or where `done`
   * held.
   */
  run(end: number, done: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      let queued = 0,
        over = false;
      const stop = (settle: () => void): void => {
        over = true;
        settle();
      };
      const tick = (): void => {
        queued--;
        if (over) return;
        if (done()) return stop(resolve);
        const timer = this.#next(end);
        if (!timer) {
          this.#t = end;
          return stop(resolve);
        }
        this.#t = timer.at;
        this.fired++;
        const { fn } = timer;
        timer.fn = undefined;
        try {
          fn!();
        } catch (e) {
          return stop(() => reject(e as Error));
        }
        if (queued === 0) refill();
      };
      const refill = (): void => {
        for (; queued < BURST; queued++) setImmediate(tick);
      };
      refill();
    });
  }

  /** The next living timer due until `end`, taken off the heap. */
  #next(end: number): Timer | undefined {
    for (let top = this.#heap[0]; top; top = this.#heap[0]) {
      if (top.fn && top.at > end) return undefined;
      this.#pop();
      if (top.fn) return top;
      this.#dead--;
    }
    return undefined;
  }
  #compact(): void {
    this.#heap = this.#heap.filter((t) => t.fn).sort(byTime);
    this.#dead = 0;
  }
  #push(t: Timer): void {
    const h = this.#heap;
    let i = h.length;
    h.push(t);
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (byTime(h[up]!, t) <= 0) break;
      h[i] = h[up]!;
      i = up;
    }
    h[i] = t;
  }
  #pop(): void {
    const h = this.#heap,
      last = h.pop()!;
    if (h.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= h.length) break;
      if (child + 1 < h.length && byTime(h[child + 1]!, h[child]!) < 0) child++;
      if (byTime(last, h[child]!) <= 0) break;
      h[i] = h[child]!;
      i = child;
    }
    h[i] = last;
  }
}

const byTime = (a: Timer, b: Timer): number => a.at - b.at || a.seq - b.seq;
