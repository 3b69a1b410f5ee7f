import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { nextTurn } from '../../concurrency/turns.js';
import { folderInside } from '../../files/folderParts.js';
import { openForeign } from '../../files/foreignFile.js';
import { nameOf, packName, type FramePacks, type Pack } from './framePacks.js';
import { syncDir } from './journal.js';
import { contentsOf, headBytes, mostFrames, recordHead, type Packed } from './packRecord.js';
import type { DiskRoom } from './room.js';

export interface AppenderOptions {
  /** A pack that has reached this many bytes is closed and a new one begun. */
  readonly packBytes: number;
  /** Force each group to disk before it counts. */
  readonly sync: boolean;
  readonly room: DiskRoom;
}
interface Pending {
  readonly name: Buffer;
  readonly head: Buffer;
  readonly frame: Buffer;
  /** When it was handed in, `performance.now()`. */
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (e: unknown) => void;
}
/** Bytes and frames of one write. */
const GROUP_BYTES = 16 << 20,
  GROUP_FRAMES = 256;
/** A file that nothing was added to for so long is closed; it is opened again for the next frame. */
const IDLE_MS = 5000;

/**
 * Adds frames to a pack file of its own: no two writers share one, whoever they are, so they need no lock, and nothing
 * is ever cut off a file. Frames that come in one turn of the event loop, and those that come while a write is under way,
 * share the next write and its datasync. What the disk does not keep up with waits in memory, a frame for each of those
 * who wait for one.
 */
export class FrameAppender {
  readonly #packs: FramePacks;
  readonly #o: AppenderOptions;
  #pending: Pending[] = [];
  /** Handed in, and not pending yet. */
  readonly #coming = new Set<Promise<Buffer>>();
  #flushing: Promise<void> | undefined;
  /** `since` of the oldest frame of the write under way. */
  #writing: number | undefined;
  #pack: Pack | undefined;
  #file: FileHandle | undefined;
  #inode = 0;
  /** Names of the file when it was made: some file systems say 0. */
  #links = 0;
  /** Frames of the open pack. */
  #frames: Packed[] = [];
  #idle: NodeJS.Timeout | undefined;
  #syncs = 0;
  readonly #listeners = new Set<() => void>();

  constructor(packs: FramePacks, o: AppenderOptions) {
    this.#packs = packs;
    this.#o = o;
  }
  /** ms since the oldest frame that is not on disk was handed in; 0 when all are. */
  get behindMs(): number {
    const oldest = this.#writing ?? this.#pending[0]?.since;
    return oldest === undefined ? 0 : performance.now() - oldest;
  }
  /** Writes so far, each with one datasync. */
  get syncs(): number {
    return this.#syncs;
  }
  /** Whether frames are still being added to this pack. */
  adds(pack: Pack): boolean {
    return pack === this.#pack;
  }
  /** Whether a write waits for room on the disk. */
  get full(): boolean {
    return this.#o.room.full;
  }
  /** Called after each write. */
  onDurable(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when the frame is on disk. Rejects with Node's errors; the next frame is tried anew. */
  async append(hash: string, frame: Buffer): Promise<void> {
    const name = nameOf(hash),
      coming = recordHead(name, frame);
    this.#coming.add(coming);
    const head = await coming.finally(() => this.#coming.delete(coming));
    return new Promise((resolve, reject) => {
      this.#pending.push({ name, head, frame, since: performance.now(), resolve, reject });
      this.#start();
    });
  }
  #start(): void {
    this.#flushing ??= nextTurn().then(() => this.#flush());
  }
  /** Waits for what was handed in. The pack gets its contents; the next frame begins another. */
  async close(): Promise<void> {
    while (this.#coming.size > 0 || this.#flushing) {
      await Promise.allSettled([...this.#coming]);
      await this.#flushing;
    }
    // Frames that come in meanwhile are written when the pack is closed.
    await (this.#flushing = this.#finish());
  }
  async #finish(): Promise<void> {
    clearTimeout(this.#idle);
    const pack = this.#pack;
    if (pack)
      await orUndefined(
        this.#opened(pack).then((same) => (same ? this.#seal() : undefined)),
        'it is read without its contents, too',
      );
    await this.#leave();
    this.#flushing = undefined;
    if (this.#pending.length > 0) this.#start();
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#idle);
    while (this.#pending.length > 0) {
      const group = this.#next();
      this.#writing = group[0]!.since;
      try {
        await this.#o.room.write(() => this.#write(group));
        for (const p of group) p.resolve();
      } catch (e) {
        // After a failed write the end of the file is unknown: nothing is added to it any more.
        await this.#leave();
        for (const p of group) p.reject(e);
      }
      this.#writing = undefined;
      for (const l of [...this.#listeners]) l();
    }
    this.#flushing = undefined;
    this.#idle = setTimeout(() => void this.#rest(), IDLE_MS).unref();
  }
  #next(): Pending[] {
    let n = 0,
      bytes = 0;
    while (n < this.#pending.length && n < GROUP_FRAMES && (n === 0 || bytes < GROUP_BYTES))
      bytes += this.#pending[n++]!.frame.length;
    return this.#pending.splice(0, n);
  }

  /** All of them, or none: what did not fit is cut off again. */
  async #write(group: readonly Pending[]): Promise<void> {
    for (;;) {
      const pack = await this.#writable(),
        file = this.#file!,
        start = pack.size;
      let at = start;
      const frames = group.map(({ name, frame }): Packed => {
          const f = { name, at, bytes: frame.length };
          at += headBytes + frame.length;
          return f;
        }),
        parts = group.flatMap(({ head, frame }) => [head, frame]);
      try {
        await writeAll(file, parts, start);
        if (this.#o.sync) await file.datasync();
      } catch (e) {
        await orUndefined(file.truncate(start), 'the error that matters follows; half a record is passed over');
        throw e;
      }
      this.#syncs++;
      const s = await file.stat();
      if (s.nlink >= this.#links && s.size === at) {
        pack.size = pack.end = at;
        for (const f of frames) this.#packs.add(f, pack);
        this.#frames.push(...frames);
        return;
      }
      // Somebody removed it, or wrote there too.
      await this.#leave();
    }
  }
  /** A pack with room, and its open file. */
  async #writable(): Promise<Pack> {
    const pack = this.#pack;
    if (pack && (await this.#opened(pack))) {
      if (pack.size < this.#o.packBytes && this.#frames.length + GROUP_FRAMES <= mostFrames) return pack;
      await orUndefined(this.#seal(), 'it is read without its contents, too');
    }
    await this.#leave();
    return this.#begin();
  }
  /** Whether the file is open and still the one that this store made. */
  async #opened(pack: Pack): Promise<boolean> {
    if (this.#file) return true;
    const file = await orUndefined(
      openForeign(join(this.#packs.dir, packName(pack.number)), { inside: this.#packs.run, write: true }),
      'another is begun',
    );
    if (!file) return false;
    this.#file = file;
    const s = await file.stat();
    return s.ino === this.#inode && s.size === pack.size;
  }
  async #begin(): Promise<Pack> {
    const { dir, run } = this.#packs;
    await folderInside(run, dir);
    await this.#packs.known();
    for (let n = this.#packs.next; ; n++) {
      const path = join(dir, packName(n)),
        // Exclusive: never through a link, and never another's.
        file = await open(path, 'wx+').catch((e: unknown) => {
          if (errorCode(e) !== 'EEXIST') throw e;
        });
      if (!file) continue;
      try {
        if (this.#o.sync) await syncDir(dir);
        ({ ino: this.#inode, nlink: this.#links } = await file.stat());
      } catch (e) {
        await file.close();
        await orUndefined(rm(path, { force: true }), 'an empty file does no harm');
        throw e;
      }
      this.#file = file;
      this.#frames = [];
      return (this.#pack = this.#packs.begin(n, 0));
    }
  }
  async #seal(): Promise<void> {
    const pack = this.#pack!,
      file = this.#file!;
    try {
      await writeAll(file, [contentsOf(this.#frames, pack.size)], pack.size);
      pack.sealed = true;
      pack.size = pack.end = (await file.stat()).size;
    } catch (e) {
      await file.truncate(pack.size);
      throw e;
    }
  }
  async #leave(): Promise<void> {
    this.#pack = undefined;
    await this.#rest();
  }
  async #rest(): Promise<void> {
    clearTimeout(this.#idle);
    const file = this.#file;
    this.#file = undefined;
    if (file) await orUndefined(file.close(), 'what was written to it is on disk, or was reported');
  }
}

async function writeAll(file: FileHandle, parts: readonly Buffer[], at: number): Promise<void> {
  let rest = parts;
  while (rest.length > 0) {
    let { bytesWritten: n } = await file.writev(rest, at);
    at += n;
    const whole = rest.findIndex((p) => {
      if (n < p.length) return true;
      n -= p.length;
      return false;
    });
    rest = whole < 0 ? [] : [rest[whole]!.subarray(n), ...rest.slice(whole + 1)];
  }
}
