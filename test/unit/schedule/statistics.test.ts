import { describe, expect, it } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import { distributionDistance, estimate, kolmogorovSmirnov } from '../../bench/schedule/statistics.js';

describe('intervals', () => {
  it("are those of Student's t", () => {
    const e = estimate([1, 2, 3, 4, 5]);
    expect(e.mean).toBe(3);
    expect(e.half).toBeCloseTo((2.776 * Math.sqrt(2.5)) / Math.sqrt(5), 6);
    expect(estimate([7]).half).toBeNaN();
  });
});

describe('Kolmogorov-Smirnov', () => {
  it('finds the largest distance', () => {
    expect(kolmogorovSmirnov([1, 2, 3, 4], [3, 4, 5, 6]).d).toBe(0.5);
    expect(kolmogorovSmirnov([1, 1, 2], [1, 1, 2])).toEqual({ d: 0, p: 1 });
  });
  it('has the p of the tables', () => {
    // Critical value at 0.05 for large samples: 1.358 sqrt((n + m) / nm).
    const n = 5000,
      d = 1.358 * Math.sqrt(2 / n),
      shift = Math.round(d * n);
    const a = Array.from({ length: n }, (_, i) => i),
      b = a.map((x) => x + shift);
    expect(kolmogorovSmirnov(a, b).p).toBeCloseTo(0.05, 2);
  });
  it('does not take few samples for equal ones', () => {
    const r = random(4),
      draw = (n: number, shift = 0): number[] => Array.from({ length: n }, () => r.normal() + shift);
    expect(distributionDistance(draw(20), draw(20)).atMost).toBeGreaterThan(0.5);
    expect(distributionDistance(draw(20_000), draw(20_000)).atMost).toBeLessThan(0.05);
    // A twentieth of a deviation is under what 1,000 samples tell from none, and over 0.02 in truth.
    expect(distributionDistance(draw(1000), draw(1000, 0.05)).atMost).toBeGreaterThan(0.05);
    expect(distributionDistance([], [1])).toEqual({ d: 0, atMost: 1 });
  });
  it('tells equal from shifted distributions', () => {
    const r = random(3),
      draw = (shift: number): number[] => Array.from({ length: 3000 }, () => r.normal() + shift);
    expect(kolmogorovSmirnov(draw(0), draw(0)).p).toBeGreaterThan(0.05);
    expect(kolmogorovSmirnov(draw(0), draw(0.15)).p).toBeLessThan(0.001);
  });
});
