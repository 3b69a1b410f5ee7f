import { deflateSync } from 'node:zlib';
import { random } from '../../../domain/index.js';

/** A PNG of `size` x `size` pixels in blocks of colour; another `seed`, other colours. */
export function picture(size: number, seed: number): Uint8Array {
  const block = Math.ceil(size / 8),
    rng = random(`probe/picture/${seed}`),
    colours = Uint8Array.from({ length: 3 * 64 }, () => rng.int(256)),
    rows = Buffer.alloc(size * (1 + 3 * size));
  // Draws one row of each block, and copies it.
  for (let y = 0; y < size; y++) {
    const at = y * (1 + 3 * size);
    if (y % block > 0) rows.copy(rows, at, at - 1 - 3 * size, at);
    else
      for (let x = 0; x < size; x++)
        for (let c = 0; c < 3; c++)
          rows[at + 1 + 3 * x + c] = colours[3 * (Math.floor(y / block) * 8 + Math.floor(x / block)) + c]!;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  // 8 bits, RGB.
  header.set([8, 2], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    part('IHDR', header),
    part('IDAT', deflateSync(rows)),
    part('IEND', Buffer.alloc(0)),
  ]);
}
function part(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]),
    out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  out.set(body, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}
function crc32(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
