import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { ProcessEntry, Size } from '../../domain/index.js';
import type { FramebufferDone, FramebufferJob } from './framebufferWorker.js';

/** A thread makes 300 files a second of screens of two million pixels that changed little, and 60 of new ones. */
const CORES_EACH = 8,
  MOST_THREADS = 4;
/** A thread without work for so long ends, and with it the pixels that it keeps. */
const IDLE_MS = 60_000;
/** A thread that has work and says nothing for so long is ended. */
const SILENT_MS = 30_000;
/** Threads that may fail before there are no more of them. */
const FAILURES = 3;

/** Where a screen is read: a file that is open in this process. */
export interface OpenFramebuffer {
  readonly fd: number;
  readonly size: Size;
  readonly offset: number;
  readonly bytesPerLine: number;
}
type Answer = Omit<FramebufferDone, 'id'>;
interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, (answer: Answer | undefined) => void>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Threads that read the framebuffers of desktops on this machine and make files of them: the main thread touches no pixel. They start
 * when there is work. A screen is always read by the same thread, which knows its last picture.
 */
export class FramebufferThreads {
  readonly #entry: ProcessEntry;
  readonly #silentMs: number;
  readonly #threads: (Thread | undefined)[];
  #screens = 0;
  #id = 0;
  #failures = 0;
  #closed = false;

  constructor(entry: ProcessEntry, o: { readonly threads?: number; readonly silentMs?: number } = {}) {
    this.#entry = entry;
    this.#silentMs = o.silentMs ?? SILENT_MS;
    const most = o.threads ?? Math.min(MOST_THREADS, Math.ceil(availableParallelism() / CORES_EACH));
    this.#threads = Array.from({ length: most }, () => undefined);
  }

  /** A number for a screen, until `forget`. */
  screen(): number {
    return this.#screens++;
  }

  /**
   * The screen as it is now; without a file in the answer it is the one of the last answer. undefined when no thread
   * can make it: it died, hung or could not be started.
   */
  encode(screen: number, from: OpenFramebuffer): Promise<Answer | undefined> {
    const place = screen % this.#threads.length;
    if (this.#closed || this.#failures >= FAILURES) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const id = ++this.#id;
      let thread: Thread | undefined;
      try {
        thread = this.#threads[place] ??= this.#start(place);
        thread.waiting.set(id, resolve);
        thread.worker.postMessage({ id, screen, ...from } satisfies FramebufferJob);
        if (thread.waiting.size === 1) this.#watch(place, thread);
      } catch {
        thread?.waiting.delete(id);
        this.#failures++;
        resolve(undefined);
      }
    });
  }
  forget(screen: number): void {
    this.#threads[screen % this.#threads.length]?.worker.postMessage({ forget: screen } satisfies FramebufferJob);
  }
  /** What is under way is answered with nothing. */
  close(): void {
    this.#closed = true;
    this.#threads.forEach((t, place) => t && this.#end(place, t));
  }

  #start(place: number): Thread {
    const worker = new Worker(this.#entry.file, { workerData: { role: '__framebuffers' } }),
      thread: Thread = { worker, waiting: new Map(), timer: undefined };
    worker.on('message', ({ id, ...answer }: FramebufferDone) => {
      const resolve = thread.waiting.get(id);
      thread.waiting.delete(id);
      this.#watch(place, thread);
      resolve?.(answer);
    });
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (this.#threads[place] !== thread) return;
      this.#failures++;
      this.#end(place, thread);
    });
    return thread;
  }
  /** From the last that was heard of it on. Only a thread that has work keeps the process alive. */
  #watch(place: number, thread: Thread): void {
    const works = thread.waiting.size > 0;
    clearTimeout(thread.timer);
    const timer = setTimeout(
      // What it said while this thread stood still is heard first.
      () => setImmediate(() => thread.timer === timer && this.#silent(place, thread, works)),
      works ? this.#silentMs : IDLE_MS,
    ).unref();
    thread.timer = timer;
    if (works) thread.worker.ref();
    else thread.worker.unref();
  }
  #silent(place: number, thread: Thread, worked: boolean): void {
    if (this.#threads[place] !== thread) return;
    if (!worked && thread.waiting.size > 0) return this.#watch(place, thread);
    if (worked) this.#failures++;
    this.#end(place, thread);
  }
  #end(place: number, thread: Thread): void {
    clearTimeout(thread.timer);
    if (this.#threads[place] === thread) this.#threads[place] = undefined;
    const left = [...thread.waiting.values()];
    thread.waiting.clear();
    void thread.worker.terminate();
    for (const resolve of left) resolve(undefined);
  }
}
