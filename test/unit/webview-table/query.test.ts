import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tableFilterOf, tableFlags, savedTableFiltersOf } from '../../../runtime/protocol/table.js';
import type { TableFilter, TrajectoryColumns } from '../../../runtime/protocol/types.js';
import { countsOf, fits, Listing, ordered, type SortColumn } from '../../../webview/table/query.js';
import { Rows } from '../../../webview/table/rows.js';

interface Plain {
  readonly task: string;
  readonly family: string;
  readonly outcome: 'success' | 'failure' | 'error';
  readonly ledger: string;
  readonly steps: number;
  readonly reward: number | null;
  readonly advantage: number | null;
  readonly version: number | null;
  readonly endedAt: number | null;
  readonly flags: number;
}
const plain: fc.Arbitrary<Plain> = fc.record({
  task: fc.constantFrom('desk/a#1', 'desk/a#10', 'desk/b#2'),
  family: fc.constantFrom('desk/a', 'desk/b'),
  outcome: fc.constantFrom('success', 'failure', 'error'),
  ledger: fc.constantFrom('trained', 'retired:error', ''),
  steps: fc.nat(30),
  reward: fc.option(fc.constantFrom(0, 0.5, 1)),
  advantage: fc.option(fc.double({ min: -2, max: 2, noNaN: true })),
  version: fc.option(fc.nat(9)),
  endedAt: fc.option(fc.nat(1000)),
  flags: fc.nat(31),
});
function columns(all: readonly Plain[], from = 0): TrajectoryColumns {
  const coded = <V extends string>(of: (p: Plain) => V) => {
      const values = [...new Set(all.map(of))];
      return { values, at: all.map((p) => values.indexOf(of(p))) };
    },
    none = all.map(() => null);
  return {
    rollout: all.map((_, i) => `r${from + i}`),
    task: coded((p) => p.task),
    family: coded((p) => p.family),
    instruction: coded((p) => `Do ${p.task} well`),
    outcome: coded((p) => p.outcome),
    origin: coded(() => 'rollout' as const),
    ledger: coded((p) => p.ledger),
    steps: all.map((p) => p.steps),
    reward: all.map((p) => p.reward),
    entropy: none,
    advantage: all.map((p) => p.advantage),
    weight: none,
    versionMin: all.map((p) => p.version),
    versionMax: all.map((p) => (p.version === null ? null : p.version + 1)),
    update: none,
    startedAt: none,
    endedAt: all.map((p) => p.endedAt),
    flags: all.map((p) => p.flags),
  };
}
function rowsOf(all: readonly Plain[]): Rows {
  const rows = new Rows(),
    half = Math.floor(all.length / 2);
  rows.append(columns(all.slice(0, half)));
  rows.append(columns(all.slice(half), half));
  return rows;
}
const filters: fc.Arbitrary<TableFilter> = fc
  .record(
    {
      outcome: fc.subarray(['success', 'failure', 'error'], { minLength: 1 }),
      ledger: fc.subarray(['trained', 'retired:error', ''], { minLength: 1 }),
      steps: fc.record({ min: fc.nat(30), max: fc.nat(30) }, { requiredKeys: [] }),
      reward: fc.constant({ min: 0.5 }),
      version: fc.record({ min: fc.nat(9), max: fc.nat(9) }, { requiredKeys: [] }),
      text: fc.constantFrom('a#1', 'well b', 'R3', 'nothing'),
      flags: fc.record({ truncated: fc.boolean(), reviewed: fc.boolean() }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  )
  .map((f) => tableFilterOf(f));

/** The same said row by row. */
function wanted(p: Plain, i: number, f: TableFilter): boolean {
  const within = (x: number | null, r?: { min?: number; max?: number }): boolean =>
      r === undefined || (x !== null && x >= (r.min ?? -Infinity) && x <= (r.max ?? Infinity)),
    has = (bit: number): boolean => (p.flags & bit) !== 0;
  return (
    (f.outcome?.includes(p.outcome) ?? true) &&
    (f.ledger?.includes(p.ledger) ?? true) &&
    within(p.steps, f.steps) &&
    within(p.reward, f.reward) &&
    (f.version === undefined ||
      (p.version !== null &&
        p.version + 1 >= (f.version.min ?? -Infinity) &&
        p.version <= (f.version.max ?? Infinity))) &&
    (f.text ?? '')
      .toLowerCase()
      .split(' ')
      .every((w) => `${p.task}\n${`Do ${p.task} well`}\nr${i}`.toLowerCase().includes(w)) &&
    (f.flags?.truncated === undefined || f.flags.truncated === has(tableFlags.truncated)) &&
    (f.flags?.reviewed === undefined || f.flags.reviewed === has(tableFlags.reviewed))
  );
}

describe('filters and orders of the table', () => {
  it('a filter keeps the rows that it says, whatever they are', () => {
    fc.assert(
      fc.property(fc.array(plain, { maxLength: 60 }), filters, (all, f) => {
        expect([...fits(rowsOf(all), f)].map(Boolean)).toEqual(all.map((p, i) => wanted(p, i, f)));
      }),
    );
  });

  it('an order has every row once, values in order, and rows without one last', () => {
    const keys: Partial<Record<SortColumn, (p: Plain) => number | null>> = {
      steps: (p) => p.steps,
      reward: (p) => p.reward,
      advantage: (p) => p.advantage,
      version: (p) => (p.version === null ? null : p.version + 1),
      time: (p) => p.endedAt,
    };
    fc.assert(
      fc.property(
        fc.array(plain, { maxLength: 60 }),
        fc.constantFrom(...(Object.keys(keys) as SortColumn[])),
        fc.boolean(),
        (all, by, descending) => {
          const order = [...ordered(rowsOf(all), { by, descending })],
            found = order.map((i) => keys[by]!(all[i]!)),
            values = found.filter((x): x is number => x !== null);
          expect([...order].sort((a, b) => a - b)).toEqual(all.map((_, i) => i));
          expect(values).toEqual([...values].sort((a, b) => (descending ? b - a : a - b)));
          expect(found.slice(0, values.length)).toEqual(values);
        },
      ),
    );
  });

  it('words are put in the order people read: a#1, a#2, a#10', () => {
    const rows = rowsOf(
      ['desk/a#10', 'desk/b#2', 'desk/a#1'].map((task) => ({
        task,
        family: 'desk/a',
        outcome: 'success',
        ledger: '',
        steps: 1,
        reward: null,
        advantage: null,
        version: null,
        endedAt: null,
        flags: 0,
      })),
    );
    expect([...ordered(rows, { by: 'task', descending: false })]).toEqual([2, 0, 1]);
    expect([...ordered(rows, { by: 'task', descending: true })]).toEqual([1, 0, 2]);
  });

  it('counts of a column leave out what it filters by itself, so that its other values can be added', () => {
    fc.assert(
      fc.property(fc.array(plain, { maxLength: 40 }), filters, (all, f) => {
        const { outcome: _own, ...rest } = f;
        for (const { value, n } of countsOf(rowsOf(all), f, 'outcome'))
          expect(n).toBe(all.filter((p, i) => p.outcome === value && wanted(p, i, rest)).length);
      }),
    );
  });

  it('a listing follows rows that change', () => {
    const rows = rowsOf([]),
      listing = new Listing(),
      sort = { by: 'time', descending: true } as const,
      row = (rollout: string, endedAt: number) =>
        ({
          rollout,
          task: 'desk/a#1',
          family: 'desk/a',
          instruction: '',
          outcome: 'success',
          provenance: 'rollout',
          state: 'recorded',
          steps: 1,
          cap: 9,
          endedAt,
        }) as const;
    rows.put(row('x', 1));
    rows.put(row('y', 2));
    expect([...listing.list(rows, {}, sort)].map((i) => rows.rollout[i])).toEqual(['y', 'x']);
    rows.put(row('x', 3));
    expect([...listing.list(rows, {}, sort)].map((i) => rows.rollout[i])).toEqual(['x', 'y']);
    rows.moved('y', 'retired:stale', { advantage: 0.5 });
    expect([...listing.list(rows, { ledger: ['retired:stale'] }, sort)].map((i) => rows.rollout[i])).toEqual(['y']);
  });
});

describe('stored filters', () => {
  it('anything at all becomes a filter or nothing, and a filter stays what it is', () => {
    fc.assert(
      fc.property(fc.anything(), (x) => {
        const f = tableFilterOf(x);
        expect(tableFilterOf(JSON.parse(JSON.stringify(f)))).toEqual(f);
        savedTableFiltersOf(x);
        savedTableFiltersOf([x, { name: 'n', filter: x }]);
      }),
    );
    fc.assert(
      fc.property(filters, (f) => {
        expect(tableFilterOf(f)).toEqual(f);
      }),
    );
    expect(savedTableFiltersOf([{ name: 'Faults', filter: { outcome: ['error'], evil: 1 } }, { name: '' }, 7])).toEqual(
      [{ name: 'Faults', filter: { outcome: ['error'] } }],
    );
  });
  it('the lag is how many updates the oldest step was behind when it was trained; who was not trained has none', () => {
    const some = (version: number | null): Plain => ({
        task: 'desk/a#1',
        family: 'desk/a',
        outcome: 'success',
        ledger: 'trained',
        steps: 3,
        reward: 1,
        advantage: 0.5,
        version,
        endedAt: 5,
        flags: 0,
      }),
      rows = new Rows();
    rows.append({ ...columns([some(4), some(3), some(3), some(null)]), update: [5, 5, null, 5] });
    const at = (lag: number): number[] => [...fits(rows, { lag: { min: lag, max: lag } })];
    expect(at(0)).toEqual([1, 0, 0, 0]);
    expect(at(1)).toEqual([0, 1, 0, 0]);
    expect(tableFilterOf({ lag: { min: 1, max: 1 } })).toEqual({ lag: { min: 1, max: 1 } });
  });
});
