import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { uuid5 } from '../../../runtime/tasks/assets.js';
import { pyRegex } from '../../../runtime/tasks/metrics/pyRegex.js';
import { sequenceRatio } from '../../../runtime/tasks/metrics/sequence.js';
import { records } from '../../../runtime/tasks/metrics/structured.js';
import { shlex } from '../../../runtime/tasks/shlex.js';
import type { Value } from '../../../runtime/tasks/values.js';
import { splitLines, str } from '../../../runtime/tasks/values.js';

/**
 * What Python 3's difflib, shlex, uuid, str, re and csv answer (test/fixtures/tasks/python-vectors.py writes the file).
 */
const v = JSON.parse(readFileSync('test/fixtures/tasks/python-vectors.json', 'utf8')) as {
  ratio: { a: string[]; b: string[]; ratio: number }[];
  shlex: { line: string; words: string[] }[];
  shlexBad: string[];
  uuid5: { url: string; uuid: string }[];
  splitlines: { text: string; lines: string[] }[];
  regex: { pattern: string; text: string; found: boolean }[];
  csv: { text: string; rows: Record<string, string | null>[] }[];
  str: { value: Value; text: string }[];
};

describe('as Python does it', () => {
  it('sequence ratio equals difflib, popular elements included', () => {
    for (const x of v.ratio) expect(sequenceRatio(x.a, x.b)).toBeCloseTo(x.ratio, 12);
    expect(v.ratio.some((x) => x.b.length >= 200)).toBe(true);
  });
  it.each(v.shlex)('splits $line', ({ line, words }) => expect(shlex(line)).toEqual(words));
  it.each(v.shlexBad)('refuses %s', (line) => expect(() => shlex(line)).toThrow(RangeError));
  it.each(v.uuid5)('uuid5 of $url', ({ url, uuid }) => expect(uuid5(url)).toBe(uuid));
  it.each(v.splitlines)('splits lines of $text', ({ text, lines }) => expect(splitLines(text)).toEqual(lines));
  it.each(v.regex)('/$pattern/ in $text: $found', ({ pattern, text, found }) =>
    expect(pyRegex(pattern).test(text)).toBe(found),
  );
  it.each(v.csv)('reads records of $text', async ({ text, rows }) => expect(await records(text)).toEqual(rows));
  it('reads records over many slices', async () => {
    const rows = Array.from({ length: 30_000 }, (_, i) => ({ a: String(i), b: `x,"${i}` }));
    expect(await records(`a,b\n${rows.map((r) => `${r.a},"${r.b.replace('"', '""')}"`).join('\n')}`)).toEqual(rows);
  });
  it.each(v.str)('prints $text', ({ value, text }) => expect(str(value)).toBe(text));
  it('regular expression flags by name, unknown ones refused', () => {
    expect(pyRegex('a.b', ['S', 'I']).test('A\nB')).toBe(true);
    expect(() => pyRegex('a', ['X'])).toThrow(/flag X/);
    expect(() => pyRegex('(')).toThrow(SyntaxError);
  });
});
