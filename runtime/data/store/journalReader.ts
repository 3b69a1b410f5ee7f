import { open, readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeRecord, headerBytes, maxBody, recordAt, recordMagic, typeOfRecord } from './record.js';

/**
 * Where a record lies, as one number that grows along the journal: segment number * 2^32 + byte in the segment's file.
 */
export type JournalPosition = number;
export const positionOf = (segment: number, byte: number): JournalPosition => segment * 2 ** 32 + byte;
export const segmentOf = (p: JournalPosition): number => Math.floor(p / 2 ** 32);
export const byteOf = (p: JournalPosition): number => p % 2 ** 32;

export const segmentName = (segment: number): string => `${String(segment).padStart(8, '0')}.journal`;
/** Every segment starts with this and the sequence number (f64) of its first record. */
export const segmentMagic = Buffer.from('DSJRNL1\n', 'latin1');
export const segmentHeader = 16;

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

const chunkBytes = 256 * 1024;

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
    const file = await open(join(dir, segmentName(segment)), 'r');
    try {
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

/** Sequence number of a segment's first record, from its header; undefined when the header is damaged. */
export async function firstSeq(dir: string, segment: number): Promise<number | undefined> {
  const file = await open(join(dir, segmentName(segment)), 'r');
  try {
    const head = Buffer.alloc(segmentHeader);
    const { bytesRead } = await file.read(head, 0, segmentHeader, 0);
    return bytesRead === segmentHeader && head.subarray(0, 8).equals(segmentMagic) ? head.readDoubleLE(8) : undefined;
  } finally {
    await file.close();
  }
}

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
    badFrom = -1;
  const magic = Buffer.alloc(4);
  magic.writeUInt32LE(recordMagic);
  const damage = (to: number, tail: boolean): void => {
    if (badFrom >= 0) onDamage?.({ segment, from: badFrom, to, tail });
    badFrom = -1;
  };
  for (;;) {
    const batch: JournalEntry[] = [];
    let at = 0;
    while (at < buffer.length && base + at < until) {
      const r = recordAt(buffer, at);
      if (r === 'short' && !eof && buffer.length - at <= headerBytes + maxBody) break;
      if (r === 'bad' || r === 'short') {
        // Find the next bytes that may begin a record; the last three may be half a magic number.
        if (badFrom < 0) badFrom = base + at;
        const found = buffer.indexOf(magic, at + 1);
        at = found >= 0 ? found : eof ? buffer.length : Math.max(at + 1, buffer.length - 3);
        if (found < 0) break;
        continue;
      }
      damage(base + at, false);
      const { seq, data, bytes } = r;
      batch.push({
        seq,
        position: positionOf(segment, base + at),
        next: positionOf(segment, base + at + bytes),
        type: () => typeOfRecord(data),
        event: () => decodeRecord(data),
      });
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
    const chunk = Buffer.allocUnsafe(Math.max(chunkBytes, wantedBytes(rest)));
    const { bytesRead } = await file.read(chunk, 0, chunk.length, base + rest.length);
    eof = bytesRead === 0;
    buffer = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
  }
}

/** How much is still missing of a record whose header is already here. */
function wantedBytes(rest: Buffer): number {
  if (rest.length < headerBytes || rest.readUInt32LE(0) !== recordMagic) return 0;
  const body = rest.readUInt32LE(4);
  return body <= maxBody ? headerBytes + body - rest.length : 0;
}

/** One record by its position; undefined when none is readable there. */
export async function readRecord(file: FileHandle, byte: number): Promise<unknown> {
  let buffer = Buffer.allocUnsafe(4096),
    have = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, have, buffer.length - have, byte + have);
    have += bytesRead;
    const r = recordAt(buffer.subarray(0, have), 0);
    if (typeof r === 'object') return decodeRecord(r.data);
    if (r === 'bad' || bytesRead === 0) return undefined;
    const bigger = Buffer.allocUnsafe(
      have < headerBytes ? buffer.length : Math.max(headerBytes + buffer.readUInt32LE(4), buffer.length),
    );
    buffer.copy(bigger, 0, 0, have);
    buffer = bigger;
  }
}
