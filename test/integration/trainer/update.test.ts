import { describe, expect, it } from 'vitest';
import { random } from '../../../runtime/domain/index.js';
import { ADAM_PARAMS, adamGraph } from '../../../runtime/trainer/native/model/adamGraph.js';
import { gradGraph, LOSS_PARAMS, TOKENS, type GradVariant } from '../../../runtime/trainer/native/model/lossGraph.js';
import { placedParams } from '../../../runtime/trainer/native/model/params.js';
import { tokenShares } from '../../../runtime/trainer/objective/aggregation.js';
import { klTerm } from '../../../runtime/trainer/objective/kl.js';
import { tisToken } from '../../../runtime/trainer/objective/corrections.js';
import { objective, type ObjectiveOptions, type ObjectiveStep } from '../../../runtime/trainer/objective/objective.js';
import { cispo, dualClip, gspoRatio, ratioOf } from '../../../runtime/trainer/objective/policyLoss.js';
import {
  choiceCount,
  f64,
  ints,
  randomStates,
  relative,
  roughTheta,
  sessionOf,
  slope,
  TINY,
  tinyModel,
} from '../../helpers/trainer/tinyModel.js';

/**
 * The whole objective in f64 on a tiny policy: its value against the plain TypeScript reference, its gradient against
 * central differences.
 */

const B = 2,
  K = 3,
  model = tinyModel(),
  P = model.layout.total,
  N = B * K * TOKENS;
const PARAM = {
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 1.6,
  tisCap: 0.9,
  klBeta: 0.3,
  temperature: 1.25,
};

interface Batch {
  mask: number[];
  policyWeight: number[];
  imitationWeight: number[];
  rollout: number[];
  corrected: number[];
  old: number[];
  ref: number[];
  advantage: number[];
  entropyWeight: number[];
  choices: number[];
}

function batch(seed: number): { data: Batch; states: ReturnType<typeof randomStates> } {
  const rng = random(`update/${seed}`),
    n = choiceCount(TINY),
    slots = B * K;
  const lengths = Array.from({ length: slots }, (_, i) => 1 + (i % TOKENS));
  const perToken = (f: (slot: number, t: number) => number): number[] =>
    Array.from({ length: N }, (_, i) => f(Math.floor(i / TOKENS), i % TOKENS));
  const mask = perToken((s, t) => (t < lengths[s]! ? 1 : 0));
  // The copy position that holds padding is no possible choice: leave it out.
  const padded = TINY.types.length + 2 * 8 + TINY.instruction.maxTokens - 1;
  const choice = (): number => {
    const c = rng.int(n);
    return c === padded ? 0 : c;
  };
  return {
    states: randomStates(TINY, B, rng),
    data: {
      mask,
      choices: perToken((s, t) => (t < lengths[s]! ? choice() : 0)),
      policyWeight: perToken((s, t) => (s % 3 < 2 && t < lengths[s]! ? 0.3 + 0.5 * rng.next() : 0)),
      imitationWeight: perToken((s, t) => (s % 3 === 2 && t < lengths[s]! ? 0.7 : 0)),
      rollout: perToken(() => -1.5 - rng.next()),
      corrected: perToken((s) => (s === 1 ? 0 : 1)),
      old: perToken(() => 0),
      ref: perToken(() => -1.2 - 2 * rng.next()),
      advantage: Array.from({ length: slots }, (_, i) => (i % 2 ? 1.3 : -0.8)),
      entropyWeight: [0.05, 0.11],
    },
  };
}
const feeds = (
  d: Batch,
  states: ReturnType<typeof randomStates>,
  theta: Float64Array,
): Record<string, ReturnType<typeof f64>> => ({
  ...states,
  theta: f64(theta, [P]),
  accumulated: f64(new Float64Array(P), [P]),
  choices: ints(d.choices, [B, K * TOKENS]),
  ...Object.fromEntries(
    (['mask', 'policyWeight', 'imitationWeight', 'rollout', 'corrected', 'old', 'ref'] as const).map((k) => [
      k,
      f64(d[k], [B, K, TOKENS]),
    ]),
  ),
  advantage: f64(d.advantage, [B, K]),
  entropyWeight: f64(d.entropyWeight, [B]),
  lossParams: f64(
    LOSS_PARAMS.map((k) => PARAM[k]),
    [LOSS_PARAMS.length],
  ),
});

/** Compiles a variant; `at(theta)` answers its outputs. */
async function compile(
  v: GradVariant,
  d: Batch,
  states: ReturnType<typeof randomStates>,
): Promise<{
  at(
    theta: Float64Array,
  ): Promise<{ gradient: Float64Array; parts: Float64Array; logprobs: Float64Array; entropy: Float64Array }>;
  release(): Promise<void>;
}> {
  const session = await sessionOf(gradGraph(model, B, K, v, 'f64'));
  return {
    release: () => session.release(),
    at: async (theta) => {
      const all = feeds(d, states, theta),
        out = await session.run(Object.fromEntries(session.inputNames.map((n) => [n, all[n]!])));
      return Object.fromEntries(
        ['gradient', 'parts', 'logprobs', 'entropy'].map((k) => [k, out[k]!.data as Float64Array]),
      ) as Record<'gradient' | 'parts' | 'logprobs' | 'entropy', Float64Array>;
    },
  };
}
/** Old log-probs a little off the present ones, so that some ratios leave the band and none sits on its edge. */
async function withOld(d: Batch, states: ReturnType<typeof randomStates>, theta: Float64Array): Promise<void> {
  const probe = await compile({ algorithm: 'ppo', tis: false, fresh: true, reference: false }, d, states);
  const { logprobs } = await probe.at(theta);
  const offsets = [0.1, -0.35, 0.5, -0.05, 0.4, -0.6];
  d.old = Array.from(logprobs, (x, i) => x + offsets[i % offsets.length]!);
  d.rollout = d.old.map((x, i) => x - [0.2, -0.3, 0.05, -0.1][i % 4]!);
  await probe.release();
}

/** The objective from log-probs alone, by runtime/trainer/objective. */
function expected(v: GradVariant, d: Batch, logprobs: Float64Array): { policy: number; imitation: number; kl: number } {
  let policy = 0,
    imitation = 0,
    kl = 0;
  const band = { low: PARAM.epsLow, high: PARAM.epsHigh };
  for (let s = 0; s < B * K; s++) {
    const n = d.mask.slice(s * TOKENS, (s + 1) * TOKENS).reduce((a, b) => a + b, 0),
      of = (a: ArrayLike<number>): number[] => Array.from(a).slice(s * TOKENS, s * TOKENS + n);
    const lp = of(logprobs),
      old = of(v.fresh ? logprobs : d.old),
      roll = of(d.rollout),
      a = d.advantage[s]!;
    const known = d.corrected[s * TOKENS] === 1,
      w = known && v.tis ? tisToken(old, roll, PARAM.tisCap) : lp.map(() => 1);
    lp.forEach((x, t) => {
      const i = s * TOKENS + t,
        r = v.algorithm === 'gspo' ? gspoRatio(lp, old) : ratioOf(x, old[t]!);
      policy +=
        d.policyWeight[i]! *
        w[t]! *
        (v.algorithm === 'cispo' ? cispo(r, a, x, band) : dualClip(r, a, band, PARAM.dualClip));
      imitation -= d.imitationWeight[i]! * x;
      kl += d.policyWeight[i]! * klTerm(x, d.ref[i]!);
    });
  }
  return { policy, imitation, kl };
}

/** Every third slot of `batch` is imitated. */
const isImitated = (token: number): boolean => Math.floor(token / TOKENS) % 3 === 2;

/** The slots of a batch as steps of runtime/trainer/objective, each with a weight of its own. */
function slotsAsSteps(d: Batch, v: GradVariant, logprobs?: Float64Array): ObjectiveStep[] {
  return Array.from({ length: B * K }, (_, s) => {
    const n = d.mask.slice(s * TOKENS, (s + 1) * TOKENS).reduce((a, b) => a + b, 0),
      of = (a: ArrayLike<number>): number[] => Array.from(a).slice(s * TOKENS, s * TOKENS + n);
    return {
      term: isImitated(s * TOKENS) ? 'imitation' : 'policy',
      now: of(logprobs ?? d.old),
      old: v.fresh ? undefined : of(d.old),
      rollout: d.corrected[s * TOKENS] === 1 ? of(d.rollout) : undefined,
      reference: of(d.ref),
      advantage: d.advantage[s]!,
      weight: 0.4 + 0.2 * s,
    };
  });
}
const objectiveOptions = (v: GradVariant): ObjectiveOptions => ({
  algorithm: v.algorithm,
  epsLow: PARAM.epsLow,
  epsHigh: PARAM.epsHigh,
  dualClip: PARAM.dualClip,
  tis: { enabled: v.tis, level: 'token', cap: PARAM.tisCap },
  unknownBehaviour: 'one',
  klBeta: v.reference ? PARAM.klBeta : 0,
  imitationCoef: 0.7,
});

const algorithms = ['ppo', 'gspo', 'cispo'] as const;
const VARIANTS: GradVariant[] = [
  ...algorithms.flatMap((algorithm) => [true, false].map((tis) => ({ algorithm, tis, fresh: false, reference: true }))),
  { algorithm: 'ppo', tis: true, fresh: false, reference: false },
];

describe('the objective inside ONNX Runtime', () => {
  it.each(VARIANTS)('$algorithm, truncated importance weights $tis, reference $reference', async (v) => {
    const { data: d, states } = batch(1),
      theta = roughTheta(model, 3);
    await withOld(d, states, theta);
    const c = await compile(v, d, states),
      { gradient, parts, logprobs, entropy } = await c.at(theta);
    const want = expected(v, d, logprobs),
      bonus = d.entropyWeight.reduce((s, w, i) => s + w * entropy[i]!, 0);
    expect(relative(parts[1]!, want.policy)).toBeLessThan(1e-9);
    expect(relative(parts[2]!, want.imitation)).toBeLessThan(1e-9);
    if (v.reference) expect(relative(parts[3]!, want.kl)).toBeLessThan(1e-9);
    expect(
      relative(parts[0]!, want.policy + want.imitation + (v.reference ? PARAM.klBeta * want.kl : 0) - bonus),
    ).toBeLessThan(1e-9);

    if (v.algorithm === 'cispo') {
      // Its weight is behind a stop-gradient, so differences of the loss say nothing: the gradient must be that of
      // imitation with those weights.
      const same: Batch = { ...d, imitationWeight: [...d.imitationWeight], policyWeight: [...d.policyWeight] };
      const plain = await compile(
        { ...v, algorithm: 'ppo', tis: false },
        { ...d, policyWeight: d.policyWeight.map(() => 0) },
        states,
      );
      const others = await plain.at(theta);
      await plain.release();
      for (let s = 0; s < B * K; s++)
        for (let t = 0; t < TOKENS; t++) {
          const i = s * TOKENS + t,
            one = {
              ...d,
              policyWeight: d.policyWeight.map((w, j) => (j === i ? w : 0)),
              imitationWeight: d.imitationWeight.map(() => 0),
            };
          // policy loss of token i = -weight x log p, so its imitation weight is -loss / log p.
          same.imitationWeight[i] =
            d.imitationWeight[i]! + (logprobs[i] === 0 ? 0 : -expected(v, one, logprobs).policy / logprobs[i]!);
        }
      const imitated = await compile(
        { ...v, algorithm: 'ppo', tis: false, reference: false },
        { ...same, policyWeight: d.policyWeight.map(() => 0) },
        states,
      );
      const left = await imitated.at(theta);
      await imitated.release();
      const klOnly = await compile(
        { ...v, algorithm: 'ppo', tis: false },
        { ...d, advantage: d.advantage.map(() => 0) },
        states,
      );
      const kl = await klOnly.at(theta);
      await klOnly.release();
      // gradient = (imitation with CISPO's weights + entropy) + (KL + imitation + entropy) - (imitation + entropy)
      const scale = Math.max(...gradient.map(Math.abs));
      gradient.forEach((x, i) => {
        expect(Math.abs(x - (left.gradient[i]! + kl.gradient[i]! - others.gradient[i]!))).toBeLessThan(1e-9 * scale);
      });
    } else {
      // One random direction per parameter array, and single entries of the largest gradients.
      const rng = random('directions'),
        arrays = placedParams(model.layout);
      for (const { name, from, to } of arrays) {
        const dir = new Float64Array(P);
        for (let i = from; i < to; i++) dir[i] = rng.normal();
        const got = dir.reduce((s, x, i) => s + x * gradient[i]!, 0);
        const fd = await slope(async (x) => (await c.at(x)).parts[0]!, theta, dir, 1e-6);
        expect(Math.abs(got - fd), `${name}: ${got} instead of ${fd}`).toBeLessThan(1e-5 * Math.abs(fd) + 2e-8);
      }
      expect(arrays.at(-1)!.to).toBe(P);
      expect(Math.hypot(...gradient)).toBeGreaterThan(0.1);
    }
    await c.release();
  });

  it.each([...VARIANTS, { algorithm: 'ppo' as const, tis: true, fresh: true, reference: true }])(
    'is what a signed cross-entropy with the closed form as weights makes of it: $algorithm, truncated $tis, reference $reference, fresh $fresh',
    async (v) => {
      const { data, states } = batch(7),
        theta = roughTheta(model, 8);
      await withOld(data, states, theta);
      const steps = (logprobs?: Float64Array): ObjectiveStep[] => slotsAsSteps(data, v, logprobs),
        shares = tokenShares(
          steps().map((s) => s.now.length),
          steps().map((s) => s.weight),
        );
      const d: Batch = {
        ...data,
        entropyWeight: [0, 0],
        policyWeight: data.mask.map((m, i) => (isImitated(i) ? 0 : m * shares[Math.floor(i / TOKENS)]!)),
        imitationWeight: data.mask.map((m, i) => (isImitated(i) ? 0.7 * m * shares[Math.floor(i / TOKENS)]! : 0)),
      };
      const whole = await compile(v, d, states),
        { gradient, parts, logprobs } = await whole.at(theta),
        closed = objective(steps(logprobs), objectiveOptions(v));
      await whole.release();
      expect(relative(parts[0]!, closed.loss)).toBeLessThan(1e-9);

      const signed = d.mask.map((_, i) => -(closed.gradient[Math.floor(i / TOKENS)]![i % TOKENS] ?? 0)),
        server = await compile(
          { algorithm: 'ppo', tis: false, fresh: true, reference: false },
          {
            ...d,
            policyWeight: d.mask.map(() => 0),
            imitationWeight: signed,
          },
          states,
        );
      const carriedOver = (await server.at(theta)).gradient;
      await server.release();
      const norm = Math.hypot(...gradient);
      expect(norm).toBeGreaterThan(0.01);
      expect(Math.hypot(...gradient.map((x, i) => x - carriedOver[i]!)) / norm).toBeLessThan(1e-9);
      expect(Math.hypot(...gradient.map((x, i) => x + carriedOver[i]!)) / norm).toBeGreaterThan(1);
    },
  );

  it('takes the present policy as the old one in the first step (fresh)', async () => {
    const { data: d, states } = batch(2),
      theta = roughTheta(model, 4);
    const fresh = await compile({ algorithm: 'ppo', tis: true, fresh: true, reference: false }, d, states),
      a = await fresh.at(theta);
    const given = await compile(
        { algorithm: 'ppo', tis: true, fresh: false, reference: false },
        { ...d, old: [...a.logprobs] },
        states,
      ),
      b = await given.at(theta);
    a.gradient.forEach((x, i) => {
      expect(Math.abs(x - b.gradient[i]!)).toBeLessThan(1e-12);
    });
    await fresh.release();
    await given.release();
  });

  it('gives padding no probability and no gradient from empty slots', async () => {
    const { data: d, states } = batch(5),
      theta = roughTheta(model, 6);
    const empty: Batch = {
      ...d,
      mask: d.mask.map(() => 0),
      policyWeight: d.mask.map(() => 0),
      imitationWeight: d.mask.map(() => 0),
      entropyWeight: [0, 0],
    };
    const c = await compile({ algorithm: 'ppo', tis: true, fresh: true, reference: false }, empty, states);
    expect(Math.max(...(await c.at(theta)).gradient.map(Math.abs))).toBe(0);
    await c.release();
    const padded = TINY.types.length + 2 * 8 + TINY.instruction.maxTokens - 1;
    const asked = await compile(
      { algorithm: 'ppo', tis: true, fresh: true, reference: false },
      { ...d, choices: d.choices.map(() => padded) },
      states,
    );
    (await asked.at(theta)).logprobs.forEach((x) => {
      expect(x).toBeLessThan(-1e8);
    });
    await asked.release();
  });
});

describe('AdamW with clipping by the global norm', () => {
  it.each([{ clip: 0.5 }, { clip: 100 }])('matches its formula, clip $clip', async ({ clip }) => {
    const n = 7,
      rng = random('adam'),
      vec = (): Float64Array => Float64Array.from({ length: n }, () => rng.normal());
    const theta = vec(),
      m = vec(),
      v = vec().map(Math.abs),
      gradient = vec(),
      decay = Float64Array.from({ length: n }, (_, i) => i % 2);
    const k = {
      lr: 0.01,
      beta1: 0.9,
      beta2: 0.98,
      epsilon: 1e-8,
      weightDecay: 0.1,
      gradClip: clip,
      c1: 1 - 0.9 ** 3,
      c2: 1 - 0.98 ** 3,
    };
    const s = await sessionOf(adamGraph(n, 'f64'));
    const out = await s.run({
      theta: f64(theta, [n]),
      m: f64(m, [n]),
      v: f64(v, [n]),
      gradient: f64(gradient, [n]),
      decay: f64(decay, [n]),
      adamParams: f64(
        ADAM_PARAMS.map((x) => k[x]),
        [ADAM_PARAMS.length],
      ),
    });
    const norm = Math.hypot(...gradient),
      scale = Math.min(1, clip / (norm + 1e-6));
    expect(relative((out.norm!.data as Float64Array)[0]!, norm)).toBeLessThan(1e-12);
    for (let i = 0; i < n; i++) {
      const g = gradient[i]! * scale,
        m2 = k.beta1 * m[i]! + (1 - k.beta1) * g,
        v2 = k.beta2 * v[i]! + (1 - k.beta2) * g * g;
      const t2 =
        theta[i]! - k.lr * (m2 / k.c1 / (Math.sqrt(v2 / k.c2) + k.epsilon) + k.weightDecay * decay[i]! * theta[i]!);
      expect(relative((out.theta2!.data as Float64Array)[i]!, t2)).toBeLessThan(1e-9);
      expect(relative((out.m2!.data as Float64Array)[i]!, m2)).toBeLessThan(1e-9);
      expect(relative((out.v2!.data as Float64Array)[i]!, v2)).toBeLessThan(1e-9);
    }
    await s.release();
  });
});
