import { describe, expect, it } from 'vitest';
import { packAlternatives, unpackAlternatives } from '../../../runtime/data/alternatives.js';
import type { StepExtra } from '../../../runtime/data/events.js';
import {
  decodePrompt,
  id,
  sequencesOf,
  type PromptDelta,
  type FrameRef,
  type RolloutId,
  type Step,
} from '../../../runtime/domain/index.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';
import { cellRect, MOST_TOKENS, stepView } from '../../../runtime/queries/steps.js';
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
  it('shows the first tokens of a step of millions, and none of columns that do not fit', () => {
    const n = MOST_TOKENS + 5,
      shown = (tokens: object, extra: object = {}) =>
        stepView(
          {
            step: { ...step, tokens: tokens as Step['tokens'] },
            at: 1,
            instruction: '',
            extra: extra as StepExtra,
          },
          { choiceNames: (s) => Array.from(s.tokens!.ids ?? [], String) },
        ).tokens,
      floats = new Float32Array(n),
      ids = new Int32Array(n);
    expect(shown({ logprobs: floats, entropies: floats, ids })).toHaveLength(MOST_TOKENS);
    for (const bad of [
      { logprobs: floats, entropies: floats.subarray(1), ids },
      { logprobs: floats, entropies: floats, ids: ids.subarray(1) },
      { logprobs: { length: 1e9 }, entropies: { length: 1e9 } },
      { logprobs: [0], entropies: [0] },
      'many',
    ])
      expect(shown(bad as object)).toBeUndefined();
    // Every token has its own place; of what says it is long nothing is taken.
    const one = floats.subarray(0, 3),
      grid = [0, 0, 10, 10, 5, 2],
      at = (token: number) => ({ token, grid, cells: Int32Array.of(token), probabilities: Float32Array.of(0.5) });
    expect(
      shown({ logprobs: one, entropies: one }, { places: [at(2), at(0), { ...at(1), cells: { length: 1e9 } }] })!.map(
        (t) => t.alternatives?.[0]?.at?.x,
      ),
    ).toEqual([0, undefined, 0]);
  });
  it('unpacks no more alternatives than there are labels', () => {
    const packed = {
      counts: new Uint8Array(100_000).fill(255),
      labels: ['a', 'b'],
      probabilities: Float32Array.of(0.5, 0.25),
    };
    expect(unpackAlternatives(packed, 3)).toEqual([
      [
        { label: 'a', probability: 0.5 },
        { label: 'b', probability: 0.25 },
      ],
      [],
      [],
    ]);
    for (const bad of [{ counts: { length: 1e9 } }, { labels: { length: 1e9 } }, { probabilities: undefined }])
      expect(unpackAlternatives({ ...packed, ...bad } as unknown as typeof packed)).toEqual([]);
  });
  it('a prompt of lists that say they are long is refused', () => {
    const prompt = { parts: { length: 9e15 }, symbols: new Int32Array(), images: [] };
    expect(() => decodePrompt(new Int32Array(), prompt as unknown as PromptDelta)).toThrow(RangeError);
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
