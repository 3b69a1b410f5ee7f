import { describe, expect, it, vi } from 'vitest';
import {
  headOffsets,
  id,
  random,
  type BatchId,
  type RolloutId,
  type EmbeddedSample,
  type EmbeddedBatch,
} from '../../../runtime/domain/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { Optimizer } from '../../../runtime/trainer/native/optimizer.js';
import type { TrainerOptions } from '../../../runtime/trainer/native/options.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { randomStates, TINY } from '../../helpers/trainer/tinyModel.js';

/**
 * One forward and backward pass per unique state gives the gradient of the separate samples. Adam with a large epsilon
 * is nearly linear in the gradient, so equal gradients show as equal weights and unequal ones do not hide behind their
 * signs.
 */
const off = headOffsets(TINY),
  rng = random('dedupe');
const samples = Array.from({ length: 14 }, (_, i): EmbeddedSample => {
  const s = randomStates(TINY, 1, random(`dedupe/${i % 3}`));
  return {
    rollout: id<RolloutId>(`r${i}`),
    step: 0,
    stateKey: `s${i % 3}`,
    state: {
      obs: s.obs.data as Uint8Array,
      instruction: s.instruction.data as Int32Array,
      history: s.history.data as Int32Array,
    },
    choices:
      i % 4 === 3
        ? Int32Array.of(1, off.cell + rng.int(8), off.cell2 + rng.int(8))
        : Int32Array.of(0, off.cell + rng.int(8)),
    ...(i % 5
      ? { rolloutLogprobs: Float32Array.from({ length: i % 4 === 3 ? 3 : 2 }, () => -1 - 2 * rng.next()) }
      : {}),
    kind: i === 6 ? 'imitation' : 'policy',
    advantage: i === 6 ? 0 : rng.normal(),
    weight: 0.2 + rng.next(),
  };
});
const batch = (of: readonly EmbeddedSample[], epochs = 1): EmbeddedBatch => ({
  id: id<BatchId>('b'),
  samples: of,
  epochs,
});

async function thetaAfter(
  b: EmbeddedBatch,
  o: Partial<TrainerOptions> = {},
): Promise<{ theta: Float32Array; before: Float32Array; states: number; samples: number }> {
  const l = await Learner.create(
    TINY,
    { ...baseTrainerOptions, adamEpsilon: 10, lr: 1, warmup: 1, gradClip: 1e9, klBeta: 0.1, ...o },
    1,
  );
  // A reference of its own: at its place the KL term has no gradient, and a wrong one would not show.
  const drift = random('reference');
  l.load({ ...l.state(), reference: l.theta.map((x) => x + 0.02 * drift.normal()) });
  const before = l.theta.slice(),
    r = await l.update(b);
  await l.release();
  return { theta: l.theta, before, states: r.states, samples: r.samples };
}
function difference(a: Float32Array, b: Float32Array, before: Float32Array): number {
  const largest = (from: Float32Array): number => a.reduce((m, x, i) => Math.max(m, Math.abs(x - from[i]!)), 0),
    scale = largest(before);
  expect(scale).toBeGreaterThan(1e-4);
  return largest(b) / scale;
}

describe('minibatches', () => {
  it('are equal parts: no optimizer step is left with a single state', async () => {
    const sizes: number[] = [],
      spy = vi.spyOn(Optimizer.prototype, 'step').mockImplementation(function (this: Optimizer, states) {
        sizes.push(states.length);
        return Promise.resolve({ parts: [0, 0, 0, 0, 0], norm: 1, applied: true });
      });
    const b = batch(
      samples.slice(0, 9).map((s, i) => ({ ...s, stateKey: `own${i}` })),
      2,
    );
    try {
      const l = await Learner.create(TINY, { ...baseTrainerOptions, minibatchStates: 4 }, 1);
      expect((await l.update(b)).optimizerSteps).toBe(6);
      await l.release();
    } finally {
      spy.mockRestore();
    }
    expect(sizes).toEqual([3, 3, 3, 3, 3, 3]);
  });
});

describe('state de-duplication', () => {
  const separate = samples.map((s, i) => ({ ...s, stateKey: `own${i}` }));
  it.each([
    { slots: 8, microBatch: 1 },
    { slots: 2, microBatch: 1 },
    { slots: 8, microBatch: 4 },
  ])('is exact with $slots slots and micro-batches of $microBatch', async (o) => {
    const one = await thetaAfter(batch(samples), o),
      many = await thetaAfter(batch(separate));
    expect([one.samples, many.samples]).toEqual([14, 14]);
    expect(one.states).toBe(o.slots === 2 ? 8 : 3);
    expect(many.states).toBe(14);
    expect(difference(one.theta, many.theta, one.before)).toBeLessThan(1e-4);
  });
  it('is exact over several epochs with old log-probs of their own', async () => {
    const o = { adamEpsilon: 1, lr: 0.3 };
    const one = await thetaAfter(batch(samples, 3), o),
      many = await thetaAfter(batch(separate, 3), o);
    expect(difference(one.theta, many.theta, one.before)).toBeLessThan(5e-4);
  });
  it('can tell a wrong gradient: leaving out one sample shows', async () => {
    const one = await thetaAfter(batch(samples)),
      less = await thetaAfter(batch(samples.slice(1)));
    expect(difference(one.theta, less.theta, one.before)).toBeGreaterThan(1e-2);
  });

  it('replayed successes are varied where that is asked, and nothing else is', async () => {
    const own = batch(samples.filter((s) => s.kind === 'policy')),
      all = batch(samples),
      replayVary = { shift: 0, tones: 1 };
    const [plain, varied] = await Promise.all([thetaAfter(own), thetaAfter(own, { replayVary })]);
    expect(Array.from(varied.theta)).toEqual(Array.from(plain.theta));
    expect(varied.states).toBe(plain.states);
    const [asItWas, other, again] = await Promise.all([
      thetaAfter(all),
      thetaAfter(all, { replayVary }),
      thetaAfter(all, { replayVary }),
    ]);
    // What is shown in other tones is another input, which no sample of the policy shares.
    expect(other.states).toBe(asItWas.states + 1);
    expect(other.samples).toBe(asItWas.samples);
    expect(Array.from(other.theta)).toEqual(Array.from(again.theta));
    expect(Array.from(other.theta)).not.toEqual(Array.from(asItWas.theta));
  });
});
