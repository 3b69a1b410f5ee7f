import type { Dict, Value } from '../values.js';
import { equal, isDict, isList } from '../values.js';
import { pyRegex } from './pyRegex.js';
import { trimEndOf, trimStartOf } from './scan.js';

const QUOTES = '"\'';

/**
 * Does a value meet {method, ref}? Methods: re[.FLAGS], eq ne le lt ge gt, approx:THRESHOLD, range.<e|t><e|t>,
 * str_list_eq, str_set_eq. A value of the wrong type does not meet the rule; an unknown method throws.
 */
export function meetsRule(value: Value, rule: Value): boolean {
  if (!isDict(rule) || typeof rule['method'] !== 'string') throw new TypeError('a rule needs "method" and "ref"');
  const method = rule['method'],
    ref = rule['ref'] ?? null;
  if (method.startsWith('re')) {
    if (typeof ref !== 'string') throw new TypeError('a regular expression must be a string');
    const r = pyRegex(ref, method.split('.').slice(1));
    return typeof value === 'string' && r.test(value);
  }
  if (method === 'eq') return equal(value, ref);
  if (method === 'ne') return !equal(value, ref);
  if (['le', 'lt', 'ge', 'gt'].includes(method)) return order(method, value, ref);
  if (method.startsWith('approx:')) {
    const x = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
    return (
      typeof x === 'number' && typeof ref === 'number' && Math.abs(x - ref) <= Number(method.slice('approx:'.length))
    );
  }
  if (/^range\.[et][et]$/.test(method)) {
    if (!isList(ref) || ref.length !== 2) throw new TypeError('a range needs two bounds');
    return order(`l${method[6]}`, ref[0]!, value) && order(`l${method[7]}`, value, ref[1]!);
  }
  if (method === 'str_list_eq' || method === 'str_set_eq') {
    if (!isList(ref)) throw new TypeError(`${method} needs a list`);
    if (typeof value !== 'string') return false;
    const got = trimEndOf(trimStartOf(value, QUOTES), QUOTES).split(',');
    return method === 'str_list_eq' ? equal(got, ref) : sameSet(got, ref);
  }
  throw new TypeError(`the rule method ${method} is not supported`);
}

const sameSet = (a: readonly Value[], b: readonly Value[]): boolean => {
  const x = new Set(a),
    y = new Set(b);
  return x.size === y.size && [...x].every((v) => y.has(v));
};

function order(method: string, a: Value, b: Value): boolean {
  const ok =
    ((typeof a === 'number' || typeof a === 'boolean') && (typeof b === 'number' || typeof b === 'boolean')) ||
    (typeof a === 'string' && typeof b === 'string');
  if (!ok) return false;
  const c = a < b ? -1 : Number(a > b);
  return method === 'le' ? c <= 0 : method === 'lt' ? c < 0 : method === 'ge' ? c >= 0 : c > 0;
}

/** Does a record have every field of the pattern? */
export const matchesRecord = (pattern: Value, record: Dict): boolean => {
  if (!isDict(pattern)) throw new TypeError('a record pattern must be an object');
  return Object.entries(pattern).every(([k, v]) => Object.hasOwn(record, k) && equal(record[k], v));
};
