import { access, readdir, rm, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FramePlace } from '../data/store/frames.js';
import { orUndefined, settled } from '../concurrency/failures.js';
import type { ProcessEntry, ProcessRole } from '../concurrency/process.js';
import type { ThumbnailDone, ThumbnailJob } from './thumbnailWorker.js';

const ROLE: ProcessRole = '__thumbnails';
/** Thumbnails kept on disk: a few kB each. The least recently used go first, a quarter at once. */
const KEEP = 20_000;
/** Frames as they are take so much more room than thumbnails, and are counted so. */
const WEIGHT = 20;
/** An idle worker ends after this long. */
const IDLE_MS = 30_000;

type Picture = Pick<ThumbnailJob, 'to' | 'width'>;

/**
 * Small pictures of frames, made once in a worker thread and kept by content: `<cache>/thumbs/<width>/<2
 * hex>/<hash>.png`; width 0 holds frames as they are, which a page cannot read out of a pack.
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
    hashes: readonly string[],
    placeOf: (hash: string) => Promise<FramePlace | undefined>,
    width: number,
  ): Promise<Record<string, string>> {
    const out: Record<string, string> = {};
    await Promise.all(
      hashes.map(async (hash) => {
        const to = join(this.#dir, String(width), hash.slice(0, 2), `${hash}.png`);
        if (await this.#one({ to, width }, () => placeOf(hash))) out[hash] = to;
      }),
    );
    return out;
  }

  async #one(picture: Picture, place: () => Promise<FramePlace | undefined>): Promise<boolean> {
    const { to } = picture;
    if (
      await access(to).then(
        () => true,
        () => false,
      )
    )
      return true;
    let job = this.#making.get(to);
    if (!job) {
      job = this.#draw(picture, place).finally(() => this.#making.delete(to));
      this.#making.set(to, job);
    }
    return job;
  }
  async #draw(picture: Picture, place: () => Promise<FramePlace | undefined>): Promise<boolean> {
    const from = await place();
    if (!from) return false;
    if (await this.#ask({ ...picture, from })) return true;
    // Whoever tidies up may have moved it in between.
    const now = await place();
    return !!now && (now.file !== from.file || now.at !== from.at) && this.#ask({ ...picture, from: now });
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
    if (ok && ++this.#made % 200 === 0 && !this.#sweeping)
      this.#sweeping = settled(this.#sweep()).finally(() => {
        // A sweep that failed is tried again after the next pictures.
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
    const whole = join(this.#dir, '0', sep),
      weight = (file: string): number => (file.startsWith(whole) ? WEIGHT : 1),
      files = (await readdir(this.#dir, { recursive: true, withFileTypes: true }))
        .filter((e) => e.isFile())
        .map((e) => join(e.parentPath, e.name));
    let over = files.reduce((n, f) => n + weight(f), 0) - KEEP;
    if (over <= 0) return;
    over += KEEP / 4;
    const aged: { file: string; at: number }[] = [];
    for (const file of files) {
      const s = await orUndefined(stat(file), 'another window may have removed it');
      if (s) aged.push({ file, at: Math.max(s.atimeMs, s.mtimeMs) });
    }
    aged.sort((a, b) => a.at - b.at);
    for (const { file } of aged) {
      if (over <= 0) return;
      over -= weight(file);
      await rm(file, { force: true });
    }
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
