import type { Random } from '../../runtime/domain/index.js';

/** Foreign bytes and JSON made from good ones: most of it right, so that what comes after the first check is reached. */

const words = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\n',
  '\0',
  '\ufeff',
  '../',
  '/dev/zero',
  'null',
  '-1',
  '1e999',
];

/** One to four changes of the bytes. */
export function mutatedBytes(r: Random, good: Buffer, most = 1 << 20): Buffer {
  let b: Buffer = Buffer.from(good);
  for (let n = 1 + r.int(4); n > 0; n--) b = changed(r, b);
  return b.length > most ? b.subarray(0, most) : b;
}
function changed(r: Random, b: Buffer): Buffer {
  const at = r.int(b.length + 1),
    some = Math.min(b.length - at, 1 + r.int(r.pick([4, 64, 1024])));
  switch (r.int(8)) {
    case 0:
      if (at < b.length) b[at] = b[at]! ^ (1 << r.int(8));
      return b;
    case 1:
      if (at < b.length) b[at] = r.pick([0, 0xff, 0x7f, 0x80, r.int(256)]);
      return b;
    case 2: // a number of four bytes that is none
      if (at + 4 <= b.length)
        b.writeUInt32BE(r.pick([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, b.length, r.int(2 ** 31)]), at);
      return b;
    case 3:
      return Buffer.concat([b.subarray(0, at), b.subarray(at + some)]);
    case 4:
      return Buffer.concat([b.subarray(0, at + some), b.subarray(at, at + some), b.subarray(at + some)]);
    case 5:
      return b.subarray(0, at);
    case 6:
      return Buffer.concat([b.subarray(0, at), Buffer.from(r.pick(words)), b.subarray(at)]);
    default:
      return Buffer.concat([b.subarray(0, at), Buffer.from(run(r)), b.subarray(at)]);
  }
}
/** Many of one thing: what regular expressions and recursion are slow with. */
const run = (r: Random): string =>
  r.pick([' ', '\n', '(', '[', '{"a":', "'", '"', 'a', '#', 'Action:', '</s>', '9', '\\']).repeat(1 + r.int(20_000));

const odd = (r: Random): unknown =>
  r.pick<() => unknown>([
    () => null,
    () => true,
    () => -1,
    () => 0,
    () => 0.5,
    () => 1e308,
    () => 2 ** 53,
    () => '',
    () => run(r),
    () => '../../../../etc/passwd',
    () => '/dev/zero',
    () => 'a\0b',
    () => '\ud800',
    () => '__proto__',
    () => [],
    () => ({}),
    () => Array.from({ length: r.int(3000) }, () => r.int(9)),
    () => Array.from({ length: r.int(300) }, () => ({})),
    () => ({ length: 1e9 }),
    () => ({ constructor: 1, __proto__: null, toString: 7 }),
    () => nested(r.int(3000)),
  ])();
function nested(depth: number): unknown {
  let out: unknown = 1;
  for (let i = 0; i < depth; i++) out = i % 2 ? [out] : { a: out };
  return out;
}

/** Characters of the copies of a part, as a file has them. */
const MOST_COPIED = 16 << 20;

/** The value with one to three of its parts exchanged, removed, added or moved. */
export function mutatedValue(r: Random, good: unknown): unknown {
  const v = { root: structuredClone(good) };
  for (let n = 1 + r.int(3); n > 0; n--) change(r, v);
  return v.root;
}
function change(r: Random, root: { root: unknown }): void {
  // A random walk down: as likely to end at the top as deep inside.
  let at: Record<string, unknown> = root,
    key = 'root';
  for (;;) {
    const v = at[key];
    if (typeof v !== 'object' || v === null || r.int(6) === 0) break;
    const keys = Object.keys(v);
    if (keys.length === 0) break;
    at = v as Record<string, unknown>;
    key = r.pick(keys);
  }
  const kind = r.int(5);
  if (kind === 0 && at !== root) {
    if (Array.isArray(at)) at.splice(Number(key), 1);
    else delete at[key];
  } else if (kind === 1 && Array.isArray(at)) {
    // Copies of copies would be more than a text can hold; what is nested deeply is mostly indentation where a file
    // has it.
    const one = at[key as never] as unknown,
      most = Math.ceil(MOST_COPIED / ((JSON.stringify(one, null, 2) ?? '').length + 1));
    at.push(...Array.from({ length: Math.min(most, r.int(1000)) }, () => one));
  } else if (kind === 2)
    Object.defineProperty(at, Array.isArray(at) ? '0' : r.pick(['extra', '__proto__', 'type', '0', 'length']), {
      value: odd(r),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else if (kind === 3 && typeof at[key] === 'string') at[key] = textOf(r, String(at[key]));
  else at[key] = odd(r);
}
const textOf = (r: Random, s: string): string => mutatedBytes(r, Buffer.from(s)).toString('utf8');

/** JSON text, mutated as a value or as bytes. */
export function mutatedJson(r: Random, good: string): string {
  if (r.int(4) === 0) return mutatedBytes(r, Buffer.from(good)).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(good);
  } catch {
    return mutatedBytes(r, Buffer.from(good)).toString('utf8');
  }
  return JSON.stringify(mutatedValue(r, value)) ?? '';
}
/** A file by its name: JSON, a line of JSON lines, or bytes. */
export function mutatedFile(r: Random, name: string, good: Buffer): Buffer {
  if (name.endsWith('.json')) return Buffer.from(mutatedJson(r, good.toString('utf8')));
  if (!name.endsWith('.jsonl')) return mutatedBytes(r, good);
  const lines = good.toString('utf8').split('\n'),
    i = r.int(lines.length);
  lines[i] = mutatedJson(r, lines[i]!);
  return Buffer.from(lines.join('\n'));
}
