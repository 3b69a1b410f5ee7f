/**
 * Screens as files. A screen of two million pixels takes the event loop ten milliseconds, so threads make it; the file that
 * is kept is the one that a model is shown.
 */
import { createHash, type Hash } from 'node:crypto';
import { messageOf, type Frame } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { SILENT_MS, ThreadFailures, threadsHere, WatchedThread } from '../../concurrency/watchedThread.js';
import { encodePng, toScanlines, type Compress } from './png.js';

export interface ScreenFile {
  /** Hash of width, height and pixels (`FrameRef.hash`). */
  readonly hash: string;
  png(): Promise<Buffer>;
}
/** Makes files of screens. */
export interface ScreenEncoder {
  /** The frame must not change before it resolves. */
  encode(f: Frame): Promise<ScreenFile>;
  close(): void;
}

/** A message to the thread. `pixels` are BGRX; memory that both sides see is not copied. */
export interface ScreenJob {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}
export type ScreenDone =
  | { readonly id: number; readonly hash: string; readonly png: Uint8Array }
  | { readonly id: number; readonly error: string };

/** A new hash, fed with width and height (little-endian u32 each); RGB follows. */
export function pixelHash(width: number, height: number): Hash {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(width, 0);
  head.writeUInt32LE(height, 4);
  return createHash('sha256').update(head);
}

/**
 * Encodes in this thread, yielding to the event loop. The pixels are compressed once somebody asks for the file, on the
 * thread pool unless `compress` says otherwise.
 */
export async function screenFile(
  { data, width, height }: Omit<Frame, 'capturedAt'>,
  compress?: Compress,
): Promise<ScreenFile> {
  const hash = pixelHash(width, height),
    scanlines: { now?: Buffer } = { now: await toScanlines(data, width, height, (rgb) => hash.update(rgb)) };
  let png: Promise<Buffer> | undefined;
  const make = (): Promise<Buffer> => {
    const raw = scanlines.now!;
    // Whoever keeps the file does not keep them.
    delete scanlines.now;
    return encodePng(raw, width, height, compress);
  };
  return { hash: hash.digest('hex'), png: () => (png ??= make()) };
}

/** Encodes on the calling thread. */
export class ScreensHere implements ScreenEncoder {
  /** The store and the policy ask for the same one. */
  readonly #made = new WeakMap<Frame, Promise<ScreenFile>>();

  encode(frame: Frame): Promise<ScreenFile> {
    let made = this.#made.get(frame);
    if (!made) this.#made.set(frame, (made = screenFile(frame)));
    return made;
  }
  close(): void {
    // Nothing is kept.
  }
}

interface Waiting {
  readonly frame: Frame;
  readonly resolve: (file: ScreenFile | Promise<ScreenFile>) => void;
}
type Thread = WatchedThread<ScreenJob, ScreenDone, Waiting>;

/**
 * Threads that are started when there is work: one makes 70 screens of two million pixels a second, and 600 of 640x400.
 * What a thread leaves undone, because it could not be started, died, hung or failed, is done in this one instead.
 */
export class ScreenThreads implements ScreenEncoder {
  readonly #entry: ProcessEntry;
  readonly #most: number;
  readonly #silentMs: number;
  readonly #failures: ThreadFailures;
  readonly #threads = new Set<Thread>();
  /** The store and the policy ask for the same one. */
  readonly #made = new WeakMap<Frame, Promise<ScreenFile>>();
  #id = 0;
  #closed = false;

  /** `onFailure`: told once, when there are no more threads. */
  constructor(
    entry: ProcessEntry,
    o: { readonly threads?: number; readonly silentMs?: number; readonly onFailure?: (why: string) => void } = {},
  ) {
    this.#entry = entry;
    this.#most = o.threads ?? threadsHere();
    this.#silentMs = o.silentMs ?? SILENT_MS;
    this.#failures = new ThreadFailures(o.onFailure);
  }

  encode(frame: Frame): Promise<ScreenFile> {
    let made = this.#made.get(frame);
    if (!made) this.#made.set(frame, (made = this.#ask(frame)));
    return made;
  }
  /** Screens that are under way, and later ones, are made in this thread. */
  close(): void {
    this.#closed = true;
    for (const t of this.#threads) t.end();
  }

  #ask(frame: Frame): Promise<ScreenFile> {
    if (this.#closed || this.#failures.over) return screenFile(frame);
    return new Promise((resolve) => {
      const id = ++this.#id;
      try {
        const { width, height, data } = frame,
          // All of the memory that a view lies in would be copied.
          pixels = isShared(data) || data.byteLength === data.buffer.byteLength ? data : new Uint8Array(data);
        this.#idlest().ask({ id, width, height, pixels }, { frame, resolve });
      } catch (e) {
        // No thread could be started, or there was no memory for a copy.
        this.#failures.failed(messageOf(e));
        resolve(screenFile(frame));
      }
    });
  }
  #idlest(): Thread {
    let best: Thread | undefined;
    for (const t of this.#threads) if (!best || t.works < best.works) best = t;
    return best && (best.works === 0 || this.#threads.size >= this.#most) ? best : this.#start();
  }
  #start(): Thread {
    const thread: Thread = new WatchedThread<ScreenJob, ScreenDone, Waiting>({
      entry: this.#entry,
      role: '__screens',
      silentMs: this.#silentMs,
      onDone: (w, done) => {
        if ('error' in done) return w.resolve(screenFile(w.frame));
        this.#failures.worked();
        const png = Promise.resolve(Buffer.from(done.png.buffer, done.png.byteOffset, done.png.byteLength));
        w.resolve({ hash: done.hash, png: () => png });
      },
      onEnd: (left, why) => {
        this.#threads.delete(thread);
        if (why !== undefined) this.#failures.failed(why);
        for (const { frame, resolve } of left) resolve(screenFile(frame));
      },
    });
    this.#threads.add(thread);
    return thread;
  }
}

const isShared = (b: Buffer): boolean => (b.buffer as ArrayBufferLike) instanceof SharedArrayBuffer;
