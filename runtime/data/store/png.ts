import { deflate as deflateCb, inflate as inflateCb } from 'node:zlib';
import { promisify } from 'node:util';
import { StudioError, type Frame, messageOf } from '../../domain/index.js';
import { crc32InTurns } from '../../files/crc32.js';
import { packRgb, wordsOf } from '../../files/packRgb.js';
import { isPng, maxChunks, paeth } from '../../files/png.js';
import { pngFile } from '../../files/pngWriter.js';
import { slicePixels, slices } from '../../files/slices.js';

/**
 * PNG for screens: 8-bit RGB, filter "none", zlib level 1 on the thread pool. Flat desktop colours gain nothing from
 * filters (measured: "up" files were 20 to 40 % larger), so a scanline is a zero byte and the row's RGB.
 */
const deflate = promisify(deflateCb),
  inflate = promisify(inflateCb);
/** zlib level 1. */
export type Compress = (raw: Buffer) => Buffer | Promise<Buffer>;
const onPool: Compress = (raw) => deflate(raw, { level: 1 });
const rowsPerSlice = (width: number): number => Math.max(1, Math.floor(slicePixels / width));

/** Bytes of RGB made at a time: they are still in the processor's cache when they are hashed and copied. */
const BLOCK_BYTES = 128 * 1024;

/**
 * BGRX to scanlines (filter byte 0, then RGB); `each` sees the RGB of all rows in order, some rows at a time, and must
 * not keep it. In slices.
 */
export async function toScanlines(
  bgrx: Buffer,
  width: number,
  height: number,
  each: (rgb: Buffer) => void,
): Promise<Buffer> {
  const stride = width * 3 + 1,
    out = Buffer.allocUnsafe(stride * height),
    pixels = wordsOf(bgrx),
    rows = Math.max(1, Math.floor(BLOCK_BYTES / (width * 3))),
    block = new Uint32Array(Math.ceil((rows * width * 3) / 4)),
    rgb = Buffer.from(block.buffer);
  await slices.over(height, rowsPerSlice(width), (from, to) => {
    for (let y = from; y < to; y += rows) {
      const n = Math.min(rows, to - y);
      packRgb(pixels.subarray(y * width, (y + n) * width), block, rgb);
      each(rgb.subarray(0, n * width * 3));
      for (let r = 0; r < n; r++) {
        const o = (y + r) * stride;
        out[o] = 0;
        rgb.copy(out, o + 1, r * width * 3, (r + 1) * width * 3);
      }
    }
  });
  return out;
}

export async function encodePng(scanlines: Buffer, width: number, height: number, compress = onPool): Promise<Buffer> {
  return pngFile({ width, height, data: await compress(scanlines) });
}

/** The size of an 8-bit RGB picture that is not interlaced, from the first bytes of its file; undefined for any other. */
export function sizeOf(file: Buffer): { readonly width: number; readonly height: number } | undefined {
  const right =
    file.length >= 33 &&
    isPng(file) &&
    file.toString('latin1', 12, 16) === 'IHDR' &&
    file[24] === 8 &&
    file[25] === 2 &&
    file[28] === 0;
  return right ? { width: file.readUInt32BE(16), height: file.readUInt32BE(20) } : undefined;
}

/** Bytes of a screen before it is compressed: 22 million pixels. */
const maxRaw = 64 << 20;

const damaged = (why: string): StudioError =>
  new StudioError(
    'store.damaged',
    `The frame is not a readable PNG: ${why}.`,
    'Restore the run folder from a copy; other frames are not affected.',
  );

/**
 * RGB rows without padding; `each` sees them slice by slice. Reads what `encodePng` writes and any other non-interlaced
 * 8-bit RGB PNG; rejects with `store.damaged`.
 */
export async function decodePng(
  file: Buffer,
  each?: (rgb: Buffer) => void,
): Promise<{ width: number; height: number; rgb: Buffer }> {
  if (file.length < 33 || !isPng(file)) throw damaged('wrong signature');
  let width = 0,
    height = 0,
    chunks = 0;
  const data: Buffer[] = [];
  for (let at = 8; at + 12 <= file.length;) {
    const length = file.readUInt32BE(at),
      type = file.toString('latin1', at + 4, at + 8),
      end = at + 8 + length;
    if (end + 4 > file.length) throw damaged('cut short');
    if (++chunks > maxChunks) throw damaged('too many parts');
    if ((await crc32InTurns(file.subarray(at + 4, end))) !== file.readUInt32BE(end)) throw damaged('checksum differs');
    const body = file.subarray(at + 8, end);
    if (type === 'IHDR') {
      if (body.length !== 13) throw damaged('wrong header');
      width = body.readUInt32BE(0);
      height = body.readUInt32BE(4);
      if (body[8] !== 8 || body[9] !== 2 || body[12] !== 0) throw damaged('not 8-bit RGB');
    } else if (type === 'IDAT') data.push(body);
    else if (type === 'IEND') break;
    at = end + 4;
  }
  const stride = width * 3;
  if (width === 0 || height === 0 || (stride + 1) * height > maxRaw) throw damaged('impossible size');
  // The bound stops a small file from inflating without end.
  const raw = await inflate(Buffer.concat(data), { maxOutputLength: (stride + 1) * height }).catch((e: unknown) => {
    throw damaged(String(messageOf(e)));
  });
  if (raw.length !== (stride + 1) * height) throw damaged('too few pixels');
  const rgb = Buffer.alloc(stride * height);
  await slices.over(height, rowsPerSlice(width), (from, to) => {
    for (let y = from; y < to; y++)
      unfilter(
        raw[y * (stride + 1)]!,
        raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)),
        rgb,
        y * stride,
        stride,
      );
    each?.(rgb.subarray(from * stride, to * stride));
  });
  return { width, height, rgb };
}

function unfilter(type: number, row: Buffer, out: Buffer, at: number, stride: number): void {
  if (type === 0) {
    row.copy(out, at);
    return;
  }
  if (type > 4) throw damaged(`unknown filter ${type}`);
  for (let x = 0; x < stride; x++) {
    const a = x >= 3 ? out[at + x - 3]! : 0,
      b = at >= stride ? out[at + x - stride]! : 0,
      c = x >= 3 && at >= stride ? out[at + x - 3 - stride]! : 0;
    out[at + x] = row[x]! + (type === 1 ? a : type === 2 ? b : type === 3 ? (a + b) >> 1 : paeth(a, b, c));
  }
}

/** RGB rows to BGRX, in slices. */
export async function toBgrx(rgb: Buffer, width: number, height: number): Promise<Buffer> {
  const n = width * height,
    out = Buffer.allocUnsafe(n * 4);
  await slices.over(n, slicePixels, (from, to) => {
    for (let i = from; i < to; i++) {
      out[i * 4] = rgb[i * 3 + 2]!;
      out[i * 4 + 1] = rgb[i * 3 + 1]!;
      out[i * 4 + 2] = rgb[i * 3]!;
      out[i * 4 + 3] = 0;
    }
  });
  return out;
}

/** A frame as a PNG file. */
export const pngOf = async (f: Frame): Promise<Buffer> =>
  encodePng(await toScanlines(f.data, f.width, f.height, () => undefined), f.width, f.height);
