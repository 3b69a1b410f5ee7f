/** Time as a dependency: tests run the same code on virtual time. */
import { cancelled, monotonicNow } from '../domain/index.js';
import { ignoreFailure } from '../concurrency/failures.js';

export interface Clock {
  /** ms since the epoch, monotonic within the process, with fractions. */
  now(): number;
  /** Call `fn` once after `ms`; the returned function cancels it. */
  after(ms: number, fn: () => void): () => void;
}

/** The longest delay that setTimeout supports (2^31 - 1 ms, 24.8 days); a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: monotonicNow,
  after: (ms, fn) => {
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const part = Math.min(left, LONGEST_TIMER_MS);
      timer = setTimeout(() => (left > part ? arm(left - part) : fn()), part);
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

/** The promise, or a rejection with `cancelled` as soon as the signal fires; the work itself runs to its end. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal, what: string): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(cancelled(what));
    if (signal.aborted) {
      ignoreFailure(work, 'the caller is told that it was cancelled');
      return onAbort();
    }
    signal.addEventListener('abort', onAbort, { once: true });
    const off = (): void => signal.removeEventListener('abort', onAbort);
    work.then(
      (v) => {
        off();
        resolve(v);
      },
      (e: unknown) => {
        off();
        reject(e);
      },
    );
  });
}
