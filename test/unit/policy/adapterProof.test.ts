import { describe, expect, it } from 'vitest';
import {
  agreementOf,
  proofIn,
  saidTheSame,
  unlike,
  unlikeScored,
  unmoved,
  type ExpectedProof,
} from '../../../runtime/policy/remote/adapterProof.js';
import type { Completion } from '../../../runtime/policy/remote/completion.js';

type Top = Readonly<Record<string, number>>;
/** An answer of these tokens by their ids; each with its log-prob and the most probable ones. */
const said = (
  ...tokens: readonly (readonly [id: number, token: string, logprob: number | null, top?: Top])[]
): Completion => ({
  prompt_token_ids: [1, 2],
  choices: [
    {
      token_ids: tokens.map(([id]) => id),
      logprobs: {
        content: tokens.map(([, token, logprob, top = {}]) => ({
          token,
          logprob,
          top_logprobs: Object.entries(top).map(([t, l]) => ({ token: t, logprob: l })),
        })),
      },
    },
  ],
});
const expected = (...tokens: readonly (readonly [id: number, token: string, logprob: number])[]): ExpectedProof => ({
  prompt: Int32Array.of(1, 2),
  answer: Int32Array.from(tokens, ([id]) => id),
  tokens: tokens.map(([, token]) => token),
  logprobs: Float32Array.from(tokens, ([, , logprob]) => logprob),
});

describe('what a server answers, held against the trainer', () => {
  it('is like it within 0.05 in the mean of the tokens', () => {
    const answer = said([5, 'a', -1], [6, 'b', -2]);
    expect(unlike(expected([5, 'a', -1.08], [6, 'b', -2.01]), answer)).toBeUndefined();
    expect(unlike(expected([5, 'a', -1.3], [6, 'b', -2]), answer)).toBe(
      'a log-prob is -1.000 there and -1.300 in training',
    );
  });

  it('is compared at every token where the server scores those that are expected', () => {
    const answer = expected([5, 'a', -1], [6, 'b', -2], [7, 'c', -3]);
    expect(unlikeScored(answer, [-1.01, -2.05, -3.04])).toBeUndefined();
    expect(unlikeScored(answer, [-1, -2, -3.4])).toBe('a log-prob is -3.400 there and -3.000 in training');
    // Number formats differ by more where a token is improbable.
    expect(unlikeScored(expected([5, 'a', -20]), [-20.8])).toBeUndefined();
    expect(unlikeScored(expected([5, 'a', -20]), [-18])).toBe('a log-prob is -18.000 there and -20.000 in training');
  });

  it('is compared up to the first token that is another one, by its id', () => {
    const answer = said([5, 'a', -1], [7, '\ufffd', -2, { '\ufffd': -2 }], [8, 'c', -3]);
    expect(unlike(expected([5, 'a', -1], [6, '\ufffd', -2], [8, 'c', -9]), answer)).toBeUndefined();
  });

  it('a part of a character is not taken for another one that is written alike', () => {
    // Of a run: the version before had said 96, this one says 227, both parts of characters.
    const top = { 'Action: click(': -0.345, A: -1.358, ':': -6.861 };
    expect(unlike(expected([96, '\ufffd', -9.628]), said([227, '\ufffd', -9.518, top]))).toBeUndefined();
    expect(unlike(expected([96, '\ufffd', -9.628]), said([227, '\ufffd', -9.518, { ...top, '\ufffd': -6.5 }]))).toBe(
      undefined,
    );
    // It would stand among the most probable ones.
    expect(unlike(expected([96, '\ufffd', -0.5]), said([227, '\ufffd', -9.518, top]))).toBe(
      'a log-prob is at most -6.861 there and -0.500 in training',
    );
    // The same token is compared, whatever else is written like it.
    expect(unlike(expected([96, '\ufffd', -2]), said([96, '\ufffd', -1, { '\ufffd': -2, A: -0.7 }]))).toBe(
      'a log-prob is -1.000 there and -2.000 in training',
    );
  });

  it('a token that is not named is less probable than the most probable ones, not than the sampled one', () => {
    const top = { x: -0.5, y: -1.5, z: -4 };
    for (const answer of [said([5, 'a', -7, top]), said([5, 'a', -7, { a: -7, ...top }])]) {
      expect(unlike(expected([6, 'b', -4.5]), answer)).toBeUndefined();
      expect(unlike(expected([6, 'b', -3]), answer)).toBe('a log-prob is at most -4.000 there and -3.000 in training');
    }
    // Where nothing else is said, nothing is known of it.
    expect(unlike(expected([6, 'b', -1]), said([5, 'a', -7]))).toBeUndefined();
  });

  it('is unlike anything where it has no numbers, or the trainer has none', () => {
    expect(unlike(expected([5, 'a', -1]), said([5, 'a', null]))).toContain('not known');
    expect(unlike(expected([5, 'a', NaN]), said([5, 'a', -1]))).toBeDefined();
  });

  it('is compared with what was said with earlier weights where the tokens are the same', () => {
    const of = (training: readonly [number, number], there: readonly [number, number]) =>
        agreementOf(
          expected([5, 'a', training[0]], [6, 'b', training[1]]),
          said([5, 'a', there[0]], [6, 'b', there[1]]),
        )!,
      before = of([-1, -2], [-1.01, -2.01]);
    expect(saidTheSame(before, of([-1.03, -2.03], [-1.01, -2.01]))).toBe(true);
    expect(saidTheSame(before, of([-1.03, -2.03], [-1.01, -2.010001]))).toBe(false);
    expect(unmoved(before, of([-1.01, -2.02], [-1.01, -2.01]))).toBeUndefined();
    expect(unmoved(before, of([-1.02, -2.04], [-1.01, -2.01]))).toContain('0.030 apart');
    expect(agreementOf(expected([5, 'a', -1]), said([7, 'c', -1]))).toBeUndefined();
    expect(agreementOf(expected([5, 'a', -1]), said([5, 'a', -1], [6, 'b', -1]))).toBeUndefined();
  });

  it('is the proof of the next weights where the server says its tokens', () => {
    expect(proofIn(said([5, 'a', -1], [6, 'b', -2]))).toEqual({
      prompt: Int32Array.of(1, 2),
      answer: Int32Array.of(5, 6),
      tokens: ['a', 'b'],
    });
    expect(proofIn({ ...said([5, 'a', -1]), prompt_token_ids: null })).toBeUndefined();
  });
});
