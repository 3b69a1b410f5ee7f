import { messageOf } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { ThreadFailures, threadsHere, WatchedThread } from '../../concurrency/watchedThread.js';
import type { FramebufferAsked, FramebufferDone, FramebufferJob } from './framebufferWorker.js';

/** A file takes milliseconds, or a second where the X server does not answer. Well under what a desktop has to answer (rollout/desktopGuard.ts): a thread that hangs is no fault of it. */
const SILENT_MS = 8_000;

/** The open file that a screen is read from. */
export type OpenFramebuffer = Omit<FramebufferAsked, 'id' | 'screen'>;
export interface FramebufferThreadsOptions {
  readonly entry: ProcessEntry;
  /** Default: by the machine's processors. */
  readonly threads?: number;
  readonly silentMs?: number;
  /** Called once for each thread that is not started again. */
  readonly onFailure?: (why: string) => void;
}
type Answer = Omit<FramebufferDone, 'id'>;
type Thread = WatchedThread<FramebufferAsked, FramebufferDone, (answer: Answer | undefined) => void>;

/**
 * Threads that read the framebuffers of desktops on this machine and make files of them, some 200 a second of screens of
 * two million pixels that changed little: the main thread touches no pixel. They start when there is work. A screen is
 * always read by the same thread, which knows its last picture.
 */
export class FramebufferThreads {
  readonly #o: FramebufferThreadsOptions;
  readonly #threads: (Thread | undefined)[];
  #screens = 0;
  #id = 0;
  /** Failures of each thread: its screens cannot move to another one. */
  readonly #failures: readonly ThreadFailures[];
  #closed = false;

  constructor(o: FramebufferThreadsOptions) {
    this.#o = o;
    this.#threads = Array.from({ length: o.threads ?? threadsHere() }, () => undefined);
    this.#failures = this.#threads.map(() => new ThreadFailures(o.onFailure));
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
    if (this.#closed || this.#failures[place]!.over) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const id = ++this.#id;
      try {
        (this.#threads[place] ??= this.#start(place)).ask({ id, screen, ...from }, resolve);
      } catch (e) {
        this.#failures[place]!.failed(messageOf(e));
        resolve(undefined);
      }
    });
  }
  forget(screen: number): void {
    this.#threads[screen % this.#threads.length]?.tell({ forget: screen } satisfies FramebufferJob);
  }
  /** Calls under way are answered with undefined. */
  close(): void {
    this.#closed = true;
    for (const t of this.#threads) t?.end();
  }

  #start(place: number): Thread {
    return new WatchedThread({
      entry: this.#o.entry,
      role: '__framebuffers',
      silentMs: this.#o.silentMs ?? SILENT_MS,
      onDone: (resolve, { id: _, ...answer }) => {
        if (!answer.failed) this.#failures[place]!.worked();
        resolve(answer);
      },
      onEnd: (left, why) => {
        this.#threads[place] = undefined;
        if (why !== undefined) this.#failures[place]!.failed(why);
        for (const resolve of left) resolve(undefined);
      },
    });
  }
}
