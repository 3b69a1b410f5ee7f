import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  binPosition,
  decadeTicks,
  durationTicks,
  joinOnX,
  keepExtremes,
  lowerBound,
  moveCursor,
  nearest,
  niceTicks,
  robustRange,
  valueAt,
} from '../../../webview/ui/chartMath.js';

const ascending = (max = 60): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.integer({ min: -1000, max: 1000 }), { maxLength: max }).map((xs) => xs.sort((a, b) => a - b));

describe('ticks', () => {
  it('come to an end for values that differ by less than a step of a number', () => {
    for (const [min, max] of [
      [1e16, 1e16 + 2],
      [-1e16 - 2, -1e16],
      [-Number.MAX_VALUE, Number.MAX_VALUE],
      [0, 5e-324],
      [-Infinity, 3],
    ] as const)
      for (const ticks of [niceTicks, durationTicks, decadeTicks])
        expect(ticks(min, max, 4).length, `${ticks.name} of ${min} to ${max}`).toBeLessThanOrEqual(100);
    expect(niceTicks(1e16, 1e16 + 2, 4)).toEqual([1e16]);
  });
  it('are round, inside the range and evenly apart', () => {
    expect(niceTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(niceTicks(0, 29_200, 3)).toEqual([0, 10_000, 20_000]);
    expect(niceTicks(0, 3, 8, true)).toEqual([0, 1, 2, 3]);
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
        fc.integer({ min: 2, max: 12 }),
        (min, span, n) => {
          const t = niceTicks(min, min + span, n),
            step = t[1]! - t[0]!;
          expect(t.length).toBeLessThanOrEqual(2 * n + 2);
          for (let i = 0; i < t.length; i++) {
            expect(t[i]!).toBeGreaterThanOrEqual(min - span * 1e-6);
            expect(t[i]!).toBeLessThanOrEqual(min + span * (1 + 1e-6));
            if (i > 1) expect(t[i]! - t[i - 1]!).toBeCloseTo(step, 5);
          }
        },
      ),
    );
  });
  it('of durations stand on whole seconds, minutes, hours and days', () => {
    expect(durationTicks(0, 816_000, 5)).toEqual([0, 300_000, 600_000]);
    expect(durationTicks(0, 86_400_000, 6)).toEqual([0, 6, 12, 18, 24].map((h) => h * 3_600_000).slice(0, 5));
    expect(durationTicks(1200, 1900, 4)).toEqual([1200, 1400, 1600, 1800]);
    expect(durationTicks(5, 5, 4)).toEqual([]);
    expect(durationTicks(10_000, 516_000, 2)).toEqual([120_000, 240_000, 360_000, 480_000]);
  });
});

describe('down-sampling', () => {
  it('keeps first, last, least and greatest, in order and within the limit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 1, maxLength: 400 }),
        fc.integer({ min: 6, max: 120 }),
        (values, limit) => {
          const keep = keepExtremes(values, limit),
            kept = keep.map((i) => values[i]!);
          expect(keep.length).toBeLessThanOrEqual(limit);
          expect(keep).toEqual([...new Set(keep)].sort((a, b) => a - b));
          expect(keep[0]).toBe(0);
          expect(keep.at(-1)).toBe(values.length - 1);
          expect(Math.max(...kept)).toBe(Math.max(...values));
          expect(Math.min(...kept)).toBe(Math.min(...values));
        },
      ),
    );
  });
});

describe('vertical range', () => {
  it('leaves out single towers and counts them', () => {
    const values = [...Array.from({ length: 99 }, (_, i) => 0.1 + (i % 10) * 0.01), 39_216];
    const r = robustRange(values, { floor: 0 });
    expect(r.max).toBeLessThan(1);
    expect(r.above).toBe(1);
    expect(r.min).toBe(0);
  });
  it('holds every value when nothing towers, and never has no height', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -100, max: 100, noNaN: true }), { minLength: 1, maxLength: 19 }),
        (values) => {
          const r = robustRange(values);
          expect(r.above).toBe(0);
          expect(r.max).toBeGreaterThan(r.min);
          for (const v of values) {
            expect(v).toBeGreaterThanOrEqual(r.min);
            expect(v).toBeLessThanOrEqual(r.max);
          }
        },
      ),
    );
    expect(robustRange([null, NaN])).toEqual({ min: 0, max: 1, above: 0 });
  });
});

describe('joining on x', () => {
  it('puts every value at its x and nothing elsewhere', () => {
    fc.assert(
      fc.property(fc.array(ascending(30), { maxLength: 4 }), (xs) => {
        const j = joinOnX(xs.map((x) => ({ x, columns: [x.map((v) => v * 2)] })));
        expect(j.x).toEqual([...new Set(xs.flat())].sort((a, b) => a - b));
        xs.forEach((x, s) => j.x.forEach((at, i) => expect(j.columns[s]![0]![i]).toBe(x.includes(at) ? at * 2 : null)));
      }),
    );
  });
  it('reads a line in its holes as its last value', () => {
    expect(valueAt([1, null, null, 4], 2)).toBe(1);
    expect(valueAt([null, 2], 0)).toBeUndefined();
  });
});

describe('finding places', () => {
  it('nearest is nearest', () => {
    fc.assert(
      fc.property(
        ascending().filter((x) => x.length > 0),
        fc.integer({ min: -1200, max: 1200 }),
        (x, at) => {
          const i = nearest(x, at);
          expect(Math.abs(x[i]! - at)).toBe(Math.min(...x.map((v) => Math.abs(v - at))));
          const l = lowerBound(x, at);
          expect(x.slice(0, l).every((v) => v < at) && x.slice(l).every((v) => v >= at)).toBe(true);
        },
      ),
    );
    expect(nearest([], 3)).toBe(-1);
  });
  it('the keyboard cursor stays among the points and knows its keys', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown'),
        fc.option(fc.nat(49), { nil: undefined }),
        fc.boolean(),
        (key, at, shift) => {
          const to = moveCursor(key, at, 50, shift)!;
          expect(to).toBeGreaterThanOrEqual(0);
          expect(to).toBeLessThan(50);
        },
      ),
    );
    expect(moveCursor('ArrowLeft', undefined, 50)).toBe(49);
    expect(moveCursor('ArrowRight', 3, 50)).toBe(4);
    expect(moveCursor('x', 3, 50)).toBeUndefined();
    expect(moveCursor('End', 3, 0)).toBeUndefined();
  });
  it('a value lies within its bin, whatever the edges', () => {
    expect(binPosition([0, 1, 10], 0.5)).toBe(0.5);
    expect(binPosition([0, 1, 10], 5.5)).toBe(1.5);
    expect(binPosition([0, 1, 10], 99)).toBe(2);
    expect(binPosition([], 1)).toBe(0);
  });
});
