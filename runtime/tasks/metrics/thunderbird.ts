import type { Dict, Value } from '../values.js';
import { equal, isDict, isList, truthy } from '../values.js';
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
    const m = /^user_pref\("((?:[^"]|\\")+)", (.+)\);$/.exec(line.trim());
    if (m === null) continue;
    const key = m[1]!;
    if (!Object.hasOwn(expect, key) && !Object.hasOwn(unexpect, key)) continue;
    let value: Value;
    try {
      value = JSON.parse(m[2]!) as Value;
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

/** A filter's conditions: `AND (key,relation,value)`, `OR (...)` or ALL. */
const CONDITION = /\b(?:AND|OR) \((?:[\w ]+),(?:[\w ']+),(?:"(?:(?:[^"]|")+)"|(?:[^)]+))\)|\bALL\b/g;
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
    else if (key === 'condition') filters.push({ ...now, condition: value.match(CONDITION) ?? [] });
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
function folder(text: string, o: Readonly<Record<string, unknown>>): string[] {
  const on = (k: string, fallback: boolean): boolean => (o[k] === undefined ? fallback : truthy(o[k]));
  let mails = text
    .trim()
    .split('FROM - ')
    .filter((m) => m.trim() !== '' && !(on('remove_deleted', true) && /X-Mozilla-Status: 000[89]/.test(m)));
  mails = mails.map((m) => {
    let t = m;
    if (on('ignore_status', false)) t = t.replace(/X-Mozilla-Status\d?:[\s\d]+/g, '');
    if (on('ignore_keys', false)) t = t.replace(/(X-Mozilla-Keys:[^\n]*?)\n(MIME-Version)/g, '$2');
    return t.trim();
  });
  return (on('remove_duplicate', true) ? [...new Set(mails)] : mails).sort();
}
