import { StudioError } from '../domain/index.js';

export const cancelled = (): StudioError =>
  new StudioError('cancelled', 'The run was cancelled while it was starting.', 'You can start it again.');
/** The same, but rejects at once with `cancelled` when the signal fires; the work itself then ends unobserved. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => {
      reject(cancelled());
    };
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    void work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}
