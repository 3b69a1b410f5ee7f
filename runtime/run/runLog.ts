import type { DataManager } from '../data/dataManager.js';
import type { Reporter } from './live.js';

/** What a run says of itself, and the first fault of what it does in the background. */
export class RunLog {
  readonly #reporter: Reporter;
  readonly #data: DataManager;
  readonly #onFault: () => void;
  #fault: { readonly error: unknown } | undefined;

  constructor(reporter: Reporter, data: DataManager, onFault: () => void) {
    this.#reporter = reporter;
    this.#data = data;
    this.#onFault = onFault;
  }

  /** For people now, and in the journal for those who come later. */
  note(text: string, data?: Record<string, unknown>): void {
    this.#reporter.note(text, data);
    this.written(this.#data.note({ type: 'log', level: 'info', message: text }));
  }
  /** A write that nobody waits for: what the journal refuses ends the run rather than being lost. */
  written(write: Promise<unknown>): void {
    write.catch((e: unknown) => this.fault(e));
  }
  /** Ends the run; the first fault counts. */
  fault(error: unknown): void {
    this.#fault ??= { error };
    this.#onFault();
  }
  throwFault(): void {
    if (this.#fault) throw this.#fault.error;
  }
}
