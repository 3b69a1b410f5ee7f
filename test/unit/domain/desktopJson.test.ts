import { describe, expect, it } from 'vitest';
import { desktopJson } from '../../../runtime/domain/desktopJson.js';

const BOUNDS = { bytes: 1000, depth: 3, values: 10 };
const read = (text: string): unknown =>
  desktopJson(Buffer.from(text), BOUNDS, (why, what) => new RangeError(`${what}: ${why}`));

describe('JSON that a desktop has printed', () => {
  it('is read within its bounds', () => {
    expect(read('{"a": [1, {"b": "[[[[,,,,,,,,,,,,"}]}')).toEqual({ a: [1, { b: '[[[[,,,,,,,,,,,,' }] });
  });
  it.each([
    ['too long', JSON.stringify('x'.repeat(1000)), /^bounds: is longer than 1000 bytes/],
    ['nested too deep', '[[[[]]]]', /^bounds: holds more than 3 lists/],
    ['too many values', `[${'1,'.repeat(20)}1]`, /^bounds: holds more than 10 values/],
    ['no JSON', '}{', /^syntax: is not JSON/],
    ['nothing', '', /^syntax: is not JSON/],
  ])('%s: what the caller makes of it', (_what, text, words) => {
    expect(() => read(text)).toThrow(RangeError);
    expect(() => read(text)).toThrow(words);
  });
});
