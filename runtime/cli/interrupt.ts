import { tell } from './output.js';

/** The first Ctrl-C or SIGTERM stops cleanly, and says so by `say`; the second exits at once. */
export function onInterrupt(
  words: string,
  say = (text: string): void => tell(`\n${text}\n`),
): { readonly signal: AbortSignal; off(): void } {
  const abort = new AbortController();
  const on = (): void => {
    if (abort.signal.aborted) process.exit(130);
    say(`${words} Press Ctrl-C again to exit at once.`);
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
