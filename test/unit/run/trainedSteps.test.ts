import { describe, expect, it } from 'vitest';
import { id, type GroupId, type RolloutId, type Trajectory } from '../../../runtime/domain/index.js';
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

  it('are told apart where a success is trained in its own group and in others', () => {
    const [own, other, third] = ['g', 'h', 'i'].map((g) => id<GroupId>(g)),
      trajectory = { id: rollout('won'), group: own } as Trajectory;
    const s = (group: GroupId | undefined, step: number, advantage: number) => ({
      trajectory,
      ...(group === undefined ? {} : { group }),
      step,
      advantage,
      kind: 'policy' as const,
      weight: 1,
    });
    const t = trainedSteps([s(other, 0, 2), s(other, 1, 2), s(own, 0, 1), s(third, 1, 3)], {
      sampleWeights: Float32Array.of(1, 1, 0.5, 1),
    });
    expect(t.map((x) => [x.injected, x.advantage, [...x.steps], [...x.weights]])).toEqual([
      [true, 2, [0, 1], [1, 1]],
      [undefined, 1, [0], [0.5]],
      [true, 3, [1], [1]],
    ]);
  });
});
