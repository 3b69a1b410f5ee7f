import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placeOf, topText } from '../../../extension/model/jsonPlaces.js';
import { hasSchema, schemaUri, withSchema } from '../../../extension/model/runFile.js';
import { configProblems } from '../../../runtime/service/templates.js';

const file = `{
  "preset": "quickstart",
  "curation": { "pool": { "enabeld": true, "maxAge": "old" } },
  "tasks": { "families": ["press-button", 7] },
  "desktops": {"count": -1}
}`;
const shown = (path: readonly (string | number)[], text = file): string => {
  const { from, to } = placeOf(text, path);
  return text.slice(from, to);
};

describe('what is wrong in a run file', () => {
  it('is said place by place, and each place is found in the text', () => {
    const problems = configProblems(file);
    expect(problems.map((p) => [p.path.join('.'), shown(p.path)]).sort()).toEqual([
      ['curation.pool.enabeld', '"enabeld"'],
      ['curation.pool.maxAge', '"maxAge"'],
      ['desktops.count', '"count"'],
      ['tasks.families.1', '7'],
    ]);
    expect(problems.find((p) => p.path.includes('enabeld'))!.message).toContain('did you mean "enabled"');
  });
  it('text that is no JSON is said by its line', () => {
    expect(configProblems('{\n  "preset": "quickstart",\n}')).toMatchObject([{ path: [], line: 3 }]);
    expect(configProblems('[]')).toMatchObject([{ path: [], line: 1 }]);
    expect(configProblems('{}')).toEqual([]);
  });
  it('what options need of one another is said at the option', () => {
    expect(configProblems('{"policy":{"kind":"openai"}}')).toMatchObject([{ path: ['policy', 'openai'] }]);
    // The option is not there: the nearest place around it is.
    expect(shown(['policy', 'openai'], '{"policy":{"kind":"openai"}}')).toBe('"policy"');
  });
});

describe('places of a JSON text', () => {
  it('every value of any JSON has its place, however it is written', () => {
    const paths = (x: unknown, at: readonly (string | number)[] = []): (readonly (string | number)[])[] =>
      typeof x !== 'object' || x === null
        ? [at]
        : [at, ...Object.entries(x).flatMap(([k, v]) => paths(v, [...at, Array.isArray(x) ? Number(k) : k]))];
    fc.assert(
      fc.property(fc.object({ maxDepth: 3, withNullPrototype: false }), fc.constantFrom(0, 1, 4), (value, indent) => {
        const plain = JSON.parse(JSON.stringify(value)) as unknown,
          text = JSON.stringify(plain, null, indent);
        for (const path of paths(plain).slice(1)) {
          const last = path.at(-1)!,
            words = shown(path, text);
          if (typeof last === 'string') expect(JSON.parse(words)).toBe(last);
          else expect(words.length).toBeGreaterThan(0);
        }
      }),
    );
  });
  it('text that is being typed does no harm', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('{', '}', '[', ']', ',', ':', '"', 'a', ' ', '\n', '\\') }),
        (text) => {
          const { from, to } = placeOf(text, ['a', 0, 'a']);
          expect(from).toBeGreaterThanOrEqual(0);
          expect(to).toBeLessThanOrEqual(text.length);
        },
      ),
    );
  });
});

describe('which JSON files are run files', () => {
  it('by name, or because they name our schema', () => {
    expect([
      hasSchema('/w/dart-run.json', '{}'),
      hasSchema('/w/my.dart-run.json', ''),
      hasSchema('/w/my-run.json', '{}'),
    ]).toEqual([true, true, false]);
    expect(hasSchema('/w/x.json', '{"$schema": "./media/run.schema.json"}')).toBe(true);
    expect(hasSchema('/w/x.json', `{"a": {"$schema": "${schemaUri}"}}`)).toBe(false);
  });
  it('and one without it gets it as its first key', () => {
    for (const text of ['{\n  "preset": "quickstart"\n}\n', '{}', ' { }']) {
      const with_ = withSchema(text)!;
      expect(topText(with_, '$schema')).toBe(schemaUri);
      expect(hasSchema('/w/x.json', with_)).toBe(true);
      expect(JSON.parse(with_)).toMatchObject(JSON.parse(text) as object);
      expect(configProblems(with_)).toEqual([]);
    }
    expect(withSchema('[]')).toBeUndefined();
  });
});
