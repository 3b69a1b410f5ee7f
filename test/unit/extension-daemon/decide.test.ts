import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs, replaces, RestartGuard } from '../../../extension/daemon/decide.js';

describe('replaces', () => {
  const build = fc.record({ version: fc.string(), time: fc.nat() });
  it('never in both directions, never itself, and without circles', () => {
    fc.assert(
      fc.property(build, build, build, (a, b, c) => {
        expect(replaces(a, a)).toBe(false);
        expect(replaces(a, b) && replaces(b, a)).toBe(false);
        if (replaces(a, b) && replaces(b, c)) expect(replaces(a, c)).toBe(true);
      }),
    );
  });
});

describe('backoffMs', () => {
  it('doubles up to ten seconds, and is never less than half of that', () => {
    expect([1, 2, 3, 8, 50].map((n) => backoffMs(n, () => 0))).toEqual([50, 100, 200, 5000, 5000]);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (n, r) => {
          const ms = backoffMs(n, () => r);
          return ms >= backoffMs(n, () => 0) && ms <= 2 * backoffMs(n, () => 0) && ms <= 10_000;
        },
      ),
    );
  });
});

describe('RestartGuard', () => {
  it('allows three in any five minutes', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 120_000 }), { maxLength: 60 }), (gaps) => {
        const g = new RestartGuard(),
          allowed: number[] = [];
        let now = 1e12;
        for (const gap of gaps) {
          now += gap;
          const recent = allowed.filter((t) => now - t < 300_000).length;
          expect(g.spent(now)).toBe(recent >= 3);
          const yes = g.allow(now);
          expect(yes).toBe(recent < 3);
          if (yes) allowed.push(now);
        }
      }),
    );
  });
  it('starts anew by hand', () => {
    const g = new RestartGuard();
    for (let i = 0; i < 3; i++) g.allow(0);
    expect(g.allow(1)).toBe(false);
    g.forget();
    expect(g.allow(1)).toBe(true);
  });
});
