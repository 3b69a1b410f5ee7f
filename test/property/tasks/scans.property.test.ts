import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endOf } from '../../../runtime/policy/actions/parse.js';
import { withoutSilencing } from '../../../runtime/tasks/checkName.js';
import { baseName } from '../../../runtime/tasks/context.js';
import { pythonStrings } from '../../../runtime/tasks/metrics/basic.js';
import { trimEndOf, trimStartOf } from '../../../runtime/tasks/metrics/scan.js';
import { fuzzRatio, sequenceRatio } from '../../../runtime/tasks/metrics/sequence.js';
import { conditions, userPref, withoutKeys } from '../../../runtime/tasks/metrics/thunderbird.js';
import { elements } from '../../../runtime/tasks/metrics/xml.js';
import { installs } from '../../../runtime/tasks/installs.js';
import { downloads } from '../../../runtime/tasks/needs.js';
import { brief } from '../../../runtime/tasks/values.js';
import * as byRegex from '../../fixtures/tasks/regexScans.js';

/** Short texts of the pieces that matter to a scan, so that they meet in every order. */
const textOf = (...pieces: string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((p) => p.join(''));
const alike = <T>(texts: fc.Arbitrary<string>, ours: (s: string) => T, reference: (s: string) => T): void => {
  fc.assert(
    fc.property(texts, (s) => {
      expect(ours(s)).toEqual(reference(s));
    }),
    { numRuns: 4000 },
  );
};

describe('scans by hand answer what the regular expression says', () => {
  it('elements of XML', () => {
    const xml = textOf(
      ...['<a', '<a>', '<a/>', '</a>', '</a', '<ab', '>', '/>', '/', ' ', '\n', ' k="v"', " k='v'", ' k=', '"', "'"],
      ...['k', '=', 'v', '<!--', '-->', '<!-->', '&amp;', 'x', ' k = "v" ', ' j.k:l="w"'],
    );
    for (const attributes of [{}, { k: 'v' }, { k: '' }] as Record<string, string>[])
      alike(
        xml,
        (s) => elements(s, 'a', attributes),
        (s) => byRegex.elements(s, 'a', attributes),
      );
  });
  it("Thunderbird's preferences, conditions and keys", () => {
    const ends = textOf('"', '\\', '\\"', '", ', ', ', ');', ')', ';', 'a', '\u2028', '1', ' ');
    alike(
      ends.map((s) => `user_pref("${s}`),
      userPref,
      byRegex.userPref,
    );
    alike(
      ends.map((s) => `user_pref("${s}", 1);`),
      userPref,
      byRegex.userPref,
    );
    alike(
      textOf('AND (', 'OR (', 'ALL', 'a', ' ', ',', "'", '"', ')', '")', '(', 'AND (a,b,', 'OR (a,b,"', '\n'),
      conditions,
      byRegex.conditions,
    );
    alike(
      textOf('X-Mozilla-Keys:', ' ', 'a', '\n', '\nMIME-Version', 'MIME-Version', '\n\n'),
      withoutKeys,
      byRegex.withoutKeys,
    );
  });
  it('printed lists of strings', () => {
    alike(
      textOf("'", '"', '\\', "\\'", '\\"', 'a', ', ', '\n', ']', '\u2028').map((s) => `[${s}]`),
      pythonStrings,
      byRegex.pythonStrings,
    );
  });
  it('what people are shown, base names, trimmed quotes', () => {
    const blanks = textOf(' ', '\n', '\t', 'a', '\u00a0', ' \n ');
    alike(blanks, brief, byRegex.brief);
    alike(textOf('/', 'a', '.', '//'), baseName, byRegex.baseName);
    alike(textOf('"', "'", 'a', ','), (s) => trimEndOf(trimStartOf(s, '"\''), '"\''), byRegex.trimmed);
  });
  it('scripts whose errors are thrown away', () => {
    alike(
      textOf(' ', '2>', '/dev/null', '2>/dev/null', ' 2> /dev/null', 'a', '\t'),
      (s) => withoutSilencing(s.trim()),
      byRegex.silenced,
    );
  });
  it('commands that need the network', () => {
    const words = ['apt', 'apt-get', 'pip3', ' ', '  ', '-y', '-y ', '-x-pip ', 'install', 'update', 'a', '-', '\n'];
    alike(textOf(...words), installs, byRegex.installs);
    alike(
      textOf('curl', ' wget', 'git clone ', ' http:', ' https:', '\n', '\u2028', 'a'),
      downloads,
      byRegex.downloads,
    );
  });
  it('the end of an answer', () => {
    alike(
      textOf(' ', '\n', '\u3000', '\ufeff', '<|im_end|>', '<|endoftext|>', '</s>', '</Output>', '<', '>', 's>', 'a'),
      endOf,
      byRegex.endOf,
    );
  });
  it('similarity of lines, popular ones included, and of texts', () => {
    const lines = fc.oneof(
      fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 }),
      // From 200 lines on those that fill more than 1 % are popular.
      fc.array(fc.oneof(fc.constant('p'), fc.integer({ min: 0, max: 120 }).map(String)), {
        minLength: 200,
        maxLength: 260,
      }),
    );
    fc.assert(
      fc.property(lines, lines, (a, b) => {
        expect(sequenceRatio(a, b)).toBe(byRegex.sequenceRatio(a, b));
      }),
      { numRuns: 1000 },
    );
    const text = fc.oneof(textOf('a', 'b', '😀'), fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 100 }));
    fc.assert(
      fc.property(text, text, (s, t) => {
        expect(fuzzRatio(s, t)).toBe(byRegex.fuzzRatio(s, t));
      }),
      { numRuns: 1000 },
    );
  });
});
