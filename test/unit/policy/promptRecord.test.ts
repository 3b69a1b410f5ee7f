import { describe, expect, it } from 'vitest';
import { decodePrompt } from '../../../runtime/domain/promptTokens.js';
import { cutPrompt, recordPrompt } from '../../../runtime/policy/remote/promptRecord.js';

const PAD = 151_655;
const sent = (number: number): { number: number; sha256: string; format: 'png'; frame: string } => ({
  number,
  sha256: `bytes ${number}`,
  format: 'png',
  frame: `frame ${number}`,
});

describe('prompts as a server counted them', () => {
  it('a run of pad tokens is one image', () => {
    const { symbols, tokens } = cutPrompt([1, PAD, PAD, PAD, 2, PAD, 3], PAD, [sent(4), sent(7)]);
    expect([...symbols]).toEqual([1, -5, 2, -8, 3]);
    expect(tokens).toEqual([3, 1]);
  });
  it('an image that the server dropped, or invented, is an error and no sample', () => {
    expect(() => cutPrompt([1, 2, 3], PAD, [sent(0)])).toThrow('counted 0 images in a prompt with 1');
    expect(() => cutPrompt([1, PAD, 2, PAD], PAD, [sent(0)])).toThrow('counted 2 images in a prompt with 1');
  });
  it('what is no token id is refused', () => {
    for (const bad of [-1, 1.5, NaN, 2 ** 31]) expect(() => cutPrompt([bad], PAD, [])).toThrow('no token ids');
  });
  it('an episode is read back prompt by prompt, and names each image once', () => {
    const prompts = [
        [7, 8, 9, PAD, PAD, 10],
        [7, 8, 9, PAD, PAD, 10, 21, 22, 30, PAD, PAD, 10],
        [7, 8, 9, 21, 22, 30, PAD, PAD, 10, 23, 30, PAD, PAD, PAD, 10],
      ],
      answers = [[21, 22], [23], [24]].map((a) => Int32Array.from(a)),
      images = [[sent(0)], [sent(0), sent(1)], [sent(1), sent(2)]];
    let before: Int32Array = new Int32Array(),
      read: Int32Array = new Int32Array(),
      known = 0;
    const named: number[] = [];
    prompts.forEach((ids, i) => {
      const record = recordPrompt(before, ids, answers[i]!, { pad: PAD, sent: images[i]!, known });
      named.push(...record.delta.images.map((x) => x.tokens));
      known = named.length;
      expect([...decodePrompt(read, record.delta)]).toEqual([...cutPrompt(ids, PAD, images[i]!).symbols]);
      before = record.sequence;
      read = record.sequence;
    });
    expect(named).toEqual([2, 2, 3]);
  });
});
