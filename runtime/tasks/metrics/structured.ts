import { parse as csvParser } from 'csv-parse';
import { nextTurn } from '../../concurrency/turns.js';
import type { Dict, Value } from '../values.js';
import { contains, equal, isDict, isList, splitLines, strip, truthy } from '../values.js';
import type { Metric, MetricInput } from './types.js';
import { anyText, fileText, goldText, nothing, pass, rule, ruleList, textOf } from './types.js';
import { meetsRule } from './valueRule.js';

/** Metrics on JSON and CSV files. */

const noFile = (v: Value): ReturnType<typeof nothing> => nothing(v === null ? 'no file' : 'a file that cannot be read');
function json(text: string | undefined): Value | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Value;
  } catch {
    return undefined;
  }
}

/** Rules on values by key path: all `expect` are met and no `unexpect`. */
export const checkJson: Metric = (i) => {
  const expect = ruleList(i, 'expect'),
    unexpect = ruleList(i, 'unexpect');
  if (truthy(i.options['is_yaml'])) throw new TypeError('check_json on YAML is not supported');
  const doc = json(textOf(i.result));
  if (doc === undefined || doc === null) return noFile(i.result);
  const at = (r: Value): Value | undefined => {
    if (!isDict(r) || !isList(r['key'])) throw new TypeError('a JSON rule needs a list "key"');
    return r['key'].reduce<Value | undefined>((v, k) => {
      if (isDict(v) && typeof k === 'string') return Object.hasOwn(v, k) ? v[k] : undefined;
      return isList(v) && typeof k === 'number' ? v.at(k) : undefined;
    }, doc);
  };
  const missed = expect.find((r) => {
    const v = at(r);
    return v === undefined || !meetsRule(v, r);
  });
  const met = unexpect.find((r) => meetsRule(at(r) ?? null, r));
  return pass(
    missed === undefined && met === undefined,
    missed !== undefined
      ? `not so: ${JSON.stringify(missed)}`
      : met !== undefined
        ? `must not be: ${JSON.stringify(met)}`
        : undefined,
  );
};

/** Settings hold the expected pairs. */
export const checkJsonSettings: Metric = (i) => {
  const want = rule(i, 'expected');
  if (!isDict(want)) throw new TypeError('"expected" of the rule must be an object');
  const got = json(fileText(i.result));
  if (!isDict(got)) return noFile(i.result);
  const wrong = Object.keys(want).find((k) => !Object.hasOwn(got, k) || !equal(got[k], want[k]));
  return pass(
    wrong === undefined,
    wrong === undefined ? undefined : `${wrong} is ${JSON.stringify(got[wrong]) ?? 'not set'}`,
  );
};

/** A list of key bindings, possibly after a comment line, holds the expected one. */
export const checkJsonKeybindings: Metric = (i) => {
  const want = rule(i, 'expected'),
    text = fileText(i.result);
  const list = [text, text?.slice(text.indexOf('\n') + 1)].map(json).find(isList);
  return list === undefined ? noFile(i.result) : pass(contains(list, want) === true);
};

/**
 * A file of more lines is not read: the parser makes an error of every row that is shorter or longer than the first, at
 * up to 0.1 ms each.
 */
const MAX_CSV_LINES = 50_000;
/** Characters parsed at a time; it reads a stream. */
const CSV_SLICE = 64 * 1024;

/** Rows of a CSV file, and where each of the names in its first line stands (of a name given twice the last). */
interface Table {
  readonly columns: ReadonlyMap<string, number>;
  readonly rows: readonly (readonly string[])[];
}

/**
 * Reads a table as csv.DictReader does: the first line names the fields, blank lines are skipped. Undefined when it is
 * no CSV.
 */
async function table(text: string): Promise<Table | undefined> {
  const parser = csvParser({
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    bom: false,
  });
  const rows: string[][] = [];
  let failed = false;
  const ended = new Promise<void>((resolve) => {
    parser.once('end', resolve);
    parser.once('error', () => {
      failed = true;
      resolve();
    });
  });
  parser.on('data', (row: string[]) => rows.push(row));
  for (let at = 0; at < text.length && !failed; at += CSV_SLICE) {
    parser.write(text.slice(at, at + CSV_SLICE));
    await nextTurn();
  }
  if (!failed) parser.end();
  await ended;
  const names = rows.shift() ?? [];
  return failed ? undefined : { columns: new Map(names.map((n, k) => [n, k])), rows };
}

/** The records of a CSV text, missing fields null. */
export async function records(text: string): Promise<Dict[] | undefined> {
  const t = await table(text);
  return t?.rows.map((r) => Object.fromEntries([...t.columns].map(([n, k]) => [n, r[k] ?? null])));
}

function moreLines(text: string, most: number): boolean {
  let n = 0;
  for (let at = 0; at < text.length && n <= most; at++) if (text[at] === '\n' || text[at] === '\r') n++;
  return n > most;
}

/** Whether a row has every field of the pattern. Looks at these fields alone: a file may name a million others. */
function holds(t: Table, pattern: Value): boolean {
  if (!isDict(pattern)) throw new TypeError('a record pattern must be an object');
  const fields = Object.entries(pattern).map(([name, value]) => ({ column: t.columns.get(name), value }));
  return t.rows.some((r) => fields.every((f) => f.column !== undefined && equal(r[f.column] ?? null, f.value)));
}

/** Each `expect` record is there and no `unexpect` record. */
export const checkCsv: Metric = async (i) => {
  const expect = ruleList(i, 'expect'),
    unexpect = ruleList(i, 'unexpect');
  const text = textOf(i.result);
  if (text !== undefined && moreLines(text, MAX_CSV_LINES))
    return nothing(`more than ${MAX_CSV_LINES.toLocaleString('en')} lines`);
  const t = text === undefined ? undefined : await table(text);
  if (t === undefined) return noFile(i.result);
  const lacks = expect.filter((e) => !holds(t, e)),
    has = unexpect.filter((e) => holds(t, e));
  return pass(
    lacks.length === 0 && has.length === 0,
    lacks.length + has.length === 0
      ? undefined
      : [
          ...lacks.map((e) => `no record ${JSON.stringify(e)}`),
          ...has.map((e) => `a record ${JSON.stringify(e)}`),
        ].join('; '),
  );
};

/** Same lines, of a file that may be Latin-1; blanks at their ends count unless `strict` is false, letters unless `ignore_case`. */
export const compareCsv: Metric = (i) => {
  // Newer task files allow several gold files: any will do.
  const golds = (isList(i.expected) ? i.expected : [i.expected]).map((g) => goldText(g, anyText));
  const got = anyText(i.result);
  if (got === undefined) return noFile(i.result);
  const a = csvLines(got, i);
  return pass(
    golds.some((g) => equal(a, csvLines(g, i))),
    got,
    golds[0],
  );
};
function csvLines(text: string, i: MetricInput): string[] {
  const strict = i.options['strict'] === undefined || truthy(i.options['strict']);
  return splitLines(text)
    .map((l) => (strict ? l : strip(l)))
    .map((l) => (truthy(i.options['ignore_case']) ? l.toLowerCase() : l));
}
