import { crc32 } from './crc32.js';

/** The first eight bytes of every PNG file. */
export const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** One chunk of a PNG file: length, type of four letters, data, CRC-32 of type and data (PNG, 5.3). */
export function pngChunk(type: string, data: Buffer): Buffer {
  const out = Buffer.allocUnsafe(12 + data.length);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + data.length)), 8 + data.length);
  return out;
}

export interface PngParts {
  /** In pixels, as `height`. */
  readonly width: number;
  readonly height: number;
  /** One byte for each of R, G and B; of an index, where a palette is given. */
  readonly palette?: Buffer;
  /** Scanlines, each after the byte of its filter, as a zlib stream. */
  readonly data: Buffer;
}
/** A whole file of 8 bits a sample, not interlaced: RGB, or indices into a palette. */
export function pngFile({ width, height, palette, data }: PngParts): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  head[9] = palette ? 3 : 2;
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', head),
    ...(palette ? [pngChunk('PLTE', palette)] : []),
    pngChunk('IDAT', data),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}
