import { constants, deflateRawSync } from 'node:zlib';
import type { Size } from '../../domain/index.js';
import { packRgb, wordsOf } from '../../files/packRgb.js';
import { adler32, pngOfBands } from './bands.js';
import type { Rows } from './drawnRows.js';

/** Rows that are compared and compressed together, as relay.py does (BAND). */
export const BAND_ROWS = 16;

/** Fills a buffer with the BGRX of rows from `y` on. */
export type ReadRows = (into: Buffer, y: number) => void;

/**
 * Encodes one screen from its pixels, as relay.py does inside a desktop: only the bands that changed are compressed
 * again. The same picture gives the same bytes, whatever came before. Keeps the pixels of the last screen.
 */
export class BandEncoder {
  readonly #size: Size;
  readonly #read: ReadRows;
  readonly #pixels: Buffer;
  readonly #parts: Buffer[] = [];
  readonly #sums: Uint32Array;
  readonly #band: Buffer;
  /** Scanlines of a band, each with its filter byte; and the RGB of one. */
  readonly #lines: Buffer;
  readonly #row: Uint32Array;
  readonly #rgb: Buffer;

  constructor(size: Size, read: ReadRows) {
    const { width, height } = size;
    this.#size = size;
    this.#read = read;
    this.#pixels = Buffer.alloc(4 * width * height);
    this.#sums = new Uint32Array(Math.ceil(height / BAND_ROWS));
    this.#band = Buffer.allocUnsafeSlow(4 * width * BAND_ROWS);
    this.#lines = Buffer.alloc((3 * width + 1) * BAND_ROWS);
    this.#row = new Uint32Array(Math.ceil((3 * width) / 4));
    this.#rgb = Buffer.from(this.#row.buffer);
  }

  /**
   * The PNG file of the present screen; undefined when it has not changed. Throws what reading throws, and then forgets
   * the last screen.
   */
  encode(): Buffer | undefined {
    return this.file(this.look());
  }

  /**
   * Reads the screen (only `rows`, where given, can have changed) and returns the bands that changed. Reading is
   * complete before any compressing, because rows that are read later may belong to another moment. Throws as `encode`
   * does.
   */
  look(rows?: readonly Rows[]): readonly number[] {
    const known = this.#parts.length > 0,
      asked = known ? rows : undefined,
      changed: number[] = [];
    this.#orForget(() => {
      for (let b = 0; b < this.#sums.length; b++) {
        if (asked && !asked.some((r) => r.from < (b + 1) * BAND_ROWS && r.to > b * BAND_ROWS)) continue;
        const before = this.#rowsOf(b),
          band = this.#band.subarray(0, before.length);
        this.#read(band, b * BAND_ROWS);
        if (known && band.equals(before)) continue;
        band.copy(before);
        changed.push(b);
      }
    });
    return changed;
  }
  /** The file of what `look` saw, by what changed; undefined when nothing did. Throws as `encode` does. */
  file(changed: readonly number[]): Buffer | undefined {
    if (changed.length === 0) return undefined;
    return this.#orForget(() => {
      for (const b of changed) this.#compress(b);
      return pngOfBands({ ...this.#size, rows: BAND_ROWS }, this.#parts, this.#sums).png;
    });
  }
  /** Forgets the screen when `work` fails: its rows may then come from different moments. */
  #orForget<T>(work: () => T): T {
    try {
      return work();
    } catch (e) {
      this.#parts.length = 0;
      throw e;
    }
  }
  #rowsOf(b: number): Buffer {
    const band = 4 * this.#size.width * BAND_ROWS;
    return this.#pixels.subarray(b * band, (b + 1) * band);
  }

  #compress(b: number): void {
    const { width } = this.#size,
      bgrx = this.#rowsOf(b),
      rows = bgrx.length / (4 * width),
      stride = 3 * width + 1,
      pixels = wordsOf(bgrx),
      lines = this.#lines.subarray(0, rows * stride);
    for (let y = 0; y < rows; y++) {
      packRgb(pixels.subarray(y * width, (y + 1) * width), this.#row, this.#rgb);
      this.#rgb.copy(lines, y * stride + 1, 0, 3 * width);
    }
    // A copy: what zlib returns holds on to 16 kB.
    this.#parts[b] = exact(deflateRawSync(lines, { level: 1, finishFlush: constants.Z_FULL_FLUSH }));
    this.#sums[b] = adler32(lines);
  }
}

function exact(b: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(b.length);
  b.copy(own);
  return own;
}
