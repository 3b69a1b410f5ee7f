import { lstat, rename, rm } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { nextTurn } from '../../concurrency/turns.js';
import { crc32 } from '../../files/crc32.js';
import { isFull } from '../../files/diskFull.js';
import { createFresh, folderInside, namesInside } from '../../files/folderParts.js';
import { unfinishedName } from '../../files/replaceFile.js';
import { ForeignFileError, openForeign, readForeign } from '../../files/foreignFile.js';
import { FrameTable, type Place } from './frameTable.js';
import { framesOfPack, headBytes, mostFrames, readPacked, type Packed, type PackFound } from './packRecord.js';
import { unfinishedDir } from './unfinished.js';

export const packName = (pack: number): string => `frames-${String(pack).padStart(6, '0')}.pack`;
const removedName = (pack: number): string => packName(pack).replace('.pack', '.removed');
const NAME = /^frames-(\d{6,9})\.(pack|removed)$/;
const REMOVED = 0x7846_5344;
/** Packs that are looked at together when a folder is opened. */
const AT_ONCE = 8;
/** Frames taken into the table between two turns of the event loop. */
const AT_A_TIME = 4096;

/** Where to read a frame, for another thread too. Without `at` the file is the frame. */
export interface FramePlace extends Partial<Omit<Place, 'pack'>> {
  readonly file: string;
  readonly hash: string;
}
export const nameOf = (hash: string): Buffer => Buffer.from(hash, 'hex');

/** The bytes of a frame in a pack; undefined where the record is not whole, or another's. Rejects as `openForeign` does. */
export async function readPlace({ file, hash, at = 0, bytes = 0 }: FramePlace): Promise<Buffer | undefined> {
  const f = await openForeign(file, { inside: join(file, '../..') });
  try {
    return await readPacked(f, { name: nameOf(hash), at, bytes });
  } finally {
    await f.close();
  }
}

export interface Pack {
  readonly number: number;
  /** `size`: bytes of the file at the last look; `end`: the byte behind its last record. */
  size: number;
  end: number;
  sealed: boolean;
  /** ms since the epoch. */
  changedAt: number;
  /** Bytes of records that count, and of those that do not: removed, or written again elsewhere. */
  live: number;
  dead: number;
  /** Places of the latter. */
  readonly deadAt: Set<number>;
  /** How many of them its list on the disk has. */
  listed: number;
  /** This store adds to it: what it says of it here is what is there. */
  readonly own: boolean;
}
interface Look {
  readonly number: number;
  readonly found: PackFound;
  readonly changedAt: number;
  readonly removed: ReadonlySet<number> | undefined;
}

/**
 * The pack files of a folder: which frames are where. The first question reads the contents of every file (a file that
 * a killed process left without them is looked through); a frame that is not known is looked for in what was added
 * since. What is written here is added by `FrameAppender`.
 */
export class FramePacks {
  readonly dir: string;
  readonly #table = new FrameTable();
  readonly #packs = new Map<number, Pack>();
  /** Folders of frames that are files of their own, as every version before wrote them. */
  readonly folders = new Set<string>();
  #newest = 0;
  /** Why a pack is not looked at: it is a link, or no file. */
  #refused: ForeignFileError | undefined;
  #first: Promise<void> | undefined;
  #looking: Promise<void> | undefined;

  constructor(dir: string) {
    this.dir = dir;
  }
  /** Within which no link is followed. */
  get run(): string {
    return dirname(this.dir);
  }
  get all(): readonly Pack[] {
    return [...this.#packs.values()];
  }
  /** Resolves when everything that was there is known. */
  known(): Promise<void> {
    return (this.#first ??= this.refresh().catch((e: unknown) => {
      this.#first = undefined;
      throw e;
    }));
  }
  /** Looks at what was added since, by whoever writes. */
  refresh(): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    }));
  }
  find(hash: string): Place | undefined {
    return this.#table.get(nameOf(hash));
  }
  /** Where a frame is, as far as is known without a look at the disk. */
  placed(hash: string): FramePlace | undefined {
    const place = this.find(hash);
    return place && this.placeOf(hash, place);
  }
  async locate(hash: string): Promise<Place | undefined> {
    await this.known();
    const place = this.find(hash);
    if (place) return place;
    await this.refresh();
    return this.find(hash);
  }
  /** As `locate`, but checks that the file is there: compaction may have moved the frame. */
  async located(hash: string): Promise<Place | undefined> {
    const place = await this.locate(hash);
    if (!place) return undefined;
    const { file } = this.placeOf(hash, place);
    if (await orUndefined(lstat(file), 'it is then elsewhere')) return place;
    this.#moved(hash, place);
    return this.locate(hash);
  }
  #moved(hash: string, place: Place): void {
    if (same(this.find(hash), place)) this.#table.delete(nameOf(hash));
    this.#packs.delete(place.pack);
  }
  placeOf(hash: string, { pack, at, bytes }: Place): FramePlace {
    return { file: join(this.dir, packName(pack)), hash, at, bytes };
  }
  /**
   * The bytes of a frame; undefined when no pack has it. Rejects with Node's errors, and with a `ForeignFileError` for
   * a damaged record or a file that is no pack.
   */
  async read(hash: string): Promise<Buffer | undefined> {
    let failed: { readonly place: Place; readonly error: Error } | undefined;
    for (;;) {
      const place = await this.locate(hash);
      if (!place || (failed && same(failed.place, place))) {
        if (failed && place) throw failed.error;
        if (this.#refused) throw this.#refused;
        return undefined;
      }
      const frame = await readPlace(this.placeOf(hash, place)).catch((e: unknown) => {
        if (errorCode(e) !== 'ENOENT') throw e;
        // Whoever tidies up has moved what it held.
        this.#moved(hash, place);
      });
      if (frame) return frame;
      failed = { place, error: new ForeignFileError('EDAMAGED', 'is damaged') };
      await this.refresh();
    }
  }

  /** A new pack of this store, numbered beyond all that were ever there. */
  begin(number: number, size: number): Pack {
    const pack = {
      number,
      size,
      end: size,
      sealed: false,
      changedAt: 0,
      ...NONE,
      deadAt: new Set<number>(),
      listed: 0,
      own: true,
    };
    this.#packs.set(number, pack);
    this.#newest = Math.max(this.#newest, number);
    return pack;
  }
  get next(): number {
    return this.#newest + 1;
  }
  /** A record is there. Of two of one frame that of the newer pack counts. */
  add({ name, at, bytes }: Packed, pack: Pack): void {
    const place = { pack: pack.number, at, bytes },
      before = this.#table.get(name);
    if (same(before, place)) return;
    const length = headBytes + bytes;
    if (before && (before.pack > pack.number || (before.pack === pack.number && before.at > at))) {
      pack.live += length;
      this.#drop(place);
      return;
    }
    this.#table.set(name, place);
    pack.live += length;
    if (before) this.#drop(before);
  }
  #drop({ pack, at, bytes }: Place): void {
    const p = this.#packs.get(pack);
    if (!p || p.deadAt.has(at)) return;
    p.deadAt.add(at);
    p.live -= headBytes + bytes;
    p.dead += headBytes + bytes;
  }

  /**
   * These frames of one pack count no more, also for whoever opens the folder after this has resolved. `whole`: the file
   * goes where nothing in it counts then, and needs no list. Where there is no room for a list, `list` has yet to write it.
   */
  async remove(number: number, hashes: readonly string[], o: { readonly whole?: boolean } = {}): Promise<void> {
    const pack = this.#packs.get(number);
    if (!pack) return;
    for (const name of hashes.map(nameOf)) {
      const place = this.#table.get(name);
      if (place?.pack !== number) continue;
      this.#table.delete(name);
      this.#drop(place);
    }
    if (o.whole && pack.live === 0 && number < this.#newest) await this.discard(pack);
    else await this.#list(pack);
  }
  /**
   * Lists what counts no more and is in no list yet: copies that a compaction which was cut left in two packs, and what
   * was removed while the disk was full.
   */
  async list(): Promise<void> {
    for (const pack of this.all) if (pack.deadAt.size > pack.listed) await this.#list(pack);
  }
  async #list(pack: Pack): Promise<void> {
    const dead = Uint32Array.from(pack.deadAt),
      places = Buffer.from(dead.buffer),
      head = Buffer.alloc(8),
      making = unfinishedDir(this.dir),
      to = join(this.dir, removedName(pack.number)),
      tmp = join(making, unfinishedName(removedName(pack.number)));
    head.writeUInt32LE(REMOVED, 0);
    head.writeUInt32LE(crc32(places), 4);
    try {
      await folderInside(this.run, making);
      const f = await createFresh(tmp);
      try {
        await f.writeFile(Buffer.concat([head, places]));
        await f.datasync();
      } finally {
        await f.close();
      }
      await rename(tmp, to);
      pack.listed = dead.length;
    } catch (e) {
      await orUndefined(rm(tmp, { force: true }), 'the next opening removes it');
      if (!isFull(e)) throw e;
    }
  }
  /** The file goes: nothing in it counts any more, or what does is elsewhere. */
  async discard(pack: Pack): Promise<void> {
    await rm(join(this.dir, packName(pack.number)), { force: true });
    this.#packs.delete(pack.number);
    // The newest number stays taken by it: the next pack must not have a list of another's.
    if (pack.number < this.#newest) await rm(join(this.dir, removedName(pack.number)), { force: true });
  }
  /** Records of a pack that count. */
  async liveOf(pack: Pack): Promise<Packed[]> {
    const f = await openForeign(join(this.dir, packName(pack.number)), { inside: this.run });
    try {
      const { frames } = await framesOfPack(f);
      return frames.filter(({ name, at }) => {
        const place = this.#table.get(name);
        return place?.pack === pack.number && place.at === at;
      });
    } finally {
      await f.close();
    }
  }

  async #look(): Promise<void> {
    const there: number[] = [];
    this.#refused = undefined;
    for (const name of await namesInside(this.run, this.dir)) {
      const [, n, what] = NAME.exec(name) ?? [];
      if (/^[0-9a-f]{2}$/.test(name)) this.folders.add(name);
      if (n === undefined) continue;
      this.#newest = Math.max(this.#newest, Number(n));
      if (what === 'pack') there.push(Number(n));
    }
    const listed = new Set(there);
    for (const p of this.#packs.values()) if (!p.own && !listed.has(p.number)) this.#packs.delete(p.number);
    const todo = there
      .filter((n) => {
        const p = this.#packs.get(n);
        return !p?.sealed && !p?.own;
      })
      .sort((a, b) => a - b);
    let taken = 0;
    for (let i = 0; i < todo.length; i += AT_ONCE)
      for (const look of await Promise.all(todo.slice(i, i + AT_ONCE).map((n) => orUndefined(this.#lookAt(n), GONE))))
        if (look) {
          this.#take(look);
          if ((taken += look.found.frames.length) > AT_A_TIME) {
            taken = 0;
            await nextTurn();
          }
        }
  }
  /** Undefined where nothing was added. */
  async #lookAt(number: number): Promise<Look | undefined> {
    const file = await openForeign(join(this.dir, packName(number)), { inside: this.run }).catch((e: unknown) => {
      if (e instanceof ForeignFileError) this.#refused = e;
      throw e;
    });
    try {
      const s: Stats = await file.stat(),
        before = this.#packs.get(number);
      if (before?.size === s.size) return undefined;
      const found = await framesOfPack(file, before?.end ?? 0);
      return { number, found, changedAt: s.mtimeMs, removed: before ? undefined : await this.#removed(number) };
    } finally {
      await file.close();
    }
  }
  #take({ number, found, changedAt, removed }: Look): void {
    let pack = this.#packs.get(number);
    if (!pack) {
      pack = { number, size: 0, end: 0, sealed: false, changedAt, ...NONE, deadAt: new Set(), listed: 0, own: false };
      this.#packs.set(number, pack);
    }
    Object.assign(pack, { size: found.size, end: found.end, sealed: found.sealed, changedAt });
    for (const f of found.frames)
      if (removed?.has(f.at)) {
        pack.deadAt.add(f.at);
        pack.listed++;
        pack.dead += headBytes + f.bytes;
      } else this.add(f, pack);
  }
  /** A list that cannot be read removes nothing. */
  async #removed(number: number): Promise<ReadonlySet<number>> {
    const list = await orUndefined(
      readForeign(join(this.dir, removedName(number)), 8 + 4 * mostFrames, { inside: this.run }),
      'nothing was removed from most',
    );
    if (!list || list.length < 8 || list.readUInt32LE(0) !== REMOVED) return new Set();
    const places = list.subarray(8);
    if (places.length % 4 !== 0 || crc32(places) !== list.readUInt32LE(4)) return new Set();
    return new Set(Array.from({ length: places.length / 4 }, (_, i) => places.readUInt32LE(4 * i)));
  }
}
const NONE = { live: 0, dead: 0 };
const GONE = 'it has just gone, or is no file of ours: what is in it is missing';
const same = (a: Place | undefined, b: Place): boolean => a?.pack === b.pack && a.at === b.at && a.bytes === b.bytes;
