import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { BusyShare, duration, rateText, sparkline, wilson } from '../../../runtime/domain/stats.js';
import { statusLine, type RunProgress } from '../../../runtime/run/reporter.js';

describe('statistics of a run', () => {
  it('gives the Wilson interval of known counts', () => {
    const w = wilson(8, 10);
    expect(w.low).toBeCloseTo(0.4902, 4);
    expect(w.high).toBeCloseTo(0.9433, 4);
    expect(rateText(0, 0)).toBe('no episodes');
  });
  it('keeps the rate inside its interval', () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.double({ min: 0, max: 1, noNaN: true }), (n, p) => {
        const k = Math.round(n * p);
        const w = wilson(k, n);
        return w.low <= w.rate + 1e-12 && w.rate <= w.high + 1e-12 && w.low >= 0 && w.high <= 1;
      }),
    ));
  it('draws a curve and a duration', () => {
    expect(sparkline([0, 0.5, 1])).toBe('▁▅█');
    expect(duration(61_000)).toBe('1:01');
    expect(duration(3_661_000)).toBe('1:01:01');
  });
  it('counts busy time over lanes, open intervals too', () => {
    const b = new BusyShare();
    b.begin('a', 0);
    b.end('a', 50);
    b.begin('b', 50);
    expect(b.share(0, 100, 2)).toBeCloseTo(0.5);
  });
  it('says what matters in one line', () => {
    const s: RunProgress = {
      phase: 'training',
      elapsedMs: 65_000,
      version: 3,
      rollouts: 40,
      rolloutsPerHour: 2000,
      stepsPerMinute: 1,
      trainedActionsPerMinute: 1,
      success: 0.5,
      curve: [0, 0.5],
      desktopUtilisation: 0.9,
      replicaUtilisation: 0.3,
      trainerUtilisation: 0.5,
      replicaVersions: [3, 2],
      running: 4,
      waitingGroups: 1,
      errors: 2,
    };
    expect(statusLine(s)).toBe(
      '1:05 · training · last 64 rollouts 50 % ▁▅ · v3 · 40 rollouts, 2000/h · desktops 90 % · replicas 30 % (v3, v2) · trainer 50 % · 2 errors',
    );
    // A terminal rewrites one line.
    expect(statusLine({ ...s, newestError: 'bash -c a\n  b failed' })).toMatch(
      / · 2 errors \(newest: bash -c a b failed\)$/,
    );
  });
});
