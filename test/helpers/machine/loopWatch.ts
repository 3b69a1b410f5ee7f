import { existsSync, readFileSync } from 'node:fs';

/**
 * How long the event loop is held up: the time between two looks, but not more than the processor time of this thread in
 * it, since a busy machine stops a thread too.
 */
export class LoopWatch {
  #gaps: number[] = [];
  #last = performance.now();
  #used = threadMs();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Since the last time that this was asked, ms. */
  since(): { readonly longestMs: number; readonly usualMs: number } {
    this.#look();
    const gaps = this.#gaps.sort((a, b) => b - a);
    this.#gaps = [];
    return { longestMs: gaps[0] ?? 0, usualMs: gaps[Math.ceil(gaps.length / 100)] ?? 0 };
  }
  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now(),
      used = threadMs();
    this.#gaps.push(Math.min(now - this.#last, used - this.#used));
    this.#last = now;
    this.#used = used;
  }
}
const LOOK_MS = 5;
/** Linux: ns on a processor, ns waiting for one, turns. Threads that collect garbage are not in it. */
const SCHEDULED = '/proc/thread-self/schedstat';
/** Processor time of this thread, ms; of the process where the system does not say. */
export const threadMs: () => number = existsSync(SCHEDULED)
  ? () => Number(readFileSync(SCHEDULED, 'utf8').split(' ')[0]) / 1e6
  : () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    };
