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

/** Pauses, each twice the one before. */
export interface Growth {
  readonly baseMs: number;
  readonly maxMs: number;
}
/** How often something that fails is tried again, and the pauses before. */
export interface Patience extends Growth {
  readonly attempts: number;
}
/** Parts of a pause between which chance decides, so that many do not come back at one moment. */
export interface Spread {
  readonly from: number;
  readonly to: number;
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random?: () => number;
}
const WHOLE: Spread = { from: 1, to: 1 };
/** The pause after so many earlier ones, ms. Default: not spread. */
export function growingMs({ baseMs, maxMs }: Growth, before: number, spread = WHOLE): number {
  const { from, to, random = Math.random } = spread,
    ms = Math.min(maxMs, baseMs * 2 ** before);
  return from === to ? ms * from : ms * (from + (to - from) * random());
}

/**
 * The pause before the next try: what the server asks for (ms), where it asks for some, but never less than the shortest
 * of ours: a server that asks for none would be asked in a tight loop.
 */
export const askedMs = (asked: number | undefined, growth: Growth, before: number, spread = WHOLE): number =>
  asked !== undefined && asked > 0 ? Math.max(asked, growth.baseMs) : growingMs(growth, before, spread);

/** Waits `ms`, or until the signal fires; never rejects. */
export const pauseOrStop = (ms: number, signal: AbortSignal): Promise<void> =>
  pause(ms, signal, () => new Error('stopped')).catch(() => undefined);
