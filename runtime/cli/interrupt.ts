import { tell } from './output.js';

/** A closed terminal or connection (SIGHUP) stops a command as Ctrl-C does. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
let asked = false;
/** Whether this process runs a command that people stop with Ctrl-C: it goes on when nobody reads its output. */
export const endsByInterrupt = (): boolean => asked || process.listenerCount('SIGINT') > 0;

/**
 * The first Ctrl-C, SIGTERM or SIGHUP stops cleanly, and says so by `say`; the second exits at once, unless it is a
 * SIGHUP: of a closed terminal, kernel and shell each send one.
 */
export function onInterrupt(
  words: string,
  say = (text: string): void => tell(`\n${text}\n`),
): { readonly signal: AbortSignal; off(): void } {
  const abort = new AbortController();
  const on = (s: NodeJS.Signals): void => {
    if (abort.signal.aborted) {
      if (s === 'SIGHUP') return;
      process.exit(130);
    }
    say(`${words} Press Ctrl-C again to exit at once.`);
    abort.abort();
  };
  asked = true;
  for (const s of SIGNALS) process.on(s, on);
  return {
    signal: abort.signal,
    off: () => {
      for (const s of SIGNALS) process.off(s, on);
    },
  };
}
