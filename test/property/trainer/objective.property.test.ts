import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { k3 } from '../../../runtime/trainer/objective/kl.js';
import { objective, type ObjectiveOptions, type ObjectiveStep } from '../../../runtime/trainer/objective/objective.js';
import { gspoRatio, ratioOf } from '../../../runtime/trainer/objective/policyLoss.js';
import { carried, signedWeights, type Reduction } from '../../../runtime/trainer/objective/signedWeights.js';
import { gradientError, referenceLoss } from '../../helpers/trainer/objectiveReference.js';

const TOLERANCE = 1e-6;
/** Evenly, so that differences of slopes are not lost beside draws of 1e-300. */
const real = (min: number, max: number): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: 1_000_000 }).map((i) => min + ((max - min) * i) / 1_000_000);
const options: fc.Arbitrary<ObjectiveOptions> = fc.record({
  algorithm: fc.constantFrom('ppo' as const, 'gspo' as const, 'cispo' as const),
  epsLow: real(0.05, 0.5),
  epsHigh: real(0.05, 1),
  dualClip: real(2, 10),
  tis: fc.record({
    enabled: fc.boolean(),
    level: fc.constantFrom('token' as const, 'sequence' as const),
    cap: real(0.5, 4),
  }),
  unknownBehaviour: fc.constantFrom('one' as const, 'masked' as const),
  klBeta: fc.oneof(fc.constant(0), real(0.01, 1)),
  imitationCoef: real(0.1, 1),
});
const step: fc.Arbitrary<ObjectiveStep> = fc.integer({ min: 1, max: 6 }).chain((T) => {
  const row = (min: number): fc.Arbitrary<number[]> => fc.array(real(min, -0.01), { minLength: T, maxLength: T });
  const near = fc.array(real(-1.2, 1.2), { minLength: T, maxLength: T });
  return fc
    .record({
      term: fc.constantFrom('policy' as const, 'policy' as const, 'imitation' as const),
      now: row(-6),
      apart: near,
      fresh: fc.boolean(),
      rollout: fc.option(
        fc.array(fc.oneof({ weight: 4, arbitrary: real(-6, -0.01) }, fc.constant(NaN)), {
          minLength: T,
          maxLength: T,
        }),
        { nil: undefined },
      ),
      reference: row(-6),
      advantage: fc.oneof(real(-3, 3), fc.array(real(-3, 3), { minLength: T, maxLength: T })),
      weight: fc.oneof({ weight: 4, arbitrary: real(0.1, 1) }, fc.constant(0)),
      mask: fc.option(fc.array(fc.constantFrom(0, 1, 1), { minLength: T, maxLength: T }), { nil: undefined }),
      coefficient: fc.option(real(0.1, 3), { nil: undefined }),
    })
    .map(({ apart, fresh, ...s }) => ({ ...s, old: fresh ? undefined : s.now.map((x, t) => x - apart[t]!) }));
});
const batch = fc.array(step, { minLength: 1, maxLength: 4 });

/** Finite differences say nothing where a bound lies between their two points. */
function awayFromKinks(steps: readonly ObjectiveStep[], o: ObjectiveOptions): boolean {
  const edges = [1 - o.epsLow, 1 + o.epsHigh, o.dualClip];
  return steps.every((s) => {
    const old = s.old ?? s.now,
      kept = Array.from(s.now, (_, t) => t).filter(
        (t) => s.mask?.[t] !== 0 && !(o.unknownBehaviour === 'masked' && s.rollout && !Number.isFinite(s.rollout[t])),
      ),
      ratios =
        o.algorithm === 'gspo'
          ? [
              gspoRatio(
                kept.map((t) => s.now[t]!),
                kept.map((t) => old[t]!),
              ),
            ]
          : kept.map((t) => ratioOf(s.now[t]!, old[t]!));
    return (
      ratios.every((r) => edges.every((e) => Math.abs(r - e) > 1e-3)) &&
      kept.every((t) => Math.abs(k3(s.reference![t]! - s.now[t]!) - 10) > 1e-2)
    );
  });
}
const draws = fc.tuple(batch, options).filter(([b, o]) => awayFromKinks(b, o));

describe('the objective', () => {
  it('has the loss that its page writes down', () => {
    fc.assert(
      fc.property(draws, ([steps, o]) => {
        const want = referenceLoss(
          steps,
          o,
          steps.map((s) => s.now),
        );
        expect(Math.abs(objective(steps, o).loss - want)).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(want)));
      }),
      { numRuns: 2000 },
    );
  });

  it('has a derivative by every log-prob that agrees with finite differences of that loss', () => {
    let worst = 0;
    fc.assert(
      fc.property(draws, ([steps, o]) => {
        const e = gradientError(steps, o, objective(steps, o).gradient);
        worst = Math.max(worst, e);
        expect(e).toBeLessThanOrEqual(TOLERANCE);
      }),
      { numRuns: 2000 },
    );
    expect(worst).toBeGreaterThan(0);
  });

  it.each<[string, (g: readonly Float64Array[], steps: readonly ObjectiveStep[]) => readonly ArrayLike<number>[]]>([
    ['with its sign turned round', (g) => g.map((row) => row.map((x) => -x))],
    ['with one step counted twice', (g) => g.map((row, i) => (i === 0 ? row.map((x) => 2 * x) : row))],
    ['of the tokens before', (g) => g.map((row) => row.map((_, t) => row[t - 1] ?? 0))],
  ])('a gradient %s is found wrong by the same check', (_, mutate) => {
    let tried = 0;
    fc.assert(
      fc.property(draws, ([steps, o]) => {
        const { gradient: g, loss } = objective(steps, o),
          wrong = mutate(g, steps),
          scale = Math.max(...g.map((row) => Math.max(0, ...row.map(Math.abs)))),
          changed = Math.max(...g.map((row, i) => Math.max(...row.map((x, t) => Math.abs(x - wrong[i]![t]!)))));
        fc.pre(scale > 1e-3 * Math.abs(loss) && changed > 1e-3 * scale);
        tried++;
        expect(gradientError(steps, o, wrong)).toBeGreaterThan(100 * TOLERANCE);
      }),
      { numRuns: 500 },
    );
    expect(tried).toBeGreaterThan(100);
  });

  it.each<[string, Partial<ObjectiveOptions>]>([
    ['no dual clip', { dualClip: 1e9 }],
    ['no upper clip', { epsHigh: 1e9 }],
    ['another KL weight', { klBeta: 0.7 }],
    ['importance weights left out', { tis: { enabled: false, level: 'token', cap: 1 } }],
    ['one importance weight a step', { tis: { enabled: true, level: 'sequence', cap: 2 } }],
    ['another algorithm', { algorithm: 'gspo' }],
  ])('%s would be noticed', (_, change) => {
    const steps: ObjectiveStep[] = [
      {
        term: 'policy',
        now: [-1, -0.3, -2, -0.5],
        old: [-1.1, -3, -2, -0.9],
        rollout: [-1.5, -2.8, -1.9, -1],
        reference: [-1.2, -0.6, -1.8, -0.7],
        advantage: [1, -2, 0.5, 1.5],
        weight: 1,
      },
    ];
    const o: ObjectiveOptions = {
      algorithm: 'ppo',
      epsLow: 0.2,
      epsHigh: 0.28,
      dualClip: 10,
      tis: { enabled: true, level: 'token', cap: 2 },
      unknownBehaviour: 'one',
      klBeta: 0.1,
      imitationCoef: 1,
    };
    expect(gradientError(steps, o, objective(steps, o).gradient)).toBeLessThanOrEqual(TOLERANCE);
    expect(gradientError(steps, o, objective(steps, { ...o, ...change }).gradient)).toBeGreaterThan(100 * TOLERANCE);
  });
});

/** d (loss of a request) / d log p as a server with this reduction has it, at the log-probs of its own forward pass. */
function serverGradient(request: readonly Readonly<Record<string, Float32Array>>[], r: Reduction): readonly number[][] {
  return request.map((inputs) => {
    const w = inputs.weights ?? inputs.advantages!,
      scored = w.filter((x) => x !== 0).length,
      by = { sum: 1, targets: w.length, scored: Math.max(1, scored) }[r.withinDatum];
    return Array.from(w, (x) => -x / by / (r.overDatums === 'mean' ? request.length : 1));
  });
}

describe('signed weights', () => {
  const reduction: fc.Arbitrary<Reduction> = fc.record({
    withinDatum: fc.constantFrom('sum' as const, 'targets' as const, 'scored' as const),
    overDatums: fc.constantFrom('sum' as const, 'mean' as const),
  });
  it('make a server compute this gradient, whatever it divides by, with either carrier', () => {
    fc.assert(
      fc.property(
        draws,
        reduction,
        fc.constantFrom('cross_entropy' as const, 'importance_sampling' as const),
        fc.integer({ min: 0, max: 5 }),
        ([steps, o], r, carrier, prompt) => {
          const { gradient } = objective(steps, o);
          const request = gradient.map((g) => {
            const targets = prompt + g.length + 1;
            return carried(
              carrier,
              signedWeights(g, { targets, start: prompt }, r, gradient.length),
              new Float32Array(targets).fill(-1),
            );
          });
          serverGradient(request, r).forEach((row, i) => {
            const want = [...new Array<number>(prompt).fill(0), ...gradient[i]!, 0];
            row.forEach((x, t) => {
              // Weights travel as f32.
              expect(Math.abs(x - want[t]!)).toBeLessThanOrEqual(2e-7 * Math.abs(want[t]!) + 1e-40);
            });
          });
        },
      ),
      { numRuns: 500 },
    );
  });
});
