import { describe, expect, it } from 'vitest';
import { classOfCharacter, EDGE, random, READER_SPEC } from '../../../runtime/domain/index.js';
import { forgetful } from '../../../runtime/trainer/native/augment.js';
import { spellingLesson } from '../../../runtime/trainer/native/spelling.js';

const { width, height } = READER_SPEC.obs,
  COLS = width / 2;
const lesson = (marks: readonly number[], shift = 0) =>
  spellingLesson(
    READER_SPEC,
    {
      obs: new Uint8Array(width * height),
      buckets: new Int32Array(),
      boxes: new Int32Array(),
      marks: Float32Array.from(marks),
    },
    shift,
    random(3),
  );
const k = classOfCharacter('k')!;

describe("a lesson of the policy's reader", () => {
  it('asks for the character in the column of its middle, for blank elsewhere', () => {
    const l = lesson([EDGE, 37, 20, k, 41.5, 20]),
      at = (col: number, row: number): [number, number] => [l.targets[row * COLS + col]!, l.weight[row * COLS + col]!];
    expect(at(18, 2)).toEqual([EDGE, 1]);
    expect(at(20, 2)).toEqual([k, 1]);
    expect(at(19, 2)).toEqual([0, Math.fround(0.4)]);
    expect(at(20, 3)).toEqual([0, Math.fround(0.4)]);
    expect(l.characters).toBe(2);
  });
  it('does not ask the row beside a middle that lies near its edge', () => {
    const low = lesson([k, 41.5, 23]),
      high = lesson([k, 41.5, 17]);
    expect(low.weight[3 * COLS + 20]).toBe(0);
    expect(low.weight[1 * COLS + 20]).toBeCloseTo(0.4);
    expect(high.weight[1 * COLS + 20]).toBe(0);
    expect(high.targets[2 * COLS + 20]).toBe(k);
  });
  it('leaves out what is off the screen', () => {
    expect(lesson([k, -1, 20, k, 400, 20, k, 5, 300]).characters).toBe(0);
  });
});

describe('a lesson of decisions', () => {
  it('shows some quoted words as unknown, and nothing else, to a policy that spells', () => {
    const { maxTokens, buckets, spelling } = READER_SPEC.instruction,
      instruction = new Int32Array(maxTokens * (2 + spelling!)).map((_, i) =>
        i < 2 * maxTokens ? (i % 2 ? 3 : 5) : 1,
      );
    instruction[1] = 1;
    const state = { obs: new Uint8Array(), instruction, history: new Int32Array() },
      seen = forgetful(READER_SPEC, state, random(1)).instruction,
      unknown = Array.from({ length: maxTokens }, (_, t) => seen[2 * t] === buckets - 1);
    expect(unknown[0]).toBe(false);
    expect(unknown.filter(Boolean).length).toBeGreaterThan(4);
    expect(unknown.filter((u) => !u).length).toBeGreaterThan(4);
    expect(seen.subarray(2 * maxTokens)).toEqual(instruction.subarray(2 * maxTokens));
    expect(instruction[2]).toBe(5);
  });
});
