/**
 * A file of packed frames, little-endian throughout: records one behind another, then, once nothing more is added, the
 * contents.
 *
 *     record    u32 magic | u32 bytes of the frame | u32 CRC-32 of the frame | SHA-256 that names it (32 bytes) |
 *               u32 CRC-32 of the 44 bytes before | the frame, a PNG file
 *     contents  a record of another magic, named by zeros, of 40 bytes a frame: its name, u32 place of its record,
 *               u32 bytes of the frame; behind it u32 place of the contents | u32 magic
 *
 * A frame is named by what it holds, so that a record proves itself: who reads one checks its bytes, and where records
 * lie is only ever believed until then.
 */
import type { FileHandle } from 'node:fs/promises';
import { crc32, crc32InTurns } from '../../files/crc32.js';

/** Bytes of one frame's file: what a screen of 16 million pixels takes where nothing can be compressed. */
export const maxFrameBytes = 80 << 20;
export const headBytes = 48;
const FRAME = 0x7246_5344,
  CONTENTS = 0x6946_5344,
  END = 0x6546_5344,
  endBytes = 8,
  entryBytes = 40;
/** Frames of one file, and bytes of it that are looked at: no writer makes more of either. */
export const mostFrames = 1 << 15;
const mostBytes = 256 << 20;
/** Read at a time where records are looked for. */
const WINDOW = 64 << 10;
/** Checksums, at most, to find the next record behind damage: made to cost time, a file has a magic number every 4 bytes. */
const MOST_TRIES = 1 << 19;

/** Where a frame lies in its file. */
export interface Packed {
  /** 32 bytes. */
  readonly name: Buffer;
  /** Byte of the file at which the frame's record begins. */
  readonly at: number;
  /** Bytes of the frame without the head of its record. */
  readonly bytes: number;
}
export interface PackFound {
  readonly frames: Packed[];
  /** Bytes of the file. */
  readonly size: number;
  /** Behind the last whole record: where a look at a file that has grown goes on. */
  readonly end: number;
  /** The table of contents is written: no frame is added any more. */
  readonly sealed: boolean;
}

function head(magic: number, name: Buffer, bytes: number, crc: number): Buffer {
  const out = Buffer.alloc(headBytes);
  out.writeUInt32LE(magic, 0);
  out.writeUInt32LE(bytes, 4);
  out.writeUInt32LE(crc, 8);
  name.copy(out, 12);
  out.writeUInt32LE(crc32(out.subarray(0, 44)), 44);
  return out;
}
export const recordHead = async (name: Buffer, frame: Buffer): Promise<Buffer> =>
  head(FRAME, name, frame.length, await crc32InTurns(frame));

/** The table of contents that is written behind the frames of a file, at byte `at`. */
export function contentsOf(frames: readonly Packed[], at: number): Buffer {
  const entries = Buffer.alloc(frames.length * entryBytes),
    end = Buffer.alloc(endBytes);
  frames.forEach((f, i) => {
    f.name.copy(entries, i * entryBytes);
    entries.writeUInt32LE(f.at, i * entryBytes + 32);
    entries.writeUInt32LE(f.bytes, i * entryBytes + 36);
  });
  end.writeUInt32LE(at, 0);
  end.writeUInt32LE(END, 4);
  return Buffer.concat([head(CONTENTS, Buffer.alloc(32), entries.length, crc32(entries)), entries, end]);
}

/** The head at `at` of `bytes`, which hold all of it; undefined where there is none. */
function headAt(bytes: Buffer, at: number): { readonly contents: boolean; readonly bytes: number } | undefined {
  const magic = bytes.readUInt32LE(at),
    length = bytes.readUInt32LE(at + 4);
  if (magic !== FRAME && magic !== CONTENTS) return undefined;
  if (length > maxFrameBytes || bytes.readUInt32LE(at + 44) !== crc32(bytes.subarray(at, at + 44))) return undefined;
  return { contents: magic === CONTENTS, bytes: length };
}

/** At most `most` bytes from `at`; fewer at the end of the file. */
async function bytesAt(file: FileHandle, at: number, most: number): Promise<Buffer> {
  const out = Buffer.allocUnsafe(most);
  let have = 0;
  while (have < most) {
    const { bytesRead } = await file.read(out, have, most - have, at + have);
    if (bytesRead === 0) break;
    have += bytesRead;
  }
  return out.subarray(0, have);
}

/** The frame of a record; undefined where it is not whole, or another's. */
export async function readPacked(file: FileHandle, { name, at, bytes }: Packed): Promise<Buffer | undefined> {
  const record = await bytesAt(file, at, headBytes + bytes);
  if (record.length < headBytes + bytes) return undefined;
  const frame = frameIn(record, { name, bytes });
  return frame && (await crc32InTurns(frame)) === record.readUInt32LE(8) ? frame : undefined;
}
/** The frame of a record that is whole, by its head; undefined where it is another's. */
export function frameIn(record: Buffer, { name, bytes }: Omit<Packed, 'at'>): Buffer | undefined {
  const found = headAt(record, 0);
  return found?.contents === false && found.bytes === bytes && record.subarray(12, 44).equals(name)
    ? record.subarray(headBytes)
    : undefined;
}

/** The table of contents of a file; undefined when it is missing or damaged. */
async function contents(file: FileHandle, size: number): Promise<PackFound | undefined> {
  if (size < headBytes + endBytes) return undefined;
  const end = await bytesAt(file, size - endBytes, endBytes),
    at = end.length === endBytes && end.readUInt32LE(4) === END ? end.readUInt32LE(0) : Infinity,
    length = size - endBytes - headBytes - at;
  if (length < 0 || length > mostFrames * entryBytes || length % entryBytes !== 0) return undefined;
  const record = await bytesAt(file, at, headBytes + length);
  if (record.length < headBytes + length) return undefined;
  const found = headAt(record, 0),
    entries = record.subarray(headBytes);
  if (!found?.contents || found.bytes !== length || crc32(entries) !== record.readUInt32LE(8)) return undefined;
  const frames: Packed[] = [];
  for (let i = 0; i < length; i += entryBytes) {
    const f = {
      name: entries.subarray(i, i + 32),
      at: entries.readUInt32LE(i + 32),
      bytes: entries.readUInt32LE(i + 36),
    };
    if (f.bytes > 0 && f.bytes <= maxFrameBytes && f.at + headBytes + f.bytes <= at) frames.push(f);
  }
  return { frames, size, end: size, sealed: true };
}

/**
 * Frames of a file, from the record at `from` on, which an earlier look ended at. Damaged stretches are passed over. A
 * record that the end of the file cuts short is not there yet: its writer is at it, or was killed.
 */
export async function framesOfPack(file: FileHandle, from = 0): Promise<PackFound> {
  const { size } = await file.stat(),
    said = await contents(file, size);
  if (said) return from === 0 ? said : { ...said, frames: said.frames.filter((f) => f.at >= from) };
  const frames: Packed[] = [],
    last = Math.min(size, mostBytes);
  let window: Buffer = Buffer.alloc(0),
    start = 0,
    at = from,
    /** Behind the last record: what lies between it and the next is damaged, or being written. */
    end = from,
    tries = MOST_TRIES;
  while (at + headBytes <= last && frames.length < mostFrames) {
    if (at < start || at + headBytes > start + window.length) {
      start = at;
      window = await bytesAt(file, at, Math.min(WINDOW, last - at));
      if (window.length < headBytes) break;
    }
    const i = at - start,
      found = headAt(window, i);
    if (found && at + headBytes + found.bytes <= size) {
      if (!found.contents && found.bytes > 0)
        frames.push({ name: Buffer.from(window.subarray(i + 12, i + 44)), at, bytes: found.bytes });
      at += headBytes + found.bytes;
      end = at;
      continue;
    }
    // The next magic number; the last 3 bytes of a window may be the first of one.
    if (--tries < 0) break;
    const next = window.indexOf(MAGIC, i + 1);
    at = next < 0 ? Math.max(at + 1, start + window.length - 3) : start + next;
  }
  return { frames, size, end, sealed: false };
}
const MAGIC = Buffer.alloc(4);
MAGIC.writeUInt32LE(FRAME);
