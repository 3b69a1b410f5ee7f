import type { Value } from '../values.js';
import { contains, equal, isDict, isFile, isList, str } from '../values.js';
import type { Metric, MetricInput } from './types.js';
import { nothing, pass, rule, ruleList, rules, textOf } from './types.js';

/** Metrics on plain values: command output, rules, directory trees. */

/** Every `include` is in the result and no `exclude`; a file counts as its text. */
export const checkIncludeExclude: Metric = (i) => {
  const include = ruleList(i, 'include'),
    exclude = ruleList(i, 'exclude');
  if (i.result === null) return nothing();
  const hay = isFile(i.result) ? (textOf(i.result) ?? null) : i.result;
  if (hay === null) return nothing('a file that is not text');
  const lacks = include.filter((x) => contains(hay, x) !== true),
    has = exclude.filter((x) => contains(hay, x) !== false);
  return pass(
    lacks.length === 0 && has.length === 0,
    lacks.length + has.length === 0
      ? undefined
      : [
          ...(lacks.length > 0 ? [`missing: ${lacks.map(str).join(', ')}`] : []),
          ...(has.length > 0 ? [`must not be there: ${has.map(str).join(', ')}`] : []),
          `in: ${str(hay)}`,
        ].join('; '),
  );
};

export const exactMatch: Metric = (i) => {
  const e = rule(i, 'expected');
  return pass(equal(i.result, e));
};

/** The result is one of the expected values (or, with a string, part of it). */
export const matchInList: Metric = (i) => {
  const e = rule(i, 'expected');
  return pass(i.result !== null && contains(e, i.result) === true);
};

/** The expected value is in the result list (or part of the result string). */
export const isInList: Metric = (i) => {
  const e = rule(i, 'expected');
  return pass(i.result !== null && contains(i.result, e) === true);
};

/** Equal as text, or as lists of texts (`type`), letters alike with `ignore_case`. Both sides come from getters. */
export const literalMatch: Metric = (i) => {
  const type = i.options['type'] ?? 'str',
    fold = (s: string): string => (i.options['ignore_case'] === true ? s.toLowerCase() : s);
  if (i.expected === undefined) throw new TypeError('literal_match needs an expected value');
  const expected = i.expected;
  if (type === 'str') return pass(fold(str(i.result)) === fold(str(expected)));
  if (type !== 'list') throw new TypeError(`literal_match has no type ${String(type)}`);
  const texts = (v: Value): string[] | undefined => (isList(v) ? v.map((x) => fold(str(x))) : undefined);
  const a = texts(i.result),
    b = texts(expected);
  return pass(a !== undefined && b !== undefined && equal(a, b));
};

/**
 * Expected pairs are in the JSON object; with `expect_in_result` as parts of its values. Python's quotes are taken for
 * JSON's.
 */
export const checkDirectJsonObject: Metric = (i) => {
  const expected = rule(i, 'expected');
  if (!isDict(expected)) throw new TypeError('"expected" of the rule must be an object');
  let got: Value = i.result;
  if (typeof got === 'string') {
    try {
      got = JSON.parse(got.trim().replaceAll("'", '"')) as Value;
    } catch {
      return nothing(`not JSON: ${got}`);
    }
  }
  if (!isDict(got)) return nothing();
  const of = (k: string): Value => (got as Record<string, Value>)[k] ?? null;
  if (Object.values(expected).includes('__EVALUATION_FAILED__'))
    throw new Error('the expected value could not be found out');
  const inResult = rules(i)['expect_in_result'] === true;
  const sorted = expected['ignore_list_order'] === true;
  const ok = Object.entries(expected).every(([k, want]) => {
    if (k === 'ignore_list_order') return true;
    const have = of(k);
    if (!inResult)
      return sorted && isList(want) && isList(have)
        ? equal([...want].map(str).sort(), [...have].map(str).sort())
        : equal(want, have);
    if (isList(want))
      return want.some((w) => (isList(have) ? contains(have, w) === true : typeof have === 'string' && equal(w, have)));
    return typeof want === 'string' && have !== null && contains(have, want) === true;
  });
  return pass(ok);
};

/** `timedatectl`: the fourth line names a zone at +0000. */
export const isUtc0: Metric = (i) => {
  const line = textOf(i.result)?.split('\n')[3];
  return pass(line?.endsWith('+0000)') === true, line);
};

/** gsettings' list of favourites, in any order. */
export const checkGnomeFavoriteApps: Metric = (i) => {
  const want = strings(i, 'expected'),
    got = pythonStrings(textOf(i.result) ?? '');
  return pass(got !== undefined && sameMembers(got, want));
};
/** A printed Python list of strings; undefined when it is not one. */
export function pythonStrings(s: string): string[] | undefined {
  const m = /^\s*(?:@as\s*)?\[(.*)\]\s*$/s.exec(s);
  if (m === null) return undefined;
  const list = m[1]!,
    found: string[] = [],
    ends = new Map<string, Int32Array>();
  for (let at = 0; at < list.length; at++) {
    const quote = list[at]!;
    if (quote !== "'" && quote !== '"') continue;
    let end = ends.get(quote);
    if (!end) ends.set(quote, (end = stringEnds(list, quote)));
    if (end[at + 1]! < 0) continue;
    found.push(list.slice(at + 1, end[at + 1]).replace(/\\(.)/g, '$1'));
    at = end[at + 1]!;
  }
  return found;
}
/** For each place where a quoted text might begin: its end, or -1. Found from the right. */
function stringEnds(text: string, quote: string): Int32Array {
  const end = new Int32Array(text.length + 2).fill(-1);
  for (let at = text.length - 1; at >= 0; at--) {
    const c = text[at]!;
    if (c === quote) end[at] = at;
    else if (c !== '\\') end[at] = end[at + 1]!;
    else end[at] = /./.test(text[at + 1] ?? '') ? end[at + 2]! : -1;
  }
  return end;
}

/** A folder holds these entries and no other. */
export const checkMovedJpgs: Metric = (i) => {
  const want = strings(i, 'expected');
  const children = isDict(i.result) && isList(i.result['children']) ? i.result['children'] : undefined;
  if (children === undefined) return nothing('no such folder');
  const names = children.map((c) => (isDict(c) ? str(c['name'] ?? null) : ''));
  return pass(sameMembers(names, want), names.join(', '));
};
const sameMembers = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && equal([...new Set(a)].sort(), [...new Set(b)].sort());
function strings(i: MetricInput, key: string): string[] {
  const v = rule(i, key);
  if (!isList(v) || !v.every((x) => typeof x === 'string'))
    throw new TypeError(`"${key}" of the rule must be a list of strings`);
  return v as string[];
}

/** The rule is the *result*, what the clipboard holds the *expected* (OSWorld's order). */
export const isInVmClickboard: Metric = (i) => {
  if (!isDict(i.result) || !Object.hasOwn(i.result, 'expected'))
    throw new TypeError('the result must be a rule with "expected"');
  const want = i.result['expected']!;
  if (typeof i.expected !== 'string') return nothing();
  const held = i.expected;
  return pass(
    (isList(want) ? want : [want]).every((w) => contains(held, w) === true),
    held,
    str(want),
  );
};

/** A scaling factor above 1. */
export const checkTextEnlarged: Metric = (i) => pass(Number.parseFloat(textOf(i.result) ?? '') > 1);

/** A name is, or with type "not_contain" is not, in the listing. */
export const isExtensionInstalled: Metric = (i) => {
  const type = rule(i, 'type'),
    name = rule(i, 'expected');
  if (type !== 'contain' && type !== 'not_contain')
    throw new TypeError(`is_extension_installed has no type ${str(type)}`);
  const listing = textOf(i.result);
  if (listing === undefined) return nothing();
  return pass(contains(listing, name) === (type === 'contain'));
};

/** Two sizes are equal (window and screen). */
export const isVlcFullscreen: Metric = (i) => {
  const a = i.result,
    b = i.expected ?? null;
  return pass(isDict(a) && isDict(b) && equal(a['width'], b['width']) && equal(a['height'], b['height']));
};
