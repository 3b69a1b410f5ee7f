import type { DataManager } from '../data/dataManager.js';
import type { Reporter } from './reporter.js';

/** The messages of a run, and the first fault of its background work. */
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

  /** Reports to people now, and records in the journal for later. */
  note(text: string, data?: Record<string, unknown>): void {
    this.#reporter.note(text, data);
    this.mustSucceed(this.#data.note({ type: 'log', level: 'info', message: text }));
  }
  /** A write that nothing awaits: when the journal refuses it, the run ends rather than lose the event. */
  mustSucceed(write: Promise<unknown>): void {
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
