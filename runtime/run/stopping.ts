import { StudioError } from '../domain/index.js';
import { ignoreFailure } from '../concurrency/failures.js';

/**
 * Time limits for the work under way (an update, a verdict) once a person stops the run, and once they stop it at once.
 */
const STOP_MS = { stopped: 60_000, now: 5_000 };

export interface StopSignals {
  /** A person stops the run. */
  readonly signal: AbortSignal;
  /** Aborted as well: end at once. */
  readonly now?: AbortSignal;
}

/**
 * Rejects with `cancelled` when the work continues for too long after the run was stopped. The work is then abandoned:
 * closing the run's parts ends what it waits for, and a batch that it held is released.
 */
export async function unlessOverdue<T>(
  name: string,
  work: Promise<T>,
  { signal, now }: StopSignals,
  limits: { readonly stopped: number; readonly now: number } = STOP_MS,
): Promise<T> {
  const done = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    const watch = (s: AbortSignal, ms: number): void => {
      const arm = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(leftBehind(name, ms)), ms);
      };
      if (s.aborted) arm();
      else s.addEventListener('abort', arm, { once: true, signal: done.signal });
    };
    watch(signal, limits.stopped);
    if (now) watch(now, limits.now);
  });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    done.abort();
    clearTimeout(timer);
    ignoreFailure(work, 'the run has ended without it');
  }
}

const leftBehind = (what: string, ms: number): StudioError =>
  new StudioError(
    'cancelled',
    `The run was stopped, and ${what} had not ended ${ms / 1000} s later.`,
    'Resume the run to continue.',
  );

/**
 * Waits for `work`, but no longer than `ms`: false when it had not ended by then, and what it does later is ignored.
 * Rejects as `work` does before that.
 */
export function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    work.then(
      () => {
        clearTimeout(timer);
        resolve(true);
      },
      (e: unknown) => {
        clearTimeout(timer);
        reject(e);
      },
    );
  });
}

/**
 * Ends parts one after another, each within `ms`. A part that fails, on a full disk for example, does not keep the
 * others from ending. Resolves with the first failure.
 */
export async function endEach(ms: number, endings: readonly (() => Promise<unknown> | undefined)[]): Promise<unknown> {
  let failure: unknown;
  for (const ending of endings)
    await endsWithin(ms, (async () => ending())()).catch((e: unknown) => {
      failure ??= e;
    });
  return failure;
}
