import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BAND_ROWS, BandEncoder } from '../../../runtime/cluster/drivers/bandEncoder.js';
import { adler32 } from '../../../runtime/cluster/drivers/bands.js';
import { decodePng } from '../../../runtime/data/store/png.js';

/** A screen that can be painted on, and an encoder of it. */
function screen(width: number, height: number): { pixels: Buffer; encoder: () => BandEncoder } {
  const pixels = Buffer.alloc(4 * width * height, 0x40);
  return {
    pixels,
    encoder: () =>
      new BandEncoder({ width, height }, (into, y) => {
        pixels.copy(into, 0, 4 * width * y, 4 * width * y + into.length);
      }),
  };
}
const rgbOf = (bgrx: Buffer): Buffer =>
  Buffer.from(
    Array.from({ length: bgrx.length / 4 }, (_, i) => [bgrx[4 * i + 2]!, bgrx[4 * i + 1]!, bgrx[4 * i]!]).flat(),
  );

describe('a file of a screen, band by band', () => {
  it('shows the screen whatever changed, and is the same file whatever was there before', async () => {
    const painted = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 37 }),
        fc.integer({ min: 1, max: 3 * BAND_ROWS }),
        fc.array(painted, { minLength: 1, maxLength: 5 }),
        async (width, height, changes) => {
          const { pixels, encoder } = screen(width, height),
            lasting = encoder();
          let before = lasting.encode();
          for (const change of changes) {
            for (const [at, value] of change) pixels[at % pixels.length] = value;
            const file = lasting.encode() ?? before!;
            before = file;
            expect(encoder().encode()!.equals(file)).toBe(true);
            const { rgb, ...size } = await decodePng(file);
            expect(size).toMatchObject({ width, height });
            expect(rgb.equals(rgbOf(pixels))).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is made only when something changed', () => {
    const { pixels, encoder } = screen(20, 40),
      e = encoder();
    expect(e.encode()).toBeDefined();
    expect(e.encode()).toBeUndefined();
    pixels[100] = 1;
    expect(e.encode()).toBeDefined();
    expect(e.encode()).toBeUndefined();
  });

  it('reads only the bands of rows that can have changed, once it knows the others', () => {
    const pixels = Buffer.alloc(4 * 20 * 100),
      read: number[] = [];
    const e = new BandEncoder({ width: 20, height: 100 }, (into, y) => {
      read.push(y / BAND_ROWS);
      pixels.copy(into, 0, 80 * y, 80 * y + into.length);
    });
    const changed = (rows?: Parameters<BandEncoder['look']>[0]): boolean => e.file(e.look(rows)) !== undefined;
    expect(changed([{ from: 3, to: 4 }])).toBe(true);
    expect(read).toEqual([0, 1, 2, 3, 4, 5, 6]);
    for (const b of [0, 30, 90]) pixels[80 * b] = 1;
    read.length = 0;
    expect(
      changed([
        { from: 0, to: 1 },
        { from: 15, to: 33 },
        { from: 96, to: 100 },
      ]),
    ).toBe(true);
    expect(read).toEqual([0, 1, 2, 6]);
    read.length = 0;
    expect(changed([])).toBe(false);
    expect(read).toEqual([]);
    // Row 90 was not among them.
    expect(changed()).toBe(true);
  });

  it('is made whole again after a screen that could not be read', () => {
    const { pixels, encoder } = screen(20, 40);
    let fails = false;
    const e = new BandEncoder({ width: 20, height: 40 }, (into, y) => {
      if (fails && y > 0) throw new Error('gone');
      pixels.copy(into, 0, 80 * y, 80 * y + into.length);
    });
    e.encode();
    pixels[0] = 1;
    fails = true;
    expect(() => e.encode()).toThrow('gone');
    fails = false;
    expect(e.encode()!.equals(encoder().encode()!)).toBe(true);
  });
});

it('Adler-32 as of RFC 1950, over more bytes than its sums hold at once', () => {
  expect(adler32(Buffer.from('Wikipedia'))).toBe(0x11e60398);
  expect(adler32(Buffer.alloc(0))).toBe(1);
  // 100,000 bytes of 255: 1 + 25,500,000 and its running sum, both modulo 65,521.
  const n = 100_000n,
    low = (1n + 255n * n) % 65_521n,
    high = (n + (255n * n * (n + 1n)) / 2n) % 65_521n;
  expect(BigInt(adler32(Buffer.alloc(100_000, 255)))).toBe((high << 16n) | low);
});
