import { readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, errorCode, messageOf } from '../../domain/index.js';
import { nextTurn } from '../../concurrency/turns.js';
import { ForeignFileError, openForeign, type ForeignOptions } from '../../files/foreignFile.js';
import { TURN_BYTES, crc32 } from '../../files/crc32.js';
import {
  decodeRecord,
  headerBytes,
  isSeq,
  maxBody,
  recordAt,
  recordInTurns,
  recordMagic,
  typeOfRecord,
} from './record.js';
import type { RawRecord } from './record.js';

/**
 * Place of a record, as one number that grows along the journal: segment number * 2^32 + byte in the segment's file.
 */
export type JournalPosition = number;
export const positionOf = (segment: number, byte: number): JournalPosition => segment * 2 ** 32 + byte;
export const segmentOf = (p: JournalPosition): number => Math.floor(p / 2 ** 32);
export const byteOf = (p: JournalPosition): number => p % 2 ** 32;

export const segmentName = (segment: number): string => `${String(segment).padStart(8, '0')}.journal`;
/**
 * Every segment starts with 16 bytes: 'DSJ2', the crc32 of the rest and of these four (u32), and the sequence number
 * (f64) of its first record. Version 0.1 wrote 'DSJRNL1\n' and the number, without a checksum.
 */
export const segmentHeader = 16;
const magic = Buffer.from('DSJ2', 'latin1'),
  oldMagic = Buffer.from('DSJRNL1\n', 'latin1');
const headerSum = (head: Buffer): number => crc32(head.subarray(8, segmentHeader), crc32(head.subarray(0, 4)));

export function encodeHeader(seq: number): Buffer {
  const head = Buffer.alloc(segmentHeader);
  magic.copy(head);
  head.writeDoubleLE(seq, 8);
  head.writeUInt32LE(headerSum(head), 4);
  return head;
}
/** The contents of a segment's header; undefined when it is damaged or cut short. `checked`: it has a checksum. */
export function decodeHeader(head: Buffer): { readonly seq: number; readonly checked: boolean } | undefined {
  if (head.length < segmentHeader) return undefined;
  const seq = head.readDoubleLE(8),
    checked = head.subarray(0, 4).equals(magic);
  if (checked ? head.readUInt32LE(4) !== headerSum(head) : !head.subarray(0, 8).equals(oldMagic)) return undefined;
  return isSeq(seq) ? { seq, checked } : undefined;
}

/**
 * Opens one, to read it unless `write`. Rejects with `store.damaged`, or Node's errors with `write`. The journal's folder
 * is one of its run's, and no link.
 */
export function openSegment(dir: string, segment: number, o: Pick<ForeignOptions, 'write'> = {}): Promise<FileHandle> {
  return openForeign(join(dir, segmentName(segment)), { ...o, inside: dirname(dir) }).catch((e: unknown) => {
    if (o.write && !(e instanceof ForeignFileError)) throw e;
    const why = e instanceof ForeignFileError ? e.message : `cannot be opened (${errorCode(e) ?? messageOf(e)})`;
    throw new StudioError(
      'store.damaged',
      `The journal file ${segmentName(segment)} ${why}.`,
      'Restore the journal folder from a copy.',
      { cause: e, details: { dir, code: errorCode(e) } },
    );
  });
}

export async function segments(dir: string): Promise<number[]> {
  const names = await readdir(dir).catch((e: NodeJS.ErrnoException) => {
    if (e.code === 'ENOENT') return [];
    throw e;
  });
  return names
    .flatMap((n) => {
      const m = /^(\d{8})\.journal$/.exec(n);
      return m ? [Number(m[1])] : [];
    })
    .sort((a, b) => a - b);
}

/**
 * A stretch of bytes that are not records. `tail`: at the end of the last segment, where a write may not have finished.
 */
export interface Damage {
  readonly segment: number;
  readonly from: number;
  readonly to: number;
  readonly tail: boolean;
}

export interface JournalEntry {
  readonly seq: number;
  readonly position: JournalPosition;
  readonly next: JournalPosition;
  /** The event's type, found without parsing it. */
  type(): string;
  /** The event, parsed when asked for. */
  event(): unknown;
}
export interface ReadOptions {
  /** Position of the first record wanted. */
  readonly from?: JournalPosition;
  /** First sequence number wanted. */
  readonly fromSeq?: number;
  /** Stop before this position; by default at the end of the last segment. */
  readonly until?: JournalPosition;
  readonly onDamage?: (d: Damage) => void;
}

/** Bytes read at once: few to follow a growing journal, more to read a whole one. */
const pieceBytes = 8 * 1024,
  chunkBytes = 256 * 1024;
/**
 * Looking for the next valid record behind damage may cost this many bytes beyond twice those of the segment, in
 * checksums and copies. Damage never comes near it; a file made for it would hold the reader for hours. What is left of
 * such a segment counts as damaged.
 */
const searchBytes = 8 * maxBody;

/**
 * Records in order, in batches of about 256 kB so that the event loop turns between them. Damaged stretches are
 * reported and skipped up to the next record with a valid checksum; nothing after them is lost. A short record at the
 * end of the last segment ends it.
 */
export async function* readJournal(dir: string, o: ReadOptions = {}): AsyncGenerator<JournalEntry[], void, undefined> {
  const all = await segments(dir);
  const start = await firstSegment(dir, all, o);
  for (const segment of all) {
    if (segment < start || (o.until !== undefined && positionOf(segment, 0) >= o.until)) continue;
    const last = segment === all.at(-1);
    const from = o.from !== undefined && segmentOf(o.from) === segment ? byteOf(o.from) : segmentHeader;
    const until = o.until !== undefined && segmentOf(o.until) === segment ? byteOf(o.until) : Infinity;
    const file = await openSegment(dir, segment);
    try {
      if (from === segmentHeader && o.onDamage && (await headerDamaged(file, last)))
        o.onDamage({ segment, from: 0, to: segmentHeader, tail: false });
      for await (const batch of readSegment(file, segment, from, until, last, o.onDamage)) {
        const wanted = o.fromSeq === undefined ? batch : batch.filter((e) => e.seq >= o.fromSeq!);
        if (wanted.length > 0) yield wanted;
      }
    } finally {
      await file.close();
    }
  }
}

/** The segment to begin with: that of `from`, or the last one that starts at or before `fromSeq`. */
async function firstSegment(dir: string, all: readonly number[], o: ReadOptions): Promise<number> {
  if (o.from !== undefined) return segmentOf(o.from);
  if (o.fromSeq === undefined) return 0;
  for (const segment of [...all].reverse()) {
    const seq = await firstSeq(dir, segment);
    if (seq !== undefined && seq <= o.fromSeq) return segment;
  }
  return 0;
}

/**
 * Sequence number of a segment's first record, from its header; undefined when the header is damaged, or is one of
 * version 0.1, which has no checksum, and the record behind it does not confirm it.
 */
export async function firstSeq(dir: string, segment: number): Promise<number | undefined> {
  const file = await openSegment(dir, segment);
  try {
    const head = await headerOf(file);
    if (head === undefined || head.checked) return head?.seq;
    return (await rawRecord(file, segmentHeader))?.seq === head.seq ? head.seq : undefined;
  } finally {
    await file.close();
  }
}
export async function headerOf(file: FileHandle): Promise<ReturnType<typeof decodeHeader>> {
  const head = Buffer.alloc(segmentHeader),
    { bytesRead } = await file.read(head, 0, segmentHeader, 0);
  return decodeHeader(head.subarray(0, bytesRead));
}
/** Whether a header cannot be believed. That of a segment that was just begun may not be written yet. */
async function headerDamaged(file: FileHandle, last: boolean): Promise<boolean> {
  const head = await headerOf(file);
  if (head?.checked) return false;
  if (head === undefined) return !(last && (await file.stat()).size <= segmentHeader);
  const first = await rawRecord(file, segmentHeader);
  return first !== undefined && first.seq !== head.seq;
}

/** `data`: the whole record. */
export const entryOf = (seq: number, segment: number, byte: number, data: Buffer): JournalEntry => ({
  seq,
  position: positionOf(segment, byte),
  next: positionOf(segment, byte + data.length),
  type: () => typeOfRecord(data),
  event: () => decodeRecord(data),
});

async function* readSegment(
  file: FileHandle,
  segment: number,
  from: number,
  until: number,
  last: boolean,
  onDamage?: (d: Damage) => void,
): AsyncGenerator<JournalEntry[]> {
  let buffer: Buffer = Buffer.alloc(0),
    base = from,
    eof = false,
    piece = pieceBytes,
    badFrom = -1;
  const search = new Search();
  const damage = (to: number, tail: boolean): void => {
    if (badFrom >= 0) onDamage?.({ segment, from: badFrom, to, tail });
    badFrom = -1;
  };
  for (;;) {
    const batch: JournalEntry[] = [];
    let at = 0;
    while (at < buffer.length && base + at < until) {
      const r = isLong(buffer, at) ? await recordInTurns(buffer, at) : recordAt(buffer, at);
      if (r === 'short' && !eof && buffer.length - at <= headerBytes + maxBody) break;
      if (r === 'bad' || r === 'short') {
        // Find the next bytes that may begin a record; the last three may be half a magic number.
        if (badFrom < 0) badFrom = base + at;
        if (search.costs(checkedBytes(buffer, at))) await nextTurn();
        if (search.exhausted(base + at)) {
          if (batch.length > 0) yield batch;
          damage((await file.stat()).size, false);
          return;
        }
        const found = buffer.indexOf(recordStart, at + 1);
        at = found >= 0 ? found : eof ? buffer.length : Math.max(at + 1, buffer.length - 3);
        if (found < 0) break;
        continue;
      }
      damage(base + at, false);
      const { seq, data, bytes } = r;
      batch.push(entryOf(seq, segment, base + at, data));
      at += bytes;
    }
    if (batch.length > 0) yield batch;
    const rest = buffer.subarray(at);
    base += at;
    if (base >= until || (eof && rest.length === 0)) {
      damage(base, last);
      return;
    }
    if (eof) {
      buffer = Buffer.from(rest);
      continue;
    }
    search.costs(rest.length);
    // Read behind what is left, so that no megabytes are copied here.
    const size = Math.max(piece, wantedBytes(rest)),
      chunk = await withRoom(rest, size);
    const { bytesRead } = await file.read(chunk, rest.length, size, base + rest.length);
    eof = bytesRead === 0;
    if (bytesRead === size) piece = Math.min(chunkBytes, 8 * piece);
    buffer = chunk.subarray(0, rest.length + bytesRead);
  }
}
const recordStart = Buffer.alloc(4);
recordStart.writeUInt32LE(recordMagic);

/** Whether the header at `at` announces a record whose checksum takes more than one turn of the event loop. */
const isLong = (buffer: Buffer, at: number): boolean =>
  buffer.length - at >= headerBytes && buffer.readUInt32LE(at + 4) > TURN_BYTES;

/** A copy of the bytes with `room` bytes behind them. */
async function withRoom(bytes: Buffer, room: number): Promise<Buffer> {
  const out = Buffer.allocUnsafe(bytes.length + room);
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) await nextTurn();
    bytes.copy(out, at, at, at + TURN_BYTES);
  }
  return out;
}

/** Counts the bytes searched for the next valid record behind damage. */
class Search {
  #bytes = 0;
  #turn = 0;
  /** Whether it is time for a turn of the event loop. */
  costs(bytes: number): boolean {
    this.#bytes += bytes;
    this.#turn += bytes;
    if (this.#turn < TURN_BYTES) return false;
    this.#turn = 0;
    return true;
  }
  exhausted(read: number): boolean {
    return this.#bytes > searchBytes + 2 * read;
  }
}
/** How many bytes a checksum was made of that did not fit. */
function checkedBytes(buffer: Buffer, at: number): number {
  if (buffer.length - at < headerBytes) return headerBytes;
  const body = buffer.readUInt32LE(at + 4);
  return headerBytes + (body <= maxBody && buffer.length - at >= headerBytes + body ? body : 0);
}

/** How much is still missing of a record whose header is already here. */
function wantedBytes(rest: Buffer): number {
  if (rest.length < headerBytes || rest.readUInt32LE(0) !== recordMagic) return 0;
  const body = rest.readUInt32LE(4);
  return body <= maxBody ? headerBytes + body - rest.length : 0;
}

/** One record by its position; undefined when none is readable there. */
export async function readRecord(file: FileHandle, byte: number): Promise<unknown> {
  const r = await rawRecord(file, byte);
  return r && decodeRecord(r.data);
}
async function rawRecord(file: FileHandle, byte: number): Promise<RawRecord | undefined> {
  let buffer = Buffer.allocUnsafe(4096),
    have = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, have, buffer.length - have, byte + have);
    have += bytesRead;
    const r = recordAt(buffer.subarray(0, have), 0);
    if (typeof r === 'object') return r;
    if (r === 'bad' || bytesRead === 0) return undefined;
    const bigger = Buffer.allocUnsafe(
      have < headerBytes ? buffer.length : Math.max(headerBytes + buffer.readUInt32LE(4), buffer.length),
    );
    buffer.copy(bigger, 0, 0, have);
    buffer = bigger;
  }
}
