import { StudioError } from '../../domain/index.js';
import { beyondBounds } from '../../foreign/jsonBounds.js';
import { crc32, crc32InTurns } from '../../files/crc32.js';

/**
 * One journal record on disk:
 * u32 magic | u32 body length | u32 crc32 of everything after this field | u32 JSON length | f64 sequence number | JSON
 *   | binary tail Typed arrays of the event lie in the tail; in the JSON they are {"$bin": [kind, byte offset,
 *   length]}. All little-endian.
 */
export const recordMagic = 0xd5a71e55;
export const headerBytes = 24;
/** No record is larger; a length beyond it is damage. */
export const maxBody = 64 << 20;
/** JSON of a record, which is parsed in one go: as much takes some tens of ms. Numbers by the thousand are in the tail. */
export const maxJson = 4 << 20;

/** No journal gets near it, and far above it numbers can no longer be told apart. */
const maxSeq = 2 ** 52;
export const isSeq = (n: number): boolean => Number.isInteger(n) && n >= 0 && n <= maxSeq;

const kinds = { f32: Float32Array, f64: Float64Array, i32: Int32Array, u8: Uint8Array } as const;
type Kind = keyof typeof kinds;
type Binary = Float32Array | Float64Array | Int32Array | Uint8Array;
const kindOf = (v: object): Kind | undefined =>
  v instanceof Float32Array
    ? 'f32'
    : v instanceof Float64Array
      ? 'f64'
      : v instanceof Int32Array
        ? 'i32'
        : v instanceof Uint8Array
          ? 'u8'
          : undefined;

/** Throws for a value JSON cannot hold (a cycle, a bigint) or one over `maxBody` or `maxJson`. */
export function encodeRecord(seq: number, event: object): Buffer {
  const tail: Buffer[] = [];
  let tailBytes = 0;
  const json = Buffer.from(
    JSON.stringify(event, function (this: Record<string, unknown>, key: string, value: unknown): unknown {
      // A Buffer turns itself into JSON before the replacer sees it: look at the holder.
      const v = this[key];
      const kind = typeof v === 'object' && v !== null ? kindOf(v) : undefined;
      if (!kind) return value;
      const a = v as Binary,
        bytes = Buffer.from(a.buffer, a.byteOffset, a.byteLength);
      tail.push(bytes);
      tailBytes += bytes.length;
      return { $bin: [kind, tailBytes - bytes.length, a.length] };
    }),
  );
  // A tail, even of one byte, tells the reader to look for arrays: empty ones need it too.
  if (tail.length > 0 && tailBytes === 0) {
    tail.push(Buffer.alloc(1));
    tailBytes = 1;
  }
  const body = json.length + tailBytes;
  if (body > maxBody || json.length > maxJson)
    throw new RangeError(`a record of ${body} bytes, ${json.length} of them JSON, is too large`);
  const out = Buffer.allocUnsafe(headerBytes + body);
  out.writeUInt32LE(recordMagic, 0);
  out.writeUInt32LE(body, 4);
  out.writeUInt32LE(json.length, 12);
  out.writeDoubleLE(seq, 16);
  json.copy(out, headerBytes);
  let at = headerBytes + json.length;
  for (const t of tail) {
    t.copy(out, at);
    at += t.length;
  }
  out.writeUInt32LE(crc32(out.subarray(12)), 8);
  return out;
}

export interface RawRecord {
  readonly seq: number;
  readonly bytes: number;
  /** The record's own bytes; valid until the reader goes on. */
  readonly data: Buffer;
}

/** What lies at `at`: a whole valid record, the beginning of one (`short`: more bytes are needed), or neither. */
export function recordAt(buffer: Buffer, at: number): RawRecord | 'short' | 'bad' {
  const bytes = extentAt(buffer, at);
  if (typeof bytes !== 'number') return bytes;
  return checkedRecord(buffer, at, bytes, crc32(buffer.subarray(at + 12, at + bytes)));
}
/** The same without holding up the event loop, however long the record is. */
export async function recordInTurns(buffer: Buffer, at: number): Promise<RawRecord | 'short' | 'bad'> {
  const bytes = extentAt(buffer, at);
  if (typeof bytes !== 'number') return bytes;
  return checkedRecord(buffer, at, bytes, await crc32InTurns(buffer.subarray(at + 12, at + bytes)));
}

/** Bytes of the record that seems to begin at `at`: its checksum is not looked at. */
function extentAt(buffer: Buffer, at: number): number | 'short' | 'bad' {
  if (buffer.length - at < headerBytes) {
    // Fewer bytes than a header can still be the beginning of one.
    const n = Math.min(4, buffer.length - at),
      magic = Buffer.alloc(4);
    magic.writeUInt32LE(recordMagic);
    return buffer.subarray(at, at + n).equals(magic.subarray(0, n)) ? 'short' : 'bad';
  }
  if (buffer.readUInt32LE(at) !== recordMagic) return 'bad';
  const body = buffer.readUInt32LE(at + 4),
    json = buffer.readUInt32LE(at + 12);
  if (body > maxBody || json > Math.min(body, maxJson)) return 'bad';
  const bytes = headerBytes + body;
  if (buffer.length - at < bytes) return 'short';
  return bytes;
}
function checkedRecord(buffer: Buffer, at: number, bytes: number, checksum: number): RawRecord | 'bad' {
  if (checksum !== buffer.readUInt32LE(at + 8)) return 'bad';
  const seq = buffer.readDoubleLE(at + 16);
  return isSeq(seq) ? { seq, bytes, data: buffer.subarray(at, at + bytes) } : 'bad';
}

/** Records are small: only of long ones it is asked first what parsing them would cost. */
const unchecked = 64 << 10,
  bounds = { depth: 64, values: 1 << 19 };
/**
 * Event of a valid record; typed arrays get memory of their own. Throws `store.damaged` where the content is none of
 * ours: a checksum tells damage from what was written, not by whom it was written.
 */
export function decodeRecord(data: Buffer): unknown {
  const jsonLength = data.readUInt32LE(12),
    text = data.toString('utf8', headerBytes, headerBytes + jsonLength);
  try {
    const beyond = jsonLength > unchecked ? beyondBounds(text, bounds) : undefined;
    if (beyond !== undefined) throw new TypeError(`it ${beyond}`);
    const event: unknown = JSON.parse(text);
    if (typeof event !== 'object' || event === null) throw new TypeError('it is no event');
    if (headerBytes + jsonLength === data.length) return event;
    return restore(event, data.subarray(headerBytes + jsonLength));
  } catch (cause) {
    throw new StudioError(
      'store.damaged',
      'A record of the journal cannot be understood.',
      'Restore the journal folder from a copy, or leave this run folder alone: DART Studio did not write it.',
      { cause },
    );
  }
}

/** Puts the arrays back in place. (A JSON.parse reviver does the same several times slower.) */
function restore(value: unknown, tail: Buffer): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const o = value as Record<string, unknown>;
  for (const key in o) {
    const v = o[key];
    if (typeof v !== 'object' || v === null) continue;
    o[key] = arrayOf((v as { $bin?: unknown }).$bin, tail) ?? restore(v, tail);
  }
  return value;
}
function arrayOf(bin: unknown, tail: Buffer): Binary | undefined {
  if (!Array.isArray(bin)) return undefined;
  const [kind, offset, length] = bin as [unknown, unknown, unknown];
  if (typeof kind !== 'string' || !Object.hasOwn(kinds, kind)) return undefined;
  const make = kinds[kind as Kind],
    bytes = Number(length) * make.BYTES_PER_ELEMENT;
  if (!isSeq(Number(offset)) || !isSeq(Number(length)) || Number(offset) + bytes > tail.length)
    throw new RangeError('an array lies outside its record');
  const own = new Uint8Array(bytes);
  own.set(tail.subarray(Number(offset), Number(offset) + bytes));
  return new make(own.buffer);
}

/** Type of an event without parsing it: events are written with `type` first. Empty when it is not. */
export function typeOfRecord(data: Buffer): string {
  const start = headerBytes + typePrefix.length;
  if (!data.subarray(headerBytes, start).equals(typePrefix)) return '';
  const end = data.indexOf(0x22, start);
  return end < 0 ? '' : data.toString('latin1', start, end);
}
const typePrefix = Buffer.from('{"type":"');
