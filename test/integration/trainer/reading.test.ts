import { describe, expect, it } from 'vitest';
import * as ort from 'onnxruntime-node';
import { random } from '../../../runtime/domain/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { readGraph } from '../../../runtime/trainer/native/model/readGraph.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { f64, ints, relative, roughTheta, sessionOf, slope, TINY, tinyModel } from '../../helpers/trainer/tinyModel.js';

const B = 2,
  R = 3,
  T = 2,
  model = tinyModel(),
  P = model.layout.total;

describe('reading lessons', () => {
  it('have the gradient of their loss', async () => {
    const rng = random('reading'),
      session = await sessionOf(readGraph(model, B, R, T, 'f64'));
    const feeds = {
      obs: new ort.Tensor(
        'uint8',
        Uint8Array.from({ length: B * 16 * 32 }, () => rng.int(256)),
        [B, 16, 32],
      ),
      buckets: ints(
        Array.from({ length: B * R }, () => 1 + rng.int(5)),
        [B, R],
      ),
      targets: ints(
        Array.from({ length: B * R * T }, () => rng.int(8)),
        [B, R * T],
      ),
      weight: f64(
        Array.from({ length: B * R * T }, (_, i) => (i % 5 === 4 ? 0 : 0.2 + rng.next())),
        [B * R, T],
      ),
      accumulated: f64(new Float64Array(P), [P]),
    };
    const at = async (theta: Float64Array): Promise<{ loss: number; gradient: Float64Array }> => {
      const out = await session.run({ ...feeds, theta: f64(theta, [P]) });
      return { loss: (out['loss']!.data as Float64Array)[0]!, gradient: out['gradient']!.data as Float64Array };
    };
    const theta = roughTheta(model, 3),
      { gradient } = await at(theta);
    expect(gradient.some((x) => x !== 0)).toBe(true);
    for (let k = 0; k < 6; k++) {
      const direction = Float64Array.from({ length: P }, () => rng.normal());
      const along = gradient.reduce((s, g, i) => s + g * direction[i]!, 0);
      expect(relative(along, await slope(async (x) => (await at(x)).loss, theta, direction, 1e-6))).toBeLessThan(1e-4);
    }
    await session.release();
  });

  it('teach where words stand: two patterns are told apart at any place', async () => {
    const rng = random('lessons'),
      learner = await Learner.create(TINY, { ...baseTrainerOptions, imitateStates: 8 }, 1);
    // Word 1 is a bright bar, word 2 a dark one, each in a cell of its own.
    const screens = Array.from({ length: 64 }, () => {
      const [a, b] = rng.shuffle([0, 1, 2, 3, 4, 5, 6, 7]) as [number, number],
        obs = new Uint8Array(16 * 32).fill(128);
      for (const [cell, value] of [
        [a, 255],
        [b, 0],
      ] as const)
        for (let y = 2; y < 6; y++)
          for (let x = 1; x < 7; x++) obs[(Math.floor(cell / 4) * 8 + y) * 32 + (cell % 4) * 8 + x] = value;
      const box = (cell: number): number[] => [
        (cell % 4) * 8,
        Math.floor(cell / 4) * 8,
        (cell % 4) * 8 + 8,
        Math.floor(cell / 4) * 8 + 8,
      ];
      return {
        obs,
        buckets: Int32Array.of(1, 2),
        boxes: Int32Array.from([...box(a), ...box(b)]),
        marks: new Float32Array(),
      };
    });
    const report = await learner.read(screens, { steps: 150, lr: 5e-3, shift: 0 });
    await learner.release();
    expect(report).toMatchObject({ version: 1, screens: 64, steps: 150 });
    // Guessing a cell costs ln 8 = 2.08, guessing which of the two costs 0.69.
    expect(report.loss).toBeLessThan(0.3);
  });
});
