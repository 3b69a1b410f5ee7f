import { availableParallelism } from 'node:os';
import { messageOf, type EmbeddedPolicySpec } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { SILENT_MS, ThreadFailures, WatchedThread } from '../../concurrency/watchedThread.js';
import type { Perceived } from './packing.js';
import type { Sight } from './perceive.js';
import type { Looked, LookJob } from './perceptionWorker.js';

export interface LookAheadOptions {
  readonly entry: ProcessEntry;
  readonly spec: EmbeddedPolicySpec;
  /** States of a micro-batch. */
  readonly batch: number;
  readonly silentMs?: number;
  /** Called once, when the thread is not started again. */
  readonly onFailure?: ((why: string) => void) | undefined;
}
type Waiting = (seen: readonly Perceived[] | undefined) => void;

/**
 * A thread that looks at states which a trainer of one thread is going to need, while that one computes a gradient. It
 * has the same graph, so it sees bit by bit what the trainer would see. Starts when it is first asked.
 */
export class LookAhead {
  readonly #o: LookAheadOptions;
  readonly #failures: ThreadFailures;
  #thread: WatchedThread<LookJob, Looked, Waiting> | undefined;
  #id = 0;
  /** The thread has the reader as it is. */
  #told = false;
  #closed = false;

  private constructor(o: LookAheadOptions) {
    this.#o = o;
    this.#failures = new ThreadFailures(o.onFailure);
  }
  /** Undefined on a machine with one processor, where two threads would only take turns. */
  static here(o: LookAheadOptions): LookAhead | undefined {
    return availableParallelism() > 1 ? new LookAhead(o) : undefined;
  }

  get works(): boolean {
    return !this.#closed && !this.#failures.over;
  }
  /** The next look is with other weights. */
  readerChanged(): void {
    this.#told = false;
  }

  /**
   * At most `batch` states, with the reader in `theta` (f32[P]). What comes of it is undefined when the thread could
   * not be started, died or hung.
   */
  look(states: readonly Sight[], theta: Float32Array): Promise<readonly Perceived[] | undefined> | undefined {
    if (!this.works) return undefined;
    return new Promise((resolve) => {
      try {
        this.#thread ??= this.#start();
        this.#thread.ask(
          {
            id: ++this.#id,
            spec: this.#o.spec,
            batch: this.#o.batch,
            states: states.map(({ obs, instruction }) => ({ obs, instruction })),
            theta: this.#told ? undefined : theta,
          },
          resolve,
        );
        this.#told = true;
      } catch (e) {
        this.#failures.failed(messageOf(e));
        resolve(undefined);
      }
    });
  }
  /** Calls under way are answered with undefined. */
  close(): void {
    this.#closed = true;
    this.#thread?.end();
  }

  #start(): WatchedThread<LookJob, Looked, Waiting> {
    this.#told = false;
    return new WatchedThread({
      entry: this.#o.entry,
      role: '__perception',
      silentMs: this.#o.silentMs ?? SILENT_MS,
      onDone: (resolve, { seen, failed }) => {
        if (failed === undefined) this.#failures.worked();
        else this.#failures.failed(failed);
        resolve(seen);
      },
      onEnd: (left, why) => {
        this.#thread = undefined;
        if (why !== undefined) this.#failures.failed(why);
        for (const resolve of left) resolve(undefined);
      },
    });
  }
}
