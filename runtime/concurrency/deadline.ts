import { timeLimit } from './timeLimit.js';

export interface Deadline {
  /** Fires with a TimeoutError when the time is up, or with the reason of the first of the others. */
  readonly signal: AbortSignal;
  /** Ends the deadline: it no longer fires, and holds nothing. */
  end(): void;
}

/**
 * A signal that fires after `ms`, once what has arrived was heard (timeLimit.ts), or with any of `others`. In place of
 * `AbortSignal.any` over `AbortSignal.timeout`: in Node 20 nothing holds the timeout inside, and once it is collected as
 * garbage the signal never fires, and what joins a signal that lives long stays with that. Without `ms` there is no limit.
 */
export function deadline(ms: number | undefined, ...others: readonly (AbortSignal | undefined)[]): Deadline {
  const all = new AbortController(),
    given = others.filter((o) => o !== undefined),
    end = (): void => {
      clear();
      for (const o of given) o.removeEventListener('abort', fired);
    },
    fire = (why: unknown): void => {
      end();
      all.abort(why);
    };
  const over = (): void => fire(new DOMException('The time is up.', 'TimeoutError')),
    clear = ms === undefined ? (): void => undefined : timeLimit(ms, over, { keepsAlive: true });
  function fired(this: AbortSignal): void {
    fire(this.reason);
  }
  for (const o of given) o.addEventListener('abort', fired);
  const early = given.find((o) => o.aborted);
  if (early) fire(early.reason);
  return { signal: all.signal, end };
}

/** Runs `work` with a deadline, which ends with it. */
export async function withDeadline<T>(
  ms: number | undefined,
  others: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const d = deadline(ms, ...others);
  try {
    return await work(d.signal);
  } finally {
    d.end();
  }
}
