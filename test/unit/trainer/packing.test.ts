import { describe, expect, it } from 'vitest';
import { id, type EncodedState, type RolloutId, type EmbeddedSample } from '../../../runtime/domain/index.js';
import { packSamples, applyLossWeights } from '../../../runtime/trainer/native/packing.js';
import { imitationRate } from '../../../runtime/trainer/schedule.js';

const state: EncodedState = { obs: new Uint8Array(4), instruction: new Int32Array(2), history: new Int32Array(5) };
const sample = (stateKey: string, o: Partial<EmbeddedSample> = {}): EmbeddedSample => ({
  rollout: id<RolloutId>('r'),
  step: 0,
  stateKey,
  state,
  choices: Int32Array.of(0, 3),
  rolloutLogprobs: Float32Array.of(-1, -2),
  kind: 'policy',
  advantage: 1,
  weight: 1,
  ...o,
});

describe('state de-duplication', () => {
  it('puts samples of one state together and opens another packed state when the slots are full', () => {
    const states = packSamples(
      ['a', 'b', 'a', 'a', 'a'].map((k) => sample(k)),
      3,
    );
    expect(states.map((p) => p.slots.length)).toEqual([3, 1, 1]);
  });
  it('leaves masked samples out', () => {
    expect(packSamples([sample('a', { weight: 0 })], 8)).toEqual([]);
  });
  it('imitates demonstrations without an advantage and gives the others importance weight 1', () => {
    const [d, p] = packSamples(
      [sample('a', { kind: 'imitation', advantage: 0 }), sample('b', { kind: 'imitation', advantage: 2 })],
      8,
    ).map((x) => x.slots[0]!);
    expect([d!.term, p!.term]).toEqual(['imitation', 'policy']);
    expect(p!.rollout).toBeUndefined();
  });
  it('refuses actions without choices', () => {
    expect(() => packSamples([sample('a', { choices: new Int32Array(0) })], 8)).toThrow(RangeError);
  });
});

describe('weights of one optimizer step', () => {
  it('average over tokens, then over steps', () => {
    const states = packSamples(
      [
        sample('a'),
        sample('a', { choices: Int32Array.of(1), rolloutLogprobs: Float32Array.of(-1) }),
        sample('b', { weight: 2, choices: Int32Array.of(0, 1, 2), rolloutLogprobs: new Float32Array(3) }),
      ],
      8,
    );
    applyLossWeights(states, 0.5, 0.1);
    const [x, y, z] = states.flatMap((p) => p.slots);
    expect([...x!.policy]).toEqual([1 / 8, 1 / 8, 0].map(Math.fround));
    expect([...y!.policy]).toEqual([1 / 4, 0, 0]);
    expect([...z!.policy]).toEqual([1 / 6, 1 / 6, 1 / 6].map(Math.fround));
    expect(states.map((p) => p.entropyWeight)).toEqual([0.05, 0.05]);
  });
  it('give demonstrations their own coefficient and no entropy bonus', () => {
    const states = packSamples([sample('a', { kind: 'imitation', advantage: 0 }), sample('b')], 8);
    applyLossWeights(states, 0.5, 0.1);
    const [d, p] = states.flatMap((x) => x.slots);
    expect([...d!.policy, ...d!.imitation]).toEqual([0, 0, 0, 1 / 8, 1 / 8, 0]);
    expect([...p!.policy, ...p!.imitation]).toEqual([1 / 4, 1 / 4, 0, 0, 0, 0]);
    expect(states[0]!.entropyWeight).toBe(0);
  });
});

describe('learning rate of imitation', () => {
  it('rises over the first tenth, then falls to 5 %', () => {
    const rate = Array.from({ length: 200 }, (_, i) => imitationRate(1, i, 200));
    expect(rate[0]).toBeCloseTo(1 / 20);
    expect(Math.max(...rate)).toBe(1);
    expect(rate.indexOf(1)).toBe(19);
    expect(rate.at(-1)).toBeLessThan(0.06);
    rate.slice(20).forEach((r, i) => {
      expect(r).toBeLessThanOrEqual(rate[19 + i]!);
    });
  });
  it('works for a single step', () => {
    expect(imitationRate(0.5, 0, 1)).toBe(0.5);
  });
});
