import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import { cellAt, cellCentre, encodeObservation, viewOf } from '../../../runtime/policy/embedded/observation.js';
import { decodeChoices, encodeAction } from '../../../runtime/policy/embedded/codec.js';
import { tokenizeInstruction } from '../../../runtime/policy/embedded/instruction.js';
import { frameOf } from '../../helpers/policy/frames.js';

/** A small observation, so that the exact reference below stays quick. */
const small = { ...GLYPH_SPEC, obs: { width: 32, height: 16, cell: 8 } };
const lum = (r: number, g: number, b: number): bigint => BigInt(77 * r + 150 * g + 29 * b);

describe('observation', () => {
  it('equals the area average in exact rational arithmetic, for any screen size', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 60 })),
          fc.integer({ min: 1, max: 4 }).map((k) => [32 * k, 16 * k]),
          fc.integer({ min: 1, max: 3 }).map((k) => [32 * k, 10 * k]),
        ),
        fc.integer(),
        ([w, h], seed) => {
          const px = (x: number, y: number): [number, number, number] => {
            const v = Math.imul(x * 7919 + y * 104729 + 1, seed | 1) >>> 0;
            return [v & 255, (v >>> 8) & 255, (v >>> 16) & 255];
          };
          const obs = encodeObservation(small, frameOf(w, h, px));
          const v = viewOf(small, { width: w, height: h });
          for (let y = 0; y < 16; y++)
            for (let x = 0; x < 32; x++) {
              const ix = x - v.x,
                iy = y - v.y;
              if (ix < 0 || iy < 0 || ix >= v.width || iy >= v.height) {
                expect(obs[y * 32 + x]).toBe(0);
                continue;
              }
              let sum = 0n;
              for (let sy = 0; sy < h; sy++)
                for (let sx = 0; sx < w; sx++) {
                  const wx = Math.min((ix + 1) * w, (sx + 1) * v.width) - Math.max(ix * w, sx * v.width),
                    wy = Math.min((iy + 1) * h, (sy + 1) * v.height) - Math.max(iy * h, sy * v.height);
                  if (wx > 0 && wy > 0) sum += BigInt(wx) * BigInt(wy) * lum(...px(sx, sy));
                }
              const total = BigInt(w) * BigInt(h) * 256n;
              expect(obs[y * 32 + x]).toBe(Number((2n * sum + total) / (2n * total)));
            }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('keeps the view inside the observation and as large as the aspect allows', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8000 }), fc.integer({ min: 1, max: 8000 }), (width, height) => {
        const v = viewOf(GLYPH_SPEC, { width, height });
        expect(v.width === 320 || v.height === 200).toBe(true);
        expect(
          v.x >= 0 && v.y >= 0 && v.width >= 1 && v.height >= 1 && v.x + v.width <= 320 && v.y + v.height <= 200,
        ).toBe(true);
      }),
    );
  });
});

describe('cells', () => {
  it('a click comes back within its own cell, on any screen at least as large as the observation', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 320, max: 4000 }),
        fc.integer({ min: 200, max: 3000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (width, height, fx, fy) => {
          const v = viewOf(GLYPH_SPEC, { width, height });
          const p = { x: Math.floor(fx * width), y: Math.floor(fy * height) };
          const cell = cellAt(GLYPH_SPEC, v, p)!;
          const centre = cellCentre(GLYPH_SPEC, v, cell);
          expect(centre.x >= 0 && centre.y >= 0 && centre.x < width && centre.y < height).toBe(true);
          const tokens = tokenizeInstruction(GLYPH_SPEC, 'x');
          const ids = encodeAction(GLYPH_SPEC, v, tokens, { type: 'click', at: p })!;
          expect(decodeChoices(GLYPH_SPEC, v, tokens, ids)).toEqual({ type: 'click', at: centre });
          // Away from the letterbox a centre lies in its own cell.
          const col = cell % 40,
            row = Math.floor(cell / 40);
          if (col * 8 + 4 >= v.x && col * 8 + 5 <= v.x + v.width && row * 8 + 4 >= v.y && row * 8 + 5 <= v.y + v.height)
            expect(cellAt(GLYPH_SPEC, v, centre)).toBe(cell);
        },
      ),
    );
  });
});
