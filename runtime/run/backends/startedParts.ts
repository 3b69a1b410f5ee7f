import { StudioError } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { endsWithin } from '../stopping.js';

/** How long one part may take to close; a part that hangs must not keep the run from ending. */
const CLOSE_MS = 15_000;

/** The parts that have been started, to be closed in the reverse order. */
export class StartedParts {
  readonly #signal: AbortSignal;
  readonly #closers: (() => Promise<unknown>)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(close: () => Promise<unknown>): void {
    this.#closers.push(close);
  }

  /** Throws `cancelled` when the start has been cancelled. */
  throwIfCancelled(): void {
    if (this.#signal.aborted) throw startStopped();
  }

  async close(): Promise<void> {
    for (const c of this.#closers.splice(0).reverse())
      await orUndefined(endsWithin(CLOSE_MS, c()), 'the others are closed all the same, and the run has ended');
  }
}

export const startStopped = (cause?: unknown): StudioError =>
  new StudioError(
    'cancelled',
    'The run was stopped while it was starting.',
    'Start it again when you are ready.',
    cause === undefined ? {} : { cause },
  );
