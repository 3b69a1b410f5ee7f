import * as zlib from 'node:zlib';
import { nextTurn } from '../concurrency/turns.js';

/** The CRC-32 (ISO 3309, as in PNG and zlib) of every single byte. */
let table: Int32Array | undefined;
function tableOf(): Int32Array {
  if (table) return table;
  table = new Int32Array(256);
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    table[n] = c;
  }
  return table;
}

/** CRC-32 in JavaScript, for Node 20.0 to 20.14, which have no `zlib.crc32`. */
export function crc32InJs(bytes: Uint8Array, value = 0): number {
  const t = tableOf();
  let c = ~value;
  for (let i = 0; i < bytes.length; i++) c = t[(c ^ bytes[i]!) & 0xff]! ^ (c >>> 8);
  return ~c >>> 0;
}

const native = (zlib as { readonly crc32?: (bytes: Uint8Array, value?: number) => number }).crc32;
/** CRC-32 of the bytes, going on from `value`; unsigned. */
export const crc32: (bytes: Uint8Array, value?: number) => number = native ?? crc32InJs;

/** Bytes that are summed, searched or copied between two turns of the event loop: a few ms at most. */
export const TURN_BYTES = 2 << 20;
/** The same of many bytes, without holding up the event loop. */
export async function crc32InTurns(bytes: Uint8Array): Promise<number> {
  let value = 0;
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) await nextTurn();
    value = crc32(bytes.subarray(at, at + TURN_BYTES), value);
  }
  return value;
}
