import type { Dict, Value } from '../values.js';
import { equal, isDict, isList, truthy } from '../values.js';
import { Forward } from './scan.js';
import type { Metric } from './types.js';
import { fileText, goldText, nothing, pass, ruleList, rules } from './types.js';
import { matchesRecord, meetsRule } from './valueRule.js';

/**
 * `user_pref("key", value);` lines: every expected key is there and meets its rule (the last line counts), no
 * unexpected one meets its.
 */
export const checkThunderbirdPrefs: Metric = (i) => {
  const part = (k: string): Dict => {
    const v = rules(i)[k] ?? {};
    if (!isDict(v)) throw new TypeError(`"${k}" of the rule must be an object`);
    return v;
  };
  const expect = part('expect'),
    unexpect = part('unexpect'),
    text = fileText(i.result);
  if (text === undefined) return nothing('no file');
  const met = new Map(Object.keys(expect).map((k) => [k, false]));
  const bad: string[] = [];
  for (const line of text.split('\n')) {
    const pref = userPref(line.trim());
    if (pref === undefined) continue;
    const { key } = pref;
    if (!Object.hasOwn(expect, key) && !Object.hasOwn(unexpect, key)) continue;
    let value: Value;
    try {
      value = JSON.parse(pref.value) as Value;
    } catch {
      continue;
    }
    if (Object.hasOwn(expect, key)) met.set(key, meetsRule(value, expect[key]!));
    else if (meetsRule(value, unexpect[key]!)) bad.push(key);
  }
  const lacks = [...met].filter(([, ok]) => !ok).map(([k]) => k);
  return pass(
    lacks.length === 0 && bad.length === 0,
    lacks.length + bad.length === 0
      ? undefined
      : [...lacks.map((k) => `${k} is not as expected`), ...bad.map((k) => `${k} must not be so`)].join('; '),
  );
};

const PREF = 'user_pref("',
  PREF_END = ');',
  BETWEEN = '", ';

/**
 * Key and value of a line `user_pref("key", value);`; a key may hold quotes behind backslashes.
 */
export function userPref(line: string): { readonly key: string; readonly value: string } | undefined {
  if (!line.startsWith(PREF) || !line.endsWith(PREF_END)) return undefined;
  const from = PREF.length,
    to = line.length - PREF_END.length;
  // The value is one line in JavaScript's eyes.
  const breaks = ['\r', '\u2028', '\u2029'].map((c) => line.lastIndexOf(c, to - 1));
  for (let quote = line.indexOf('"', from); quote > from; quote = line.indexOf('"', quote + 1)) {
    const value = quote + BETWEEN.length;
    if (line.startsWith(BETWEEN, quote) && value < to && breaks.every((b) => b < value))
      return { key: line.slice(from, quote), value: line.slice(value, to) };
    // The key goes on behind a quote only where a backslash is in front of that.
    if (line[quote - 1] !== '\\') return undefined;
  }
  return undefined;
}

const CONDITION_START = /\b(?:AND|OR) \(|\bALL\b/g;

/** A filter's conditions: `AND (key,relation,value)`, `OR (...)` or ALL; a value in quotes is as long as possible. */
export function conditions(text: string): string[] {
  const found: string[] = [],
    starts = new RegExp(CONDITION_START),
    closings = new Forward(text, ')'),
    lastQuoted = text.lastIndexOf('")');
  for (let m = starts.exec(text); m !== null; m = starts.exec(text)) {
    if (m[0] === 'ALL') {
      found.push(m[0]);
      continue;
    }
    const value = wordsAndComma(text, wordsAndComma(text, starts.lastIndex, /[\w ]+,/y), /[\w ']+,/y);
    if (value === undefined) continue;
    let end = -1;
    if (text[value] === '"' && lastQuoted >= value + 2) end = lastQuoted + 1;
    else if (text[value] !== ')') end = closings.from(value);
    if (end < 0) continue;
    found.push(text.slice(m.index, end + 1));
    starts.lastIndex = end + 1;
  }
  return found;
}
/** Place behind the words and their comma. */
function wordsAndComma(text: string, at: number | undefined, words: RegExp): number | undefined {
  if (at === undefined) return undefined;
  words.lastIndex = at;
  return words.test(text) ? words.lastIndex : undefined;
}
const unquote = (s: string): string => s.replaceAll('\\"', '"').replaceAll('\\\\', '\\');

/** msgFilterRules.dat: every expected filter is there and no unexpected one. */
export const checkThunderbirdFilter: Metric = (i) => {
  const expect = ruleList(i, 'expect'),
    unexpect = ruleList(i, 'unexpect'),
    text = fileText(i.result);
  if (text === undefined) return nothing('no file');
  const filters: Dict[] = [];
  let now: Record<string, Value> = {};
  for (const line of text.split('\n')) {
    const m = /^(name|enabled|type|action|actionValue|condition)="(.*)"\s*$/.exec(line);
    if (m === null) continue;
    const key = m[1]!,
      value = unquote(m[2]!);
    if (key === 'name') now = { name: value };
    else if (key === 'condition') filters.push({ ...now, condition: conditions(value) });
    else now[key] = value;
  }
  const lacks = expect.filter((e) => !filters.some((f) => matchesRecord(e, f))),
    has = unexpect.filter((e) => filters.some((f) => matchesRecord(e, f)));
  return pass(
    lacks.length === 0 && has.length === 0,
    `${filters.length} filters; ${lacks.length} missing, ${has.length} that must not be`,
  );
};

/**
 * Mail folders hold the same messages, in any order; deleted and double ones do not count unless the options say so.
 * Stricter than OSWorld's on purpose: that one passes over every message that is not blank, so to it any two folders
 * with mail are equal.
 */
export const checkThunderbirdFolder: Metric = (i) => {
  const golds = isList(i.expected) ? i.expected : [i.expected],
    results = isList(i.expected) && isList(i.result) ? i.result : [i.result];
  for (let k = 0; k < golds.length; k++) {
    const gold = folder(goldText(golds[k]), i.options),
      text = fileText(results[k] ?? null);
    if (text === undefined) return nothing('no folder file');
    if (!equal(folder(text, i.options), gold)) return nothing(`folder ${k + 1} differs`);
  }
  return pass(true);
};
/** Thunderbird writes it before each message, with the time at which it wrote: no part of the message. */
const MAIL_START = /^From - .*$/m;
function folder(text: string, o: Readonly<Record<string, unknown>>): string[] {
  const on = (k: string, fallback: boolean): boolean => (o[k] === undefined ? fallback : truthy(o[k]));
  let mails = text
    .split(MAIL_START)
    .filter((m) => m.trim() !== '' && !(on('remove_deleted', true) && /X-Mozilla-Status: 000[89]/.test(m)));
  mails = mails.map((m) => {
    let t = m;
    if (on('ignore_status', false)) t = t.replace(/X-Mozilla-Status\d?:[\s\d]+/g, '');
    if (on('ignore_keys', false)) t = withoutKeys(t);
    return t.trim();
  });
  return (on('remove_duplicate', true) ? [...new Set(mails)] : mails).sort();
}

/** The mail without the keys of Mozilla's that stand right before a line MIME-Version. */
export function withoutKeys(mail: string): string {
  const lines = mail.split('\n');
  return lines
    .map((line, k) => {
      if (lines[k + 1]?.startsWith('MIME-Version') !== true) return `${line}\n`;
      const keys = line.indexOf('X-Mozilla-Keys:');
      return keys < 0 ? `${line}\n` : line.slice(0, keys);
    })
    .join('')
    .slice(0, -1);
}
