import { describe, expect, it } from 'vitest';
import { askedMs, growingMs } from '../../../runtime/concurrency/pause.js';

const growth = { baseMs: 100, maxMs: 500 };

describe('growingMs', () => {
  it('doubles a pause each time, up to the longest', () => {
    expect([0, 1, 2, 3, 2000].map((before) => growingMs(growth, before))).toEqual([100, 200, 400, 500, 500]);
  });

  it('leaves to chance how much of a pause is waited, between two parts of it', () => {
    const at = (random: number): number => growingMs(growth, 1, { from: 0.5, to: 1.5, random: () => random });
    expect([0, 0.5, 0.75].map(at)).toEqual([100, 200, 250]);
    for (let n = 0; n < 100; n++) {
      const ms = growingMs(growth, 3, { from: 0.5, to: 1 });
      expect(ms).toBeGreaterThanOrEqual(250);
      expect(ms).toBeLessThan(500);
    }
  });
});

describe('a pause that a server may ask for', () => {
  it('is what it asks for, and grows where it asks for none or for nothing', () => {
    expect([0, 1, 2].map((before) => askedMs(undefined, growth, before))).toEqual([100, 200, 400]);
    expect([0, 1, 2].map((before) => askedMs(0, growth, before))).toEqual([100, 200, 400]);
    expect([0, 1, 2].map((before) => askedMs(3000, growth, before))).toEqual([3000, 3000, 3000]);
    expect(askedMs(1, growth, 0)).toBe(100);
  });
});
