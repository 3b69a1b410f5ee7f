import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { random, type Size } from '../../../domain/index.js';

/** A PNG of 8 x 8 blocks of colour; another `seed`, other colours. Compressed on another thread: a screen has megabytes. */
export async function picture({ width, height }: Size, seed: number): Promise<Uint8Array> {
  const [wide, high] = [Math.ceil(width / 8), Math.ceil(height / 8)],
    rng = random(`probe/picture/${seed}`),
    colours = Uint8Array.from({ length: 3 * 64 }, () => rng.int(256)),
    row = 1 + 3 * width,
    rows = Buffer.alloc(height * row);
  // Draws one row of each block, and copies it.
  for (let y = 0; y < height; y++) {
    const at = y * row;
    if (y % high > 0) rows.copy(rows, at, at - row, at);
    else
      for (let x = 0; x < width; x++)
        for (let c = 0; c < 3; c++)
          rows[at + 1 + 3 * x + c] = colours[3 * (Math.floor(y / high) * 8 + Math.floor(x / wide)) + c]!;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // 8 bits, RGB.
  header.set([8, 2], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    part('IHDR', header),
    part('IDAT', await promisify(deflate)(rows)),
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
