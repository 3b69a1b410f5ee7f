import { describe, expect, it } from 'vitest';
import { id, quantile } from '../../../runtime/domain/index.js';
import type { FamilyId, GroupId, RolloutId, TaskId } from '../../../runtime/domain/index.js';
import { policySteps, type CuratedGroup } from '../../../runtime/run/credit.js';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import { correctionMetrics, sequenceRatio, tisToken } from '../../../runtime/trainer/objective/corrections.js';
import { k1, k3, klTerm } from '../../../runtime/trainer/objective/kl.js';
import { tokenShares } from '../../../runtime/trainer/objective/aggregation.js';
import {
  cispo,
  clipState,
  dualClip,
  gspoRatio,
  ppoClip,
  ratioOf,
} from '../../../runtime/trainer/objective/policyLoss.js';

import { makeTrajectory } from '../../helpers/data/manager.js';

/** Published figures are rounded to 5 digits: half a unit of the last one, plus 1e-6. */
const ROUNDED = 5e-6 + 1e-6;
function near(got: readonly number[], want: readonly number[], tolerance = 1e-6): void {
  expect(got.length).toBe(want.length);
  got.forEach((g, i) => {
    expect(Math.abs(g - want[i]!), `entry ${i}: ${g} instead of ${want[i]}`).toBeLessThanOrEqual(tolerance);
  });
}
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;

/**
 * NeMo-RL's inputs, used by several rows of runtime/trainer/README.md#test-vectors; the page prints them with 5 digits:
 * -1.69315 and -0.59453
 * are ratios of 0.5 and 1.5.
 */
const prev = [-1, -1, -1],
  curr = [-1 + Math.log(0.5), -1, -1 + Math.log(1.5)],
  adv = [1, -1, 2],
  band = { low: 0.2, high: 0.2 };
const ratios = curr.map((c, i) => ratioOf(c, prev[i]!));

/** A group whose trajectories have these rewards and masks. */
function creditGroup(of: readonly { readonly reward: number; readonly keep: readonly boolean[] }[]): CuratedGroup {
  const trajectories = of.map(({ reward, keep }, i) =>
    makeTrajectory(
      { rollout: id<RolloutId>(`r${i}`), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 9 },
      { kind: reward === 1 ? 'success' : 'failure', reward, truncated: false },
      { steps: keep.length },
    ),
  );
  return {
    group: { id: id<GroupId>('g'), family: id<FamilyId>('f'), trajectories, injected: [] },
    keep: of.map((m) => m.keep),
  };
}
const stepBaseline = { baseline: 'step', norm: 'std', balance: 'step', credit: 'trajectory' } as const;

describe('advantages', () => {
  const one = (n: number): number[] => new Array<number>(n).fill(1);
  const paper = { baseline: 'trajectory', norm: 'std' } as const;
  it('matches verl on a balanced group', () => {
    near(groupAdvantages([1, 0, 0, 1], one(4), paper), [0.866024, -0.866024, -0.866024, 0.866024]);
  });
  it('matches verl on one success in eight', () => {
    near(groupAdvantages([1, 0, 0, 0, 0, 0, 0, 0], one(8), paper), [2.474867, ...new Array<number>(7).fill(-0.353552)]);
  });
  it('counts a singleton group as mean 0, deviation 1', () => {
    near(groupAdvantages([0.7], [3], paper), [0.7 / (1 + 1e-6)]);
  });
  it('gives 0 when all rewards are equal', () => {
    near(groupAdvantages([1, 1, 1], one(3), paper), [0, 0, 0]);
  });
  it('weighs long trajectories more with the step baseline', () => {
    // Steps 1, 3: mean 3/4 of the population [1, 0, 0, 0] is 1/4, its n-1 deviation 1/2.
    near(groupAdvantages([1, 0], [1, 3], { baseline: 'step', norm: 'std' }), [
      0.75 / (0.5 + 1e-6),
      -0.25 / (0.5 + 1e-6),
    ]);
    near(groupAdvantages([1, 0], [1, 3], { baseline: 'step', norm: 'none' }), [0.75, -0.25]);
  });
  it('compares with every step of the group with the step baseline, whatever the mask keeps', () => {
    // Population [1, 0, 0, 0]; were the masked failure left out, it would be [1] and count as a singleton.
    const group = creditGroup([
      { reward: 1, keep: [true] },
      { reward: 0, keep: [false, false, false] },
    ]);
    const [only, ...rest] = policySteps([group], stepBaseline, () => true);
    expect(rest).toEqual([]);
    near([only!.advantage], [0.75 / (0.5 + 1e-6)]);
    // Three kept successes and a masked failure: with equal rewards in the population there would be no gradient at all.
    const several = creditGroup([
      { reward: 1, keep: [true, true, true] },
      { reward: 0, keep: [false] },
    ]);
    const steps = policySteps([several], stepBaseline, () => true);
    near(
      steps.map((s) => s.advantage),
      new Array<number>(3).fill(0.25 / (0.5 + 1e-6)),
    );
    near(groupAdvantages([1, 0], [2, 0], { baseline: 'step', norm: 'none' }), [1 / 3, -2 / 3]);
  });
  it('only subtracts the mean without normalisation', () => {
    near(groupAdvantages([1, 0, 0, 0], one(4), { baseline: 'trajectory', norm: 'none' }), [0.75, -0.25, -0.25, -0.25]);
  });
  it('refuses an empty group', () => {
    expect(() => groupAdvantages([], [], paper)).toThrow(RangeError);
  });
});

describe('policy losses', () => {
  it('clips as PPO (NeMo-RL)', () => {
    near(ratios, [0.5, 1, 1.5], ROUNDED);
    const l = ratios.map((r, i) => ppoClip(r, adv[i]!, band));
    near(l, [-0.5, 1, -2.4], ROUNDED);
    near([mean(l)], [-0.63333], ROUNDED);
  });
  it('bounds negative advantages (dual clip, NeMo-RL)', () => {
    const l = [0.5, 1, 10].map((r, i) => dualClip(r, [1, -1, -4][i]!, band, 3));
    near(l, [-0.5, 1, 12]);
    near([mean(l)], [4.16667], ROUNDED);
  });
  it('bounds negative advantages (dual clip, slime)', () => {
    near(
      [2, 2, 0.5].map((r, i) => dualClip(r, [2, -2, 2][i]!, band, 1.5)),
      [-2.4, 3, -1],
    );
  });
  it('takes one ratio per step (GSPO, NeMo-RL)', () => {
    const s = gspoRatio(curr, prev),
      l = adv.map((a) => ppoClip(s, a, band));
    near([s], [0.90856], ROUNDED);
    near(l, [-0.90856, 0.90856, -1.81712], ROUNDED);
    near([mean(l)], [-0.60571], ROUNDED);
  });
  it.each([
    { r: [1, 1.14, 1.56, 0.4], band: { low: 0.2, high: 0.28 }, want: [0.7, -0.684, 1.024, -1.68] },
    // A band of [1, 4] in slime's terms: no lower bound acts, the upper one is 1 + 4.
    { r: [1, 3, 9, 0.4], band: { low: 1, high: 4 }, want: [0.7, -1.8, 4, -0.84] },
  ])('clips only the weight (CISPO, slime) in band $band', ({ r, band: b, want }) => {
    const a = [1, -0.5, 2, -1],
      logp = [-0.7, -1.2, -0.4, -2.1];
    near(
      r.map((x, i) => cispo(x, a[i]!, logp[i]!, b)),
      want,
    );
  });
  it('bounds the log-ratio at 20', () => {
    near([ratioOf(100, 0), ratioOf(-100, 0)], [Math.exp(20), Math.exp(-20)]);
  });
  it('reports which clip bound is active', () => {
    const b = { low: 0.2, high: 0.28 };
    expect([
      clipState(1.5, 1, b, 10),
      clipState(1.5, -1, b, 10),
      clipState(0.5, -1, b, 10),
      clipState(0.5, 1, b, 10),
      clipState(11, -1, b, 10),
    ]).toEqual(['high', 'none', 'low', 'none', 'dual']);
  });
  it('aggregates over tokens, then over steps', () => {
    const aggregate = (losses: readonly (readonly number[])[], weights: readonly number[]): number => {
      const shares = tokenShares(
        losses.map((l) => l.length),
        weights,
      );
      return losses.reduce((sum, l, i) => sum + shares[i]! * l.reduce((x, y) => x + y, 0), 0);
    };
    near([aggregate([[1, 2, 3], [10]], [1, 1])], [6]);
    near([aggregate([[1, 2, 3], [10], []], [1, 3, 5])], [8]);
    expect(aggregate([[4]], [0])).toBe(0);
  });
});

describe('rollout corrections', () => {
  const roll = [-0.5, -1.5, -0.8];
  it('truncates per token (NeMo-RL)', () => {
    const w = tisToken(prev, roll, 0.8),
      l = ratios.map((r, i) => w[i]! * ppoClip(r, adv[i]!, band));
    near(w, [0.60653, 0.8, 0.8], ROUNDED);
    near(tisToken(prev, roll, Infinity), [0.60653, 1.64872, 0.81873], ROUNDED);
    near(l, [-0.30326, 0.8, -1.92], ROUNDED);
    near([mean(l)], [-0.47442], ROUNDED);
  });
  it('truncates per step with GSPO (NeMo-RL)', () => {
    near([sequenceRatio(prev, roll)], [0.81873], ROUNDED);
    const w = Math.min(sequenceRatio(prev, roll), 0.8),
      s = gspoRatio(curr, prev),
      l = adv.map((a) => w * ppoClip(s, a, band));
    near(l, [-0.72685, 0.72685, -1.4537], ROUNDED);
    near([mean(l)], [-0.48457], ROUNDED);
  });
  it('truncates per token and per step (SkyRL)', () => {
    const old = [-1, -1.5, -0.5],
      r = [-1.5, -1, -1.5];
    near(tisToken(old, r, 2), [1.6487, 0.6065, 2], 5e-5 + 1e-6);
    near([sequenceRatio(old, r)], [Math.E]);
  });
  it('counts effective samples (verl)', () => {
    near([correctionMetrics([0, 0.8, 0], 5).ess], [1 / 3]);
  });
  it('summarises truncated weights', () => {
    const m = correctionMetrics([1, 1, 0.5, 0], 1);
    near([m.mean, m.bounded, m.ess], [0.625, 0.5, 2.5 ** 2 / (4 * 2.25)]);
    expect(m.histogram.reduce((a, b) => a + b, 0)).toBe(4);
    expect([m.histogram[0], m.histogram[10], m.histogram[19]]).toEqual([1, 1, 2]);
  });
  it('reports neutral figures without any weight', () => {
    expect(correctionMetrics([], 1)).toMatchObject({ n: 0, mean: 1, bounded: 0, ess: 1 });
  });
});

// The published vectors of the high-entropy mask are with the code that selects steps: test/unit/data/curation.test.ts.
describe('a quantile', () => {
  it('interpolates linearly', () => {
    near([quantile([3, 1, 2, 4], 0.25)!, quantile([5], 0.9)!], [1.75, 5]);
  });
});

describe('KL estimators', () => {
  it('agree with their formulas in x = ref/pi', () => {
    const x = Math.log(1.3);
    near([k1(x), k3(x)], [-x, 1.3 - 1 - x]);
  });
  it('are bounded in the objective', () => {
    near([klTerm(-30, 0), klTerm(-1, -1), klTerm(0, -30)], [10, 0, 10]);
  });
});
