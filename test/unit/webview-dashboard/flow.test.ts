import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../../runtime/protocol/types.js';
import { flowSentence, layoutFlow, ledgerFlow, ribbonPath } from '../../../webview/dashboard/flow.js';

const ledger = fc
  .record({
    trained: fc.nat(9999),
    queued: fc.nat(20),
    running: fc.nat(20),
    recorded: fc.nat(20),
    grouped: fc.nat(20),
    claimed: fc.nat(60),
    retired: fc.dictionary(fc.constantFrom('no-variance', 'replaced', 'error', 'stale', 'unheard of'), fc.nat(999)),
  })
  .map(({ trained, retired, ...byState }): Ledger => {
    const inFlight = Object.values(byState).reduce((a, b) => a + b, 0),
      gone = Object.values(retired).reduce((a, b) => a + b, 0);
    return {
      generated: trained + inFlight + gone,
      trained,
      inFlight,
      byState: { ...byState, trained, retired: gone },
      retired,
      closes: true,
    };
  });

describe('the ledger as a flow', () => {
  it('sends every rollout to exactly one place', () => {
    fc.assert(
      fc.property(ledger, (l) => {
        const f = ledgerFlow(l);
        expect(f.closes).toBe(true);
        expect(f.parts.reduce((a, p) => a + p.n, 0)).toBe(l.generated);
        if (l.generated > 0) expect(f.parts.reduce((a, p) => a + p.share, 0)).toBeCloseTo(1, 9);
        expect(f.parts.every((p) => p.n > 0 && p.says.length > 10)).toBe(true);
      }),
    );
  });
  it('tells a sum that does not close, and prints it so', () => {
    const l: Ledger = {
        generated: 100,
        trained: 50,
        inFlight: 10,
        byState: { running: 10 },
        retired: { stale: 39 },
        closes: true,
      },
      f = ledgerFlow(l);
    expect(f.closes).toBe(false);
    expect(f.missing).toBe(1);
    expect(flowSentence(f, String)).toBe('100 planned ≠ 50 trained + 10 in flight + 39 retired');
    expect(ledgerFlow({ ...l, generated: 99 }).closes).toBe(true);
    expect(ledgerFlow({ ...l, generated: 99, closes: false }).closes).toBe(false);
  });
  it('nothing is in flight in a run that is over', () => {
    fc.assert(
      fc.property(ledger, (l) => {
        const f = ledgerFlow(l, true),
          words = [flowSentence(f, String), ...f.parts.map((p) => `${p.label} ${p.says}`)].join(' ');
        expect(words).not.toMatch(/in flight|now|still running/);
        expect(words).toContain(`${l.inFlight} waiting`);
      }),
    );
  });
  it('says only "in flight" when the states do not add up to it', () => {
    expect(
      ledgerFlow({
        generated: 5,
        trained: 0,
        inFlight: 5,
        byState: { running: 3 },
        retired: {},
        closes: true,
      }).parts.map((p) => p.key),
    ).toEqual(['flight']);
  });
});

describe('its bars', () => {
  it('fill the height on the left, have room for their words on the right, and none is invisible', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ n: fc.integer({ min: 1, max: 100_000 }) }), { minLength: 1, maxLength: 12 }),
        (parts) => {
          const { ribbons, height } = layoutFlow(parts, 190, 30);
          expect(ribbons.reduce((a, r) => a + r.fromHeight, 0)).toBeCloseTo(190, 6);
          let y = 0,
            slot = 0;
          for (const r of ribbons) {
            expect(r.fromY).toBeCloseTo(y, 6);
            y += r.fromHeight;
            expect(r.slotY).toBeCloseTo(slot, 6);
            slot += r.slotHeight;
            expect(r.slotHeight).toBeGreaterThanOrEqual(30);
            expect(r.fromHeight).toBeGreaterThanOrEqual(1);
            expect(r.toY).toBeGreaterThanOrEqual(r.slotY);
            expect(r.toY + r.toHeight).toBeLessThanOrEqual(r.slotY + r.slotHeight + 1e-9);
          }
          expect(height).toBeGreaterThanOrEqual(slot - 1e-9);
          expect(ribbonPath(ribbons[0]!, 3, 97)).not.toMatch(/NaN|undefined/);
        },
      ),
    );
  });
});
