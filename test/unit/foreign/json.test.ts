import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { desktopJson } from '../../../runtime/foreign/desktopJson.js';
import { foreignJson, jsonOf, jsonOrNothing } from '../../../runtime/foreign/json.js';
import { jsonFault } from '../../../runtime/foreign/jsonFault.js';

const BOUNDS = { bytes: 1000, depth: 3, values: 10 },
  refused = (why: string, fault: string): Error => new RangeError(`${fault}: ${why}`),
  good = '{"a": [1, {"b": "[[[[,,,,,,,,,,,,"}]}',
  value = { a: [1, { b: '[[[[,,,,,,,,,,,,' }] };
/** Each with what is said of it. */
const beyond: [string, string, RegExp][] = [
    ['nested too deep', '[[[[]]]]', /^bounds: holds more than 3 lists/],
    ['too many values', `[${'1,'.repeat(20)}1]`, /^bounds: holds more than 10 values/],
  ],
  none: [string, string, RegExp][] = [
    ['no JSON', '}{', /^syntax: is not JSON/],
    ['nothing', '', /^syntax: is not JSON/],
  ];

describe('JSON of others', () => {
  it('is read within its bounds', () => {
    for (const read of [
      foreignJson(good, BOUNDS, refused),
      jsonOf(good, BOUNDS, refused as never),
      jsonOrNothing(good, BOUNDS),
      desktopJson(Buffer.from(good), BOUNDS, refused),
    ])
      expect(read).toEqual(value);
  });
  it.each([...beyond, ...none])('%s: what the caller makes of it', (_what, text, words) => {
    expect(() => foreignJson(text, BOUNDS, refused)).toThrow(words);
    expect(() => desktopJson(Buffer.from(text), BOUNDS, refused)).toThrow(words);
    expect(jsonOrNothing(text, BOUNDS)).toBeUndefined();
  });
  it('that may be something else is undefined where it is', () => {
    for (const [, text] of none) expect(jsonOf(text, BOUNDS, () => new RangeError())).toBeUndefined();
    for (const [, text] of beyond)
      expect(() => jsonOf(text, BOUNDS, (why) => new RangeError(why))).toThrow(/holds more/);
  });
  it('of a desktop has a bound in bytes too', () => {
    expect(() => desktopJson(Buffer.from(JSON.stringify('x'.repeat(1000))), BOUNDS, refused)).toThrow(
      /^bounds: is longer than 1000 bytes/,
    );
  });
});

describe('the place where JSON is broken', () => {
  it('is found in every text that is none, and in no other', () => {
    const made = fc
      .tuple(
        fc.json({ maxDepth: 3 }),
        fc.nat(),
        fc.nat(3),
        fc.constantFrom('', ',', '}', '"', 'x', '\\', '\n', '0', '-'),
      )
      .map(([text, at, cut, more]) => {
        const from = at % (text.length + 1);
        return text.slice(0, from) + more + text.slice(from + cut);
      });
    fc.assert(
      fc.property(made, (text) => {
        let good = true;
        try {
          JSON.parse(text);
        } catch {
          good = false;
        }
        expect(jsonFault(text) === undefined).toBe(good);
      }),
      { numRuns: 2000 },
    );
  });
  it('is where the first thing stands that should not', () => {
    expect(jsonFault('{"a": tru}')).toBe(6);
    expect(jsonFault('[1, 2,]')).toBe(6);
    expect(jsonFault('{"a": 1 ')).toBe(8);
    expect(jsonFault(`"${'x'.repeat(1 << 18)}"`)).toBeUndefined();
  });
});
