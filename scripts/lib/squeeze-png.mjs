// Writes the PNG files of a folder again with the smallest deflate stream that zlib finds; pixels stay as they are. The
// store writes them fast, which costs a quarter of their size; what is shipped is written once.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, crc32, deflateSync, inflateSync } from 'node:zlib';

const { Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED } = constants;

function smallest(raw) {
  const tried = [Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED].flatMap((strategy) =>
    [8, 9].map((memLevel) => deflateSync(raw, { level: 9, memLevel, strategy })),
  );
  return tried.reduce((a, b) => (b.length < a.length ? b : a));
}

function chunk(type, data) {
  const out = Buffer.alloc(12 + data.length);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length);
  return out;
}

export function squeezePng(png) {
  const others = [],
    parts = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at),
      type = png.toString('latin1', at + 4, at + 8);
    if (type === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    else if (type !== 'IEND') others.push(png.subarray(at, at + 12 + length));
    at += 12 + length;
  }
  const data = chunk('IDAT', smallest(inflateSync(Buffer.concat(parts))));
  return Buffer.concat([png.subarray(0, 8), ...others, data, chunk('IEND', Buffer.alloc(0))]);
}

/** Every PNG below the folder. */
export function squeezePictures(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.png')) continue;
    const file = join(folder, name),
      before = readFileSync(file),
      after = squeezePng(before);
    if (after.length < before.length) writeFileSync(file, after);
  }
}
