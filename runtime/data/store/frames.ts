import { lstat, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, internalError, isEncoded, messageOf, errorCode } from '../../domain/index.js';
import { orUndefined, settled } from '../../concurrency/failures.js';
import type { EncodedFrame, Frame, FrameRef, Screenshot } from '../../domain/index.js';
import { nextTurn } from '../../concurrency/turns.js';
import { digestOf } from '../../files/digest.js';
import { createFresh, folderInside, linkBetween, namesInside } from '../../files/folderParts.js';
import { ForeignFileError, readForeign } from '../../files/foreignFile.js';
import type { FrameStore, HeldFrames } from '../types.js';
import { decodeFrame } from './decodeFrame.js';
import { FrameAppender } from './frameAppender.js';
import { compact, mayGo } from './frameCompaction.js';
import { FramePacks, readPlace, type FramePlace } from './framePacks.js';
import { headBytes, maxFrameBytes } from './packRecord.js';
import { decodePng, sizeOf, toBgrx } from './png.js';
import { LATELY_MS, RecentFrames } from './recentFrames.js';
import { DiskRoom } from './room.js';
import { ScreensHere, type ScreenEncoder } from './screenEncoder.js';

export type { FramePlace };
export interface FrameStoreOptions {
  /** Frames being encoded, or looked at before they are stored again, at once; further ones wait. Default 4, the size of Node's thread pool. */
  readonly concurrency?: number;
  /** Known hashes kept in memory, besides those of the last quarter of an hour. Default 65,536 (about 10 MB). */
  readonly known?: number;
  /** Check the pixels against the hash on `get`. Default true. */
  readonly verify?: boolean;
  /** Force frames to disk before they count. Default true. */
  readonly sync?: boolean;
  /** A file of its own for each frame, `<2 hex>/<hash>.png`, not forced to disk: for what a page shows and nobody keeps. */
  readonly files?: boolean;
  /** Bytes of a pack, about. Default 64 MB. */
  readonly packBytes?: number;
  /** Room on the disk: writes wait in it while the disk is full. */
  readonly room?: DiskRoom;
  /** Makes files of pixels; default: this thread. It is closed with the store. */
  readonly encoder?: ScreenEncoder;
}
export interface FrameStats {
  readonly puts: number;
  readonly written: number;
  readonly bytes: number;
  readonly waiting: number;
}

/** The bytes of a frame, from any thread. Rejects with Node's errors, or a `ForeignFileError`. */
export async function readFrame(place: FramePlace): Promise<Buffer> {
  // A frame file is `RUN/frames/AB/HASH.png`; no link may lead out of the run folder.
  if (place.at === undefined) return readForeign(place.file, maxFrameBytes, { inside: join(place.file, '../../..') });
  const frame = await readPlace(place);
  if (!frame) throw new ForeignFileError('EDAMAGED', 'is damaged');
  return frame;
}

/** A pack of which less than this share counts is written anew; the second where a size is to be kept to. */
const LOOSE = 0.5,
  TIGHT = 0.8;

/**
 * Content-addressed screens, in packs (packRecord.ts). The same screen is written once, however many ask at the same
 * time. Frames that are files of their own, as older versions wrote them, are read as well.
 */
export class PngFrameStore implements FrameStore {
  readonly #dir: string;
  readonly #o: Required<Omit<FrameStoreOptions, 'encoder'>>;
  readonly #encoder: ScreenEncoder;
  readonly #recent: RecentFrames;
  /** Being removed: a put of one of them waits, and writes it again. */
  readonly #removing = new Map<string, Promise<void>>();
  /** Frames to be removed, unless they are put again before. */
  readonly #leaving = new Set<string>();
  readonly #writing = new Map<string, Promise<void>>();
  readonly #putting = new Set<Promise<FrameRef>>();
  readonly #queue: (() => void)[] = [];
  readonly #packs: FramePacks;
  readonly #appender: FrameAppender;
  #active = 0;
  #puts = 0;
  #written = 0;
  #bytes = 0;

  constructor(dir: string, o: FrameStoreOptions = {}) {
    this.#dir = dir;
    this.#encoder = o.encoder ?? new ScreensHere();
    this.#o = {
      concurrency: 4,
      known: 65_536,
      verify: true,
      sync: true,
      files: false,
      packBytes: 64 << 20,
      room: new DiskRoom(),
      ...o,
    };
    this.#recent = new RecentFrames(this.#o.known);
    this.#packs = new FramePacks(dir);
    this.#appender = new FrameAppender(this.#packs, this.#o);
  }

  /** Path of a frame that is a file of its own. */
  #file(hash: string): string {
    // A reference may come from an imported file: only a hash may become part of a path.
    if (!/^[0-9a-f]{64}$/.test(hash))
      throw new StudioError(
        'store.damaged',
        'A frame reference is not a hash.',
        'Import the trajectory again from its source.',
      );
    return join(this.#dir, hash.slice(0, 2), `${hash}.png`);
  }
  /** ms since the oldest frame that waits to be on disk was handed in; 0 when none waits. */
  get behindMs(): number {
    return this.#appender.behindMs;
  }
  /** Called after each write. */
  onDurable(listener: () => void): () => void {
    return this.#appender.onDurable(listener);
  }
  stats(): FrameStats {
    return { puts: this.#puts, written: this.#written, bytes: this.#bytes, waiting: this.#queue.length };
  }

  put(screen: Screenshot): Promise<FrameRef> {
    const done = isEncoded(screen) ? this.#putFile(screen) : this.#putPixels(screen),
      gone = (): boolean => this.#putting.delete(done);
    this.#putting.add(done);
    done.then(gone, gone);
    return done;
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

  async #putPixels(frame: Frame): Promise<FrameRef> {
    const { width, height, data } = frame;
    if (
      !Number.isInteger(width) ||
      !Number.isInteger(height) ||
      width < 1 ||
      height < 1 ||
      data.length !== width * height * 4
    ) {
      throw internalError(`A frame of ${width}x${height} has ${data.length} bytes instead of ${width * height * 4}.`);
    }
    this.#puts++;
    const { hash, png } = await this.#encoder.encode(frame);
    return this.#keep({ hash, width, height }, png);
  }

  async encode(frame: Frame): Promise<Uint8Array> {
    return (await this.#encoder.encode(frame)).png();
  }

  /** Writes the file unless it is there; one that is being written is waited for. */
  async #keep(ref: FrameRef, png: () => Promise<Buffer>): Promise<FrameRef> {
    for (let gone; (gone = this.#removing.get(ref.hash));) await settled(gone);
    // From here to where it is known, or being written, nothing else runs: `mark` sees one of them.
    this.#leaving.delete(ref.hash);
    if (this.#recent.again(ref.hash)) return ref;
    let job = this.#writing.get(ref.hash);
    if (!job) {
      job = this.#write(ref, png).finally(() => this.#writing.delete(ref.hash));
      this.#writing.set(ref.hash, job);
    }
    await job;
    return ref;
  }

  /** The PNG file of a frame. Rejects with Node's errors (ENOENT: it is missing), or a `ForeignFileError`. */
  async read({ hash }: Pick<FrameRef, 'hash'>): Promise<Buffer> {
    const file = this.#file(hash);
    await this.#packs.known();
    const old = this.#inFile(hash) && (await orUndefined(readFrame({ file, hash }), 'a pack may have it'));
    return old || ((await this.#packs.read(hash)) ?? readFrame({ file, hash }));
  }
  /** Where a frame's bytes are at the moment, for `readFrame`; undefined when there are none. */
  async place(hash: string): Promise<FramePlace | undefined> {
    const file = this.#file(hash);
    await this.#packs.known();
    if (this.#inFile(hash) && (await this.#fileBytes(hash)) !== undefined) return { file, hash };
    if (await this.#packs.located(hash)) return this.#packs.placed(hash);
    return (await this.#fileBytes(hash)) === undefined ? undefined : { file, hash };
  }
  readonly packed = (hash: string): FramePlace | undefined => this.#packs.placed(hash);
  /** Whether a frame may be a file of its own, as in runs of older versions. */
  #inFile(hash: string): boolean {
    return this.#packs.folders.has(hash.slice(0, 2)) && !this.#packs.find(hash);
  }

  async get(ref: FrameRef): Promise<Frame> {
    const file = await this.read(ref).catch((e: unknown) => {
      if (e instanceof StudioError) throw e;
      throw new StudioError(
        'store.damaged',
        e instanceof ForeignFileError
          ? `The file of frame ${ref.hash.slice(0, 12)} ${e.message}.`
          : `Frame ${ref.hash.slice(0, 12)} is missing (${errorCode(e) ?? 'unreadable'}).`,
        'Restore the run folder from a copy; other frames are not affected.',
        { cause: e, details: { hash: ref.hash } },
      );
    });
    const { width, height, rgb, right } = this.#o.verify
      ? await decodeFrame(file, ref.hash)
      : { ...(await decodePng(file)), right: true };
    if (width !== ref.width || height !== ref.height || !right)
      throw new StudioError(
        'store.damaged',
        `Frame ${ref.hash.slice(0, 12)} does not hold the pixels it was stored with.`,
        'Restore the run folder from a copy; other frames are not affected.',
        { details: { hash: ref.hash } },
      );
    return { width, height, data: await toBgrx(rgb, width, height), capturedAt: 0 };
  }

  /** A frame from before this process may have been damaged since: it counts when it holds these pixels. */
  async #holds(ref: FrameRef): Promise<boolean> {
    await this.#packs.known();
    if (!this.#packs.find(ref.hash) && !this.#inFile(ref.hash)) return false;
    return this.#slot(async () => {
      const file = await orUndefined(this.read(ref), 'it is then written');
      if (!file) return false;
      if (digestOf(file) === ref.hash) return true;
      try {
        const { width, height, right } = await decodeFrame(file, ref.hash);
        return right && width === ref.width && height === ref.height;
      } catch {
        return false;
      }
    });
  }

  async #write(ref: FrameRef, encode: () => Promise<Buffer>): Promise<void> {
    if (!(await this.#holds(ref))) {
      const png = await this.#slot(encode);
      await (this.#o.files ? this.#makeFile(ref.hash, png) : this.#appender.append(ref.hash, png)).catch(
        (e: unknown) => {
          // Also what says it better is of the disk, and not of a screen that was kept.
          if (e instanceof StudioError) throw new StudioError('store.io', e.message, e.error.remedy, { cause: e });
          throw new StudioError(
            'store.io',
            `A frame could not be written: ${messageOf(e)}.`,
            'Free some space on the disk of the run folder, or check its permissions, then resume the run.',
            { cause: e, details: { dir: this.#dir } },
          );
        },
      );
      this.#written++;
      this.#bytes += png.length;
    }
    this.#leaving.delete(ref.hash);
    this.#recent.add(ref.hash);
  }

  /** For an episode: what is put through it is not removed until its end, however long a person thinks about a step. */
  hold(): HeldFrames {
    const { add, end } = this.#recent.hold();
    return {
      put: async (screen) => {
        const ref = await this.put(screen);
        add(ref.hash);
        return ref;
      },
      end,
    };
  }
  /** Whether it may not be removed yet, since the steps that show it may not be recorded: it was put lately, or is held. */
  stays(hash: string, now = Date.now()): boolean {
    return this.#writing.has(hash) || this.#recent.stays(hash, now);
  }
  /** Marks screens that are to be removed, but none that stays. One that is put from here on stays. */
  mark(hashes: Iterable<string>, now = Date.now()): void {
    for (const h of hashes) if (!this.stays(h, now)) this.#leaving.add(h);
  }
  marked(hash: string): boolean {
    return this.#leaving.has(hash);
  }
  unmark(hash: string): void {
    this.#leaving.delete(hash);
  }
  unmarkAll(): void {
    this.#leaving.clear();
  }
  /** Removes what is marked and forgets the marks; `dry`: only counts. Packs keep the room until `compact`. */
  async removeMarked({ dry }: { readonly dry: boolean }): Promise<{ readonly frames: number; readonly bytes: number }> {
    const packed = new Map<number, { readonly hash: string; readonly size: number }[]>(),
      sizes: number[] = [];
    await this.#packs.known();
    // A copy in an older pack must not count again.
    if (!dry) await this.#packs.list();
    let looked = 0;
    for (const hash of this.#leaving) {
      if (++looked % 4096 === 0) await nextTurn();
      const place = this.#packs.find(hash);
      if (place) {
        const there = packed.get(place.pack),
          frame = { hash, size: headBytes + place.bytes };
        if (there) there.push(frame);
        else packed.set(place.pack, [frame]);
        continue;
      }
      const size = await this.#fileBytes(hash);
      // A frame that was put again meanwhile stays.
      if (!this.#leaving.delete(hash) || size === undefined) continue;
      sizes.push(size);
      if (!dry) await this.#remove([hash]);
    }
    // Packs of which nothing stays go first: on a full disk that makes room for the lists of the others.
    const live = new Map(this.#packs.all.map((p) => [p.number, p.live])),
      stays = new Map([...packed].map(([n, some]) => [n, some.reduce((left, f) => left - f.size, live.get(n) ?? 0)]));
    for (const [pack, some] of [...packed].sort(([a], [b]) => stays.get(a)! - stays.get(b)!)) {
      // A frame that was put again meanwhile stays, and one that another process moved or removed does not count.
      const gone = some.filter((f) => this.#leaving.delete(f.hash) && this.#packs.find(f.hash)?.pack === pack);
      for (const f of gone) sizes.push(f.size);
      const hashes = gone.map((f) => f.hash);
      if (!dry && hashes.length > 0) await this.#remove(hashes, pack);
      await nextTurn();
    }
    return { frames: sizes.length, bytes: sizes.reduce((a, b) => a + b, 0) };
  }
  /** Bytes on disk; undefined for a screen that is not there. */
  async bytesOf(hash: string): Promise<number | undefined> {
    await this.#packs.known();
    const place = this.#packs.find(hash);
    return place ? headBytes + place.bytes : this.#fileBytes(hash);
  }
  async #fileBytes(hash: string): Promise<number | undefined> {
    const path = this.#file(hash),
      out = orUndefined(linkBetween(dirname(this.#dir), dirname(path)), 'then it is not there either');
    // A file behind a link belongs to another folder and is not removed.
    if ((await out) !== undefined) return undefined;
    return (await orUndefined(lstat(path), 'it is not there'))?.size;
  }
  /** Bytes of all screens that are kept: packs take more until they are compacted. */
  async totalBytes(): Promise<number> {
    await this.#packs.refresh();
    let bytes = this.#packs.all.reduce((n, p) => n + p.live, 0);
    for (const folder of this.#packs.folders)
      for (const name of await namesInside(dirname(this.#dir), join(this.#dir, folder)))
        bytes += (await orUndefined(lstat(join(this.#dir, folder, name)), 'it has just gone'))?.size ?? 0;
    return bytes;
  }
  async #remove(hashes: readonly string[], pack?: number): Promise<void> {
    const gone = (
      pack === undefined
        ? rm(this.#file(hashes[0]!), { force: true })
        : this.#packs.remove(pack, hashes, {
            whole: this.#packs.all.some((p) => p.number === pack && mayGo(p, this.#appender, LATELY_MS)),
          })
    ).finally(() => {
      for (const h of hashes) this.#removing.delete(h);
    });
    for (const h of hashes) {
      this.#recent.forget(h);
      this.#removing.set(h, gone);
    }
    await gone;
  }
  /** Gives the disk back what removed screens take, as far as it is worth copying the others. For the writer of the run. */
  compact(o: { readonly tight?: boolean; readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const share = o.tight ? TIGHT : LOOSE;
    return compact(this.#packs, this.#appender, { share, restMs: LATELY_MS, signal: o.signal });
  }

  /** A frame of another run, named by the same `ref`; one that is there already is the same. */
  async copyIn(ref: FrameRef, from: FrameStore): Promise<void> {
    await this.#keep(ref, () => from.read(ref));
  }

  /** Waits for what is being written; the store can still be used. */
  async close(): Promise<void> {
    while (this.#putting.size + this.#writing.size > 0)
      await Promise.allSettled([...this.#putting, ...this.#writing.values()]);
    await this.#appender.close();
    this.#encoder.close();
  }

  async #makeFile(hash: string, png: Buffer): Promise<void> {
    const path = this.#file(hash);
    await folderInside(dirname(this.#dir), dirname(path));
    const f = await createFresh(path);
    try {
      await f.writeFile(png);
    } finally {
      await f.close();
    }
    this.#packs.folders.add(hash.slice(0, 2));
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
