import type { Value } from '../values.js';
import { BLANKS, contains, fileLines, isList, splitLines, str, strip, truthy } from '../values.js';
import { pyRegex } from './pyRegex.js';
import { fuzzRatio, sequenceRatio } from './sequence.js';
import type { Metric } from './types.js';
import { fileText, goldText, nothing, pass, rule, ruleList, textOf } from './types.js';

/** Metrics on text files. */

const noText = (v: Value): ReturnType<typeof nothing> => nothing(v === null ? 'no file' : 'a file that is not text');

/** Same text; `ignore_blanks` folds white space, `ignore_case` letters. */
export const compareTextFile: Metric = (i) => {
  let gold = goldText(i.expected);
  let got = fileText(i.result);
  if (got === undefined) return noText(i.result);
  const fold = (s: string): string => strip(s.replace(/[\t\n]/g, ' ')).replace(BLANKS, ' ');
  if (truthy(i.options['ignore_blanks'])) {
    got = fold(got);
    gold = fold(gold);
  }
  if (truthy(i.options['ignore_case'])) {
    got = got.toLowerCase();
    gold = gold.toLowerCase();
  }
  return pass(got === gold, got, gold);
};

/** Similarity of the lines, 0 to 1. */
export const diffTextFile: Metric = (i) => {
  const gold = goldText(i.expected),
    got = fileText(i.result);
  if (got === undefined) return noText(i.result);
  return { score: sequenceRatio(splitLines(got), splitLines(gold)), found: got, expected: gold };
};

/** Every expected text is in the file. */
export const fileContains: Metric = (i) => {
  const want = rule(i, 'expected');
  if (!isList(want)) throw new TypeError('"expected" of the rule must be a list');
  const got = fileText(i.result);
  if (got === undefined) return noText(i.result);
  const lacks = want.filter((w) => contains(got, w) !== true);
  return pass(lacks.length === 0, lacks.length === 0 ? undefined : `missing: ${lacks.map(str).join(', ')}`);
};

const TIME_OF_DAY = /([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)/;

/** Whether this many lines hold a time of day. */
export const checkLineNumber: Metric = (i) => {
  const want = Number(rule(i, 'expected'));
  if (!Number.isInteger(want)) throw new TypeError('"expected" of the rule must be a whole number');
  const got = fileText(i.result);
  if (got === undefined) return noText(i.result);
  const n = fileLines(got).filter((l) => TIME_OF_DAY.test(l)).length;
  return pass(n === want, `${n} lines with a time`, `${want} lines with a time`);
};

/** Each `expect` pattern is found in some line and no `unexpect` pattern in any. */
export const checkList: Metric = (i) => {
  const patterns = (key: string): RegExp[] => ruleList(i, key).map((p) => pyRegex(String(p)));
  const expect = patterns('expect'),
    unexpect = patterns('unexpect');
  const got = textOf(i.result);
  if (got === undefined) return noText(i.result);
  const lines = fileLines(got);
  const lacks = expect.filter((r) => !lines.some((l) => r.test(l))),
    has = unexpect.filter((r) => lines.some((l) => r.test(l)));
  return pass(
    lacks.length === 0 && has.length === 0,
    lacks.length + has.length === 0
      ? undefined
      : [...lacks.map((r) => `no line matches ${r.source}`), ...has.map((r) => `a line matches ${r.source}`)].join(
          '; ',
        ),
  );
};

/** The file is exactly the expected text. */
export const compareConfig: Metric = (i) => {
  const want = str(rule(i, 'expected')),
    got = fileText(i.result);
  return got === undefined ? noText(i.result) : pass(got === want, got, want);
};

/** An answer equals the expected one. */
export const compareAnswer: Metric = (i) => {
  const want = rule(i, 'expected');
  return pass(truthy(i.result) && textOf(i.result) === want);
};

/** Whether the file holds what the terminal shows. */
export const compareTerminalAndTxt: Metric = (i) => {
  const got = fileText(i.result),
    shown = i.expected;
  return pass(got !== undefined && typeof shown === 'string' && shown !== '' && shown === got);
};

/**
 * Python sources alike but for blank lines, trailing blanks, tabs, and a first line naming the interpreter or encoding.
 */
export const comparePythonPureText: Metric = (i) => {
  const gold = goldText(i.expected),
    got = fileText(i.result);
  if (got === undefined) return noText(i.result);
  return pass(pureText(got) === pureText(gold), got, gold);
};
function pureText(text: string): string {
  const lines = splitLines(text);
  let from = 0;
  while (from < lines.length && from < 3 && /^(#!|# -\*- coding:|# coding[:=])/.test(lines[from]!.trim())) from++;
  return lines
    .slice(from)
    .filter((l) => l.trim() !== '')
    .map((l) => expandTabs(l).trimEnd())
    .join('\n');
}
function expandTabs(line: string): string {
  let out = '';
  for (const c of line) out += c === '\t' ? ' '.repeat(4 - (out.length % 4)) : c;
  return out;
}

/** Same text, or the gold number is in it, or both are numbers within 1e-4. */
export const compareResultFiles: Metric = (i) => {
  const gold = goldText(i.expected).trim(),
    got = fileText(i.result)?.trim();
  if (got === undefined) return noText(i.result);
  const number = (s: string): number | undefined =>
    /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(s) ? Number(s) : undefined;
  const g = number(gold),
    n = number(got);
  if (g === undefined) return pass(got === gold, got, gold);
  return pass(got.includes(gold) || (n !== undefined && Math.abs(n - g) < 1e-4), got, gold);
};

/** Similarity of an answer to the expected one, 0 to 1. */
export const fuzzyMatch: Metric = (i) => {
  const want = str(rule(i, 'expected')),
    got = textOf(i.result);
  return got === undefined ? noText(i.result) : { score: fuzzRatio(got, want), found: got, expected: want };
};
