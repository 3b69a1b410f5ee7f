/**
 * All that commands write (lint): words of others are among it, and none of them steers the terminal. Texts bring their
 * line breaks.
 */
import { printable, printableJson, printableLine } from '../foreign/terminalText.js';

/** Prints the result to standard output. */
export function print(text: string): void {
  process.stdout.write(printable(text));
}
/** Prints JSON to standard output, with a line break; `indent` 0: in one line. */
export function printJson(value: unknown, indent = 2): void {
  process.stdout.write(`${printableJson(JSON.stringify(value, null, indent))}\n`);
}
/** Prints progress and errors to standard error. */
export function tell(text: string): void {
  process.stderr.write(printable(text));
}

const CLEARED = '\r\x1b[2K';
/** A terminal is written to at most so often, ms. */
const SHOWN_MS = 100;

export interface StatusLine {
  /** The newest text is shown, some of those before it may not be. */
  show(text: string): void;
  clear(): void;
}
/** One line that is rewritten in place; where `out` is no terminal, or when `quiet`, nothing: the report comes at the end. */
export function statusLine(quiet = false, out: NodeJS.WriteStream = process.stderr): StatusLine {
  let next = '',
    shown = false,
    last = -Infinity,
    timer: NodeJS.Timeout | undefined;
  const write = (): void => {
    timer = undefined;
    last = performance.now();
    shown = true;
    out.write(CLEARED + printableLine(next).slice(0, Math.max(20, (out.columns ?? 120) - 1)));
  };
  return {
    show(text) {
      if (quiet || !out.isTTY) return;
      next = text;
      const wait = last + SHOWN_MS - performance.now();
      if (wait <= 0 && timer === undefined) write();
      else timer ??= setTimeout(write, wait).unref();
    },
    clear() {
      clearTimeout(timer);
      timer = undefined;
      if (shown) out.write(CLEARED);
      shown = false;
    },
  };
}
