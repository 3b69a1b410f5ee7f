/** Screens of synthetic desktops, encoded before anything is measured. */
import { constants, deflateRawSync } from 'node:zlib';
import { adler32 } from '../../../runtime/cluster/drivers/bands.js';
import type { Size } from '../../../runtime/domain/index.js';
import { drawing } from './wire.js';

/** Rows that the relay compares and sends together (BAND of relay.py). */
export const BAND = 16;
/** Pictures of which every screen is put together, and the bands that tell one screen from the next. */
const VARIANTS = 8,
  COUNTING = 7;
/** Share of a text line that is written on: makes a PNG of 1280x720 about 150 kB. */
const WRITTEN = 0.5;

export interface Screens extends Size {
  readonly bands: number;
  /** BGRX rows, by variant and band. */
  readonly raw: readonly (readonly Buffer[])[];
  /** The same as relay.py encodes them: number, Adler-32, length (u32 each) and deflate blocks. */
  readonly encoded: readonly (readonly Buffer[])[];
}

/** Windows, lines of text and a picture, as desktops show them. */
export function makeScreens({ width, height }: Size, seed: number): Screens {
  const bands = Math.ceil(height / BAND);
  const raw = Array.from({ length: VARIANTS }, (_, v) => {
    // A desktop that was just reset shows the first picture, and must look like all others: else the pool replaces it.
    const pixels = paint(width, height, drawing(v === 0 ? 0 : seed * VARIANTS + v));
    return Array.from({ length: bands }, (_, b) =>
      pixels.subarray(b * BAND * width * 4, Math.min(height, (b + 1) * BAND) * width * 4),
    );
  });
  const encoded = raw.map((rows) => rows.map((b, i) => encode(i, b, width)));
  return { width, height, bands, raw, encoded };
}

function paint(width: number, height: number, draw: () => number): Buffer {
  const out = new Uint32Array(width * height).fill(0xf0f0f0),
    glyphs = Array.from({ length: 48 }, () => Array.from({ length: 11 }, () => Math.floor(draw() * 128)));
  for (let top = 4; top + 12 < height; top += BAND) {
    const ink = draw() < 0.2 ? 0x804020 : 0x202020;
    for (let left = 6; left + 8 < width; left += 8) {
      if (draw() > WRITTEN) continue;
      const g = glyphs[Math.floor(draw() * glyphs.length)]!;
      for (let y = 0; y < 11; y++)
        for (let x = 0; x < 7; x++) if ((g[y]! >> x) & 1) out[(top + y) * width + left + x] = ink;
    }
  }
  return Buffer.from(out.buffer);
}

/** Which variant each band of the n-th screen shows: no two screens within 8^7 are the same, and each differs in every band from the one before. */
export function variantsOf(n: number, bands: number): Uint8Array {
  const v = new Uint8Array(bands).fill(n % VARIANTS);
  let rest = Math.floor(n / VARIANTS);
  for (let b = 0; b < COUNTING; b++) {
    v[b] = (v[b]! + rest) % VARIANTS;
    rest = Math.floor(rest / VARIANTS);
  }
  return v;
}

function encode(band: number, bgrx: Buffer, width: number): Buffer {
  const rows = bgrx.length / (width * 4),
    lines = Buffer.alloc(rows * (3 * width + 1));
  for (let y = 0, o = 0, i = 0; y < rows; y++) {
    o++;
    for (let x = 0; x < width; x++, i += 4) {
      lines[o++] = bgrx[i + 2]!;
      lines[o++] = bgrx[i + 1]!;
      lines[o++] = bgrx[i]!;
    }
  }
  const data = deflateRawSync(lines, { level: 1, finishFlush: constants.Z_FULL_FLUSH }),
    head = Buffer.alloc(12);
  head.writeUInt32LE(band, 0);
  head.writeUInt32LE(adler32(lines), 4);
  head.writeUInt32LE(data.length, 8);
  return Buffer.concat([head, data]);
}
