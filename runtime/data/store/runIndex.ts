import { Worker } from 'node:worker_threads';
import { StudioError, messageOf, internalError } from '../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../concurrency/failures.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { timeLimit } from '../../concurrency/timeLimit.js';
import { IndexEngine } from './indexEngine.js';
import type { SqlValue } from 'sql.js';
import type { IndexStatus, Row } from './indexEngine.js';
import type { IndexOptions } from './indexTrim.js';
import type { IndexPlace, IndexReply, IndexRequest, IndexWorkerData } from './indexWorker.js';
import type { JournalPosition } from './journalReader.js';

export type { IndexStatus, Row } from './indexEngine.js';
export type QueryParams = readonly (string | number | null)[];

/** The index as the store uses it. A query sees everything that was on disk when it was made. */
export interface RunIndex {
  /** How it was opened: from its snapshot, or rebuilt and why. */
  readonly ready: Promise<IndexStatus>;
  /** Reports how far the journal is on disk; the index follows when it has time. */
  durable(position: JournalPosition): void;
  query(sql: string, params?: QueryParams): Promise<Row[]>;
  /** The same as one list per column; for long answers. */
  columns(sql: string, params?: QueryParams): Promise<SqlValue[][]>;
  /** These stay in it, however full it is: people worked on them. */
  hold(rollouts: readonly string[]): Promise<void>;
  /** Bytes written; 0 when nothing had changed. */
  snapshot(): Promise<number>;
  close(o: { snapshot: boolean }): Promise<void>;
}

export interface IndexPaths {
  readonly journal: string;
  readonly file: string;
  readonly until?: JournalPosition;
  readonly options?: IndexOptions;
  /** Called when the index cannot follow the journal; not again until it has worked in between. */
  readonly onFailure?: (why: unknown) => void;
}

const broken = (why: string): StudioError =>
  new StudioError(
    'store.damaged',
    `The run's index stopped: ${why}.`,
    'Delete index.sqlite in the run folder: it is rebuilt from the journal. Nothing is lost.',
  );

const badQuery = (why: string): StudioError => internalError(`The index cannot answer: ${why}.`);

type Body = IndexRequest extends infer R ? (R extends IndexRequest ? Omit<R, 'id'> : never) : never;

/**
 * A worker that waits for a run, by bundle: what it loads is the same for every run, and takes as long as opening the
 * run.
 */
const spares = new Map<string, { readonly worker: Worker; readonly gone: () => void }>();
/** Starts a worker for the next index; without this each starts its own. */
export function prepareIndex({ file }: ProcessEntry): void {
  if (spares.has(file)) return;
  const worker = new Worker(file, { workerData: { role: '__index' } satisfies IndexWorkerData });
  const gone = (): void => {
    if (spares.get(file)?.worker === worker) spares.delete(file);
  };
  spares.set(file, { worker, gone });
  worker.on('error', gone).on('exit', gone).unref();
}
/** Ends the worker that waits. */
export async function dropSpareIndex({ file }: ProcessEntry): Promise<void> {
  await spares.get(file)?.worker.terminate();
}

function startWorker({ file }: ProcessEntry, place: IndexPlace): Worker {
  const spare = spares.get(file);
  if (!spare) return new Worker(file, { workerData: { role: '__index', place } satisfies IndexWorkerData });
  const { worker, gone } = spare;
  gone();
  worker.off('error', gone).off('exit', gone).ref();
  worker.postMessage(place);
  return worker;
}

/** A worker that dies so often without having answered anything is not started again. */
const RESTARTS = 3;
/** How often a request is put to a new worker: the request itself may be what kills them. */
const AGAIN = 2;
/** A worker that is silent for so long while it has work is ended, ms. */
const SILENT_MS = 60_000;
/** Each time that the index goes on it opens a file; a journal grows many times a second. */
const APART_MS = 250;

/**
 * The index in a worker thread, so that neither queries nor exports stall the daemon. A worker that dies or hangs is
 * started again from the last snapshot, and asked again what it did not answer.
 */
export class WorkerIndex implements RunIndex {
  readonly #entry: ProcessEntry;
  readonly #paths: IndexPaths;
  readonly #silentMs: number;
  #worker!: Worker;
  #ready!: Promise<IndexStatus>;
  #waiting = new Map<number, { resolve: (v: unknown) => void; reject: (e: Error) => void }>();
  #id = 0;
  #target: JournalPosition;
  #following = false;
  #failed = false;
  #restarts = 0;
  #closing = false;
  /** Why nobody answers any more: the last worker has ended. */
  #ended: StudioError | undefined;
  /** Clears the time limit of the next answer. */
  #clearLimit: (() => void) | undefined;

  constructor(entry: ProcessEntry, paths: IndexPaths, o: { readonly silentMs?: number } = {}) {
    this.#entry = entry;
    this.#paths = paths;
    this.#silentMs = o.silentMs ?? SILENT_MS;
    this.#target = paths.until ?? 0;
    this.#start();
  }

  get ready(): Promise<IndexStatus> {
    return this.#ready;
  }

  #start(): void {
    const worker = startWorker(this.#entry, {
      journal: this.#paths.journal,
      file: this.#paths.file,
      until: this.#paths.until === undefined ? undefined : this.#target,
      options: this.#paths.options,
    });
    this.#worker = worker;
    const waiting = (this.#waiting = new Map<number, { resolve: (v: unknown) => void; reject: (e: Error) => void }>());
    this.#ready = new Promise((resolve, reject) =>
      waiting.set(0, { resolve: resolve as (v: unknown) => void, reject }),
    );
    // While an answer is due the worker keeps the process alive, else not. A failed start shows in the next query.
    const idle = (): void => {
      if (waiting.size === 0) worker.unref();
    };
    this.#ready.then(idle, idle);
    this.#listen();
    worker.on('message', (r: IndexReply) => {
      if ('alive' in r) return this.#listen();
      const w = waiting.get(r.id);
      waiting.delete(r.id);
      this.#listen();
      if (r.id !== 0) this.#restarts = 0;
      if ('error' in r) w?.reject(r.id === 0 ? broken(r.error) : badQuery(r.error));
      else w?.resolve(r.ok);
    });
    let why = 'its worker ended';
    worker.on('error', (e) => {
      why = e.message;
    });
    worker.on('exit', () => {
      for (const w of waiting.values()) w.reject(broken(why));
      waiting.clear();
      this.#clearLimit?.();
      if (this.#worker !== worker) return;
      // A worker that keeps dying is not restarted for ever; queries then report it.
      if (!this.#closing && this.#restarts++ < RESTARTS) this.#start();
      else this.#ended = broken(why);
    });
  }

  /** The worker that is asked now was heard of: one that has work and stays silent from here on is ended. */
  #listen(): void {
    const worker = this.#worker;
    this.#clearLimit?.();
    if (this.#waiting.size > 0) this.#clearLimit = timeLimit(this.#silentMs, () => void worker.terminate());
  }

  async #ask(body: Body): Promise<unknown> {
    for (let lost = 0; ; lost++) {
      const worker = this.#worker;
      try {
        return await this.#askOnce(body);
      } catch (e) {
        // An answer of the worker is final; where another has taken its place, that one is asked.
        if (this.#closing || this.#worker === worker || lost === AGAIN) throw e;
      }
    }
  }
  async #askOnce(body: Body): Promise<unknown> {
    await this.#ready;
    // A message to a worker that has ended is dropped: nobody would ever answer.
    if (this.#ended) throw this.#ended;
    const id = ++this.#id,
      worker = this.#worker,
      waiting = this.#waiting;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      if (waiting.size === 1) this.#listen();
      worker.ref();
      worker.postMessage({ ...body, id });
    }).finally(() => {
      if (waiting.size === 0) worker.unref();
    });
  }

  durable(position: JournalPosition): void {
    this.#target = Math.max(this.#target, position);
    if (this.#following || this.#closing) return;
    this.#following = true;
    void (async () => {
      try {
        for (let done = 0; done < this.#target && !this.#closing;) {
          done = this.#target;
          await this.#ask({ do: 'advance', until: done });
          this.#failed = false;
          // A query brings the rest with it.
          await new Promise<void>((r) => setTimeout(r, APART_MS).unref());
        }
      } catch (e) {
        if (!this.#failed && !this.#closing) this.#paths.onFailure?.(e);
        this.#failed = true;
      } finally {
        this.#following = false;
      }
    })();
  }
  query(sql: string, params: QueryParams = []): Promise<Row[]> {
    return this.#read('query', sql, params) as Promise<Row[]>;
  }
  columns(sql: string, params: QueryParams = []): Promise<SqlValue[][]> {
    return this.#read('columns', sql, params) as Promise<SqlValue[][]>;
  }
  async #read(how: 'query' | 'columns', sql: string, params: QueryParams): Promise<unknown> {
    const until = this.#target,
      caughtUp = until > 0 ? this.#ask({ do: 'advance', until }) : undefined;
    // Both fail when the worker dies; one of them is reported.
    const [, answer] = await Promise.all([caughtUp, this.#ask({ do: how, sql, params })]);
    return answer;
  }
  async hold(rollouts: readonly string[]): Promise<void> {
    await this.#ask({ do: 'hold', rollouts });
  }
  async snapshot(): Promise<number> {
    const until = this.#target;
    if (until > 0) await this.#ask({ do: 'advance', until });
    return (await this.#ask({ do: 'snapshot' })) as number;
  }
  async close(o: { snapshot: boolean }): Promise<void> {
    if (this.#closing) return;
    const ask = (async () => {
      if (o.snapshot && this.#target > 0) await this.#ask({ do: 'advance', until: this.#target });
      this.#closing = true;
      await this.#ask({ do: 'close', snapshot: o.snapshot });
    })();
    await orUndefined(ask, 'the worker is ended anyway; the next opening catches up');
    this.#closing = true;
    await this.#worker.terminate();
  }
}

/** The index in this process: for short-lived readers and tests, where a thread of its own is not worth its start. */
export class LocalIndex implements RunIndex {
  readonly ready: Promise<IndexStatus>;
  readonly #engine: Promise<IndexEngine>;
  #target: JournalPosition;
  #chain: Promise<unknown> = Promise.resolve();
  constructor(paths: IndexPaths) {
    this.#target = paths.until ?? 0;
    this.#engine = IndexEngine.open(paths.journal, paths.file, paths.until, paths.options);
    this.ready = this.#engine.then((e) => e.status());
    ignoreFailure(this.ready, 'whoever asks the index is told');
  }
  durable(position: JournalPosition): void {
    this.#target = Math.max(this.#target, position);
  }
  query(sql: string, params: QueryParams = []): Promise<Row[]> {
    return this.#read((e) => e.query(sql, params));
  }
  columns(sql: string, params: QueryParams = []): Promise<SqlValue[][]> {
    return this.#read((e) => e.columns(sql, params));
  }
  #read<T>(f: (e: IndexEngine) => T): Promise<T> {
    return this.#do(async (e) => {
      if (this.#target > 0) await e.advance(this.#target);
      try {
        return f(e);
      } catch (err) {
        throw badQuery(messageOf(err));
      }
    });
  }
  hold(rollouts: readonly string[]): Promise<void> {
    return this.#do((e) => Promise.resolve(e.hold(rollouts)));
  }
  snapshot(): Promise<number> {
    return this.#do(async (e) => {
      if (this.#target > 0) await e.advance(this.#target);
      return e.snapshot();
    });
  }
  async close(o: { snapshot: boolean }): Promise<void> {
    if (o.snapshot) await orUndefined(this.snapshot(), 'the next opening catches up from the journal');
    const closed = this.#do((e) => {
      e.close();
      return Promise.resolve();
    });
    await orUndefined(closed, 'an index that could not be opened needs no closing');
  }
  #do<T>(f: (e: IndexEngine) => Promise<T>): Promise<T> {
    const next = this.#chain
      .then(async () => f(await this.#engine))
      .catch((e: unknown) => {
        throw e instanceof StudioError ? e : broken(messageOf(e));
      });
    this.#chain = orUndefined(next, 'its caller hears of it; the next question is asked all the same');
    return next;
  }
}
