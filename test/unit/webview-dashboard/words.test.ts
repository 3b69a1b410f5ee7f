import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ago,
  clock,
  count,
  decimal,
  decimalTick,
  fine,
  interval,
  percent,
  percentTick,
  shortFamily,
  tickTime,
} from '../../../webview/dashboard/format.js';
import { durationTicks, niceTicks } from '../../../webview/ui/chartMath.js';
import { interpolate, wilson } from '../../../webview/dashboard/stats.js';

describe('numbers as words', () => {
  it('group thousands, keep three digits, and say nothing where nothing is known', () => {
    expect([count(3787), count(1_234_567.4), count(undefined), count(NaN)]).toEqual(['3,787', '1,234,567', '–', '–']);
    expect([
      decimal(0.021),
      decimal(0.50155),
      decimal(2.579),
      decimal(634.4),
      decimal(0),
      decimal(-0.00926),
      decimal(-3922),
      decimal(39_216_010),
      decimal(9.7e-14),
    ]).toEqual(['0.021', '0.502', '2.58', '634', '0', '−0.00926', '−3,922', '3.9e7', '9.7e−14']);
    expect([
      percent(0.875),
      percent(0.021, 1),
      percent(undefined),
      interval(0.772, 0.935),
      interval(0.1, undefined),
    ]).toEqual(['88 %', '2.1 %', '–', '77–94 %', '–']);
  });
  it('ticks of an axis differ from one another, whatever it is zoomed to', () => {
    const distinct = (words: readonly string[]): void => expect(new Set(words).size).toBe(words.length);
    // Two of these are 9.999e-5 apart, by their numbers.
    const close = niceTicks(3.4802000000001, 3.4812, 10);
    distinct(close.map((v) => decimalTick(v, close[1]! - close[0]!)));
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 5000, noNaN: true }),
        fc.double({ min: 1e-3, max: 1e5, noNaN: true }),
        fc.integer({ min: 2, max: 10 }),
        (from, span, wanted) => {
          const ticks = niceTicks(from, from + span, wanted);
          distinct(ticks.map((v) => decimalTick(v, (ticks[1] ?? 0) - (ticks[0] ?? 0))));
          const shares = niceTicks(0, Math.min(1, span), wanted);
          distinct(shares.map((v) => percentTick(v, (shares[1] ?? 0) - (shares[0] ?? 0))));
        },
      ),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 40 * 86_400_000 }),
        fc.double({ min: 20, max: 40 * 86_400_000, noNaN: true }),
        fc.integer({ min: 2, max: 12 }),
        (from, span, wanted) => {
          const ticks = durationTicks(from, from + span, wanted);
          distinct(ticks.map((v) => tickTime(v, (ticks[1] ?? 0) - (ticks[0] ?? 0))));
        },
      ),
    );
  });
  it('times read as people say them', () => {
    expect([clock(42_000), clock(818_000), clock(7_500_000), clock(273_600_000), clock(undefined)]).toEqual([
      '0:42',
      '13:38',
      '2:05:00',
      '3 d 04:00',
      '–',
    ]);
    expect([
      tickTime(0, 60_000),
      tickTime(300_000, 300_000),
      tickTime(5_400_000, 1_800_000),
      tickTime(7_200_000, 3_600_000),
      tickTime(172_800_000, 86_400_000),
      tickTime(61_500, 500),
      tickTime(59_999, 1000),
    ]).toEqual(['0', '5 min', '1:30 h', '2 h', '2 d', '1:01.5', '1:00']);
    expect(fine(818_250)).toBe('13:38.2');
    expect(fine(59_990)).toBe('0:59.9');
    expect([ago(2000), ago(60_000), ago(240_000), ago(7_200_000), ago(259_200_000)]).toEqual([
      'just now',
      '60 s ago',
      '4 min ago',
      '2 h ago',
      '3 days ago',
    ]);
    expect([shortFamily('desk/press-two'), shortFamily('chrome/2ad9387a')]).toEqual(['press-two', 'chrome/2ad9387a']);
  });
});

describe('statistics', () => {
  it('Wilson interval as published: 56 of 64', () => {
    const w = wilson(56, 64)!;
    expect(w.low).toBeCloseTo(0.7723, 3);
    expect(w.high).toBeCloseTo(0.9353, 3);
    expect(wilson(0, 0)).toBeUndefined();
  });
  it('a moment is placed between two points of a curve', () => {
    expect(interpolate([0, 10], [0, 100], 2.5)).toBe(25);
    expect(interpolate([0, 10], [0, 100], 99)).toBe(100);
    expect(interpolate([], [], 1)).toBeUndefined();
  });
});
