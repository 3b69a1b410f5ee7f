import { describe, expect, it } from 'vitest';
import type { EventOf } from '../../../runtime/data/events.js';
import type { RunReader } from '../../../runtime/data/store/runStore.js';
import { evalPoint, evalPoints } from '../../../runtime/queries/overview.js';

type Eval = EventOf<'eval'> & { readonly at: number };
const good: Eval = {
  type: 'eval',
  at: 5,
  version: 2 as Eval['version'],
  episodes: 4,
  successes: 3,
  errors: 1,
  low: 0.3,
  high: 0.9,
  label: 'final',
  perFamily: { 'desk/a': { episodes: 4, successes: 3 } },
};

describe('evaluations of a journal', () => {
  it.each([
    { version: '1<meta>' },
    { errors: '<a href="https://evil.example">' },
    { episodes: Infinity },
    { successes: null },
    { low: [] },
    { at: undefined },
    { label: {} },
    { label: 'x'.repeat(1001) },
  ])('are numbers and a short name, or none: %j', (bad) => {
    expect(evalPoint({ ...good, ...bad } as unknown as Eval)).toBeUndefined();
    expect(evalPoint(good)).toMatchObject({ version: 2, perFamily: good.perFamily });
  });

  it('have so many families at most, each with numbers and a short name', () => {
    const named = (n: number): Eval['perFamily'] =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`f${i}`, { episodes: 1, successes: 0 }]));
    expect(Object.keys(evalPoint({ ...good, perFamily: named(50_000)! })!.perFamily)).toHaveLength(2000);
    const bad = { a: { episodes: '1', successes: 0 }, b: null, ['x'.repeat(1001)]: { episodes: 1, successes: 1 } };
    expect(evalPoint({ ...good, perFamily: bad as unknown as Eval['perFamily'] })!.perFamily).toEqual({});
    expect(evalPoint(good, false)!.perFamily).toEqual({});
  });

  it('in any number take bounded memory: the newest keep their families, and none is read twice', async () => {
    const perFamily = Object.fromEntries(
        Array.from({ length: 2000 }, (_, i) => [`${'x'.repeat(900)}${i}`, { episodes: 1, successes: 0 }]),
      ),
      reads: number[] = [],
      run = {
        index: { query: () => Promise.resolve(Array.from({ length: 80 }, (_, position) => ({ position }))) },
        at: (position: number) => {
          reads.push(position);
          return Promise.resolve({
            ...good,
            perFamily,
            at: position,
            ...(position === 7 ? { version: 'none' } : {}),
          });
        },
      } as unknown as RunReader,
      points = await evalPoints(run),
      with_ = points.map((p) => Object.keys(p.perFamily).length > 0);
    expect(points.map((p) => p.at)).toEqual(Array.from({ length: 80 }, (_, i) => i).filter((i) => i !== 7));
    expect(with_.at(-1)).toBe(true);
    expect(with_[0]).toBe(false);
    expect(with_.indexOf(true)).toBe(with_.lastIndexOf(false) + 1);
    expect(await evalPoints(run)).toEqual(points);
    expect(reads).toHaveLength(80);
  });
});
