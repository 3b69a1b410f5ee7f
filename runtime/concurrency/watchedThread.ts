import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { ProcessEntry, ProcessRole } from './process.js';
import { timeLimit } from './timeLimit.js';

/** A thread without work for so long ends. */
const IDLE_MS = 60_000;
/** A thread that has work and says nothing for so long is ended. */
export const SILENT_MS = 30_000;
/** One thread serves the desktops of this many cores; more than a few threads would idle. */
const CORES_EACH = 8,
  MOST_THREADS = 4;
/** Threads that may fail one after the other before there are no more of them. */
const FAILURES = 3;

/** How many threads make files of screens on this machine. */
export const threadsHere = (): number => Math.min(MOST_THREADS, Math.ceil(availableParallelism() / CORES_EACH));

/** Counts the failures of threads, in a row. `onOver` is told once, when no more are to be started; that is for good. */
export class ThreadFailures {
  readonly #onOver: ((why: string) => void) | undefined;
  #inARow = 0;

  constructor(onOver?: (why: string) => void) {
    this.#onOver = onOver;
  }
  get over(): boolean {
    return this.#inARow >= FAILURES;
  }
  failed(why: string): void {
    if (++this.#inARow === FAILURES) this.#onOver?.(why);
  }
  worked(): void {
    if (!this.over) this.#inARow = 0;
  }
}

export interface WatchedThreadOptions<W, D> {
  readonly entry: ProcessEntry;
  readonly role: ProcessRole;
  readonly silentMs: number;
  /** Called with the answer to a job. */
  readonly onDone: (waiting: W, done: D) => void;
  /**
   * Called when the thread has ended, with the jobs it left undone; `why` it failed, unless it was idle or ended by
   * `end()`.
   */
  readonly onEnd: (left: readonly W[], why: string | undefined) => void;
}

/**
 * A thread that answers jobs by their number. It is ended when it has had no work for a minute, or has work and says nothing;
 * only while it has work does it keep the process alive.
 */
export class WatchedThread<J extends { readonly id: number }, D extends { readonly id: number }, W> {
  readonly #o: WatchedThreadOptions<W, D>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, W>();
  #clearLimit: () => void = () => undefined;
  #ended = false;

  /** Throws where no thread can be started. */
  constructor(o: WatchedThreadOptions<W, D>) {
    this.#o = o;
    this.#worker = new Worker(o.entry.file, { workerData: { role: o.role } });
    let why = 'its thread ended';
    this.#worker.on('message', (done: D) => this.#take(done));
    this.#worker.on('error', (e: Error) => {
      why = e.message;
    });
    // The message is not the answer of any job that could be named, so the thread ends.
    this.#worker.on('messageerror', (e: Error) => this.end(e.message));
    this.#worker.on('exit', () => this.end(why));
    this.#watch();
  }

  /** Jobs under way. */
  get works(): number {
    return this.#waiting.size;
  }
  /** Throws when the job cannot be sent. */
  ask(job: J, waiting: W): void {
    this.#worker.postMessage(job);
    this.#waiting.set(job.id, waiting);
    if (this.#waiting.size === 1) this.#watch();
  }
  /** Sends a message that has no answer. */
  tell(message: unknown): void {
    this.#worker.postMessage(message);
  }
  end(why?: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#clearLimit();
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    void this.#worker.terminate();
    this.#o.onEnd(left, why);
  }

  #take(done: D): void {
    if (this.#ended) return;
    const waiting = this.#waiting.get(done.id);
    this.#waiting.delete(done.id);
    this.#watch();
    if (waiting !== undefined) this.#o.onDone(waiting, done);
  }
  /** Restarts the time limit when the thread was heard of. */
  #watch(): void {
    const works = this.works > 0;
    this.#clearLimit();
    this.#clearLimit = timeLimit(works ? this.#o.silentMs : IDLE_MS, () =>
      this.end(works ? 'its thread does not answer' : undefined),
    );
    if (works) this.#worker.ref();
    else this.#worker.unref();
  }
}
