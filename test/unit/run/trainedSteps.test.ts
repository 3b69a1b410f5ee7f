import { describe, expect, it } from 'vitest';
import { id, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
import { trainedSteps } from '../../../runtime/run/trainLoop.js';

const rollout = (s: string): RolloutId => id<RolloutId>(s);

describe('weights of trained steps', () => {
  it('go back to their trajectories, in order', () => {
    const s = (of: string, step: number, advantage: number) => ({
      trajectory: { id: rollout(of) } as Trajectory,
      step,
      advantage,
      kind: 'policy' as const,
      weight: 1,
    });
    const t = trainedSteps([s('a', 0, 1), s('b', 2, -1), s('a', 3, 1)], {
      sampleWeights: Float32Array.of(0.5, 1, 0.25),
      tokenWeights: [Float32Array.of(0.5, 0.75), undefined, undefined],
    });
    expect(t.map((x) => [x.rollout, x.advantage, [...x.steps], [...x.weights]])).toEqual([
      ['a', 1, [0, 3], [0.5, 0.25]],
      ['b', -1, [2], [1]],
    ]);
    expect(t.map((x) => x.tokenWeights?.map((w) => [...w]))).toEqual([[[0.5, 0.75], []], undefined]);
  });
});
