/**
 * Faults shown: one toast with what to do and the buttons that do it; details go to the log. Cancellation is silent.
 */
import { commands as vscodeCommands, type LogOutputChannel } from 'vscode';
import { explain } from './errorWords.js';
import type { Later } from './throttle.js';
import { showErrorMessage } from './toasts.js';

/** Callers of one fault report it within so long; what comes later is another failure, and is shown again. */
const sameFaultMs = 2000;
const realLater: Later = (f, ms) => {
  const timer = setTimeout(f, ms);
  timer.unref();
  return () => clearTimeout(timer);
};

export class Reporter {
  readonly #log: LogOutputChannel;
  readonly #later: Later;
  /** Errors just shown: one that several callers report is one toast. */
  readonly #showing = new Set<string>();
  constructor(log: LogOutputChannel, later: Later = realLater) {
    this.#log = log;
    this.#later = later;
  }

  report(e: unknown, doing?: string): void {
    const x = explain(e, doing);
    if (x.silent) {
      this.#log.debug(`${doing ?? 'work'}: cancelled`);
      return;
    }
    this.#log.error(x.ours && e instanceof Error ? (e.stack ?? e.message) : x.message);
    if (this.#showing.has(x.fault)) return;
    this.#showing.add(x.fault);
    // A toast fades, and its notification may lie in the list unclosed for ever.
    this.#later(() => this.#showing.delete(x.fault), sameFaultMs);
    void showErrorMessage(x.message, ...x.buttons.map((b) => b.title)).then((picked) => {
      const button = x.buttons.find((b) => b.title === picked);
      if (button) void vscodeCommands.executeCommand(button.command);
    });
  }
  /** A promise that is not awaited: its failure is reported. */
  background(work: Promise<unknown>, doing: string): void {
    work.catch((e: unknown) => this.report(e, doing));
  }
}
