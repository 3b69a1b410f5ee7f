import { describe, expect, it } from 'vitest';
import { packAlternatives, unpackAlternatives } from '../../../runtime/data/alternatives.js';
import type { StepExtra } from '../../../runtime/data/events.js';
import { id, sequencesOf, type FrameRef, type RolloutId, type Step } from '../../../runtime/domain/index.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';
import { cellRect, stepView } from '../../../runtime/queries/steps.js';
import { choiceNames } from '../../../runtime/policy/embedded/choiceNames.js';

const rollout = (s: string): RolloutId => id<RolloutId>(s);

describe('steps', () => {
  const step: Step = {
    index: 0,
    frame: { hash: 'a', width: 640, height: 400 },
    actions: [],
    origin: 'policy',
    settled: true,
    timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
    tokens: { logprobs: Float32Array.of(-0.5), entropies: Float32Array.of(1), ids: Int32Array.of(0) },
  };
  it('names choices of old journals from their ids, and always has the chosen one among the alternatives', () => {
    const v = stepView(
      {
        step,
        at: 1,
        instruction: 'Press OK',
        extra: { alternatives: [[{ label: 'type', probability: 0.3 }]] },
      },
      { choiceNames },
    );
    expect(v.tokens).toEqual([
      {
        label: 'click',
        logprob: -0.5,
        entropy: 1,
        alternatives: [
          { label: 'type', probability: 0.3 },
          { label: 'click', probability: Math.exp(-0.5) },
        ],
      },
    ]);
  });
  it('alternatives come back from their columns, and from the lists of old journals', () => {
    const lists = [
      [
        { label: 'click', probability: 0.6065 },
        { label: 'type', probability: 0.3 },
      ],
      [],
      [{ label: ' "x"\n', probability: 0.012_34 }],
    ];
    expect(unpackAlternatives(packAlternatives(lists))).toEqual(lists);
    const shown = (extra: StepExtra): unknown =>
      stepView({ step, at: 1, instruction: '', extra: { ...extra, labels: ['click'] } }, { choiceNames }).tokens;
    expect(shown({ packed: packAlternatives(lists) })).toEqual(shown({ alternatives: lists }));
  });
  it('of a remote model say what was shown, rejected, unknown and only bounded; JSON keeps all of it', () => {
    const frame = (n: number): FrameRef => ({ hash: `${n}`, width: 1280, height: 720 }),
      { steps, extras } = remoteEpisode([
        { frame: frame(1), text: 'Thought: One.' },
        {
          frame: frame(2),
          text: 'Thought: Two.',
          unknown: [1],
          finish: 'length',
          rejected: [
            { text: 'no', reason: 'no action', finish: 'content_filter' },
            { text: 'not', reason: 'none either' },
          ],
        },
      ]),
      [, , , own] = sequencesOf({ id: rollout('r'), steps }),
      facts = { step: steps[1]!, at: 1, instruction: '', extra: extras[1], tokenWeights: Float32Array.of(0.5, NaN) };
    const v = stepView({ ...facts, sequence: own }, { choiceNames });
    expect(JSON.stringify(v)).not.toContain('null');
    // The ordinary end of an answer is not worth a word.
    expect([v.finish, ...v.rejected!.map((x) => x.finish)]).toEqual(['length', 'content_filter', undefined]);
    expect(stepView({ ...facts, step: steps[0]! }, { choiceNames }).finish).toBeUndefined();
    expect(v).toMatchObject({
      entropyBound: 'lower',
      prompt: { tokens: own!.symbols.length - 2 + 2 * 1196, images: [frame(1), frame(2)] },
      rejected: [
        { text: 'no', reason: 'no action', version: 12, tokens: [{ label: 'no' }, { label: '<|im_end|>' }] },
        { text: 'not', reason: 'none either' },
      ],
    });
    expect(v.tokens![0]).toMatchObject({ label: 'Thought', weight: 0.5, logprob: expect.any(Number) as number });
    expect([v.tokens![1]!.logprob, v.tokens![1]!.weight]).toEqual([undefined, undefined]);
    // By itself a step does not know its prompt; a damaged one says so.
    expect(stepView(facts, { choiceNames }).prompt).toBe('pending');
    expect(stepView({ ...facts, sequence: 'damaged' }, { choiceNames }).prompt).toBe('damaged');
    // Ids of a model's tokens are never taken for choices, nor are tokens without words shown for a rejected answer.
    const bare = stepView({ ...facts, extra: undefined }, { choiceNames });
    expect(bare.tokens!.every((x, i) => x.label === `token ${i + 1}`)).toBe(true);
    expect(bare.rejected!.map((x) => x.tokens)).toEqual([undefined, undefined]);
  });
  it('cuts cells off at the edges of the screen', () => {
    // A screen of 2:1 in an observation of 320x200: 20 rows of letterbox above.
    expect(cellRect([0, 20, 320, 160, 8, 40], 0, { width: 640, height: 320 })).toEqual({
      x: 0,
      y: 0,
      width: 16,
      height: 0,
    });
    expect(cellRect([0, 20, 320, 160, 8, 40], 2 * 40 + 1, { width: 640, height: 320 })).toEqual({
      x: 16,
      y: 0,
      width: 16,
      height: 8,
    });
  });
});
