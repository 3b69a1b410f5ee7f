import { access, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { orUndefined, settled } from '../domain/index.js';
import type { ProcessEntry, ProcessRole } from '../domain/index.js';
import type { ThumbnailDone, ThumbnailJob } from './thumbnailWorker.js';

const ROLE: ProcessRole = '__thumbnails';
/** Thumbnails kept on disk: a few kB each. The least recently used go first, a quarter at once. */
const KEEP = 20_000;
/** An idle worker ends after this long. */
const IDLE_MS = 30_000;

/**
 * Small pictures of frames, made once in a worker thread and kept by content: `<cache>/thumbs/<width>/<2
 * hex>/<hash>.png`.
 */
export class Thumbnails {
  readonly #entry: ProcessEntry;
  readonly #dir: string;
  readonly #making = new Map<string, Promise<boolean>>();
  readonly #waiting = new Map<number, (ok: boolean) => void>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #id = 0;
  #made = 0;
  #sweeping: Promise<void> | undefined;
  constructor(entry: ProcessEntry, cacheDir: string) {
    this.#entry = entry;
    this.#dir = join(cacheDir, 'thumbs');
  }

  /** Paths by hash; a frame that cannot be read has none. */
  async make(
    frames: readonly { readonly hash: string; readonly path: string }[],
    width: number,
  ): Promise<Record<string, string>> {
    const out: Record<string, string> = {};
    await Promise.all(
      frames.map(async ({ hash, path }) => {
        const to = join(this.#dir, String(width), hash.slice(0, 2), `${hash}.png`);
        if (await this.#one(path, to, width)) out[hash] = to;
      }),
    );
    return out;
  }

  async #one(from: string, to: string, width: number): Promise<boolean> {
    if (
      await access(to).then(
        () => true,
        () => false,
      )
    )
      return true;
    let job = this.#making.get(to);
    if (!job) this.#making.set(to, (job = this.#ask({ from, to, width }).finally(() => this.#making.delete(to))));
    return job;
  }
  #ask(job: Omit<ThumbnailJob, 'id'>): Promise<boolean> {
    const worker = (this.#worker ??= this.#start()),
      id = ++this.#id;
    clearTimeout(this.#idle);
    worker.ref();
    return new Promise<boolean>((resolve) => {
      this.#waiting.set(id, resolve);
      worker.postMessage({ ...job, id } satisfies ThumbnailJob);
    });
  }
  #start(): Worker {
    const worker = new Worker(this.#entry.file, { workerData: { role: ROLE } });
    worker.on('message', (d: ThumbnailDone) => {
      this.#done(d.id, d.error === undefined);
    });
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      for (const id of [...this.#waiting.keys()]) this.#done(id, false);
    });
    return worker;
  }
  #done(id: number, ok: boolean): void {
    this.#waiting.get(id)?.(ok);
    this.#waiting.delete(id);
    if (ok && ++this.#made % 1000 === 0)
      this.#sweeping ??= settled(this.#sweep()).finally(() => {
        // A sweep that failed is tried again after the next thousand pictures.
        this.#sweeping = undefined;
      });
    if (this.#waiting.size > 0) return;
    this.#worker?.unref();
    this.#idle = setTimeout(() => {
      void this.close();
    }, IDLE_MS).unref();
  }

  /** Brings the cache back under its bound. */
  async #sweep(): Promise<void> {
    const files = (await readdir(this.#dir, { recursive: true, withFileTypes: true }))
      .filter((e) => e.isFile())
      .map((e) => join(e.parentPath, e.name));
    if (files.length <= KEEP) return;
    const aged: { file: string; at: number }[] = [];
    for (const file of files) {
      const s = await orUndefined(stat(file), 'another window may have removed it');
      if (s) aged.push({ file, at: Math.max(s.atimeMs, s.mtimeMs) });
    }
    aged.sort((a, b) => a.at - b.at);
    for (const { file } of aged.slice(0, aged.length - KEEP + KEEP / 4)) await rm(file, { force: true });
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    for (const id of [...this.#waiting.keys()]) {
      this.#waiting.get(id)?.(false);
      this.#waiting.delete(id);
    }
    await worker?.terminate();
  }
}
