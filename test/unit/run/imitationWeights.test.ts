import { describe, expect, it } from 'vitest';
import { id, random, type LearnStep, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
import { imitationFactor, weighByNeed } from '../../../runtime/run/imitationWeights.js';
import { replayedSteps, type ReplayOptions } from '../../../runtime/run/trainLoop.js';

const success = (family: string, steps = 1): Trajectory =>
  ({
    id: id<RolloutId>(family),
    family: id(family),
    steps: Array.from({ length: steps }, (_, index) => ({ index })),
  }) as unknown as Trajectory;
const shown = (t: Trajectory): LearnStep => ({ trajectory: t, step: 0, kind: 'imitation', advantage: 0, weight: 0.5 });

describe('the factor of imitation', () => {
  it('is 3 where all fails, 1 at one half and for a family that nobody rolled out, 0.1 where all succeeds', () => {
    expect([0, 0.25, 0.5, 0.75, 1].map(imitationFactor)).toEqual([
      3,
      expect.closeTo(1.732051, 6),
      1,
      expect.closeTo(0.316228, 6),
      expect.closeTo(0.1, 12),
    ]);
  });
});

describe('imitation by need', () => {
  it('multiplies the coefficient by the factor of the family, and says what that came to', () => {
    const steps = ['never', 'never', 'always', 'unknown'].map((f) => shown(success(f))),
      w = weighByNeed(
        steps,
        new Map([
          ['never', 0],
          ['always', 1],
        ]),
        0.2,
      );
    expect(w.steps.map((s) => s.coefficient)).toEqual([
      expect.closeTo(0.6, 12),
      expect.closeTo(0.6, 12),
      expect.closeTo(0.02, 12),
      0.2,
    ]);
    expect(w.steps.map((s) => s.weight)).toEqual([0.5, 0.5, 0.5, 0.5]);
    expect(w.metrics).toEqual({ imitationFactor: expect.closeTo(7.1 / 4, 12) as number, imitationMore: 1 });
  });
});

describe('what is imitated beside a batch', () => {
  const own: LearnStep[] = [2, 1].map((weight) => ({
    trajectory: success('own'),
    step: 0,
    kind: 'policy',
    advantage: 1,
    weight,
  }));
  const options = (o: Partial<ReplayOptions> = {}): ReplayOptions => ({
    replay: 40,
    imitation: 'adaptive',
    imitationCoef: 0.3,
    successes: [success('hard', 2), success('easy')],
    rates: new Map([
      ['hard', 0.1],
      ['easy', 0.9],
    ]),
    random: random('replay'),
    expressible: () => true,
    ...o,
  });
  it('weighs together as much as the own samples, each by what its family needs', () => {
    const { steps, metrics } = replayedSteps(own, options());
    expect(steps.reduce((a, s) => a + s.weight, 0)).toBeCloseTo(3, 9);
    const of = (family: string): Set<number | undefined> =>
      new Set(steps.filter((s) => (s.trajectory.family as string) === family).map((s) => s.coefficient));
    expect([[...of('hard')], [...of('easy')]]).toEqual([[0.3 * imitationFactor(0.1)], [0.3 * imitationFactor(0.9)]]);
    expect(metrics?.imitationMore).toBe(1);
    expect(metrics?.imitationFactor).toBeGreaterThan(1);
  });
  it('is drawn as with a fixed coefficient, and there has none of its own', () => {
    const fixed = replayedSteps(own, options({ imitation: 'fixed', random: random('replay') }));
    expect(fixed.metrics).toBeUndefined();
    expect(fixed.steps.every((s) => s.coefficient === undefined)).toBe(true);
    const adaptive = replayedSteps(own, options({ random: random('replay') })).steps;
    expect(adaptive.map(({ coefficient: _, ...s }) => s)).toEqual(fixed.steps);
  });
  it('is the same again from the same rates and draws', () => {
    expect(replayedSteps(own, options({ random: random('a') }))).toEqual(
      replayedSteps(own, options({ random: random('a') })),
    );
  });
  it('is nothing without successes', () => {
    expect(replayedSteps(own, options({ successes: [] }))).toEqual({ steps: [] });
  });
});
