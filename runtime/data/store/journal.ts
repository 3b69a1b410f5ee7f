import type { BigIntStats } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, messageOf } from '../../domain/index.js';
import { notify } from '../../concurrency/notify.js';
import { nextTurn } from '../../concurrency/turns.js';
import { folderInside } from '../../files/folderParts.js';
import { encodeRecord, headerBytes } from './record.js';
import {
  byteOf,
  encodeHeader,
  headerOf,
  positionOf,
  entryOf,
  openSegment,
  readJournal,
  segmentHeader,
  segmentName,
  segmentOf,
  segments,
} from './journalReader.js';
import { RecentRecords } from './recentRecords.js';
import { DiskRoom } from './room.js';
import type { Damage, JournalEntry, JournalPosition, ReadOptions } from './journalReader.js';

export interface JournalOptions {
  /**
   * A segment that has reached this many bytes is closed and a new one begun. Default 16 MB: finding a sequence number
   * reads at most one.
   */
  readonly segmentBytes?: number;
  /** Called before each write; rejects when this process may no longer write. */
  readonly fence?: () => Promise<void>;
  /** Room on the disk: writes wait in it while the disk is full. */
  readonly room?: DiskRoom;
}
/** What opening found. A torn tail is a write that never finished and was never acknowledged; other damage is not. */
export interface Recovery {
  readonly records: number;
  readonly nextSeq: number;
  /** Bytes cut from the end. */
  readonly truncated: number;
  readonly damage: readonly Damage[];
  /** Sequence numbers that should be there and are not. */
  readonly missing: number;
}
export interface Appended {
  readonly seq: number;
  readonly position: JournalPosition;
}

interface Pending {
  readonly seq: number;
  readonly data: Buffer;
  /** When it was handed in, `performance.now()`. */
  readonly since: number;
  readonly resolve: (a: Appended) => void;
  readonly reject: (e: unknown) => void;
}

/**
 * Append-only journal in segments. One writer. `append` resolves when the record is on disk; appends of one turn of the
 * event loop, and those made while a write is under way, share one write and one fsync. After a failed write the
 * journal takes no more. The folder's lock keeps other writers away; if one gets past it (a network file system, an
 * older version, an editor), the fence finds the segment or the lock changed, and the journal takes no more either.
 */
export class Journal {
  readonly dir: string;
  readonly #segmentBytes: number;
  readonly #fence: (() => Promise<void>) | undefined;
  readonly #room: DiskRoom;
  #file: FileHandle;
  #segment: number;
  #size: number;
  #nextSeq: number;
  #pending: Pending[] = [];
  #flushing: Promise<void> | undefined;
  /** `since` of the oldest record of the write under way. */
  #writing: number | undefined;
  #failed: StudioError | undefined;
  #closed = false;
  #syncs = 0;
  readonly #listeners = new Set<(durable: JournalPosition) => void>();
  readonly #recent = new RecentRecords();

  private constructor(
    dir: string,
    file: FileHandle,
    segment: number,
    size: number,
    nextSeq: number,
    o: JournalOptions,
  ) {
    this.dir = dir;
    this.#file = file;
    this.#segment = segment;
    this.#size = size;
    this.#nextSeq = nextSeq;
    this.#segmentBytes = o.segmentBytes ?? 16 << 20;
    this.#fence = o.fence;
    this.#room = o.room ?? new DiskRoom();
  }

  /**
   * Opens for writing: checks every record, cuts a torn tail, reports damage elsewhere. `each` sees all records while
   * they are checked.
   */
  static async open(
    dir: string,
    o: JournalOptions = {},
    each?: (batch: readonly JournalEntry[]) => void | Promise<void>,
  ): Promise<{ journal: Journal; recovery: Recovery }> {
    try {
      await folderInside(dirname(dir), dir);
      const found = await checkAll(dir, each),
        last = (await segments(dir)).at(-1),
        { records, damage, missing } = found;
      if (last === undefined)
        return {
          journal: await Journal.#create(dir, 0, 0, o),
          recovery: { records, nextSeq: 0, truncated: 0, damage, missing },
        };
      const file = await openSegment(dir, last, { write: true }),
        head = await headerOf(file),
        nextSeq = nextNumber(found, head);
      let size = (await file.stat()).size,
        truncated = 0;
      const torn = damage.find((d) => d.tail);
      if (torn) {
        truncated = size - torn.from;
        await file.truncate(torn.from);
        await file.sync();
        size = torn.from;
      }
      if (size <= segmentHeader && !head?.checked) {
        // A header that was cut short was never used. A damaged one is reported once, here, and replaced.
        const reported = damage.some((d) => d.segment === last && d.from === 0);
        if (size === segmentHeader && head?.seq !== nextSeq && !reported)
          damage.push({ segment: last, from: 0, to: segmentHeader, tail: false });
        await writeHeader(file, nextSeq);
        size = segmentHeader;
      }
      const journal = new Journal(dir, file, last, size, nextSeq, o);
      return { journal, recovery: { records, nextSeq, truncated, damage: damage.filter((d) => !d.tail), missing } };
    } catch (e) {
      throw ioError(e, dir);
    }
  }

  static async #create(dir: string, segment: number, nextSeq: number, o: JournalOptions): Promise<Journal> {
    return new Journal(dir, await createSegment(dir, segment, nextSeq), segment, segmentHeader, nextSeq, o);
  }

  get nextSeq(): number {
    return this.#nextSeq;
  }
  /** Position just behind the last record on disk. */
  get durable(): JournalPosition {
    return positionOf(this.#segment, this.#size);
  }
  /** Whether another program has written here or taken the folder over. */
  get lost(): boolean {
    return this.#failed?.kind === 'run.lost';
  }
  /** ms since the oldest record that is not on disk was handed in; 0 when all are. */
  get behindMs(): number {
    const oldest = this.#writing ?? this.#pending[0]?.since;
    return oldest === undefined ? 0 : performance.now() - oldest;
  }
  /** Writes to disk so far (each with one fsync), for tests and metrics. */
  get syncs(): number {
    return this.#syncs;
  }

  /**
   * Sequence numbers are given in call order. Rejects with `store.io`, or with `run.lost` when another program wrote
   * here; from then on every append does.
   */
  append(event: object): Promise<Appended> {
    if (this.#failed) return Promise.reject(this.#failed);
    if (this.#closed)
      return Promise.reject(new StudioError('store.io', 'The journal is closed.', 'Open the run again.'));
    const seq = this.#nextSeq;
    let data: Buffer;
    try {
      data = encodeRecord(seq, event);
    } catch (e) {
      return Promise.reject(e);
    }
    this.#nextSeq++;
    return new Promise((resolve, reject) => {
      this.#pending.push({ seq, data, since: performance.now(), resolve, reject });
      // The rest of this turn's appends join before the write starts.
      this.#flushing ??= nextTurn().then(() => this.#flush());
    });
  }

  /** Called after each write with the new end; the way to follow a journal without polling. */
  onDurable(listener: (durable: JournalPosition) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Records that are on disk, from an offset to the present end. */
  async *read(o: Omit<ReadOptions, 'until'> = {}): AsyncGenerator<JournalEntry[], void, undefined> {
    const { from } = o;
    if (from !== undefined && from >= this.durable) return;
    const recent = from === undefined ? undefined : this.#recent.from(from);
    if (!recent) {
      yield* readJournal(this.dir, { ...o, until: this.durable });
      return;
    }
    for (const group of recent) {
      const wanted = o.fromSeq === undefined ? group : group.filter((e) => e.seq >= o.fromSeq!);
      if (wanted.length > 0) yield wanted;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#flushing;
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      const group = this.#pending;
      this.#pending = [];
      this.#writing = group[0]?.since;
      try {
        // An acknowledged record may name a screen that still waits for room.
        await this.#room.clear();
        await Promise.all([this.#fence?.(), this.#unchanged()]);
        if (this.#size >= this.#segmentBytes) await this.#rotate(group[0]!.seq);
        const start = this.#size,
          bytes = Buffer.concat(group.map((p) => p.data));
        await this.#room.write(() => this.#writeWhole(bytes, start), { last: true });
        await this.#file.datasync();
        if ((await this.#file.stat()).size !== start + bytes.length) throw changed(this.dir, 'wrote at the same time');
        this.#syncs++;
        this.#size = start + bytes.length;
        let at = start;
        const entries = group.map((p) => {
          const e = entryOf(p.seq, this.#segment, at, p.data);
          at += p.data.length;
          return e;
        });
        this.#recent.add(entries, bytes.length);
        group.forEach((p, i) => p.resolve({ seq: p.seq, position: entries[i]!.position }));
        this.#writing = undefined;
        notify(this.#listeners, this.durable);
      } catch (e) {
        // After a failed fsync the content of the disk is unknown: nothing more is acknowledged, and reopening finds
        // out.
        this.#failed = ioError(e, this.dir);
        for (const p of [...group, ...this.#pending]) p.reject(this.#failed);
        this.#pending = [];
        this.#writing = undefined;
      }
    }
    this.#flushing = undefined;
  }

  /** All or nothing: nobody knows of the bytes yet, so that those of a write that did not fit are cut off again. */
  async #writeWhole(bytes: Buffer, start: number): Promise<void> {
    try {
      await writeAll(this.#file, bytes, start);
    } catch (e) {
      await this.#file.truncate(start);
      throw e;
    }
  }

  /** Checks that the segment is the same file, has the length we wrote, and is the last one. About 0.2 ms a write. */
  async #unchanged(): Promise<void> {
    const [ours, named, next] = await Promise.all([
      this.#file.stat({ bigint: true }),
      found(join(this.dir, segmentName(this.#segment))),
      found(join(this.dir, segmentName(this.#segment + 1))),
    ]);
    if (ours.ino !== named?.ino) throw changed(this.dir, 'replaced or removed a file');
    if (ours.size !== BigInt(this.#size)) throw changed(this.dir, 'changed the size of a file');
    if (next) throw changed(this.dir, 'began a new file');
  }

  async #rotate(firstSeqOfNext: number): Promise<void> {
    const next = await this.#room.write(() => createSegment(this.dir, this.#segment + 1, firstSeqOfNext), {
      last: true,
    });
    await this.#file.close();
    this.#file = next;
    this.#segment++;
    this.#size = segmentHeader;
  }
}

/** The state of a journal after every record was read. */
interface Checked {
  readonly records: number;
  /** Behind the greatest number that was read. */
  readonly after: number;
  readonly damage: Damage[];
  readonly missing: number;
  /** The most records that may lie in damage behind the last one that was read, not counting a torn tail. */
  readonly mostLost: number;
}
async function checkAll(
  dir: string,
  each: ((batch: readonly JournalEntry[]) => void | Promise<void>) | undefined,
): Promise<Checked> {
  const damage: Damage[] = [];
  let records = 0,
    after = 0,
    missing = 0,
    mostLost = 0;
  const onDamage = (d: Damage): void => {
    damage.push(d);
    if (!d.tail) mostLost += Math.ceil((d.to - d.from) / headerBytes);
  };
  for await (const batch of readJournal(dir, { onDamage })) {
    for (const e of batch) {
      missing += Math.max(0, e.seq - after);
      // A number that occurs again (two writers, in version 0.1) does not set the count back.
      if (e.seq < after) damage.push({ ...bytesOf(e), tail: false });
      after = Math.max(after, e.seq + 1);
      records++;
    }
    mostLost = 0;
    await each?.(batch);
  }
  return { records, after, damage, missing, mostLost };
}
const bytesOf = (e: JournalEntry): Pick<Damage, 'segment' | 'from' | 'to'> => ({
  segment: segmentOf(e.position),
  from: byteOf(e.position),
  to: byteOf(e.next),
});

/**
 * The number of the next record: one that no record can have had, also none that was lost. The header of the last
 * segment says it where that segment is empty; one without a checksum (version 0.1) only within what can have been lost.
 */
function nextNumber(c: Checked, head: { readonly seq: number; readonly checked: boolean } | undefined): number {
  const most = c.after + c.mostLost;
  if (head?.checked || (head && head.seq <= most)) return Math.max(c.after, head.seq);
  return most;
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
}
async function writeHeader(file: FileHandle, seq: number): Promise<void> {
  await writeAll(file, encodeHeader(seq), 0);
  await file.sync();
}
async function createSegment(dir: string, segment: number, seq: number): Promise<FileHandle> {
  const file = await open(join(dir, segmentName(segment)), 'wx+').catch((e: NodeJS.ErrnoException) => {
    throw e.code === 'EEXIST' ? changed(dir, 'began a new file') : e;
  });
  try {
    await writeHeader(file, seq);
    await syncDir(dir);
    return file;
  } catch (e) {
    await file.close();
    await rm(join(dir, segmentName(segment)), { force: true });
    throw e;
  }
}
const found = (path: string): Promise<BigIntStats | undefined> =>
  stat(path, { bigint: true }).catch((e: NodeJS.ErrnoException) => {
    if (e.code === 'ENOENT') return undefined;
    throw e;
  });
const changed = (dir: string, how: string): StudioError =>
  new StudioError(
    'run.lost',
    `The journal ${dir} can no longer be written: another program ${how}.`,
    'Stop the other program that writes there, then resume the run. Everything acknowledged so far is on disk.',
    { details: { dir } },
  );
/** Makes a new name durable. Windows cannot open folders; there the file system journals names itself. */
export async function syncDir(dir: string): Promise<void> {
  if (process.platform === 'win32') return;
  const d = await open(dir, 'r');
  try {
    await d.sync();
  } finally {
    await d.close();
  }
}
function ioError(e: unknown, dir: string): StudioError {
  if (e instanceof StudioError) return e;
  return new StudioError(
    'store.io',
    `The journal cannot be written or read: ${messageOf(e)}.`,
    'Check free space and permissions of the run folder, then resume the run.',
    { cause: e, details: { dir } },
  );
}
