/**
 * Loaded before the runtime by the soak alone (`node --import`): each process appends a line a second about itself to
 * `<folder>/<pid>.jsonl`.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const SECOND_MS = 1000;
/** Delays are measured by a timer of this period, which is part of each. */
const PERIOD_MS = 5;

export interface ProbeLine {
  readonly at: number;
  /** ms that the event loop was late, at most, and in the worst hundredth of its turns. */
  readonly delayMax: number;
  readonly delayP99: number;
  /** The same without the time in which the thread could have run and no processor was free; absent off Linux. */
  readonly ownP99?: number;
  readonly heapMb: number;
  readonly outsideMb: number;
}

/** Of the main thread: ns on a processor, ns waiting for one, turns. */
const SCHEDULED = '/proc/self/schedstat';
const waitedMs = (): number => Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1]) / 1e6;

const folder = process.env['DART_CHAOS'];
if (folder !== undefined && isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: PERIOD_MS }),
    ms = (ns: number): number => Math.max(0, ns / 1e6 - PERIOD_MS);
  delay.enable();
  let own: number[] = [];
  if (existsSync(SCHEDULED)) {
    let last = performance.now(),
      waited = waitedMs();
    setInterval(() => {
      const now = performance.now(),
        w = waitedMs();
      own.push(Math.max(0, now - last - PERIOD_MS - (w - waited)));
      last = now;
      waited = w;
    }, PERIOD_MS).unref();
  }
  setInterval(() => {
    const { heapUsed, external } = process.memoryUsage(),
      line: ProbeLine = {
        at: Date.now(),
        delayMax: ms(delay.max),
        delayP99: ms(delay.percentile(99)),
        ...(own.length > 0 ? { ownP99: own.sort((a, b) => a - b)[Math.ceil(own.length * 0.99) - 1]! } : {}),
        heapMb: heapUsed / 2 ** 20,
        outsideMb: external / 2 ** 20,
      };
    delay.reset();
    own = [];
    appendFileSync(join(folder, `${process.pid}.jsonl`), `${JSON.stringify(line)}\n`);
  }, SECOND_MS).unref();
}
