import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { GLYPH_SPEC, gridOf, random } from '../../../runtime/domain/index.js';
import { lesson, READ_CELLS, READ_WORDS } from '../../../runtime/trainer/native/reading.js';

const { width, height, cell } = GLYPH_SPEC.obs,
  { cols } = gridOf(GLYPH_SPEC);
const obs = new Uint8Array(width * height);

describe('a reading lesson', () => {
  it('aims only at cells whose centre lies in the shifted box', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.integer({ min: 0, max: width - 8 }),
            fc.integer({ min: 0, max: height - 8 }),
            fc.integer({ min: 1, max: 80 }),
            fc.integer({ min: 1, max: 20 }),
          ),
          { minLength: 1, maxLength: 40 },
        ),
        fc.integer({ min: 0, max: 16 }),
        fc.integer(),
        (rects, shift, seed) => {
          const boxes = rects.map(([x, y, w, h]) => [x, y, Math.min(width, x + w), Math.min(height, y + h)]);
          const l = lesson(
            GLYPH_SPEC,
            {
              obs,
              buckets: Int32Array.from(rects, (_, i) => i + 1),
              boxes: Int32Array.from(boxes.flat()),
              marks: new Float32Array(),
            },
            shift,
            random(seed),
          );
          expect(l.words).toBeLessThanOrEqual(READ_WORDS);
          for (let n = 0; n < READ_WORDS; n++)
            for (let k = 0; k < READ_CELLS; k++) {
              expect(l.weight[n * READ_CELLS + k]).toBe(n < l.words ? 1 : 0);
              if (n >= l.words) continue;
              const [x0, y0, x1, y1] = boxes[l.buckets[n]! - 1]!,
                target = l.targets[n * READ_CELLS + k]!;
              const x = (target % cols) * cell + cell / 2,
                y = Math.floor(target / cols) * cell + cell / 2;
              expect(x >= x0! - shift && x < x1! + shift && y >= y0! - shift && y < y1! + shift).toBe(true);
            }
        },
      ),
    ));
  it('leaves out words too small for a cell centre, and those shifted off the screen', () => {
    const l = lesson(
      GLYPH_SPEC,
      {
        obs,
        buckets: Int32Array.of(1, 2),
        boxes: Int32Array.of(5, 5, 7, 7, 16, 16, 40, 24),
        marks: new Float32Array(),
      },
      0,
      random(1),
    );
    expect([l.words, l.buckets[0]]).toEqual([1, 2]);
  });
});
