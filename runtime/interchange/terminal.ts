import { printableLine } from '../domain/terminalText.js';

/** One line rewritten in place on a terminal; elsewhere nothing, since the report comes at the end. */
export function progressLine(
  quiet: boolean,
  out: NodeJS.WriteStream = process.stderr,
): { show(text: string): void; clear(): void } {
  let shown = false,
    last = 0;
  return {
    show(text) {
      const now = performance.now();
      if (quiet || !out.isTTY || now - last < 100) return;
      last = now;
      shown = true;
      out.write(`\r\x1b[2K${printableLine(text).slice(0, Math.max(20, (out.columns ?? 120) - 1))}`);
    },
    clear() {
      if (shown) {
        out.write('\r\x1b[2K');
        shown = false;
      }
    },
  };
}

/** The first Ctrl-C or SIGTERM stops cleanly, the second at once. */
export function onInterrupt(words: string): { readonly signal: AbortSignal; off(): void } {
  const abort = new AbortController();
  const on = (): void => {
    if (abort.signal.aborted) process.exit(130);
    process.stderr.write(`\n${words}\n`);
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
