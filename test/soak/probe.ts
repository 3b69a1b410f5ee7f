/**
 * Loaded before the runtime by the soak alone (`node --import`): each process appends a line a second about itself to
 * `<folder>/<pid>.jsonl`.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const SECOND_MS = 1000;
/** Of the timer whose lateness is measured. */
const PERIOD_MS = 5;

/** Delays of so many ms and more are counted as one. */
const LONGEST_MS = 500;

export interface ProbeLine {
  readonly at: number;
  /**
   * Moments in which an event would have been 0 to 1 ms late, 1 to 2 ms …: whole, and without waiting for a processor
   * (Linux).
   */
  readonly late: readonly number[];
  readonly ownLate?: readonly number[];
  /** Delays of the event loop as Node.js measures them (`monitorEventLoopDelay`), each once. */
  readonly delays: readonly number[];
  readonly heapMb: number;
  readonly outsideMb: number;
}

/** Of the main thread: ns on a processor, ns waiting for one, turns. */
const SCHEDULED = '/proc/self/schedstat';
const waitedMs = (): number => Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1]) / 1e6;

/**
 * Counts by ms. A loop that stands still for 50 ms delays whatever comes meanwhile, not one event: each period of it
 * counts with what is left, so that the counts say how late an event of any moment is.
 */
class Late {
  #counts: number[] = [];
  add(ms: number): void {
    for (let left = Math.max(0, ms); ; left -= PERIOD_MS) {
      this.once(left);
      if (left < PERIOD_MS) return;
    }
  }
  once(ms: number): void {
    const i = Math.min(Math.floor(Math.max(0, ms)), LONGEST_MS);
    while (this.#counts.length <= i) this.#counts.push(0);
    this.#counts[i]!++;
  }
  take(): readonly number[] {
    const counts = this.#counts;
    this.#counts = [];
    return counts;
  }
}

const folder = process.env['DART_CHAOS'];
if (folder !== undefined && isMainThread) {
  const late = new Late(),
    delays = new Late(),
    own = existsSync(SCHEDULED) ? new Late() : undefined;
  let last = performance.now(),
    waited = own ? waitedMs() : 0;
  setInterval(() => {
    const now = performance.now(),
      w = own ? waitedMs() : 0,
      ms = now - last - PERIOD_MS;
    late.add(ms);
    delays.once(ms);
    own?.add(ms - (w - waited));
    last = now;
    waited = w;
  }, PERIOD_MS).unref();
  setInterval(() => {
    const { heapUsed, external } = process.memoryUsage(),
      line: ProbeLine = {
        at: Date.now(),
        late: late.take(),
        delays: delays.take(),
        ...(own ? { ownLate: own.take() } : {}),
        heapMb: heapUsed / 2 ** 20,
        outsideMb: external / 2 ** 20,
      };
    appendFileSync(join(folder, `${process.pid}.jsonl`), `${JSON.stringify(line)}\n`);
  }, SECOND_MS).unref();
}
