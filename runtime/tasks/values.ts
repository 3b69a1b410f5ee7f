/**
 * The values that getters hand to metrics, and the few Python rules that OSWorld's metrics rely on (equality, `in`,
 * truth, str). A file is its content under its cache name, never a path on the host.
 */
import { isObject } from '../foreign/json.js';

export class FileValue {
  readonly name: string;
  readonly data: Buffer;
  /** Bytes of the whole file: `data` may be its beginning only. */
  readonly size: number;
  constructor(name: string, data: Buffer, size = data.length) {
    this.name = name;
    this.data = data;
    this.size = size;
  }
}

export type Value = null | string | number | boolean | FileValue | readonly Value[] | { readonly [key: string]: Value };
export type Dict = { readonly [key: string]: Value };

export const isFile = (v: unknown): v is FileValue => v instanceof FileValue;
export const isList = (v: unknown): v is readonly Value[] => Array.isArray(v);
export const isDict = (v: unknown): v is Dict => isObject(v) && !(v instanceof FileValue);

/** Python's truth of a JSON value: '', 0, [], {}, null and false are false; the string "false" is true. */
export function truthy(v: unknown): boolean {
  if (v === undefined || v === null || v === false || v === 0 || v === '') return false;
  if (Array.isArray(v)) return v.length > 0;
  return isDict(v) ? Object.keys(v).length > 0 : true;
}

/** Python's `==` on JSON values: lists in order, dicts by key, True == 1. */
export function equal(a: Value | undefined, b: Value | undefined): boolean {
  if (typeof a === 'boolean' && typeof b === 'number') return Number(a) === b;
  if (typeof b === 'boolean' && typeof a === 'number') return Number(b) === a;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((x, i) => equal(x, b[i]));
  if (isDict(a) && isDict(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((k) => Object.hasOwn(b, k) && equal(a[k], b[k]));
  }
  return a === b;
}

/** Python's `needle in hay`: substring, list member or dict key; undefined where Python raises TypeError. */
export function contains(hay: Value, needle: Value): boolean | undefined {
  if (typeof hay === 'string') return typeof needle === 'string' ? hay.includes(needle) : undefined;
  if (isList(hay)) return hay.some((x) => equal(x, needle));
  if (isDict(hay)) return typeof needle === 'string' ? Object.hasOwn(hay, needle) : false;
  return undefined;
}

/** Python's str() of a JSON value; lists and dicts as repr. */
export function str(v: Value): string {
  return typeof v === 'string' ? v : repr(v);
}
function repr(v: Value): string {
  if (v === null) return 'None';
  if (v === true) return 'True';
  if (v === false) return 'False';
  if (typeof v === 'string')
    return v.includes("'") && !v.includes('"')
      ? `"${v}"`
      : `'${v.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
  if (isFile(v)) return v.name;
  if (isList(v)) return `[${v.map(repr).join(', ')}]`;
  if (isDict(v))
    return `{${Object.entries(v)
      .map(([k, x]) => `${repr(k)}: ${repr(x)}`)
      .join(', ')}}`;
  return String(v);
}

/**
 * Text of bytes as Python's `open(f).read()` gives it: strict UTF-8, '\r\n' and '\r' as '\n'; undefined when it is not
 * UTF-8.
 */
export function decodeText(data: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data).replace(/\r\n?/g, '\n');
  } catch {
    return undefined;
  }
}

/**
 * Characters that Python's str.isspace(), str.strip() and \\s take for blank: unlike JavaScript's, without the byte
 * order mark.
 */
const BLANK = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
export const BLANKS = new RegExp(`[${BLANK}]+`, 'g');
const NO_BLANK = new RegExp(`[^${BLANK}]`);

/** Python's str.strip(). */
export function strip(text: string): string {
  const from = text.search(NO_BLANK);
  if (from < 0) return '';
  let end = text.length;
  while (!NO_BLANK.test(text[end - 1]!)) end--;
  return text.slice(from, end);
}

/** Python's str.splitlines(). */
export function splitLines(text: string): string[] {
  if (text === '') return [];
  const parts = text.split(/\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]/);
  if (parts.at(-1) === '') parts.pop();
  return parts;
}

/** Lines as iterating a text file gives them: each with its '\n', the last one without when the file has none. */
export const fileLines = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** A value as one short line for a person. */
export function brief(v: unknown, max = 200): string {
  const text = isFile(v)
    ? `file ${v.name} (${v.size} bytes): ${v.data.subarray(0, max * 2).toString('utf8')}`
    : v === undefined || v === null
      ? 'nothing'
      : typeof v === 'string'
        ? v
        : JSON.stringify(v);
  const line = text.replace(/\s+/g, (blanks) => (blanks.includes('\n') ? ' ⏎ ' : blanks));
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}
