/**
 * Screens as files. A screen of two million pixels takes the event loop ten milliseconds, so threads make it; the file that
 * is kept is the one that a model is shown.
 */
import { createHash, type Hash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { messageOf, type Frame, type ProcessEntry } from '../../domain/index.js';
import { encodePng, toScanlines, type Compress } from './png.js';

export interface ScreenFile {
  /** Of width, height and pixels (`FrameRef.hash`). */
  readonly hash: string;
  png(): Promise<Buffer>;
}
/** What makes files of screens. */
export interface ScreenEncoder {
  /** The frame must not change before it resolves. */
  encode(f: Frame): Promise<ScreenFile>;
  close(): void;
}

/** To a thread. `pixels` are BGRX; memory that both sides see is not copied. */
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
 * In this thread: pixels in turns with whatever else it does. They are compressed once somebody asks for the file, on the thread pool
 * unless `compress` says otherwise.
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

/** For a store without threads. */
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

/** A thread makes 70 screens of two million pixels a second, and 600 of 640x400: more than desktops of so many cores show. */
const CORES_EACH = 8,
  MOST_THREADS = 4;
/** A thread without work for so long ends. */
const IDLE_MS = 60_000;
/** A thread that has work and says nothing for so long is ended. */
const SILENT_MS = 30_000;
/** Threads that may fail before there are no more of them. */
const FAILURES = 3;

interface Waiting {
  readonly frame: Frame;
  readonly resolve: (file: ScreenFile | Promise<ScreenFile>) => void;
}
interface Thread {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Threads that are started when there is work. What a thread leaves undone, because it could not be started, died, hung or failed, is
 * done in this one instead.
 */
export class ScreenThreads implements ScreenEncoder {
  readonly #entry: ProcessEntry;
  readonly #most: number;
  readonly #silentMs: number;
  readonly #onFailure: ((why: string) => void) | undefined;
  readonly #threads = new Set<Thread>();
  /** The store and the policy ask for the same one. */
  readonly #made = new WeakMap<Frame, Promise<ScreenFile>>();
  #id = 0;
  #failures = 0;
  #closed = false;

  /** `onFailure`: told once, when there are no more threads. */
  constructor(
    entry: ProcessEntry,
    o: { readonly threads?: number; readonly silentMs?: number; readonly onFailure?: (why: string) => void } = {},
  ) {
    this.#entry = entry;
    this.#most = o.threads ?? Math.min(MOST_THREADS, Math.ceil(availableParallelism() / CORES_EACH));
    this.#silentMs = o.silentMs ?? SILENT_MS;
    this.#onFailure = o.onFailure;
  }

  encode(frame: Frame): Promise<ScreenFile> {
    let made = this.#made.get(frame);
    if (!made) this.#made.set(frame, (made = this.#ask(frame)));
    return made;
  }
  /** What is under way is finished here; later screens are made here, too. */
  close(): void {
    this.#closed = true;
    for (const t of this.#threads) this.#end(t);
  }

  #ask(frame: Frame): Promise<ScreenFile> {
    if (this.#closed || this.#failures >= FAILURES) return screenFile(frame);
    return new Promise((resolve) => {
      const id = ++this.#id;
      let thread: Thread | undefined;
      try {
        thread = this.#idlest();
        thread.waiting.set(id, { frame, resolve });
        const { width, height, data } = frame,
          // All of the memory that a view lies in would be copied.
          pixels = isShared(data) || data.byteLength === data.buffer.byteLength ? data : new Uint8Array(data);
        thread.worker.postMessage({ id, width, height, pixels } satisfies ScreenJob);
        if (thread.waiting.size === 1) this.#watch(thread);
      } catch (e) {
        // No thread, or no memory for a copy.
        thread?.waiting.delete(id);
        this.#failed(messageOf(e));
        resolve(screenFile(frame));
      }
    });
  }
  #idlest(): Thread {
    let best: Thread | undefined;
    for (const t of this.#threads) if (!best || t.waiting.size < best.waiting.size) best = t;
    return best && (best.waiting.size === 0 || this.#threads.size >= this.#most) ? best : this.#start();
  }
  #start(): Thread {
    const worker = new Worker(this.#entry.file, { workerData: { role: '__screens' } }),
      thread: Thread = { worker, waiting: new Map(), timer: undefined };
    let why = 'its thread ended';
    this.#threads.add(thread);
    worker.on('message', (done: ScreenDone) => this.#take(thread, done));
    worker.on('error', (e: Error) => {
      why = e.message;
    });
    worker.on('exit', () => {
      if (!this.#threads.has(thread)) return;
      this.#failed(why);
      this.#end(thread);
    });
    return thread;
  }
  #take(thread: Thread, done: ScreenDone): void {
    const w = thread.waiting.get(done.id);
    thread.waiting.delete(done.id);
    this.#watch(thread);
    if (!w) return;
    if ('error' in done) return w.resolve(screenFile(w.frame));
    const png = Promise.resolve(Buffer.from(done.png.buffer, done.png.byteOffset, done.png.byteLength));
    w.resolve({ hash: done.hash, png: () => png });
  }
  /** From the last that was heard of it on. Only a thread that has work keeps the process alive. */
  #watch(thread: Thread): void {
    const works = thread.waiting.size > 0;
    clearTimeout(thread.timer);
    const timer = setTimeout(
      // What it said while this thread stood still is heard first.
      () => setImmediate(() => thread.timer === timer && this.#silent(thread, works)),
      works ? this.#silentMs : IDLE_MS,
    ).unref();
    thread.timer = timer;
    if (works) thread.worker.ref();
    else thread.worker.unref();
  }
  #silent(thread: Thread, worked: boolean): void {
    if (!this.#threads.has(thread)) return;
    if (!worked && thread.waiting.size > 0) return this.#watch(thread);
    if (worked) this.#failed('its thread does not answer');
    this.#end(thread);
  }
  #failed(why: string): void {
    if (++this.#failures === FAILURES) this.#onFailure?.(why);
  }
  #end(thread: Thread): void {
    clearTimeout(thread.timer);
    this.#threads.delete(thread);
    const left = [...thread.waiting.values()];
    thread.waiting.clear();
    for (const { frame, resolve } of left) resolve(screenFile(frame));
    void thread.worker.terminate();
  }
}

const isShared = (b: Buffer): boolean => (b.buffer as ArrayBufferLike) instanceof SharedArrayBuffer;
