import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodePrompt, encodePrompt, imageOf, imageSymbol, sequenceOf } from '../../../runtime/domain/promptTokens.js';
import { encodeRecord } from '../../../runtime/data/store/record.js';

const ids = fc.array(fc.integer({ min: -3, max: 6 }), { maxLength: 60 }).map((a) => Int32Array.from(a));

describe('prompts told by the one before', () => {
  it('come back as they were, whatever came before', () => {
    fc.assert(
      fc.property(ids, ids, (before, prompt) => {
        expect(decodePrompt(before, encodePrompt(before, prompt, []))).toEqual(prompt);
      }),
    );
  });
  it('cost nothing but what is new when a turn is added and an old image is left out', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(150_000), { minLength: 40, maxLength: 200 }),
        fc.array(fc.nat(150_000), { minLength: 10, maxLength: 60 }),
        (text, turn) => {
          const before = Int32Array.from([...text, imageSymbol(0), ...text.map((t) => t + 1), imageSymbol(1)]);
          const prompt = Int32Array.from([...before.filter((s) => s !== imageSymbol(0)), ...turn, imageSymbol(2)]);
          const delta = encodePrompt(before, prompt, []);
          expect(decodePrompt(before, delta)).toEqual(prompt);
          expect(delta.symbols.length).toBeLessThanOrEqual(turn.length + 2 + 3);
        },
      ),
    );
  });
  it('a delta that does not fit the sequence before it is refused', () => {
    const delta = encodePrompt(Int32Array.from([1, 2, 3, 4, 5, 6]), Int32Array.from([1, 2, 3, 4, 5, 6, 9]), []);
    expect(() => decodePrompt(Int32Array.from([1, 2, 3]), delta)).toThrow(RangeError);
    expect(() => decodePrompt(new Int32Array(), { ...delta, parts: Int32Array.from([0, 0]) })).toThrow(RangeError);
    expect(() => decodePrompt(new Int32Array(9), { ...delta, parts: Int32Array.from([0, 1, 0]) })).toThrow(RangeError);
  });
  it('symbols tell text from images', () => {
    expect([imageOf(7), imageOf(0), imageOf(imageSymbol(0)), imageOf(imageSymbol(12))]).toEqual([
      undefined,
      undefined,
      0,
      12,
    ]);
  });

  it('over long episodes with five images each, a step costs less than 1 kB', () => {
    const random = pseudo(7),
      text = (n: number): number[] => Array.from({ length: n }, () => random(151_000));
    const head = text(700),
      turn = [151_645, 198, 151_644, 872, 198, 151_652],
      answer = [151_653, 151_645, 198, 151_644, 77_091, 198];
    let bytes = 0,
      steps = 0;
    for (let episode = 0; episode < 20; episode++) {
      const answers: number[][] = [];
      let before: Int32Array = new Int32Array();
      for (let s = 0; s < 50; s++) {
        const prompt: number[] = [...head];
        for (let i = 0; i < s; i++)
          prompt.push(...turn, ...(i > s - 5 ? [imageSymbol(i)] : []), ...answer, ...answers[i]!);
        prompt.push(...turn, imageSymbol(s), ...answer);
        const whole = Int32Array.from(prompt),
          image = { sha256: 'a'.repeat(64), format: 'png', frame: 'b'.repeat(64), tokens: 1196 } as const,
          delta = encodePrompt(before, whole, [image]),
          said = text(40 + random(60));
        expect(Buffer.compare(bytesOf(decodePrompt(before, delta)), bytesOf(whole))).toBe(0);
        bytes += encodeRecord(s, { prompt: delta, ids: Int32Array.from(said) }).length;
        steps++;
        answers.push(said);
        before = sequenceOf(whole, Int32Array.from(said));
      }
    }
    expect(bytes / steps).toBeLessThan(1024);
  });
});

const bytesOf = (a: Int32Array): Buffer => Buffer.from(a.buffer, a.byteOffset, a.byteLength);

/** Whole numbers under n, the same in every run. */
function pseudo(seed: number): (n: number) => number {
  let x = seed;
  return (n) => {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((x / 2 ** 32) * n);
  };
}
