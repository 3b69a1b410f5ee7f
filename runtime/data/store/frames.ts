import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, isEncoded, orUndefined, messageOf, errorCode } from '../../domain/index.js';
import type { EncodedFrame, Frame, FrameRef, Screenshot } from '../../domain/index.js';
import { digestOf } from '../../files/digest.js';
import { createFresh, folderInside, linkBetween, namesInside } from '../../files/folderParts.js';
import { copyForeign, copyForeignAtomic, ForeignFileError, readForeign } from '../../files/foreignFile.js';
import type { FrameStore } from '../types.js';
import { decodePng, encodePng, sizeOf, toBgrx, toScanlines } from './png.js';
import { DiskRoom } from './room.js';
import { unfinishedDir, unfinishedName } from './unfinished.js';

export interface FrameStoreOptions {
  /** Frames being encoded or written at once; further ones wait. Default 4, the size of Node's thread pool. */
  readonly concurrency?: number;
  /** Known hashes kept in memory. Default 65,536 (about 10 MB). */
  readonly known?: number;
  /** Check the pixels against the hash on `get`. Default true. */
  readonly verify?: boolean;
  /** Force each file to disk before it gets its name. Default true (measured: 1.8 ms a frame). */
  readonly sync?: boolean;
  /** Where writes wait while the disk is full. */
  readonly room?: DiskRoom;
}
export interface FrameStats {
  readonly puts: number;
  readonly written: number;
  readonly bytes: number;
  readonly waiting: number;
}

/** Bytes of one frame's file: what a screen of 16 million pixels takes where nothing can be compressed. */
export const maxFrameBytes = 80 << 20;

/** Of `RUN/frames/AB/HASH.png`: the run folder, out of which no link leads. */
const runOf = (path: string): { readonly inside: string } => ({ inside: join(path, '../../..') });
/** The file of a frame, by its `path`. Rejects with Node's errors, or a `ForeignFileError`. */
export const readFrame = (path: string): Promise<Buffer> => readForeign(path, maxFrameBytes, runOf(path));
/** A copy of its own elsewhere, which shares blocks where the file system can. Rejects with EEXIST when `to` is there. */
export const copyFrameOut = (path: string, to: string): Promise<void> =>
  copyForeign(path, to, maxFrameBytes, runOf(path));

/** Longer than any step takes from its screen to its record. */
const LATELY_MS = 15 * 60_000;

/** A new hash, fed with width and height (little-endian u32 each); RGB follows. */
function pixelHash(width: number, height: number): Hash {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(width, 0);
  head.writeUInt32LE(height, 4);
  return createHash('sha256').update(head);
}

/**
 * Content-addressed screens under `frames/<2 hex>/<hash>.png`. The same screen is written once, however many ask at the
 * same time.
 */
export class PngFrameStore implements FrameStore {
  readonly #dir: string;
  readonly #o: Required<FrameStoreOptions>;
  /** When each was put last, ms; insertion order is age: a hit is moved to the end. */
  readonly #known = new Map<string, number>();
  /** Being removed: a put of one of them waits, and writes it again. */
  readonly #removing = new Map<string, Promise<void>>();
  /** To be removed, unless they are put again before. */
  readonly #leaving = new Set<string>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #queue: (() => void)[] = [];
  /** Folders that are there, as far as this process knows. */
  readonly #folders = new Set<string>();
  #active = 0;
  #puts = 0;
  #written = 0;
  #bytes = 0;

  constructor(dir: string, o: FrameStoreOptions = {}) {
    this.#dir = dir;
    this.#o = { concurrency: 4, known: 65_536, verify: true, sync: true, room: new DiskRoom(), ...o };
  }

  path(ref: FrameRef): string {
    // A reference may come from an imported file: only a hash may become part of a path.
    if (!/^[0-9a-f]{64}$/.test(ref.hash))
      throw new StudioError(
        'store.damaged',
        'A frame reference is not a hash.',
        'Import the trajectory again from its source.',
      );
    return join(this.#dir, ref.hash.slice(0, 2), `${ref.hash}.png`);
  }
  stats(): FrameStats {
    return { puts: this.#puts, written: this.#written, bytes: this.#bytes, waiting: this.#queue.length };
  }

  put(screen: Screenshot): Promise<FrameRef> {
    return isEncoded(screen) ? this.#putFile(screen) : this.#putPixels(screen);
  }

  /** A file that was encoded elsewhere: its bytes are what is kept, and named by. */
  #putFile({ width, height, png }: EncodedFrame): Promise<FrameRef> {
    const head = sizeOf(png);
    if (png.length > maxFrameBytes || head?.width !== width || head.height !== height) {
      return Promise.reject(
        new StudioError(
          'store.damaged',
          `A screen of ${width}x${height} came as ${png.length} bytes that are no such PNG.`,
          'The desktop is at fault; the rollout is retried on another one.',
        ),
      );
    }
    this.#puts++;
    return this.#keep({ hash: digestOf(png), width, height }, () => Promise.resolve(png));
  }

  async #putPixels({ width, height, data }: Frame): Promise<FrameRef> {
    if (
      !Number.isInteger(width) ||
      !Number.isInteger(height) ||
      width < 1 ||
      height < 1 ||
      data.length !== width * height * 4
    ) {
      throw new StudioError(
        'internal',
        `A frame of ${width}x${height} has ${data.length} bytes instead of ${width * height * 4}.`,
        'This is a fault of DART Studio: please report it with the log.',
      );
    }
    this.#puts++;
    const hash = pixelHash(width, height);
    const scanlines = await toScanlines(data, width, height, (rgb) => hash.update(rgb));
    const ref: FrameRef = { hash: hash.digest('hex'), width, height };
    return this.#keep(ref, () => encodePng(scanlines, width, height));
  }

  /** Writes the file unless it is there; one that is being written is waited for. */
  async #keep(ref: FrameRef, png: () => Promise<Buffer>): Promise<FrameRef> {
    this.#leaving.delete(ref.hash);
    await this.#removing.get(ref.hash);
    if (this.#known.delete(ref.hash)) {
      this.#known.set(ref.hash, Date.now());
      return ref;
    }
    let job = this.#writing.get(ref.hash);
    if (!job) {
      job = this.#slot(() => this.#write(ref, png)).finally(() => this.#writing.delete(ref.hash));
      this.#writing.set(ref.hash, job);
    }
    await job;
    return ref;
  }

  async get(ref: FrameRef): Promise<Frame> {
    const path = this.path(ref);
    const file = await readFrame(path).catch((e: unknown) => {
      throw new StudioError(
        'store.damaged',
        e instanceof ForeignFileError
          ? `The file of frame ${ref.hash.slice(0, 12)} ${e.message}.`
          : `Frame ${ref.hash.slice(0, 12)} is missing (${errorCode(e) ?? 'unreadable'}).`,
        'Restore the run folder from a copy; other frames are not affected.',
        { cause: e, details: { path } },
      );
    });
    const { width, height, rgb, right } = await this.#decoded(ref, file, this.#o.verify);
    if (width !== ref.width || height !== ref.height || !right)
      throw new StudioError(
        'store.damaged',
        `Frame ${ref.hash.slice(0, 12)} does not hold the pixels it was stored with.`,
        'Restore the run folder from a copy; other frames are not affected.',
        { details: { path } },
      );
    return { width, height, data: await toBgrx(rgb, width, height), capturedAt: 0 };
  }

  /** The picture in a file, and whether it is the one that the reference names: by its bytes or by its pixels. */
  async #decoded(
    ref: FrameRef,
    file: Buffer,
    verify: boolean,
  ): Promise<Awaited<ReturnType<typeof decodePng>> & { readonly right: boolean }> {
    if (!verify || digestOf(file) === ref.hash) return { ...(await decodePng(file)), right: true };
    const hash = pixelHash(ref.width, ref.height),
      picture = await decodePng(file, (rows) => hash.update(rows));
    return { ...picture, right: hash.digest('hex') === ref.hash };
  }

  async #holds(ref: FrameRef, path: string): Promise<boolean> {
    const file = await orUndefined(readFrame(path), 'it is then written');
    if (!file) return false;
    if (digestOf(file) === ref.hash) return true;
    try {
      const { width, height, right } = await this.#decoded(ref, file, true);
      return right && width === ref.width && height === ref.height;
    } catch {
      return false;
    }
  }

  async #write(ref: FrameRef, encode: () => Promise<Buffer>): Promise<void> {
    const path = this.path(ref);
    // A file of that name from before this process may have been damaged since: it counts when it holds these pixels.
    if (!(await this.#holds(ref, path))) {
      const png = await encode();
      await this.#o.room
        .write(() => this.#make(ref, path, png))
        .catch((e: unknown) => {
          // Also what says it better is of the disk, and not of a screen that was kept.
          if (e instanceof StudioError) throw new StudioError('store.io', e.message, e.error.remedy, { cause: e });
          throw new StudioError(
            'store.io',
            `A frame could not be written: ${messageOf(e)}.`,
            'Free some space on the disk of the run folder, or check its permissions, then resume the run.',
            { cause: e, details: { path } },
          );
        });
      this.#written++;
      this.#bytes += png.length;
    }
    this.#known.set(ref.hash, Date.now());
    if (this.#known.size > this.#o.known)
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
  }

  /**
   * Marks screens that are to be removed. Those put lately are not: the steps that show them may not be recorded yet. One
   * that is put from here on stays.
   */
  mark(hashes: Iterable<string>, now = Date.now()): void {
    for (const h of hashes) if (now - (this.#known.get(h) ?? -Infinity) > LATELY_MS) this.#leaving.add(h);
  }
  unmark(hash: string): void {
    this.#leaving.delete(hash);
  }
  unmarkAll(): void {
    this.#leaving.clear();
  }
  /** Removes what is marked and forgets the marks; `dry`: only counts. */
  async removeMarked({ dry }: { readonly dry: boolean }): Promise<{ readonly frames: number; readonly bytes: number }> {
    let frames = 0,
      bytes = 0;
    for (const hash of this.#leaving) {
      this.#leaving.delete(hash);
      const size = await this.bytesOf(hash);
      if (size === undefined) continue;
      if (!dry) await this.#remove(hash);
      frames++;
      bytes += size;
    }
    return { frames, bytes };
  }
  /** Bytes on disk; undefined for a screen that is not there. */
  async bytesOf(hash: string): Promise<number | undefined> {
    const path = this.path({ hash, width: 0, height: 0 }),
      out = orUndefined(linkBetween(dirname(this.#dir), dirname(path)), 'then it is not there either');
    // What lies behind a link is another folder's, and not to be removed.
    if ((await out) !== undefined) return undefined;
    return (await orUndefined(lstat(path), 'it is not there'))?.size;
  }
  /** Of all screens. */
  async totalBytes(): Promise<number> {
    let bytes = 0;
    for (const folder of await readdir(this.#dir).catch((): string[] => []))
      for (const name of await namesInside(dirname(this.#dir), join(this.#dir, folder)))
        bytes += (await orUndefined(lstat(join(this.#dir, folder, name)), 'it has just gone'))?.size ?? 0;
    return bytes;
  }
  async #remove(hash: string): Promise<void> {
    this.#known.delete(hash);
    const gone = rm(this.path({ hash, width: 0, height: 0 }), { force: true }).finally(() =>
      this.#removing.delete(hash),
    );
    this.#removing.set(hash, gone);
    await gone;
  }

  /** The file of a frame of another run, named by the same `ref`; one that is there already is the same. */
  async copyIn(ref: FrameRef, from: PngFrameStore): Promise<void> {
    const to = this.path(ref),
      source = from.path(ref);
    if (await orUndefined(lstat(to), 'then it is copied')) return;
    await folderInside(dirname(this.#dir), dirname(to));
    await copyForeignAtomic(source, to, `${to}.${process.pid}.copy`, maxFrameBytes, runOf(source));
  }

  /** Leaves nothing behind when it fails. */
  async #make(ref: FrameRef, path: string, png: Buffer): Promise<void> {
    const making = unfinishedDir(this.#dir),
      tmp = join(making, unfinishedName(ref.hash));
    try {
      for (const folder of [dirname(path), making]) await this.#folder(folder);
      const f = await createFresh(tmp);
      try {
        await f.writeFile(png);
        if (this.#o.sync) await f.datasync();
      } finally {
        await f.close();
      }
      await rename(tmp, path);
    } catch (e) {
      this.#folders.clear(); // one of them may have been removed
      await orUndefined(rm(tmp, { force: true }), 'the error that matters follows; removeUnfinished() takes the rest');
      throw e;
    }
  }

  /** Makes a folder, once. */
  async #folder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    await folderInside(dirname(this.#dir), path);
    this.#folders.add(path);
  }

  /** Runs `job` when fewer than `concurrency` are running, first come, first served. */
  async #slot<T>(job: () => Promise<T>): Promise<T> {
    if (this.#active >= this.#o.concurrency) await new Promise<void>((r) => this.#queue.push(r));
    else this.#active++;
    try {
      return await job();
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#active--;
    }
  }
}
