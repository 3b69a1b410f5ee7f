import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { around, readWords, rollouts, steps, t, translator } from '../../../webview/ui/words.js';

describe('words of the pages', () => {
  it('are English without a translation, by what the page holds or does not', () => {
    expect(t('Step {0} of {1}', 3, 9)).toBe('Step 3 of 9');
    for (const none of [undefined, null, '', 'no JSON', '[]', '3', 'null', '{"Close":3,"Open":null}'])
      expect(readWords(none).size, String(none)).toBe(0);
  });
  it('are those of the language where there are some, in its own order', () => {
    const de = translator(readWords('{"Close":"Schließen","Step {0} of {1}":"Von {1} der Schritt {0}, {0}."}'));
    expect(de('Close')).toBe('Schließen');
    expect(de('Step {0} of {1}', 3, '9')).toBe('Von 9 der Schritt 3, 3.');
    expect(de('Open')).toBe('Open');
    // Messages are keys of a map: those that every object has are none.
    expect(de('toString')).toBe('toString');
    expect(translator(readWords('{"__proto__":"ja"}'))('__proto__')).toBe('ja');
  });
  it('put arguments in as they are; what is missing is left to be seen', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(t('<{0}|{1}|{0}>', a, b)).toBe(`<${a}|${b}|${a}>`);
      }),
    );
    expect(t('{0} and {1}', 0)).toBe('0 and {1}');
  });
  it('go around something of the page, wherever a language puts it', () => {
    const node = { k: 1 };
    expect(around('Press {0} now', node)).toEqual(['Press ', node, ' now']);
    expect(around('{0}: Taste', node)).toEqual(['', node, ': Taste']);
    expect(around('Taste', node)).toEqual(['Taste', node]);
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', ' ', '{0}', '{1}')), (parts) => {
        const m = parts.join('');
        expect(around(m, '{0}').join('')).toBe(m.includes('{0}') ? m : `${m}{0}`);
      }),
    );
  });
  it('counts steps and rollouts with the right plural', () => {
    expect([steps(0), steps(1), steps(12_345)]).toEqual(['0 steps', '1 step', '12,345 steps']);
    expect([rollouts(1), rollouts(2)]).toEqual(['1 rollout', '2 rollouts']);
  });
});
