/**
 * All trajectories of a run as columns of numbers: 100,000 of them are filtered in milliseconds and sorted in tens of
 * them, which rows of objects, or the daemon's index, are not. Pure.
 */
import { ledgerPlace } from '../dashboard/flow.js';
import { tableFlags } from '../../runtime/protocol/shared.js';
import type { CodedColumn, RangeColumn, TrajectoryColumns, TrajectoryRow } from '../../runtime/protocol/types.js';

/** Distinct texts in the order in which they came. */
export class Dictionary {
  readonly values: string[] = [];
  readonly #places = new Map<string, number>();
  place(value: string): number {
    let i = this.#places.get(value);
    if (i === undefined) {
      i = this.values.push(value) - 1;
      this.#places.set(value, i);
    }
    return i;
  }
  find(value: string): number | undefined {
    return this.#places.get(value);
  }
}

export const codedColumns = ['task', 'family', 'instruction', 'outcome', 'origin', 'ledger'] as const;
export type Coded = (typeof codedColumns)[number];
const numberColumns = [
  'steps',
  'reward',
  'entropy',
  'advantage',
  'weight',
  'versionMin',
  'versionMax',
  'update',
  'startedAt',
  'endedAt',
] as const;
export type NumberColumn = (typeof numberColumns)[number];

const first = 1024;

/** NaN in a column of numbers: there is none. */
export class Rows {
  length = 0;
  readonly rollout: string[] = [];
  readonly words: Readonly<Record<Coded, Dictionary>>;
  coded: Record<Coded, Uint32Array>;
  numbers: Record<NumberColumn, Float64Array>;
  flags = new Uint8Array(first);
  /** Whether nobody works on the run. */
  over = false;
  /** Counts changes, for what is derived and kept. */
  revision = 0;
  /** Newest first are those of the index; what began since is behind them. */
  readonly #places = new Map<string, number>();

  constructor() {
    this.words = record(codedColumns, () => new Dictionary());
    this.coded = record(codedColumns, () => new Uint32Array(first));
    this.numbers = record(numberColumns, () => new Float64Array(first));
  }

  place(rollout: string): number | undefined {
    return this.#places.get(rollout);
  }
  word(c: Coded, i: number): string {
    return this.words[c].values[this.coded[c][i]!]!;
  }
  has(i: number, flag: keyof typeof tableFlags): boolean {
    return (this.flags[i]! & tableFlags[flag]) !== 0;
  }
  /** When it ended, or began where it goes on. */
  time(i: number): number {
    const end = this.numbers.endedAt[i]!;
    return Number.isNaN(end) ? this.numbers.startedAt[i]! : end;
  }
  /** The number that a range is about; of a version the newest that acted. */
  number(c: RangeColumn, i: number): number {
    if (c === 'time') return this.time(i);
    // The update made the version after the one that it began from.
    if (c === 'lag') return this.numbers.update[i]! - 1 - this.numbers.versionMin[i]!;
    return this.numbers[c === 'version' ? 'versionMax' : c][i]!;
  }

  /** Somebody works on the run, or nobody does any more. */
  setOver(over: boolean): void {
    if (over === this.over) return;
    this.over = over;
    this.revision++;
  }
  /** A part of the run; rows that are known already are not taken twice, but `again` brought up to date. */
  append(c: TrajectoryColumns, again = false): void {
    this.#room(this.length + c.rollout.length);
    const places = record(codedColumns, (k) => placesOf(this.words[k], c[k]));
    c.rollout.forEach((id, k) => {
      const known = this.#places.get(id),
        i = known ?? this.length++;
      if (known !== undefined && !again) return;
      if (known === undefined) {
        this.#places.set(id, i);
        this.rollout.push(id);
      }
      for (const name of codedColumns) this.coded[name][i] = places[name][c[name].at[k]!]!;
      for (const name of numberColumns) this.numbers[name][i] = c[name][k] ?? NaN;
      this.flags[i] = c.flags[k] ?? 0;
    });
    this.revision++;
  }

  /** Adds or changes a rollout that began, or ended, while the table is looked at. */
  put(r: TrajectoryRow): void {
    let i = this.#places.get(r.rollout);
    if (i === undefined) {
      this.#room(this.length + 1);
      i = this.length++;
      this.#places.set(r.rollout, i);
      this.rollout.push(r.rollout);
      for (const name of numberColumns) this.numbers[name][i] = NaN;
    }
    const at = i,
      code = (name: Coded, value: string): void => {
        this.coded[name][at] = this.words[name].place(value);
      },
      number = (name: NumberColumn, value: number | undefined): void => {
        if (value !== undefined) this.numbers[name][at] = value;
      };
    code('task', r.task);
    code('family', r.family);
    code('instruction', r.instruction);
    code('outcome', r.outcome);
    code('origin', r.provenance);
    code('ledger', ledgerPlace(r));
    number('steps', r.steps);
    number('reward', r.reward);
    number('entropy', r.entropy);
    number('versionMin', r.versions?.[0]);
    number('versionMax', r.versions?.[1]);
    number('startedAt', r.startedAt);
    number('endedAt', r.endedAt);
    this.flags[at] =
      (this.flags[at]! & ~(tableFlags.truncated | tableFlags.assisted)) |
      (r.truncated ? tableFlags.truncated : 0) |
      (r.assisted ? tableFlags.assisted : 0);
    this.revision++;
  }
  /** Adds steps to a running rollout. */
  stepped(rollout: string, steps: number): void {
    const i = this.#places.get(rollout);
    if (i === undefined || this.numbers.steps[i] === steps) return;
    this.numbers.steps[i] = steps;
    this.revision++;
  }
  /** The ledger moved it. */
  moved(rollout: string, place: string, known: { readonly advantage?: number; readonly update?: number } = {}): void {
    const i = this.#places.get(rollout);
    if (i === undefined) return;
    this.coded.ledger[i] = this.words.ledger.place(place);
    if (known.advantage !== undefined) this.numbers.advantage[i] = known.advantage;
    if (known.update !== undefined) this.numbers.update[i] = known.update;
    this.revision++;
  }

  #room(n: number): void {
    if (n <= this.flags.length) return;
    const size = Math.max(n, this.flags.length * 2);
    this.coded = record(codedColumns, (k) => grown(this.coded[k], new Uint32Array(size)));
    this.numbers = record(numberColumns, (k) => grown(this.numbers[k], new Float64Array(size)));
    this.flags = grown(this.flags, new Uint8Array(size));
  }
}

const record = <K extends string, V>(keys: readonly K[], make: (key: K) => V): Record<K, V> =>
  Object.fromEntries(keys.map((k) => [k, make(k)])) as Record<K, V>;
const placesOf = (words: Dictionary, c: CodedColumn): number[] => c.values.map((v) => words.place(v));
function grown<A extends { set(a: A): void }>(old: A, larger: A): A {
  larger.set(old);
  return larger;
}
