/**
 * All that commands write (lint): words of others are among it, and none of them steers the terminal. Texts bring their
 * line breaks.
 */
import { printable, printableJson, printableLine } from '../domain/terminalText.js';

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
/** A line of standard error that is rewritten in place; `show` and `clear` do nothing where that is no terminal. */
export const statusOnTerminal = {
  show(text: string): void {
    const { stderr } = process;
    if (stderr.isTTY) stderr.write(CLEARED + printableLine(text).slice(0, Math.max(20, (stderr.columns ?? 100) - 1)));
  },
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write(CLEARED);
  },
};
