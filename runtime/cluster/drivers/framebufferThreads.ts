import { availableParallelism } from 'node:os';
import type { ProcessEntry, Size } from '../../domain/index.js';
import { SILENT_MS, WatchedThread } from '../../domain/watchedThread.js';
import type { FramebufferAsked, FramebufferDone, FramebufferJob } from './framebufferWorker.js';

/** A thread makes some 200 files a second of screens of two million pixels that changed little. */
const CORES_EACH = 8,
  MOST_THREADS = 4;
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
type Thread = WatchedThread<FramebufferAsked, FramebufferDone, (answer: Answer | undefined) => void>;

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
      try {
        (this.#threads[place] ??= this.#start(place)).ask({ id, screen, ...from }, resolve);
      } catch {
        this.#failures++;
        resolve(undefined);
      }
    });
  }
  forget(screen: number): void {
    this.#threads[screen % this.#threads.length]?.tell({ forget: screen } satisfies FramebufferJob);
  }
  /** What is under way is answered with nothing. */
  close(): void {
    this.#closed = true;
    for (const t of this.#threads) t?.end();
  }

  #start(place: number): Thread {
    return new WatchedThread({
      entry: this.#entry,
      role: '__framebuffers',
      silentMs: this.#silentMs,
      onDone: (resolve, { id: _, ...answer }) => resolve(answer),
      onEnd: (left, why) => {
        this.#threads[place] = undefined;
        if (why !== undefined) this.#failures++;
        for (const resolve of left) resolve(undefined);
      },
    });
  }
}
