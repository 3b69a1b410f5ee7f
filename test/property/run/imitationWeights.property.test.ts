import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id, type FamilyId } from '../../../runtime/domain/index.js';
import { SuccessStats } from '../../../runtime/data/curation/successStats.js';
import { imitationFactor } from '../../../runtime/run/imitationWeights.js';

const rate = fc.double({ min: 0, max: 1, noNaN: true }),
  family = id<FamilyId>('f');
const WINDOW = 16;
/** The factor after these outcomes, oldest first. */
function after(outcomes: readonly boolean[]): number {
  const s = new SuccessStats(WINDOW);
  for (const o of outcomes) s.add(family, o);
  return imitationFactor(s.of(family).posterior);
}

describe('the factor of imitation', () => {
  it('is between 0.1 and 3, and never rises with the success rate', () => {
    fc.assert(
      fc.property(rate, rate, (a, b) => {
        const [low, high] = [imitationFactor(Math.min(a, b)), imitationFactor(Math.max(a, b))];
        expect(low).toBeGreaterThanOrEqual(high);
        expect(low).toBeLessThanOrEqual(3);
        expect(high).toBeGreaterThanOrEqual(0.1 - 1e-12);
      }),
    );
  });
  it('is 1 before any outcome, above it without a success, and falls when a failure becomes a success', () => {
    expect(after([])).toBe(1);
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: WINDOW }), fc.nat(), (outcomes, at) => {
        const as = (o: boolean): number => after(outcomes.map((x, i) => (i === at % outcomes.length ? o : x)));
        expect(as(true)).toBeLessThan(as(false));
        expect(after(outcomes.map(() => false))).toBeGreaterThan(1);
        expect(after(outcomes.map(() => true))).toBeLessThan(1);
      }),
    );
  });
  it('forgets what has left the window', () => {
    const outcomes = (n: number): fc.Arbitrary<boolean[]> => fc.array(fc.boolean(), { minLength: n, maxLength: n });
    fc.assert(
      fc.property(fc.array(fc.boolean()), outcomes(WINDOW), (before, newest) => {
        expect(after([...before, ...newest])).toBe(after(newest));
      }),
    );
  });
});
