import { tell } from './output.js';

/** The first Ctrl-C or SIGTERM stops cleanly, the second at once. */
export function onInterrupt(words: string): { readonly signal: AbortSignal; off(): void } {
  const abort = new AbortController();
  const on = (): void => {
    if (abort.signal.aborted) process.exit(130);
    tell(`\n${words}\n`);
    abort.abort();
  };
  process.on('SIGINT', on);
  process.on('SIGTERM', on);
  return {
    signal: abort.signal,
    off: () => {
      process.off('SIGINT', on);
      process.off('SIGTERM', on);
    },
  };
}
