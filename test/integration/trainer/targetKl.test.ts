import { afterEach, expect, it } from 'vitest';
import {
  headOffsets,
  id,
  random,
  type BatchId,
  type EmbeddedBatch,
  type EmbeddedSample,
  type RolloutId,
} from '../../../runtime/domain/index.js';
import { Learner, type LearnerProgress } from '../../../runtime/trainer/native/learner.js';
import type { TrainerOptions } from '../../../runtime/trainer/native/options.js';
import type { UpdateReport } from '../../../runtime/trainer/types.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { randomStates, TINY } from '../../helpers/trainer/tinyModel.js';

/** Updates that end once the policy has moved too far, in ONNX Runtime; minibatches of one state, three a pass. */

const STATES = 3,
  EACH = 4,
  TARGET = 1e-9;
const open: Learner[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((l) => l.release()));
});

/** `own`: sampled by the policy; others are imitated. */
function batch(name: string, own = true): EmbeddedBatch {
  const rng = random(`target/${name}`),
    off = headOffsets(TINY);
  const samples = Array.from({ length: STATES * EACH }, (_, i): EmbeddedSample => {
    const state = Math.floor(i / EACH),
      s = randomStates(TINY, 1, random(`target/${name}/${state}`));
    return {
      rollout: id<RolloutId>(`r${i}`),
      step: 0,
      stateKey: `s${state}`,
      state: {
        obs: s.obs.data as Uint8Array,
        instruction: s.instruction.data as Int32Array,
        history: s.history.data as Int32Array,
      },
      choices: Int32Array.of(0, off.cell + rng.int(8)),
      weight: 1,
      ...(own
        ? { kind: 'policy' as const, rolloutLogprobs: Float32Array.of(-1.6, -2.1), advantage: i % 2 ? 1 : -1 }
        : { kind: 'imitation' as const, advantage: 0 }),
    };
  });
  return { id: id<BatchId>(name), samples, epochs: 2 };
}
async function learner(o: Partial<TrainerOptions>): Promise<Learner> {
  const l = await Learner.create(TINY, { ...baseTrainerOptions, lr: 1e-2, warmup: 1, minibatchStates: 1, ...o }, 1, {
    now: () => 0,
  });
  open.push(l);
  return l;
}
/** Weights and optimizer, to the bit. */
const bits = ({ theta, m, v, rng }: ReturnType<Learner['state']>): unknown => [
  ...[theta, m, v].map((x) => Buffer.from(x.buffer, x.byteOffset, x.byteLength).toString('base64')),
  rng,
];

it('a target of 0 changes nothing, and the KL is measured all the same', async () => {
  const none = await learner({ targetKl: 0 }),
    far = await learner({ targetKl: 1e9 });
  const [a, b] = [await none.update(batch('a')), await far.update(batch('a'))];
  expect(bits(none.state())).toEqual(bits(far.state()));
  expect(a).toEqual(b);
  expect(a).toMatchObject({ optimizerSteps: 6, plannedSteps: 6, epochs: 2, samples: 12, states: 3 });
  expect(a.oldKl).toBeGreaterThan(TARGET);
});

it('a tiny target ends the update after its first minibatch', async () => {
  const seen: LearnerProgress[] = [],
    l = await learner({ targetKl: TARGET }),
    before = l.theta;
  const r = await l.update(batch('a'), (p) => seen.push(p));
  expect(r).toMatchObject({ version: 1, optimizerSteps: 1, plannedSteps: 6, skippedNonFinite: 0, epochs: 0 });
  expect(r.oldKl).toBeGreaterThan(1.5 * TARGET);
  expect(l.theta).not.toEqual(before);
  expect(l.state().adamSteps).toBe(1);
  expect(seen.map((p) => [p.step, p.steps])).toEqual([[1, 6]]);
  // What no step was made on has no part in the report.
  expect(r).toMatchObject({ samples: EACH, states: 1, tokens: 2 * EACH });
  expect(r.tisHistogram.reduce((n, x) => n + x, 0)).toBe(2 * EACH);
  expect(Array.from(r.sampleWeights!).filter(Number.isFinite)).toHaveLength(EACH);
  // The step that was made is the first of the whole update.
  const whole = await learner({ targetKl: 0, minibatchStates: 1 }),
    first: Float32Array[] = [];
  await whole.update(batch('a'), () => first.push(whole.theta));
  expect(l.theta).toEqual(first[0]);
});

it('ends where the KL is above 1.5 times the target, and not at it', async () => {
  const made: number[] = [];
  let target = TARGET;
  while (made.at(-1) !== 6) {
    const r = await (await learner({ targetKl: target })).update(batch('a'));
    expect(r.optimizerSteps).toBeGreaterThan(made.at(-1) ?? 0);
    made.push(r.optimizerSteps);
    if (r.optimizerSteps === 6) break;
    expect(r.oldKl).toBeGreaterThan(1.5 * target);
    const below = await (await learner({ targetKl: (r.oldKl / 1.5) * 0.9999 })).update(batch('a'));
    expect([below.optimizerSteps, below.oldKl]).toEqual([r.optimizerSteps, r.oldKl]);
    // The next goes past this minibatch.
    target = (r.oldKl / 1.5) * 1.0001;
  }
  expect(made[0]).toBe(1);
  expect(made.length).toBeGreaterThan(2);
});

it('is the same again, and after a resume', async () => {
  const one = await learner({ targetKl: TARGET }),
    two = await learner({ targetKl: TARGET });
  const report: UpdateReport = await one.update(batch('a'));
  expect(await two.update(batch('a'))).toEqual(report);
  const resumed = await learner({ targetKl: TARGET });
  resumed.load(one.state());
  const [next, again] = [await two.update(batch('b')), await resumed.update(batch('b'))];
  expect(next.optimizerSteps).toBeLessThan(next.plannedSteps);
  expect(again).toEqual(next);
  expect(bits(resumed.state())).toEqual(bits(two.state()));
});

it('imitated steps have no ratio: they stop nothing', async () => {
  const l = await learner({ targetKl: TARGET });
  const r = await l.update(batch('a', false));
  expect(r).toMatchObject({ optimizerSteps: 6, plannedSteps: 6, oldKl: NaN });
});
