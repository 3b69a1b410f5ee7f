import { expect, it } from 'vitest';
import {
  headOffsets,
  id,
  random,
  type BatchId,
  type RolloutId,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { randomStates, TINY } from '../../helpers/trainer/tinyModel.js';

/**
 * A person's step in a group: imitated, with the gradient the paper's injected step has at rho = 1. Adam with a large
 * epsilon is nearly linear in the gradient, so equal gradients show as equal weights.
 */
const off = headOffsets(TINY),
  rng = random('human'),
  A = 2.474867;
const sample = (i: number, o: Partial<EmbeddedSample>): EmbeddedSample => {
  const s = randomStates(TINY, 1, random(`human/${i}`));
  return {
    rollout: id<RolloutId>(`r${i}`),
    step: 0,
    stateKey: `s${i}`,
    state: {
      obs: s.obs.data as Uint8Array,
      instruction: s.instruction.data as Int32Array,
      history: s.history.data as Int32Array,
    },
    choices: Int32Array.of(0, off.cell + rng.int(8)),
    kind: 'policy',
    advantage: -0.353552,
    weight: 1,
    ...o,
  };
};
const failures = Array.from({ length: 7 }, (_, i) => sample(i, { rolloutLogprobs: Float32Array.of(-1.2, -2) }));
async function thetaAfter(
  demonstrated: Partial<EmbeddedSample>,
  imitationCoef: number,
  epochs = 1,
): Promise<Float32Array> {
  const l = await Learner.create(
    TINY,
    {
      ...baseTrainerOptions,
      adamEpsilon: 10,
      lr: 1,
      warmup: 1,
      gradClip: 1e9,
      klBeta: 0,
      entropyBonus: 0,
      imitationCoef,
    },
    1,
  );
  await l.update({
    id: id<BatchId>('b'),
    samples: [
      ...failures,
      sample(8, { choices: Int32Array.of(1, off.cell + 2, off.cell2 + 3), weight: 0.5, ...demonstrated }),
    ],
    epochs,
  });
  await l.release();
  return l.theta;
}
const furthest = (a: Float32Array, b: Float32Array): number =>
  a.reduce((m, x, i) => Math.max(m, Math.abs(x - b[i]!)), 0);

it("a person's step has the gradient of the paper's injected step, whatever the imitation coefficient", async () => {
  const injected = await thetaAfter({ kind: 'policy', advantage: A }, 0.3),
    without = await thetaAfter({ weight: 0 }, 0.3);
  const scale = furthest(injected, without);
  expect(scale).toBeGreaterThan(1e-4);
  for (const coefficient of [0, 0.3, 5])
    expect(
      furthest(await thetaAfter({ kind: 'imitation', advantage: 0, coefficient: A }, coefficient), injected) / scale,
      `coefficient ${coefficient}`,
    ).toBeLessThan(1e-4);
  // Without its own coefficient it would be weighed as any demonstration beside the batch.
  expect(furthest(await thetaAfter({ kind: 'imitation', advantage: 0 }, 0.3), injected) / scale).toBeGreaterThan(1e-2);
});
