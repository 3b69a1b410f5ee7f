import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tisToken } from '../../../runtime/trainer/objective/corrections.js';
import { cispo, dualClip, ppoClip, ratioOf, type ClipBand } from '../../../runtime/trainer/objective/policyLoss.js';
import { importanceSampling } from '../../helpers/trainer/objectiveReference.js';

const runs = { numRuns: 1000, seed: 20_251_120 };
const logp = fc.double({ min: -6, max: -0.01, noNaN: true }),
  advantage = fc.double({ min: -3, max: 3, noNaN: true });
const scale = fc.double({ min: 0, max: 5, noNaN: true });
const bandOf = fc.record({
  low: fc.double({ min: 0.05, max: 1, noNaN: true }),
  high: fc.double({ min: 0.05, max: 4, noNaN: true }),
});
const close = (a: number, b: number, tolerance: number): boolean =>
  Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(a), Math.abs(b));

describe('identities of runtime/trainer/README.md#policy-gradient', () => {
  it('importance sampling, PPO and CISPO are positively homogeneous in A, so weights and masks fold into the advantage', () => {
    const losses: ((r: number, a: number, lp: number, b: ClipBand) => number)[] = [
      (r, a) => importanceSampling(r, a),
      (r, a, _, b) => ppoClip(r, a, b),
      cispo,
    ];
    fc.assert(
      fc.property(logp, logp, advantage, scale, bandOf, (lp, old, a, w, b) => {
        const r = ratioOf(lp, old);
        return losses.every((l) => close(l(r, w * a, lp, b), w * l(r, a, lp, b), 1e-12));
      }),
      runs,
    );
  });

  it('with one step per batch, TIS-GRPO has the gradient of CISPO with band [0, C] and rollout log-probs', () => {
    const h = 1e-6;
    fc.assert(
      fc.property(
        logp,
        logp,
        advantage,
        bandOf,
        fc.double({ min: 0.2, max: 4, noNaN: true }),
        (now, rollout, a, b, cap) => {
          const w = tisToken([now], [rollout], cap)[0]!;
          const tis = (lp: number): number => w * dualClip(ratioOf(lp, now), a, b, 10);
          const weight = ratioOf(now, rollout);
          const cis = (lp: number): number => cispo(weight, a, lp, { low: 1, high: cap - 1 });
          const slope = (f: (x: number) => number): number => (f(now + h) - f(now - h)) / (2 * h);
          return close(slope(tis), slope(cis), 1e-5);
        },
      ),
      runs,
    );
  });

  it('PPO never pays for moving further than the band allows', () => {
    fc.assert(
      fc.property(logp, logp, advantage, bandOf, (lp, old, a, b) => {
        const r = ratioOf(lp, old);
        expect(ppoClip(r, a, b)).toBeGreaterThanOrEqual(importanceSampling(r, a) - 1e-12);
      }),
      runs,
    );
  });
});
