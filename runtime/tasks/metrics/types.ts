import type { Dict, Value } from '../values.js';
import { decodeText, isDict, isFile } from '../values.js';

/**
 * A metric judges what a getter found. What the agent left behind may be anything: unreadable means score 0.
 * What the task says (rules, gold files, options) must be right: a metric throws on it, and that is a fault of the
 * verifier, never a score.
 */
export interface MetricInput {
  readonly result: Value;
  /** Undefined when the task has no `expected` here. */
  readonly expected: Value | undefined;
  readonly options: Readonly<Record<string, unknown>>;
}
/** `expected` and `found` are for people; without them the engine shows the values themselves. */
export interface Verdict {
  readonly score: number;
  readonly expected?: string;
  readonly found?: string;
}
export type Metric = (i: MetricInput) => Verdict | Promise<Verdict>;

export const pass = (ok: boolean, found?: string, expected?: string): Verdict => ({
  score: ok ? 1 : 0,
  ...(found === undefined ? {} : { found }),
  ...(expected === undefined ? {} : { expected }),
});
export const nothing = (found = 'nothing'): Verdict => ({ score: 0, found });

/** The rule dictionary of the task. */
export function rules(i: MetricInput): Dict {
  if (!isDict(i.expected)) throw new TypeError('the metric needs a rule as "expected"');
  return i.expected;
}
/** A field the rule must have. */
export function rule(i: MetricInput, key: string): Value {
  const r = rules(i);
  if (!Object.hasOwn(r, key)) throw new TypeError(`the rule has no "${key}"`);
  return r[key]!;
}
export function ruleList(i: MetricInput, key: string): readonly Value[] {
  const v = rules(i)[key] ?? [];
  if (!Array.isArray(v)) throw new TypeError(`"${key}" of the rule must be a list`);
  return v as readonly Value[];
}

/**
 * Files and output of an agent are read up to this size, which no task's right answer comes near. Larger ones are
 * judged 0, like anything else that cannot be read.
 */
export const MAX_TEXT_BYTES = 4 * 1024 * 1024;

/** Bytes of a picture or a song that are looked at, from its beginning. */
export const MAX_MEDIA_BYTES = 16 * 1024 * 1024;

/** Text of a result that must be a file; undefined when it is none, not text or too long. */
export const fileText = (v: Value | undefined): string | undefined =>
  isFile(v) && v.size <= MAX_TEXT_BYTES ? decodeText(v.data) : undefined;
/** Text of a result: of a file, or the output itself. */
export const textOf = (v: Value): string | undefined => (typeof v === 'string' ? v : fileText(v));
/** The same, read as Latin-1 where it is not UTF-8: then every file is text. */
export const anyText = (v: Value | undefined): string | undefined =>
  fileText(v) ??
  (isFile(v) && v.size <= MAX_TEXT_BYTES ? v.data.toString('latin1').replace(/\r\n?/g, '\n') : undefined);
/** The gold file is missing, not text or too long. */
export class NoGold extends TypeError {}
/** Text of a gold file; throws when it is not one. */
export function goldText(v: Value | undefined, read = fileText): string {
  const t = read(v);
  if (t === undefined) throw new NoGold('the gold file is missing, not text or too long');
  return t;
}
