import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { poolInjection } from '../../../runtime/data/curation/poolInjection.js';
import { packSteps, unpackSteps } from '../../../runtime/data/store/stepPack.js';
import { BEGUN, JUDGED } from '../../../runtime/data/store/totals.js';
import { ledgerFromIndex } from '../../../runtime/queries/overview.js';
import { outcomes, type Outcomes } from '../../../runtime/queries/outcomes.js';
import { timelineOf } from '../../../runtime/queries/timeline.js';
import { MemoryIndex } from '../../helpers/data/memoryIndex.js';
import { syntheticEvents } from '../../helpers/data/syntheticEvents.js';

const plain = ({ families, family, ...o }: Outcomes): object => ({
  ...o,
  family: Array.from(family, (f) => families[f]),
});

/**
 * A thinned curve begins, ends and peaks as the whole one does, its newest values are all there, and what its records
 * say can be read: how many values are gone.
 */
function sameCurves(small: MemoryIndex, whole: MemoryIndex): number {
  const curve = (i: MemoryIndex, name: unknown): number[][] =>
    i.rows.all('SELECT seq, value FROM metrics WHERE name = ? ORDER BY seq', [String(name)]) as number[][];
  let gone = 0;
  for (const [name] of whole.rows.all('SELECT DISTINCT name FROM metrics')) {
    const all = curve(whole, name),
      left = curve(small, name),
      known = new Map(all as [number, number][]);
    gone += all.length - left.length;
    for (const [seq, value] of left) expect(known.get(seq!)).toBe(value);
    expect(left[0]).toEqual(all[0]);
    expect(left.slice(-4)).toEqual(all.slice(-4));
    for (const most of [Math.min, Math.max])
      expect(most(...left.map(([, v]) => v!))).toBe(most(...all.map(([, v]) => v!)));
  }
  const places = (i: MemoryIndex): number[] =>
    [
      ...i.rows
        .all('SELECT positions FROM past_metrics')
        .flatMap(([p]) => [...new Float64Array(Uint8Array.from(p as Uint8Array).buffer)]),
      ...i.rows.all("SELECT position FROM events WHERE type = 'metrics'").map(([p]) => Number(p)),
    ].sort((a, b) => a - b);
  expect(places(small)).toEqual(places(whole));
  return gone;
}

/** Everything that the product says of a run as a whole. */
async function totals({ run }: MemoryIndex): Promise<unknown> {
  const injected = (await poolInjection.charts[0]!.read(run as never, {} as never)) as unknown as {
    readonly value: number[];
  };
  return {
    ledger: await ledgerFromIndex(run),
    begun: await run.index.query(BEGUN),
    judged: await run.index.query(`SELECT * FROM (${JUDGED}) ORDER BY family, outcome`),
    outcomes: plain(await outcomes(run)),
    timeline: await timelineOf(run),
    caps: await run.index.query(
      'SELECT family, cap, MAX(opened_at) AS at FROM (SELECT family, cap, opened_at FROM groups UNION ALL SELECT family, cap, opened_at FROM past_groups) GROUP BY family ORDER BY family',
    ),
    updates: await run.index.query(
      'SELECT SUM(n) AS n, SUM(steps) AS steps, SUM(tokens) AS tokens, SUM(mute) AS mute FROM (SELECT n, steps, tokens, mute FROM past_updates UNION ALL SELECT 1, steps, tokens, mute FROM batches WHERE trained_at IS NOT NULL)',
    ),
    version: await run.index.query(
      'SELECT MAX(version) AS v, MAX(seq) AS seq, COUNT(DISTINCT name) AS names FROM metrics',
    ),
    newest: await run.index.query("SELECT position FROM events WHERE type = 'metrics' ORDER BY seq DESC LIMIT 4"),
    injected: injected.value.at(-1) ?? 0,
    lanes: await run.index.query('SELECT * FROM lanes ORDER BY lane'),
    busy: await run.index.query(
      'SELECT lane, what, ROUND(SUM(ms)) AS ms FROM (SELECT lane, what, ms FROM span_minutes UNION ALL SELECT lane, what, ms FROM span_hours) GROUP BY lane, what ORDER BY lane, what',
    ),
  };
}

describe('an index that has a bound', () => {
  it('says the same of a run as a whole as one without, whatever went', async () => {
    let trimmed = 0,
      thinned = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.nat(),
          rollouts: fc.integer({ min: 50, max: 500 }),
          size: fc.integer({ min: 2, max: 9 }),
          steps: fc.integer({ min: 1, max: 6 }),
          ms: fc.constantFrom(100, 20_000, 200_000),
          processes: fc.integer({ min: 1, max: 3 }),
          successes: fc.integer({ min: 1, max: 40 }),
          bound: fc.constantFrom(0, 250_000, 400_000),
          ask: fc.boolean(),
          updates: fc.integer({ min: 4, max: 12 }),
          metrics: fc.integer({ min: 1, max: 5 }),
        }),
        async ({ successes, bound, ask, updates, ...journal }) => {
          const whole = await MemoryIndex.open({ bound: Infinity }),
            small = await MemoryIndex.open({ bound, successes, updates });
          let k = 0;
          for (const batch of syntheticEvents(journal)) {
            whole.write(batch);
            small.write(batch);
            // A window that is open has read some of them before they went.
            if (ask && k++ % 3 === 0) await outcomes(small.run);
          }
          expect(await totals(small)).toEqual(await totals(whole));
          expect(plain(await outcomes({ ...small.run } as never))).toEqual(plain(await outcomes(whole.run)));
          thinned += sameCurves(small, whole);
          expect((await ledgerFromIndex(small.run)).closes).toBe(true);
          trimmed += small.rows.number('SELECT COUNT(*) FROM past');
          // What is still needed is there.
          const needed =
            "SELECT id FROM rollouts WHERE state NOT IN ('trained', 'retired') OR human > 0 OR id IN (SELECT rollout FROM pool) ORDER BY id";
          expect(small.rows.all(needed)).toEqual(whole.rows.all(needed));
          whole.close();
          small.close();
        },
      ),
      { numRuns: 15 },
    );
    expect(trimmed).toBeGreaterThan(0);
    expect(thinned).toBeGreaterThan(0);
  });

  it('steps are read back as they were packed', () => {
    const step = fc.record({
      gap: fc.integer({ min: 1, max: 300 }),
      position: fc.integer({ min: 0, max: 2 ** 51 }),
      entropy: fc.option(fc.float({ noNaN: true }), { nil: undefined }),
      version: fc.option(fc.nat(), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        let index = -1;
        const all = steps.map(({ gap, ...s }) => ({ index: (index += gap), ...s }));
        expect(
          unpackSteps(packSteps(all.map((s) => [s.index, s.position, s.entropy ?? null, s.version ?? null]))),
        ).toEqual(all);
      }),
    );
    fc.assert(fc.property(fc.uint8Array(), (bytes) => unpackSteps(bytes).length <= bytes.length));
  });
});
