/**
 * A thread that asks model servers. A request of five pictures is a megabyte of base64, an answer some hundred log-probs:
 * with a thousand desktops they are two fifths of what the event loop would have to do.
 */
import { Worker } from 'node:worker_threads';
import { messageOf, StudioError, type RunError } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { ThreadFailures } from '../../concurrency/watchedThread.js';
import { callHere, type ModelCall, type ModelCaller, type ModelReply } from './modelCalls.js';
import type { Picture } from './picture.js';
import { jsonPieces } from './picture.js';
import { LateAnswer, type Piece } from './postJson.js';

/** A part of a body on its way to the thread: text, a file, or where a file is. */
export type SentPiece = string | Uint8Array<ArrayBuffer> | { readonly place: unknown; readonly length: number };
export type ThreadJob = ThreadCall | { readonly cancel: number };
export interface ThreadCall extends Pick<ModelCall, 'url' | 'apiKey' | 'timeoutMs' | 'most' | 'server'> {
  readonly id: number;
  readonly body: readonly SentPiece[];
}
export type ThreadDone = { readonly id: number } & (
  | { readonly reply: ModelReply }
  /** An answer that was refused; the error of a connection, in words; a file that is no longer where it was. */
  | { readonly refused: RunError }
  | { readonly failed: string }
  | { readonly late: string }
  | { readonly fault: 'too long' | 'unreadable' }
);

/** The thread ends a call that takes too long; when it has not for so much longer, it is the thread that hangs. */
const GRACE_MS = 10_000;
/** A thread without calls for so long ends. */
const IDLE_MS = 60_000;

interface Waiting {
  readonly done: (d: ThreadDone) => void;
  readonly failed: (e: Error) => void;
}

export class ModelThread implements ModelCaller {
  readonly #entry: ProcessEntry;
  readonly #graceMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #id = 0;
  readonly #failures: ThreadFailures;
  #closed = false;

  /** `onFailure`: told once, when there are no more threads. */
  constructor(
    entry: ProcessEntry,
    o: { readonly graceMs?: number | undefined; readonly onFailure?: (why: string) => void } = {},
  ) {
    this.#entry = entry;
    this.#graceMs = o.graceMs ?? GRACE_MS;
    this.#failures = new ThreadFailures(o.onFailure);
  }

  async call(c: ModelCall, signal: AbortSignal): Promise<ModelReply> {
    if (this.#closed || this.#failures.over) return callHere.call(c, signal);
    const pieces = jsonPieces(c.body);
    let done = await this.#ask(c, pieces.map(sent), signal);
    // Somebody has moved a file meanwhile: its keeper finds it.
    if ('fault' in done && done.fault === 'unreadable')
      done = await this.#ask(c, await Promise.all(pieces.map(whole)), signal);
    if ('reply' in done) return done.reply;
    if ('refused' in done) {
      const { kind, message, remedy, details } = done.refused;
      throw new StudioError(kind, message, remedy, details === undefined ? {} : { details });
    }
    if ('failed' in done) throw new Error(done.failed);
    if ('late' in done) throw new LateAnswer(done.late);
    throw done.fault === 'too long' ? c.tooLong() : new Error('a screenshot cannot be read');
  }
  /** Calls under way reject; later ones are made in this thread. */
  close(): void {
    this.#closed = true;
    this.#end(new Error('cancelled'));
  }

  #ask(c: ModelCall, body: readonly SentPiece[], signal: AbortSignal): Promise<ThreadDone> {
    return new Promise((resolve, reject) => {
      if (signal.aborted || this.#closed) return reject(new Error('cancelled'));
      const id = ++this.#id,
        { url, apiKey, timeoutMs, most, server } = c;
      const hangs = setTimeout(
        // Answers that arrived while this thread stood still are heard first.
        () => setImmediate(() => this.#waiting.has(id) && this.#fail('does not answer')),
        timeoutMs + this.#graceMs,
      ).unref();
      const over = (): void => {
        clearTimeout(hangs);
        signal.removeEventListener('abort', abort);
        this.#waiting.delete(id);
        this.#rest();
      };
      const abort = (): void => {
        this.#worker?.postMessage({ cancel: id } satisfies ThreadJob);
        over();
        reject(new Error('cancelled'));
      };
      this.#waiting.set(id, {
        done: (d) => {
          this.#failures.worked();
          over();
          resolve(d);
        },
        failed: (e) => {
          over();
          reject(e);
        },
      });
      signal.addEventListener('abort', abort, { once: true });
      try {
        const call: ThreadCall = { id, url, apiKey, timeoutMs, most, server, body };
        this.#running().postMessage(
          call,
          body.flatMap((p) => (p instanceof Uint8Array ? [p.buffer] : [])),
        );
      } catch (e) {
        this.#fail(messageOf(e));
      }
    });
  }
  #running(): Worker {
    clearTimeout(this.#idle);
    this.#idle = undefined;
    this.#worker ??= this.#start();
    this.#worker.ref();
    return this.#worker;
  }
  #start(): Worker {
    const worker = new Worker(this.#entry.file, { workerData: { role: '__models' } });
    let why = 'ended';
    worker.on('message', (d: ThreadDone) => this.#waiting.get(d.id)?.done(d));
    worker.on('error', (e: Error) => {
      why = `failed: ${e.message}`;
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#fail(why);
    });
    return worker;
  }
  /** Lets the process end while the thread has no calls, and ends the thread after a while. */
  #rest(): void {
    if (this.#waiting.size > 0 || !this.#worker) return;
    this.#worker.unref();
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#end(new Error('cancelled')), IDLE_MS).unref();
  }
  #fail(why: string): void {
    const what = `the thread that asks model servers ${why}`;
    this.#failures.failed(what);
    this.#end(new Error(what));
  }
  #end(e: Error): void {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    for (const w of [...this.#waiting.values()]) w.failed(e);
    void worker?.terminate();
  }
}

/** A file in memory is copied once, and the copy handed over. */
const sent = (p: string | Picture): SentPiece =>
  typeof p === 'string'
    ? p
    : p.file instanceof Uint8Array
      ? new Uint8Array(p.file)
      : { place: p.file.place, length: p.length };
const whole = async (p: string | Picture): Promise<SentPiece> =>
  typeof p === 'string' ? p : new Uint8Array(await p.read());

/** Reads a file where it is said to be; what it returns at once is valid until the next call. */
export type ReadPlace = (place: unknown) => Uint8Array | Promise<Uint8Array>;
/** A part as the thread sends it. */
export const received = (p: SentPiece, read: ReadPlace): Piece =>
  typeof p === 'string'
    ? p
    : p instanceof Uint8Array
      ? { length: p.length, read: () => p }
      : { length: p.length, read: () => read(p.place) };
