import { FileValue, type Value } from '../../../runtime/tasks/values.js';

/**
 * What each metric of ours is given and what it must say: the unit tests judge them, and a command compares them with
 * OSWorld's own evaluators (test/bench/osworld).
 */
export interface MetricCase {
  readonly metric: string;
  readonly what: string;
  readonly result: Value;
  readonly expected: Value | undefined;
  /** `throws`: the task file is wrong. */
  readonly score: number | 'throws';
  readonly options: Readonly<Record<string, unknown>>;
}
type Row = readonly [
  what: string,
  result: Value,
  expected: Value | undefined,
  score: number,
  options?: Record<string, unknown>,
];
type FaultRow = readonly [what: string, result: Value, expected: Value | undefined, options?: Record<string, unknown>];
export interface CaseTables {
  readonly cases: readonly MetricCase[];
  table(metric: string, rows: readonly Row[]): void;
  /** Wrong rules, gold files or options are faults, never scores. */
  faults(metric: string, rows: readonly FaultRow[]): void;
}
export function caseTables(): CaseTables {
  const cases: MetricCase[] = [];
  return {
    cases,
    table(metric, rows) {
      for (const [what, result, expected, score, options = {}] of rows)
        cases.push({ metric, what, result, expected, score, options });
    },
    faults(metric, rows) {
      for (const [what, result, expected, options = {}] of rows)
        cases.push({ metric, what, result, expected, score: 'throws', options });
    },
  };
}
export const file = (text: string | Buffer, name = 'f'): FileValue => new FileValue(name, Buffer.from(text));
export const notText = file(Buffer.from([0xff, 0xfe, 0x80]));
