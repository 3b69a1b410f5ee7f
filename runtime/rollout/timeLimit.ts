import type { RunError } from '../domain/index.js';
import { StudioError } from '../domain/index.js';
import { activeTimeout } from '../concurrency/activeTimeout.js';
import type { Clock } from './clock.js';

export interface TimeLimit {
  readonly signal: AbortSignal;
  expired(): RunError | undefined;
  /** The limit is suspended while this runs. */
  suspendedDuring<T>(work: Promise<T>): Promise<T>;
  stop(): void;
}

/**
 * A signal that fires with the caller's, or when `timeoutMs` have passed outside of `suspendedDuring`. `stalledMs`: of the
 * desktop; while its connection is cut the time does not count.
 */
export function timeLimit(
  deps: { readonly timeoutMs?: number; readonly clock: Clock },
  outer: AbortSignal,
  stalledMs: () => number = () => 0,
): TimeLimit {
  const own = new AbortController(),
    { timeoutMs, clock } = deps;
  const onAbort = (): void => own.abort();
  const activeMs = (): number => clock.now() - stalledMs();
  let late: RunError | undefined,
    left = timeoutMs ?? Infinity,
    since = 0,
    held = 0,
    cancel: () => void = () => undefined;
  if (outer.aborted) own.abort();
  outer.addEventListener('abort', onAbort, { once: true });
  const go = (): void => {
    if (timeoutMs === undefined) return;
    since = activeMs();
    const onTime = (): void => {
      if (!own.signal.aborted)
        late = new StudioError(
          'timeout',
          `The rollout took longer than ${timeoutMs / 1000} s.`,
          'It is retried. Raise rollout.taskTimeoutS if its task needs more time.',
        ).error;
      own.abort();
    };
    cancel = activeTimeout(left, stalledMs, onTime, (ms, fn) => clock.after(ms, fn));
  };
  go();
  return {
    signal: own.signal,
    expired: () => late,
    stop: () => {
      cancel();
      outer.removeEventListener('abort', onAbort);
    },
    async suspendedDuring(work) {
      if (held++ === 0) {
        cancel();
        left -= activeMs() - since;
      }
      try {
        return await work;
      } finally {
        if (--held === 0) go();
      }
    },
  };
}
