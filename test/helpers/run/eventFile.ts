import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A reader of TensorBoard's event files that shares nothing with the writer: TFRecords with their masked CRC-32C, and
 * of the messages in them the scalars.
 */
export interface ReadScalar {
  readonly tag: string;
  readonly step: number;
  readonly value: number;
}

/** Bit by bit, from the polynomial of RFC 3720. */
function checksum(b: Uint8Array): number {
  let c = ~0;
  for (const x of b) {
    c ^= x;
    for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (0x82f63b78 & -(c & 1));
  }
  const crc = BigInt(~c >>> 0);
  return Number((((crc >> 15n) | (crc << 17n)) + 0xa282ead8n) & 0xffffffffn);
}
/** A field of protobuf: its number, and a number or the bytes of what is in it. */
type Field = readonly [number, number | Buffer];
function fields(b: Buffer): Field[] {
  const out: Field[] = [];
  let at = 0;
  const varint = (): number => {
    for (let n = 0, shift = 1; ; shift *= 128) {
      const x = b[at++]!;
      n += (x & 127) * shift;
      if (x < 128) return n;
    }
  };
  while (at < b.length) {
    const key = varint(),
      size = { 0: 0, 1: 8, 2: -1, 5: 4 }[key & 7];
    if (size === undefined) throw new Error(`protobuf has no kind ${key & 7}`);
    if (size === 0) out.push([key >> 3, varint()]);
    else {
      const n = size < 0 ? varint() : size;
      out.push([key >> 3, b.subarray(at, at + n)]);
      at += n;
    }
  }
  return out;
}
const bytesOf = (all: readonly Field[], number: number): Buffer[] =>
  all.flatMap(([n, v]) => (n === number && typeof v !== 'number' ? [v] : []));

/** The scalars of a file; a last record that is cut is left out. Throws where a checksum does not fit. */
export function scalarsOfFile(b: Buffer): ReadScalar[] {
  const out: ReadScalar[] = [];
  for (let at = 0; at + 12 <= b.length;) {
    const length = Number(b.readBigUInt64LE(at)),
      end = at + 12 + length;
    if (b.readUInt32LE(at + 8) !== checksum(b.subarray(at, at + 8))) throw new Error(`length at ${at} is damaged`);
    if (end + 4 > b.length) break;
    const data = b.subarray(at + 12, end);
    if (b.readUInt32LE(end) !== checksum(data)) throw new Error(`record at ${at} is damaged`);
    const event = fields(data),
      step = event.find(([n]) => n === 2)?.[1] ?? 0;
    for (const summary of bytesOf(event, 5))
      for (const value of bytesOf(fields(summary), 1)) {
        const [tag] = bytesOf(fields(value), 1),
          [simple] = bytesOf(fields(value), 2);
        out.push({ tag: tag!.toString(), step: Number(step), value: simple!.readFloatLE() });
      }
    at = end + 4;
  }
  return out;
}
/** All files of a folder, in the order in which TensorBoard reads them. */
export const eventFiles = (dir: string): readonly Buffer[] =>
  readdirSync(dir)
    .filter((f) => f.startsWith('events.out.tfevents.'))
    .sort()
    .map((f) => readFileSync(join(dir, f)));
