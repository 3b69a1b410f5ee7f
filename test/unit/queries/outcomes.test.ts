import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { outcomes, type Outcomes } from '../../../runtime/queries/outcomes.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { syntheticEvents } from '../../helpers/data/syntheticEvents.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

/** [sequence number, end, family, success, steps, reward] as the index gives them. */
type Row = readonly [number, number, string, number, number, number];
/** With the names of their families, as lists. */
const plain = ({ families, family, ...o }: Outcomes): object => ({
  family: Array.from(family, (f) => families[f]),
  ...Object.fromEntries(Object.entries(o).map(([k, v]) => [k, [...v]])),
});

/** A reader of these rows that counts how many it was given. */
function reader(rows: Row[]): { readonly run: RunReader; given: number; fails: boolean; again: number | undefined } {
  const r = { run: undefined as unknown as RunReader, given: 0, fails: false, again: undefined as number | undefined };
  r.run = {
    index: {
      columns: (_: string, [after]: readonly number[]) => {
        if (r.fails) return Promise.reject(new Error('closed'));
        const newer = rows.filter(([seq]) => seq > after!);
        r.given += newer.length;
        return Promise.resolve([
          ...[0, 1, 2, 3, 4, 5].map((i) => newer.map((x) => x[i])),
          newer.map(() => r.again ?? null),
        ]);
      },
    },
  } as unknown as RunReader;
  return r;
}

describe('outcomes of a run', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-outcomes-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('are what a run recorded, in the order in which its rollouts ended', async () => {
    const { told } = await writeSyntheticRun(join(dir, 'run'), { groups: 6, size: 4, steps: 3, running: 1 }),
      run = await RunReader.open(join(dir, 'run'), { index: 'local' }),
      ended = told
        .filter((t) => t.outcome === 'success' || t.outcome === 'failure')
        .sort((a, b) => a.endedAt - b.endedAt || (a.id < b.id ? -1 : 1));
    expect(ended.length).toBeGreaterThan(12);
    expect(plain(await outcomes(run))).toEqual({
      at: ended.map((t) => t.endedAt),
      family: ended.map((t) => t.family),
      success: ended.map((t) => (t.outcome === 'success' ? 1 : 0)),
      score: ended.map((t) => t.reward),
      steps: ended.map((t) => t.steps),
    });
    await run.close();
  });

  it('are read once each, and are the same however often one asks, whatever the clock did', async () => {
    const end = fc.record({ at: fc.integer({ min: 0, max: 50 }), ask: fc.boolean(), again: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(end, { minLength: 1, maxLength: 30 }), async (ends) => {
        const rows: Row[] = [],
          often = reader(rows);
        let repeated = false;
        for (const [i, e] of ends.entries()) {
          repeated ||= e.again && i > 0;
          if (e.again && i > 0) {
            rows.pop();
            often.again = i;
          }
          rows.push([i, e.at, 'a', i % 2, i, i % 2]);
          if (e.ask) await Promise.all([outcomes(often.run), outcomes(often.run)]);
        }
        const read = await outcomes(often.run);
        expect(plain(read)).toEqual(plain(await outcomes(reader(rows).run)));
        expect([...read.at]).toEqual([...read.at].sort((a, b) => a - b));
        if (!repeated) expect(often.given).toBe(rows.length);
      }),
      { numRuns: 200 },
    );
  });

  it('have one that is recorded again once, as it was recorded last', async () => {
    const index = await MemoryIndex.open({ bound: Infinity }),
      all = [...syntheticEvents({ rollouts: 40, seed: 7 })].flat(),
      place = all.findIndex((e) => e.type === 'trajectory.recorded' && e.head.outcome.kind === 'success'),
      first = all[place]!;
    if (first.type !== 'trajectory.recorded') throw new Error('none');
    index.write(all);
    const before = await outcomes(index.run),
      n = before.at.length,
      at = before.at.at(-1)! + 5;
    index.write([{ ...first, seq: 1e6, head: { ...first.head, steps: 77, endedAt: at } }]);
    const after = plain(await outcomes(index.run));
    expect(after).toMatchObject({ at: { length: n, [n - 1]: at }, steps: { [n - 1]: 77 } });
    expect(after).toEqual(plain(await outcomes({ ...index.run } as RunReader)));
    index.close();
  });

  it('are not lost to a reading that failed', async () => {
    const rows: Row[] = [[1, 100, 'a', 1, 4, 1]],
      r = reader(rows);
    await outcomes(r.run);
    rows.push([2, 90, 'b', 0, 2, 0.5]);
    r.fails = true;
    await expect(outcomes(r.run)).rejects.toThrow('closed');
    r.fails = false;
    expect(plain(await outcomes(r.run))).toEqual({
      at: [90, 100],
      family: ['b', 'a'],
      success: [0, 1],
      score: [0.5, 1],
      steps: [2, 4],
    });
  });
});
