import { describe, expect, it } from 'vitest';
import { StudioError } from '../../../runtime/domain/index.js';
import { stepWeight } from '../../../runtime/trainer/objective/aggregation.js';
import { objective, type ObjectiveOptions, type ObjectiveStep } from '../../../runtime/trainer/objective/objective.js';
import { carried, signedWeights } from '../../../runtime/trainer/objective/signedWeights.js';

/** Published figures are rounded to 5 digits. */
const ROUNDED = 6e-6;
const plain: ObjectiveOptions = {
  algorithm: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.2,
  dualClip: 1e9,
  tis: { enabled: false, level: 'token', cap: 1 },
  unknownBehaviour: 'one',
  klBeta: 0,
  imitationCoef: 1,
};
/** NeMo-RL's inputs (runtime/trainer/README.md#test-vectors). */
const nemo: ObjectiveStep = {
  term: 'policy',
  now: [-1 + Math.log(0.5), -1, -1 + Math.log(1.5)],
  old: [-1, -1, -1],
  rollout: [-0.5, -1.5, -0.8],
  advantage: [1, -1, 2],
  weight: 1,
};
const step = (o: Partial<ObjectiveStep> = {}): ObjectiveStep => ({
  term: 'policy',
  now: [-1, -2],
  advantage: 1,
  weight: 1,
  ...o,
});

describe('published losses, summed up by the objective', () => {
  const tis = (level: 'token' | 'sequence'): ObjectiveOptions['tis'] => ({ enabled: true, level, cap: 0.8 });
  it.each<[string, Partial<ObjectiveOptions>, number]>([
    ['ppo clip (NeMo-RL)', {}, -0.63333],
    ['gspo (NeMo-RL)', { algorithm: 'gspo' }, -0.60571],
    ['truncated weights per token (NeMo-RL)', { tis: tis('token') }, -0.47442],
    ['truncated weight per step with gspo (NeMo-RL)', { algorithm: 'gspo', tis: tis('sequence') }, -0.48457],
  ])('%s', (_, o, want) => {
    expect(Math.abs(objective([nemo], { ...plain, ...o }).loss - want)).toBeLessThanOrEqual(ROUNDED);
  });
  it('dual clip (NeMo-RL)', () => {
    const ratios = [0.5, 1, 10],
      s = step({ now: ratios.map(Math.log), old: [0, 0, 0], advantage: [1, -1, -4] });
    const got = objective([s], { ...plain, dualClip: 3 });
    expect(got.loss).toBeCloseTo(4.16667, 5);
    // At rho = 10 the bound holds: nothing to learn from that token.
    expect(Array.from(got.gradient[0]!)).toEqual([expect.closeTo(-0.5 / 3), expect.closeTo(1 / 3), 0]);
    expect(got.clipped).toEqual({ low: 0, high: 0, dual: 1 });
  });
  it('cispo (slime)', () => {
    const now = [-0.7, -1.2, -0.4, -2.1],
      rho = [1, 1.14, 1.56, 0.4],
      s = step({ now, old: now.map((x, i) => x - Math.log(rho[i]!)), advantage: [1, -0.5, 2, -1] });
    const got = objective([s], { ...plain, algorithm: 'cispo', epsHigh: 0.28 });
    expect(got.loss).toBeCloseTo((0.7 - 0.684 + 1.024 - 1.68) / 4, 6);
    [-1, 0.57, -2.56, 0.8].forEach((g, t) => expect(got.gradient[0]![t]).toBeCloseTo(g / 4, 6));
  });
});

describe('which steps and tokens count', () => {
  it('is a mean over tokens, then a weighted mean over steps; a masked step is in neither', () => {
    const steps = [step({ now: [-1] }), step({ now: [-1, -1], weight: 0.5 }), step({ weight: 0 })],
      g = objective(steps, plain).gradient.map((row) => Array.from(row));
    expect(g).toEqual(
      [[-2 / 3], [-1 / 6, -1 / 6], [0, 0]].map((row) => row.map((x) => expect.closeTo(x, 12) as number)),
    );
  });
  it('gives a trajectory the weight 1, or every step', () => {
    expect([1, 4, 0].map((n) => stepWeight('trajectory', n))).toEqual([1, 0.25, 1]);
    expect([1, 4].map((n) => stepWeight('step', n))).toEqual([1, 1]);
  });
  it('a masked token is in neither numerator nor denominator', () => {
    const got = objective([step({ mask: [1, 0] })], plain);
    expect(Array.from(got.gradient[0]!)).toEqual([-1, 0]);
  });
  it('an unknown behaviour log-prob has the weight 1, or its token does not count', () => {
    const s = step({ rollout: [NaN, -1], old: [-1, -2] }),
      o: ObjectiveOptions = { ...plain, tis: { enabled: true, level: 'token', cap: 1 } },
      one = objective([s], o),
      masked = objective([s], { ...o, unknownBehaviour: 'masked' });
    expect(Array.from(one.gradient[0]!)).toEqual([-0.5, expect.closeTo(-0.5 / Math.E)]);
    expect(Array.from(masked.gradient[0]!)).toEqual([0, expect.closeTo(-1 / Math.E)]);
    expect(one.importanceWeights).toEqual([expect.closeTo(1 / Math.E)]);
  });
  it('a demonstration has the weight 1 even where unknown tokens are left out', () => {
    const got = objective([step()], {
      ...plain,
      tis: { enabled: true, level: 'token', cap: 1 },
      unknownBehaviour: 'masked',
    });
    expect(Array.from(got.gradient[0]!)).toEqual([-0.5, -0.5]);
  });
  it('an imitated step has neither ratio nor clip nor KL', () => {
    const got = objective([step({ term: 'imitation', coefficient: 0.3 })], { ...plain, klBeta: 1 });
    expect([got.loss, got.imitationLoss, got.policyLoss, got.kl]).toEqual([
      expect.closeTo(0.45),
      expect.closeTo(0.45),
      0,
      0,
    ]);
    expect(Array.from(got.gradient[0]!)).toEqual([-0.15, -0.15]);
  });
  it('a batch without anything that counts has no gradient and no loss', () => {
    const got = objective([step({ weight: 0 }), step({ mask: [0, 0] })], plain);
    expect(got.loss).toBe(0);
    expect(got.gradient.every((g) => g.every((x) => x === 0))).toBe(true);
  });
});

describe('a batch that cannot be trained', () => {
  it.each<[string, ObjectiveStep, Partial<ObjectiveOptions>]>([
    ['a log-prob that is not finite', step({ now: [-1, -Infinity] }), {}],
    ['an old one that is not', step({ old: [NaN, -1] }), {}],
    ['rows of unequal length', step({ rollout: [-1] }), {}],
    ['too few advantages', step({ advantage: [1] }), {}],
    ['a negative weight', step({ weight: -1 }), {}],
    ['no reference for the KL', step(), { klBeta: 0.1 }],
  ])('%s is refused in words', (_, s, o) => {
    expect(() => objective([s], { ...plain, ...o })).toThrow(StudioError);
  });
});

describe('signed weights', () => {
  it('are -dL/dlog p where the step stands among the targets, and 0 elsewhere', () => {
    expect(Array.from(signedWeights([0.5, -0.25], { targets: 5, start: 2 }))).toEqual([0, 0, -0.5, 0.25, 0]);
  });
  it('have what the server divides by multiplied in', () => {
    const w = (within: 'targets' | 'scored'): number[] =>
      Array.from(signedWeights([0.5, 0], { targets: 4, start: 0 }, { withinDatum: within, overDatums: 'mean' }, 3));
    expect([w('targets'), w('scored')]).toEqual([
      [-6, 0, 0, 0],
      [-1.5, 0, 0, 0],
    ]);
  });
  it('travel as advantages beside the forward pass own log-probs, too', () => {
    const weights = Float32Array.of(0, -0.5);
    expect(carried('importance_sampling', weights, [-1, -2])).toEqual({
      logprobs: Float32Array.of(-1, -2),
      advantages: weights,
    });
    expect(() => carried('importance_sampling', weights, [-1])).toThrow(StudioError);
    expect(() => carried('importance_sampling', weights)).toThrow(StudioError);
  });
  it('are refused where they do not fit their datum or no f32', () => {
    expect(() => signedWeights([1, 1], { targets: 2, start: 1 })).toThrow(StudioError);
    expect(() => signedWeights([1e39], { targets: 1, start: 0 })).toThrow(StudioError);
  });
});
