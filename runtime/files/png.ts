import { inflate as inflateCb } from 'node:zlib';
import { promisify } from 'node:util';
import type { Size } from '../domain/index.js';
import { messageOf } from '../domain/index.js';
import { Unusable } from '../foreign/unusable.js';
import { crc32InTurns } from './crc32.js';
import { PNG_SIGNATURE, pngFile } from './pngWriter.js';
import { slicePixels, slices } from './slices.js';

/**
 * PNG of strangers: any colour type, not interlaced, its size bounded before anything is inflated. Transparency is
 * dropped: a screen has none. Not fast-png: it inflates in one go, whatever comes out of it, on the thread that calls;
 * a small file made for it would take all memory.
 */
const inflate = promisify(inflateCb);
/** Samples a pixel, by colour type: grey, -, RGB, palette, grey and alpha, -, RGBA. */
const samples = [1, 0, 3, 1, 2, 0, 4];
const depths: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

/** Chunks of a file: encoders write some kilobytes each, and every one costs time. */
export const maxChunks = 65_536;
/** Pixels of one screen (4096 x 4096), and its longer side. */
export const MOST_PIXELS = 1 << 24,
  MOST_SIDE = 16_384;

/** Throws Unusable for sizes no screen has. */
export function checkSize(width: number, height: number): Size {
  if (width < 1 || height < 1 || width > MOST_SIDE || height > MOST_SIDE || width * height > MOST_PIXELS)
    throw new Unusable(`claims to be ${width}x${height} pixels; at most ${MOST_PIXELS >> 20} million are read`);
  return { width, height };
}

export const isPng = (b: Buffer): boolean => b.subarray(0, 8).equals(PNG_SIGNATURE);

interface Header extends Size {
  readonly depth: number;
  readonly type: number;
}

/** Size and kind from the first 33 bytes. Throws Unusable for what is no PNG and for sizes no screen has. */
export function pngHeader(b: Buffer): Header {
  if (b.length < 33 || !isPng(b) || b.toString('latin1', 12, 16) !== 'IHDR') throw new Unusable('is not a PNG picture');
  const { width, height } = checkSize(b.readUInt32BE(16), b.readUInt32BE(20)),
    depth = b[24]!,
    type = b[25]!;
  if (!depths[type]?.includes(depth) || b[26] !== 0 || b[27] !== 0) throw new Unusable('is a PNG of an unknown kind');
  if (b[28] !== 0) throw new Unusable('is an interlaced PNG', { remedy: 'Save it without interlacing.' });
  return { width, height, depth, type };
}

export interface Chunks {
  readonly header: Header;
  readonly data: readonly Buffer[];
  readonly palette?: Buffer;
  /** Transparent colours: the chunk tRNS in front of the pixels. */
  readonly transparency?: Buffer;
}

/** Chunks of a file as far as they are whole; their checksums are not looked at. */
export function* pngParts(file: Buffer): Generator<{ readonly type: string; readonly body: Buffer }> {
  for (let at = 8, chunks = 0; at + 12 <= file.length && chunks < maxChunks; chunks++) {
    const end = at + 8 + file.readUInt32BE(at);
    if (end + 4 > file.length) return;
    yield { type: file.toString('latin1', at + 4, at + 8), body: file.subarray(at + 8, end) };
    at = end + 4;
  }
}

/** Whole and undamaged, as far as its checksums say; inflates nothing. */
export async function pngChunks(file: Buffer): Promise<Chunks> {
  const header = pngHeader(file),
    data: Buffer[] = [];
  let palette: Buffer | undefined, transparency: Buffer | undefined;
  for (let at = 8, chunks = 1; ; chunks++) {
    if (at + 12 > file.length) throw new Unusable('is cut short');
    if (chunks > maxChunks) throw new Unusable('is a PNG of too many parts');
    const length = file.readUInt32BE(at),
      end = at + 8 + length;
    if (end + 4 > file.length) throw new Unusable('is cut short');
    if ((await crc32InTurns(file.subarray(at + 4, end))) !== file.readUInt32BE(end))
      throw new Unusable('is damaged: a checksum differs');
    const type = file.toString('latin1', at + 4, at + 8),
      body = file.subarray(at + 8, end);
    if (type === 'IDAT') data.push(body);
    else if (type === 'PLTE') palette = body;
    else if (type === 'tRNS' && data.length === 0) transparency = body;
    else if (type === 'IEND') break;
    at = end + 4;
  }
  if (data.length === 0) throw new Unusable('holds no pixels');
  if (header.type === 3 && (!palette || palette.length < 3)) throw new Unusable('has no palette');
  // Other colour types may suggest a palette; only type 3 has one.
  return { header, data, palette: header.type === 3 ? palette : undefined, transparency };
}

/** BGRX, 4 bytes a pixel. Rejects with Unusable. */
export async function decodePng(file: Buffer): Promise<Size & { readonly data: Buffer }> {
  const chunks = await pngChunks(file),
    { header: h, palette } = chunks,
    out = Buffer.allocUnsafe(h.width * h.height * 4);
  await pngRows(chunks, (y, row) => toBgrx(h, row, palette, out, y * h.width * 4));
  return { width: h.width, height: h.height, data: out };
}

const bitsOf = (h: Header): number => h.depth * samples[h.type]!;
/** Bytes of a row, without the byte of its filter. */
const strideOf = (h: Header): number => Math.ceil((h.width * bitsOf(h)) / 8);
/** Compressed pixels take at most so much more than they take when they are not compressed. */
const PACKED = { share: 1.01, bytes: 64 * 1024 };

/** The filtered rows of a picture. Rejects with Unusable where they are more or fewer than its size says. */
async function inflated({ header: h, data }: Chunks): Promise<Buffer> {
  const size = (strideOf(h) + 1) * h.height,
    packed = data.reduce((n, d) => n + d.length, 0);
  if (packed > size * PACKED.share + PACKED.bytes) throw new Unusable('is larger than its pixels need');
  // The bound stops a small file from inflating without end.
  const raw = await inflate(Buffer.concat(data), { maxOutputLength: size }).catch((e: unknown) => {
    throw new Unusable(`is damaged: ${messageOf(e)}`);
  });
  if (raw.length !== size) throw new Unusable('has too few pixels');
  return raw;
}

/**
 * A file of nothing but the pixels: the same one where it has no more. Other chunks and what lies behind the end are left
 * out. Rejects with Unusable where the pixels do not inflate. For pictures of 8-bit RGB.
 */
export async function barePng(file: Buffer, chunks: Chunks): Promise<Buffer> {
  await inflated(chunks);
  const { header, data } = chunks,
    bare = PNG_SIGNATURE.length + 25 + data.reduce((n, d) => n + 12 + d.length, 0) + 12;
  return file.length === bare
    ? file
    : pngFile({ width: header.width, height: header.height, data: Buffer.concat(data) });
}

/** Reads the rows from the top, in the samples of the picture's kind. Rejects with Unusable. */
export async function pngRows(chunks: Chunks, each: (y: number, row: Buffer) => void): Promise<void> {
  const { header: h } = chunks;
  const stride = strideOf(h),
    step = Math.max(1, bitsOf(h) >> 3),
    raw = await inflated(chunks);
  let above: Buffer = Buffer.alloc(stride);
  await slices.over(h.height, Math.max(1, Math.floor(slicePixels / h.width)), (from, to) => {
    for (let y = from; y < to; y++) {
      const at = y * (stride + 1),
        row = raw.subarray(at + 1, at + 1 + stride);
      unfilter(raw[at]!, row, above, step);
      each(y, row);
      above = row;
    }
  });
}

/** Undoes the filter of a row in place. `step`: bytes a pixel (PNG specification, 9.2). */
function unfilter(type: number, row: Buffer, above: Buffer, step: number): void {
  if (type === 0) return;
  if (type > 4) throw new Unusable('is damaged: an unknown filter');
  for (let x = 0; x < row.length; x++) {
    const a = x >= step ? row[x - step]! : 0,
      b = above[x]!,
      c = x >= step ? above[x - step]! : 0;
    row[x] = row[x]! + (type === 1 ? a : type === 2 ? b : type === 3 ? (a + b) >> 1 : paeth(a, b, c));
  }
}
/** The predictor of filter 4 (PNG specification, 9.4). */
export function paeth(a: number, b: number, c: number): number {
  const p = a + b - c,
    pa = Math.abs(p - a),
    pb = Math.abs(p - b),
    pc = Math.abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

function toBgrx(h: Header, row: Buffer, palette: Buffer | undefined, out: Buffer, at: number): void {
  const n = samples[h.type]!;
  if (h.depth >= 8) {
    // 16-bit samples are cut to their upper 8 bits.
    const s = h.depth >> 3,
      colour = n >= 3 ? s : 0;
    for (let x = 0, i = 0, o = at; x < h.width; x++, i += n * s, o += 4) {
      if (palette) put(out, o, palette, row[i]!);
      else {
        out[o] = row[i + 2 * colour]!;
        out[o + 1] = row[i + colour]!;
        out[o + 2] = row[i]!;
        out[o + 3] = 0;
      }
    }
    return;
  }
  const mask = (1 << h.depth) - 1;
  for (let x = 0, o = at; x < h.width; x++, o += 4) {
    const bit = x * h.depth,
      v = (row[bit >> 3]! >> (8 - h.depth - (bit & 7))) & mask;
    if (palette) put(out, o, palette, v);
    else {
      out[o] = out[o + 1] = out[o + 2] = Math.round((v * 255) / mask);
      out[o + 3] = 0;
    }
  }
}
function put(out: Buffer, o: number, palette: Buffer, index: number): void {
  const i = index * 3;
  out[o] = palette[i + 2] ?? 0;
  out[o + 1] = palette[i + 1] ?? 0;
  out[o + 2] = palette[i] ?? 0;
  out[o + 3] = 0;
}
