import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { outcomes } from '../../../runtime/queries/outcomes.js';
import { writeSyntheticRun } from '../../helpers/data/syntheticRun.js';

/** [sequence number, rollout, end, family, success, steps, reward] as the index gives them. */
type Row = readonly [number, string, number, string, number, number, number];

/** A reader of these rows that counts how many it was given. */
function reader(rows: Row[]): { readonly run: RunReader; given: number; fails: boolean } {
  const r = { run: undefined as unknown as RunReader, given: 0, fails: false };
  r.run = {
    index: {
      columns: (_: string, [after]: readonly number[]) => {
        if (r.fails) return Promise.reject(new Error('closed'));
        const newer = rows.filter(([seq]) => seq > after!);
        r.given += newer.length;
        return Promise.resolve([0, 1, 2, 3, 4, 5, 6].map((i) => newer.map((x) => x[i])));
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
    expect(await outcomes(run)).toEqual({
      at: ended.map((t) => t.endedAt),
      family: ended.map((t) => t.family),
      success: ended.map((t) => t.outcome === 'success'),
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
          rows.push([i, `r${e.again && i > 0 ? i - 1 : i}`, e.at, 'a', i % 2, i, i % 2]);
          if (e.ask) await Promise.all([outcomes(often.run), outcomes(often.run)]);
        }
        const read = await outcomes(often.run);
        expect(read).toEqual(await outcomes(reader(rows).run));
        expect(read.at).toEqual([...read.at].sort((a, b) => a - b));
        if (!repeated) expect(often.given).toBe(rows.length);
      }),
      { numRuns: 200 },
    );
  });

  it('are not lost to a reading that failed', async () => {
    const rows: Row[] = [[1, 'r1', 100, 'a', 1, 4, 1]],
      r = reader(rows);
    await outcomes(r.run);
    rows.push([2, 'r2', 90, 'b', 0, 2, 0.5]);
    r.fails = true;
    await expect(outcomes(r.run)).rejects.toThrow('closed');
    r.fails = false;
    expect(await outcomes(r.run)).toEqual({
      at: [90, 100],
      family: ['b', 'a'],
      success: [false, true],
      score: [0.5, 1],
      steps: [2, 4],
    });
  });
});
