import { describe, expect, it } from 'vitest';
import { random } from '../../../../runtime/domain/index.js';
import {
  objective,
  type ObjectiveOptions,
  type ObjectiveStep,
} from '../../../../runtime/trainer/objective/objective.js';
import { carried, signedWeights } from '../../../../runtime/trainer/objective/signedWeights.js';
import {
  floats,
  integers,
  type Chunk,
  type Datum,
  type ForwardBackwardRequest,
} from '../../../../runtime/trainer/remote/wire/index.js';
import { Learner } from '../../../helpers/engine/learner.js';
import { TinyPolicy } from '../../../helpers/engine/policy.js';
import { DESCENT } from '../../../helpers/engine/requests.js';
import { referenceLoss } from '../../../helpers/trainer/objectiveReference.js';

const policy = new TinyPolicy({ imageTokens: () => 3 }),
  P = policy.parameters;
const image = (n: number): Chunk => ({ type: 'image', data: Uint8Array.of(n, 1, 2), format: 'png', expectedTokens: 3 });
const text = (s: string): Chunk => ({ type: 'encoded_text', tokens: policy.encode(s) });

/** "look [image] at [image] it: <answer>", the answer's tokens as targets behind those of the prompt. */
function datum(answer: string, images: readonly number[], inputs: (n: number) => Datum['inputs']): Datum {
  const chunks = [text('look'), ...images.flatMap((i) => [image(i), text('at')]), text(`:${answer}`)],
    tokens = policy.read(chunks).positions.map((p) => p.token),
    // Image pads are no targets a loss may weigh; any byte stands for them.
    targets = [...tokens.slice(1), 46].map((t) => (t < 256 ? t : 46));
  return { chunks, inputs: { target_tokens: integers(targets), ...inputs(targets.length) } };
}
function learner(): Learner {
  const l = new Learner(policy, new Set()),
    rng = random('delta');
  l.delta = Float64Array.from({ length: P }, () => 0.1 * rng.normal());
  return l;
}
const request = (
  data: readonly Datum[],
  lossFn: string,
  o: Partial<ForwardBackwardRequest> = {},
): ForwardBackwardRequest => ({
  modelId: 'm',
  seqId: 1,
  data,
  lossFn,
  forwardOnly: false,
  ...o,
});

/**
 * Error of `gradient` against central differences of `loss(delta)` along random directions, relative to the largest
 * slope.
 */
function directionalError(l: Learner, gradient: Float64Array, loss: () => number): number {
  const rng = random('directions'),
    at = l.delta.slice(),
    h = 1e-5;
  let worst = 0,
    scale = 0;
  for (let k = 0; k < 6; k++) {
    const dir = Float64Array.from({ length: P }, () => rng.normal());
    const move = (d: number): number => {
      l.delta = at.map((x, i) => x + d * dir[i]!);
      return loss();
    };
    const slope = (move(h) - move(-h)) / (2 * h),
      got = dir.reduce((s, x, i) => s + x * gradient[i]!, 0);
    worst = Math.max(worst, Math.abs(slope - got));
    scale = Math.max(scale, Math.abs(slope));
  }
  l.delta = at;
  return worst / scale;
}

describe("the reference policy's gradient", () => {
  const rng = random('rows'),
    row = (n: number, f: () => number): ReturnType<typeof floats> => floats(Array.from({ length: n }, f));
  const data = (lossFn: string): Datum[] =>
    [[1], [1, 2], []].map((images, i) =>
      datum(['yes', 'no', 'perhaps'][i]!, images, (n): Datum['inputs'] =>
        lossFn === 'cross_entropy'
          ? { weights: row(n, () => rng.normal()) }
          : { logprobs: row(n, () => -5.5 + rng.normal()), advantages: row(n, () => rng.normal()) },
      ),
    );
  it.each(['cross_entropy', 'importance_sampling', 'ppo'])('of %s agrees with finite differences', (lossFn) => {
    const l = learner(),
      r = request(data(lossFn), lossFn);
    const { loss } = l.pass(r),
      gradient = l.gradient.slice();
    expect(Number.isFinite(loss)).toBe(true);
    const error = directionalError(l, gradient, () => l.pass({ ...r, forwardOnly: true }).loss);
    expect(error).toBeLessThan(1e-6);
    expect(
      directionalError(
        l,
        gradient.map((x) => -x),
        () => l.pass({ ...r, forwardOnly: true }).loss,
      ),
    ).toBeGreaterThan(1);
  });
  it('of cispo is that of cross-entropy with the clipped ratios as weights', () => {
    const l = learner(),
      ds = data('cispo'),
      band = { clip_low_threshold: 0.5, clip_high_threshold: 2 };
    const { logprobs } = l.pass(request(ds, 'cispo', { lossFnConfig: band }));
    const gradient = l.gradient.slice();
    l.gradient.fill(0);
    const weighed = ds.map((d, i) => ({
      ...d,
      inputs: {
        target_tokens: d.inputs.target_tokens!,
        weights: {
          dtype: 'float32' as const,
          shape: d.inputs.logprobs!.shape,
          // f64 here: the server reads numbers, and rounding is not what is tested.
          data: Float64Array.from(logprobs[i]!, (x, t) => {
            const ratio = Math.exp(x - d.inputs.logprobs!.data[t]!);
            return Math.min(Math.max(ratio, 0.5), 2) * d.inputs.advantages!.data[t]!;
          }),
        },
      },
    }));
    l.pass(request(weighed, 'cross_entropy'));
    const norm = Math.hypot(...gradient);
    expect(norm).toBeGreaterThan(0.1);
    expect(Math.hypot(...gradient.map((x, i) => x - l.gradient[i]!)) / norm).toBeLessThan(1e-12);
  });
  it('adds up over calls and is cleared by a step', () => {
    const l = learner(),
      r = request(data('cross_entropy'), 'cross_entropy');
    l.pass(r);
    const once = l.gradient.slice();
    l.pass(r);
    expect(Math.max(...l.gradient.map((x, i) => Math.abs(x - 2 * once[i]!)))).toBeLessThan(1e-12);
    l.step({});
    expect(Math.max(...l.gradient.map(Math.abs))).toBe(0);
  });
  it('AdamW without memory and with a large eps is plain descent', () => {
    const l = learner(),
      before = l.delta.slice();
    l.pass(request(data('cross_entropy'), 'cross_entropy'));
    const g = l.gradient.slice();
    l.step(DESCENT(0.5));
    const worst = Math.max(...l.delta.map((x, i) => Math.abs(before[i]! - 0.5 * g[i]! - x)));
    expect(worst / Math.max(...g.map(Math.abs))).toBeLessThan(1e-6);
  });
});

describe('any objective on a server that knows cross-entropy alone', () => {
  const options = (algorithm: ObjectiveOptions['algorithm']): ObjectiveOptions => ({
    algorithm,
    epsLow: 0.2,
    epsHigh: 0.28,
    dualClip: 3,
    tis: { enabled: true, level: algorithm === 'gspo' ? 'sequence' : 'token', cap: 1.5 },
    unknownBehaviour: 'one',
    klBeta: 0.1,
    imitationCoef: 0.5,
  });
  const cases = (['ppo', 'gspo', 'cispo'] as const).flatMap((a) =>
    (['cross_entropy', 'importance_sampling'] as const).map((c) => [a, c] as const),
  );
  it.each(cases)('%s with images, TIS, dual clip, KL and an imitated step, carried by %s', (algorithm, carrier) => {
    const l = learner(),
      rng = random('batch'),
      answers = ['click here', 'wait', 'type it', 'finished'],
      o = options(algorithm),
      bare = answers.map((a, i) => datum(a, [[1], [1, 2], [], [3, 4, 5]][i]!, () => ({}))),
      spans = bare.map((d, i) => {
        const targets = d.inputs.target_tokens!.shape[0]!;
        // The last target is past the end of the answer.
        return { targets, start: targets - 1 - answers[i]!.length };
      });
    const forward = (): Float64Array[] =>
      l.pass(
        request(
          bare.map((d, i) => ({ ...d, inputs: { ...d.inputs, weights: floats(new Float32Array(spans[i]!.targets)) } })),
          'cross_entropy',
          { forwardOnly: true },
        ),
      ).logprobs;
    const rowsOf = (all: readonly Float64Array[]): Float64Array[] =>
      all.map((x, i) => x.slice(spans[i]!.start, spans[i]!.start + answers[i]!.length));
    const first = forward(),
      now = rowsOf(first);
    const steps = now.map((x, i): ObjectiveStep => ({
      term: i === 3 ? 'imitation' : 'policy',
      now: x,
      old: x.map((v) => v + 0.4 * rng.normal()),
      rollout: i === 2 ? undefined : x.map((v) => v + 0.4 * rng.normal()),
      reference: x.map((v) => v + 0.3 * rng.normal()),
      advantage: [1.2, -0.9, 0.7, 0][i]!,
      weight: [1, 0.5, 0.7, 0.4][i]!,
    }));
    const { gradient } = objective(steps, o);
    l.pass(
      request(
        bare.map((d, i) => ({
          ...d,
          inputs: {
            ...d.inputs,
            ...Object.fromEntries(
              Object.entries(carried(carrier, signedWeights(gradient[i]!, spans[i]!), first[i])).map(([k, v]) => [
                k,
                floats(v),
              ]),
            ),
          },
        })),
        carrier,
      ),
    );
    const error = directionalError(l, l.gradient.slice(), () =>
      referenceLoss(
        rowsOf(forward()).map((x, i) => ({ ...steps[i]!, now: x })),
        o,
        now,
      ),
    );
    // Weights travel as f32.
    expect(error).toBeLessThan(1e-6);
  });
});
