import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toScanlines } from '../../../runtime/data/store/png.js';

/** Byte by byte, as the format is defined. */
function reference(bgrx: Buffer, width: number, height: number): { readonly lines: Buffer; readonly rgb: Buffer } {
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.from(
      Array.from({ length: width }, (_, x) => {
        const at = (y * width + x) * 4;
        return [bgrx[at + 2]!, bgrx[at + 1]!, bgrx[at]!];
      }).flat(),
    ),
  );
  return { lines: Buffer.concat(rows.flatMap((r) => [Buffer.of(0), r])), rgb: Buffer.concat(rows) };
}

describe('scanlines of a screen', () => {
  it('are the RGB of its pixels, whatever its size and wherever its bytes lie', () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 23 }),
        fc.integer({ min: 1, max: 17 }),
        fc.integer({ min: 0, max: 3 }),
        fc.infiniteStream(fc.nat(255)),
        async (width, height, offset, bytes) => {
          const whole = Buffer.alloc(offset + width * height * 4),
            bgrx = whole.subarray(offset);
          for (let i = 0; i < bgrx.length; i++) bgrx[i] = bytes.next().value as number;
          const seen: Buffer[] = [],
            lines = await toScanlines(bgrx, width, height, (rgb) => seen.push(Buffer.from(rgb))),
            expected = reference(bgrx, width, height);
          expect(lines.equals(expected.lines)).toBe(true);
          expect(Buffer.concat(seen).equals(expected.rgb)).toBe(true);
        },
      ),
      { numRuns: 60 },
    ));

  it.each([
    { width: 1280, height: 720 },
    { width: 1366, height: 301 },
    { width: 70_001, height: 3 },
  ])('of $width x $height too, in blocks of rows', async ({ width, height }) => {
    const bgrx = Buffer.alloc(width * height * 4);
    for (let i = 0; i < bgrx.length; i++) bgrx[i] = Math.imul(i, 0x9e3779b1) >>> 24;
    const seen: Buffer[] = [],
      lines = await toScanlines(bgrx, width, height, (rgb) => seen.push(Buffer.from(rgb))),
      rgb = Buffer.concat(seen);
    let wrong = 0;
    for (let i = 0; i < width * height; i++)
      for (const [channel, from] of [2, 1, 0].entries()) {
        const value = bgrx[i * 4 + from],
          y = Math.floor(i / width);
        if (rgb[i * 3 + channel] !== value || lines[y * (width * 3 + 1) + 1 + (i % width) * 3 + channel] !== value)
          wrong++;
      }
    expect(wrong).toBe(0);
    expect(lines.length).toBe((width * 3 + 1) * height);
  });
});
