import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { downsample, histogram } from '../../../runtime/queries/downsample.js';

describe('downsampling', () => {
  it('keeps minimum, maximum, both ends and the order, within the bound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 3000 }),
        fc.integer({ min: 4, max: 500 }),
        (xs, max) => {
          const at = downsample(xs, max),
            kept = at.map((i) => xs[i]!);
          expect(at.length).toBeLessThanOrEqual(max);
          expect(at).toEqual([...new Set(at)].sort((a, b) => a - b));
          if (xs.length === 0) return;
          expect([at[0], at.at(-1)]).toEqual([0, xs.length - 1]);
          const least = (v: readonly number[]) => v.reduce((a, b) => Math.min(a, b)),
            most = (v: readonly number[]) => v.reduce((a, b) => Math.max(a, b));
          expect([least(kept), most(kept)]).toEqual([least(xs), most(xs)]);
        },
      ),
    );
  });
  it('counts every value of a histogram once', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 5, noNaN: true })), (xs) => {
        expect(histogram(xs, 8).counts.reduce((a, b) => a + b, 0)).toBe(xs.length);
      }),
    );
    expect(histogram([0, 1, 1.9, 2], 2, 0, 2)).toEqual({ edges: [0, 1, 2], counts: [1, 3] });
  });
});
