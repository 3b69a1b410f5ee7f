import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { klMoved, type Moved } from '../../../runtime/trainer/objective/kl.js';

const logp = fc.double({ min: -40, max: 0, noNaN: true }),
  row = (n: number): fc.Arbitrary<number[]> => fc.array(logp, { minLength: n, maxLength: n });
const step = (known: boolean): fc.Arbitrary<Moved> =>
  fc
    .integer({ min: 1, max: 4 })
    .chain((n) => fc.record({ now: row(n), old: row(n), rollout: known ? row(n) : fc.constant(undefined) }));
const sampled = fc.array(step(true), { minLength: 1, maxLength: 6 });

describe('KL to the policy before the update', () => {
  it('is between 0 and the bound of a token, and 0 where nothing has moved', () => {
    fc.assert(
      fc.property(sampled, (steps) => {
        const kl = klMoved(steps);
        expect(kl).toBeGreaterThanOrEqual(-1e-12);
        expect(kl).toBeLessThanOrEqual(10);
        expect(klMoved(steps.map((s) => ({ ...s, now: s.old })))).toBeCloseTo(0, 12);
      }),
    );
  });
  it('does not depend on steps that nobody sampled, wherever they stand', () => {
    fc.assert(
      fc.property(sampled, fc.array(step(false), { maxLength: 4 }), (steps, shown) => {
        expect(klMoved([...shown, ...steps])).toBe(klMoved(steps));
        expect(klMoved([...steps, ...shown])).toBe(klMoved(steps));
      }),
    );
  });
});
