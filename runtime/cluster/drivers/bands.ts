/**
 * Screens that a desktop encodes itself: relay.py compresses bands of rows on their own and sends those that changed. A
 * PNG is put together from them without looking inside; what is checked is that it can be no other picture than one of the
 * size it says, and how long it may be.
 */
import type { EncodedFrame, Size } from '../../domain/index.js';
import { crc32 } from '../../files/crc32.js';
import { PNG_SIGNATURE } from '../../files/pngWriter.js';

/** Start of a zlib stream, and its last, empty block. */
const ZLIB_HEAD = Buffer.from([0x78, 0x01]),
  LAST_BLOCK = Buffer.from([0x03, 0x00]);
/** Signature and IHDR; length and type of IDAT; and what follows the bands: last block, checksums, IEND. */
const BEFORE = 8 + 25 + 8 + ZLIB_HEAD.length,
  AFTER = LAST_BLOCK.length + 4 + 4 + 12;
const ADLER = 65_521;

interface Known {
  readonly width: number;
  readonly height: number;
  readonly rows: number;
  readonly png: Buffer;
  /** Where each band begins in the file, and the end of the last one. */
  readonly at: Uint32Array;
  readonly sums: Uint32Array;
}

/** The screen of one desktop, from one message to the next. It keeps the last file and nothing else. */
export class EncodedScreen {
  #known: Known | undefined;
  readonly #asked: Size;

  /** `asked`: the size of the desktop's screen; there is no other. */
  constructor(asked: Size) {
    this.#asked = asked;
  }

  /** Whether the next message may leave out what did not change. */
  get knows(): boolean {
    return this.#known !== undefined;
  }
  forget(): void {
    this.#known = undefined;
  }

  /**
   * `payload`: width, height, rows of a band, bands that follow; for each its number, the Adler-32 and length of its
   * scanlines, and the bytes of its deflate blocks (u32 each, little-endian). Throws a RangeError when it does not fit.
   */
  take(payload: Buffer): EncodedFrame {
    const known = this.#known;
    this.#known = undefined;
    const next = apply(this.#asked, known, payload);
    this.#known = next;
    return { width: next.width, height: next.height, png: next.png, capturedAt: Date.now() };
  }
}

function apply(asked: Size, known: Known | undefined, p: Buffer): Known {
  const [width, height, rows, changed] = [0, 4, 8, 12].map((at) => p.readUInt32LE(at)) as [
    number,
    number,
    number,
    number,
  ];
  if (width !== asked.width || height !== asked.height) throw new RangeError(`a screen of ${width}x${height}`);
  if (rows < 1 || rows > height) throw new RangeError(`bands of ${rows} rows`);
  const bands = Math.ceil(height / rows),
    same = known?.width === width && known.height === height && known.rows === rows ? known : undefined;
  if (changed === 0 && same) return same;
  const parts: (Buffer | undefined)[] = new Array<Buffer | undefined>(bands).fill(undefined),
    sums = same ? same.sums.slice() : new Uint32Array(bands);
  let at = 16;
  for (let i = 0; i < changed; i++) {
    const band = p.readUInt32LE(at),
      length = p.readUInt32LE(at + 8);
    if (band >= bands || parts[band]) throw new RangeError(`band ${band} of ${bands}`);
    if (length > mostBytes(rows, width) || at + 12 + length > p.length)
      throw new RangeError(`a band of ${length} bytes`);
    sums[band] = p.readUInt32LE(at + 4);
    parts[band] = p.subarray(at + 12, at + 12 + length);
    at += 12 + length;
  }
  if (at !== p.length) throw new RangeError('bytes behind the last band');
  for (let b = 0; b < bands; b++) {
    if (parts[b]) continue;
    if (!same) throw new RangeError('changes of a screen that we do not have');
    parts[b] = same.png.subarray(same.at[b], same.at[b + 1]);
  }
  return pngOfBands({ width, height, rows }, parts as readonly Buffer[], sums);
}

/** Compressing makes nothing longer than five bytes a block of 16 kB (deflateBound), and some for the flush. */
const mostBytes = (rows: number, width: number): number => {
  const raw = rows * (3 * width + 1);
  return raw + 5 * (Math.floor(raw / 16_383) + 1) + 64;
};

/** The file of a screen from its bands: deflate blocks of each, and the Adler-32 of its scanlines. */
export function pngOfBands(
  { width, height, rows }: Pick<Known, 'width' | 'height' | 'rows'>,
  parts: readonly Buffer[],
  sums: Uint32Array,
): Known {
  const data = parts.reduce((n, b) => n + b.length, 0),
    png = Buffer.allocUnsafeSlow(BEFORE + data + AFTER),
    at = new Uint32Array(parts.length + 1);
  PNG_SIGNATURE.copy(png);
  png.writeUInt32BE(13, 8);
  png.write('IHDR', 12, 'latin1');
  png.writeUInt32BE(width, 16);
  png.writeUInt32BE(height, 20);
  // 8 bits, RGB, deflate, no filter method of its own, not interlaced.
  png.set([8, 2, 0, 0, 0], 24);
  png.writeUInt32BE(crc32(png.subarray(12, 29)), 29);
  png.writeUInt32BE(ZLIB_HEAD.length + data + LAST_BLOCK.length + 4, 33);
  png.write('IDAT', 37, 'latin1');
  ZLIB_HEAD.copy(png, 41);
  let end = BEFORE,
    sum = 1;
  for (const [i, b] of parts.entries()) {
    at[i] = end;
    b.copy(png, end);
    end += b.length;
    const height_ = Math.min(rows, height - i * rows);
    sum = joinAdler(sum, sums[i]!, height_ * (3 * width + 1));
  }
  at[parts.length] = end;
  LAST_BLOCK.copy(png, end);
  png.writeUInt32BE(sum, end + 2);
  png.writeUInt32BE(crc32(png.subarray(37, end + 6)), end + 6);
  png.writeUInt32BE(0, end + 10);
  png.write('IEND', end + 14, 'latin1');
  png.writeUInt32BE(0xae426082, end + 18);
  return { width, height, rows, png, at, sums };
}

/** The sums of this many bytes stay below 2^31: small integers of the processor, and not doubles. */
const ADLER_STRETCH = 3800;
/** RFC 1950, 8.2. Eight bytes a turn take two thirds of the time that single ones take. */
export function adler32(bytes: Uint8Array): number {
  let low = 1,
    high = 0;
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + ADLER_STRETCH);
    for (; at + 8 <= end; at += 8) {
      const a = bytes[at]!,
        b = bytes[at + 1]!,
        c = bytes[at + 2]!,
        d = bytes[at + 3]!,
        e = bytes[at + 4]!,
        f = bytes[at + 5]!,
        g = bytes[at + 6]!,
        h = bytes[at + 7]!;
      high = (high + 8 * low + 8 * a + 7 * b + 6 * c + 5 * d + 4 * e + 3 * f + 2 * g + h) | 0;
      low = (low + a + b + c + d + e + f + g + h) | 0;
    }
    for (; at < end; at++) {
      low += bytes[at]!;
      high += low;
    }
    low %= ADLER;
    high %= ADLER;
  }
  return ((high << 16) | low) >>> 0;
}

/** Adler-32 of two stretches of bytes from that of each; the second is `length` long. */
export function joinAdler(first: number, second: number, length: number): number {
  const n = length % ADLER,
    a = first & 0xffff,
    low = (a + (second & 0xffff) + ADLER - 1) % ADLER,
    high = (n * a + (first >>> 16) + (second >>> 16) + ADLER - n) % ADLER;
  return ((high << 16) | low) >>> 0;
}
