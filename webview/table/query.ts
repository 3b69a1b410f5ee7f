/** Filters and orders of the table over its columns; pure. */
import { listColumns, rangeColumns, tableFlags } from '../../runtime/protocol/shared.js';
import type { ListColumn, RangeColumn, TableFilter, TableRange } from '../../runtime/protocol/types.js';
import type { Coded, Rows } from './rows.js';

export type SortColumn = 'outcome' | 'task' | 'origin' | 'ledger' | Exclude<RangeColumn, 'update' | 'lag'>;
export interface TableSort {
  readonly by: SortColumn;
  readonly descending: boolean;
}
export const newest: TableSort = { by: 'time', descending: true };
const natural = new Intl.Collator('en', { numeric: true }).compare;

/** Which rows fit, without the part that is about `except`: what its own choices are counted on. */
export function fits(rows: Rows, f: TableFilter, except?: ListColumn): Uint8Array {
  const n = rows.length,
    ok = new Uint8Array(n).fill(1);
  for (const c of listColumns) if (c !== except && f[c]) keepWords(rows, ok, c, f[c]);
  if (f.task !== undefined) keepWords(rows, ok, 'task', [f.task]);
  for (const c of rangeColumns) if (f[c]) keepRange(rows, ok, c, f[c]);
  if (f.rollouts) keepOnly(rows, ok, f.rollouts);
  if (f.flags) keepFlags(rows, ok, f.flags);
  if (f.text) keepText(rows, ok, f.text);
  return ok;
}
function keepWords(rows: Rows, ok: Uint8Array, c: Coded, wanted: readonly string[]): void {
  const is = new Uint8Array(rows.words[c].values.length);
  for (const w of wanted) {
    const i = rows.words[c].find(w);
    if (i !== undefined) is[i] = 1;
  }
  const at = rows.coded[c];
  for (let i = 0; i < ok.length; i++) if (!is[at[i]!]) ok[i] = 0;
}
function keepOnly(rows: Rows, ok: Uint8Array, wanted: readonly string[]): void {
  const is = new Set(wanted.map((r) => rows.place(r)));
  for (let i = 0; i < ok.length; i++) if (!is.has(i)) ok[i] = 0;
}
function keepRange(rows: Rows, ok: Uint8Array, c: RangeColumn, { min = -Infinity, max = Infinity }: TableRange): void {
  if (c === 'version') {
    // Any of the versions that acted.
    const { versionMin: from, versionMax: to } = rows.numbers;
    for (let i = 0; i < ok.length; i++) if (!(to[i]! >= min && from[i]! <= max)) ok[i] = 0;
    return;
  }
  for (let i = 0; i < ok.length; i++) {
    const x = rows.number(c, i);
    if (!(x >= min && x <= max)) ok[i] = 0;
  }
}
function keepFlags(rows: Rows, ok: Uint8Array, flags: NonNullable<TableFilter['flags']>): void {
  let must = 0,
    mustNot = 0;
  for (const [k, bit] of Object.entries(tableFlags)) {
    const on = flags[k as keyof typeof tableFlags];
    if (on === true) must |= bit;
    if (on === false) mustNot |= bit;
  }
  for (let i = 0; i < ok.length; i++) if ((rows.flags[i]! & must) !== must || rows.flags[i]! & mustNot) ok[i] = 0;
}
/** Every word of it, in instruction, task or id. */
function keepText(rows: Rows, ok: Uint8Array, text: string): void {
  for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
    const hits = (c: Coded): Uint8Array =>
        Uint8Array.from(rows.words[c].values, (v) => (v.toLowerCase().includes(word) ? 1 : 0)),
      task = hits('task'),
      instruction = hits('instruction'),
      { task: atTask, instruction: atInstruction } = rows.coded;
    for (let i = 0; i < ok.length; i++)
      if (
        ok[i] &&
        !task[atTask[i]!] &&
        !instruction[atInstruction[i]!] &&
        !rows.rollout[i]!.toLowerCase().includes(word)
      )
        ok[i] = 0;
  }
}

/** Every row in this order; rows without the value come last, and rows of one value newest first. */
export function ordered(rows: Rows, sort: TableSort): Uint32Array {
  const n = rows.length,
    keys = new Float64Array(n),
    times = new Float64Array(n),
    sign = sort.descending ? -1 : 1;
  if (sort.by === 'outcome' || sort.by === 'task' || sort.by === 'origin' || sort.by === 'ledger') {
    const { values } = rows.words[sort.by],
      rank = new Float64Array(values.length);
    [...values.keys()]
      .sort((a, b) => natural(values[a]!, values[b]!))
      .forEach((v, place) => {
        rank[v] = values[v] === '' ? NaN : sign * place;
      });
    const at = rows.coded[sort.by];
    for (let i = 0; i < n; i++) keys[i] = rank[at[i]!]!;
  } else for (let i = 0; i < n; i++) keys[i] = sign * rows.number(sort.by, i);
  for (let i = 0; i < n; i++) {
    if (Number.isNaN(keys[i])) keys[i] = Infinity;
    const at = rows.time(i);
    times[i] = Number.isNaN(at) ? Infinity : at;
  }
  return Uint32Array.from({ length: n }, (_, i) => i).sort(
    (a, b) => order(keys[a]!, keys[b]!) || order(times[b]!, times[a]!) || a - b,
  );
}
/** Infinite ones are equal. */
const order = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** The rows that the table lists, in order. */
export class Listing {
  #order: { readonly revision: number; readonly sort: TableSort; readonly at: Uint32Array } | undefined;
  list(rows: Rows, f: TableFilter, sort: TableSort): Uint32Array {
    if (this.#order?.revision !== rows.revision || this.#order.sort !== sort)
      this.#order = { revision: rows.revision, sort, at: ordered(rows, sort) };
    const { at } = this.#order,
      ok = fits(rows, f);
    let n = 0;
    for (const x of ok) n += x;
    const out = new Uint32Array(n);
    for (let i = 0, k = 0; i < at.length; i++) if (ok[at[i]!]) out[k++] = at[i]!;
    return out;
  }
}

/** How many rows have each value of a column, of those that fit the rest of the filter; most frequent first. */
export function countsOf(
  rows: Rows,
  f: TableFilter,
  c: ListColumn,
): readonly { readonly value: string; readonly n: number }[] {
  const ok = fits(rows, f, c),
    { values } = rows.words[c],
    n = new Uint32Array(values.length),
    at = rows.coded[c];
  for (let i = 0; i < ok.length; i++) if (ok[i]) n[at[i]!]!++;
  return values.map((value, i) => ({ value, n: n[i]! })).sort((a, b) => b.n - a.n || natural(a.value, b.value));
}
/** Least and greatest value of a column; undefined where no row has one. */
export function extent(rows: Rows, c: RangeColumn): { readonly min: number; readonly max: number } | undefined {
  let min = Infinity,
    max = -Infinity;
  for (let i = 0; i < rows.length; i++) {
    const x = rows.number(c, i);
    if (x < min) min = x;
    if (x > max) max = x;
  }
  return min <= max ? { min, max } : undefined;
}
export const isEmptyFilter = (f: TableFilter): boolean => Object.keys(f).length === 0;
