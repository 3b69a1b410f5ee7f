import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { dataConfig } from '../../../runtime/data/fromConfig.js';
import { PUBLISHED, REGIMES, RELAUNCHED, VARIANTS } from '../../bench/schedule/arrangements.js';
import { runLists } from '../../bench/schedule/lists.js';
import type { Arrangement, Simulation } from '../../bench/schedule/simulate.js';
import { dataConfigOf, simulate } from '../../bench/schedule/simulate.js';
import type { Workload } from '../../bench/schedule/workload.js';
import { Traces, loadWorkload, tasksOf } from '../../bench/schedule/workload.js';

const base: Workload = {
  ...loadWorkload('env-bound'),
  desktops: 8,
  hours: 0.3,
  warmup: 0.1,
  tasks: { kind: 'even', count: 12, from: 0.3, to: 0.7 },
  batchGroups: 2,
  rollouts: 4,
};
const [, , , D] = REGIMES as readonly [Arrangement, Arrangement, Arrangement, Arrangement];
const sum = (r: Readonly<Partial<Record<string, number>>>): number =>
  Object.values(r).reduce<number>((a, b) => a + (b ?? 0), 0);

function closes({ stats: { ledger: l, stepLedger: s } }: Simulation): void {
  expect(l.trained + l.inFlight + sum(l.retired)).toBe(l.generated);
  expect(s.trained + s.masked + s.human + s.inFlight + sum(s.retired)).toBe(s.generated);
}

/** X <= X*, and no resource gives more than it has. */
function withinTheBound({ measured: m }: Simulation): void {
  expect(m.ratio).toBeLessThanOrEqual(1 + 1e-9);
  expect(m.rate).toBeLessThanOrEqual(m.bound * (1 + 1e-9));
  for (const share of Object.values(m.shares)) expect(share).toBeLessThanOrEqual(1 + 1e-9);
}
const WORKLOADS = readdirSync('test/bench/schedule/workloads')
  .filter((f) => f !== 'osworldRates.json')
  .map((f) => f.replace(/\.json$/, ''));

describe('the bound X*', () => {
  it.each(WORKLOADS)('is one on %s in every regime, however short the run', async (name) => {
    const w = loadWorkload(name),
      large = w.desktops > 100;
    for (const [i, a] of (large ? [...REGIMES, RELAUNCHED, PUBLISHED] : REGIMES).entries())
      for (const [hours, warmup] of large
        ? [[0.15, 0.1]]
        : [
            [0.2, 0.2],
            [0.02, 0.1],
          ])
        withinTheBound(await simulate({ ...w, hours: hours!, warmup: warmup! }, a, 10 + i));
  });

  it('is N/T, G mu/L and the rate of the trainer where nothing varies', async () => {
    // Every rollout has 10 steps (mean 10, no spread): T = 20 + 10 (3 + 1) + 5 = 65 s on each of 8 desktops.
    const even = { ...base, spread: 0, length: { kind: 'lognormal', mean: 10, sigma: 0 }, hours: 4 } as const,
      { bounds } = (await simulate(even, D, 1)).measured;
    expect(bounds.desktops / (8 / 65)).toBeCloseTo(1, 2);
    expect(bounds.replicas / ((even.replicas * even.depth) / (even.decide * 10))).toBeCloseTo(1, 2);
    // One update per rollout and nothing per action: what it takes is counted per update.
    const slow = { ...even, trainAction: 0, trainUpdate: 600, hours: 3 },
      trained = (await simulate(slow, D, 1)).measured;
    expect(trained.ratio).toBeGreaterThan(0.95);
    expect(trained.ratio).toBe(trained.shares.trainer);
    expect(trained.bounds.trainer).toBeCloseTo(trained.rate / (trained.updatesPerHour / 6), 1);
  });

  it('counts what failed against the scheduler, not for it', async () => {
    const faulty = { ...base, hours: 1, faults: 0.5 },
      { ratio } = (await simulate(faulty, D, 1)).measured,
      sound = (await simulate({ ...faulty, faults: 0 }, D, 1)).measured.ratio;
    expect(ratio).toBeLessThan(sound - 0.15);
  });
});

describe('simulated runs', () => {
  it('have the options of a run file that says nothing, but for the sizes of the workload', () => {
    const shipped = dataConfig(parseRunFile({}));
    const { dynamicRollouts, dynamicLength, groupFilter, staleness, planner, ...rest } = dataConfigOf(base, D, 1),
      { dynamicRollouts: n, dynamicLength: l, groupFilter: f, staleness: s, planner: p, ...others } = shipped;
    expect(rest).toEqual(others);
    expect(dynamicRollouts).toEqual({ ...n, max: base.rollouts });
    expect(dynamicLength).toEqual({ ...l, global: base.cap });
    expect(groupFilter).toEqual({ ...f, maxSize: base.rollouts });
    expect(planner).toEqual({ ...p, seed: 1 });
    expect(staleness).toEqual({
      ...s,
      perUpdate: base.batchGroups * base.rollouts,
      groupsPerUpdate: base.batchGroups,
    });
  });

  it('use the experience pool: a group whose rollouts all failed gets an earlier success', async () => {
    const hard = { ...base, hours: 1, tasks: { kind: 'even', count: 6, from: 0.05, to: 0.4 } } as const,
      without = VARIANTS.find((v) => v.name === 'no pool')!;
    const [on, off] = [await simulate(hard, D, 1), await simulate(hard, without, 1)];
    expect(on.measured.injections).toBeGreaterThan(0);
    expect(on.stats.pool.entries).toBeGreaterThan(0);
    expect(off.measured.injections).toBe(0);
    expect(off.measured).not.toEqual(on.measured);
  });

  it('of one list roll out and train the same in every regime; only the time differs', async () => {
    const w = { ...base, desktops: 16, trainAction: 0.05 },
      lists = await runLists(w, REGIMES, [1, 2], 12, (_, s) => {
        closes(s);
        withinTheBound(s);
        expect(s.stats.ledger).toMatchObject({ generated: 12 * w.rollouts, inFlight: 0 });
      });
    expect(new Set(lists.rows.map((r) => r.trainedRollouts)).size).toBe(1);
    const [a, , , d] = lists.rows.map((r) => r.hours.mean);
    expect(d).toBeLessThan(a!);
    expect(lists.ratio.value).toBeGreaterThan(1);
    expect(lists.ratio.value).toBeLessThanOrEqual(lists.ratio.most * (1 + 1e-9));
  });

  it('are the same for the same seed and differ for another', async () => {
    const [one, two, other] = [await simulate(base, D, 1), await simulate(base, D, 1), await simulate(base, D, 2)];
    expect([two.measured, two.stats, two.lengths, two.cost.timers]).toEqual([
      one.measured,
      one.stats,
      one.lengths,
      one.cost.timers,
    ]);
    expect(other.measured).not.toEqual(one.measured);
  });

  it.each([...REGIMES, RELAUNCHED, PUBLISHED])('$name goes on to its end and its ledger closes', async (a) => {
    const s = await simulate(base, a, 3);
    closes(s);
    expect(s.measured.updatesPerHour).toBeGreaterThan(0);
    expect(s.measured.ratio).toBeGreaterThan(0.2);
    expect(s.measured.ratio).toBeLessThanOrEqual(1 + 1e-9);
  });

  it('keep the staleness bound, discard nothing, and never stop, whatever the sizes and faults', async () => {
    const sizes = fc.record({
      desktops: fc.integer({ min: 1, max: 14 }),
      replicas: fc.integer({ min: 1, max: 3 }),
      depth: fc.integer({ min: 1, max: 3 }),
      batchGroups: fc.integer({ min: 1, max: 3 }),
      rollouts: fc.integer({ min: 2, max: 6 }),
      eta: fc.integer({ min: 0, max: 4 }),
      faults: fc.constantFrom(0, 0.1, 0.4),
      trainAction: fc.constantFrom(0, 0.05, 1),
      spread: fc.constantFrom(0, 0.3, 1),
      swap: fc.constantFrom(0, 0.3, 20),
    });
    await fc.assert(
      fc.asyncProperty(sizes, fc.constantFrom(...REGIMES), fc.nat(1000), async (o, a, seed) => {
        // One slow replica needs most of half an hour for its second batch.
        const s = await simulate({ ...base, ...o, hours: Math.max(0.6, 2.5 / o.desktops) }, a, seed);
        closes(s);
        expect(s.measured.staleness.max).toBeLessThanOrEqual(o.eta);
        expect(s.measured.stale).toBe(0);
        expect(s.measured.rate).toBeGreaterThan(0);
        expect(s.stats.batches).toBeGreaterThan(1);
        expect(s.measured.failed).toBe(0);
        withinTheBound(s);
        if (a.sync === 'replica') expect(s.measured.servingMin * o.replicas).toBeGreaterThanOrEqual(o.replicas - 1);
      }),
      { numRuns: 20, endOnFailure: true },
    );
  }, 240_000);

  it('without barrier reach the bound, and a barrier costs', async () => {
    const [a, b, c, d] = (await Promise.all(
      REGIMES.map(async (r) => (await simulate({ ...base, desktops: 16, hours: 0.8 }, r, 1)).measured.ratio),
    )) as [number, number, number, number];
    expect(d).toBeGreaterThan(0.95);
    expect(c).toBeGreaterThan(b);
    expect(b).toBeGreaterThan(a);
  });
});

describe('the published way, for comparison', () => {
  it('kills requests when it syncs and leaves old rollouts out', async () => {
    const s = await simulate({ ...base, desktops: 16, hours: 0.8, trainAction: 0.02 }, PUBLISHED, 1);
    expect(s.measured.failed).toBeGreaterThan(0);
    expect(s.measured.stale).toBeGreaterThan(0);
    closes(s);
  });
});

describe('traces', () => {
  it('are the same for the k-th rollout of a task, whatever came between', () => {
    const tasks = tasksOf(base),
      [x, y] = [tasks[0]!.id, tasks[1]!.id],
      one = new Traces(base, tasks, 5),
      two = new Traces(base, tasks, 5);
    const plain = (t: ReturnType<Traces['next']>): unknown[] => [t.length, t.success, t.faultAt];
    const first = [one.next(x), one.next(x), one.next(y)].map(plain);
    const b = [two.next(y), two.next(x), two.next(x)].map(plain);
    expect([b[1], b[2], b[0]]).toEqual(first);
  });
  it('have the lengths and rates of the workload', () => {
    const w = loadWorkload('dart-like'),
      tasks = tasksOf(w),
      traces = new Traces(w, tasks, 1);
    expect(tasks).toHaveLength(369);
    const of = tasks.flatMap((t) => Array.from({ length: 40 }, () => traces.next(t.id)));
    const rate = tasks.reduce((a, t) => a + t.rate, 0) / tasks.length,
      won = of.filter((t) => t.success);
    expect(won.length / of.length).toBeCloseTo(rate, 1);
    const share = (xs: typeof of, bin: number): number =>
      (100 * xs.filter((t) => Math.ceil(t.length / 5) === bin + 1).length) / xs.length;
    if (w.length.kind !== 'histogram') throw new Error('dart-like has histograms');
    w.length.success.forEach((p, bin) => expect(Math.abs(share(won, bin) - p)).toBeLessThan(2));
    w.length.failure.forEach((p, bin) =>
      expect(
        Math.abs(
          share(
            of.filter((t) => !t.success),
            bin,
          ) - p,
        ),
      ).toBeLessThan(2),
    );
  });
});
