/** Waits `ms`; rejects with what `cancelled` gives, at once, when the signal fires. */
export function pause(ms: number, signal: AbortSignal, cancelled: () => Error): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(cancelled());
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

/** How often something that fails is tried again, and the pauses before, each twice the one before. */
export interface Patience {
  readonly baseMs: number;
  readonly maxMs: number;
  readonly attempts: number;
}
/** The pause after so many earlier ones, ms. */
export const growingMs = ({ baseMs, maxMs }: Patience, before: number): number => Math.min(maxMs, baseMs * 2 ** before);

/** Waits `ms`, or until the signal fires; never rejects. */
export const pauseOrStop = (ms: number, signal: AbortSignal): Promise<void> =>
  pause(ms, signal, () => new Error('stopped')).catch(() => undefined);
