import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PUBLISHED, REGIMES, RELAUNCHED } from '../../bench/schedule/arrangements.js';
import type { Arrangement, Simulation } from '../../bench/schedule/simulate.js';
import { simulate } from '../../bench/schedule/simulate.js';
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

describe('simulated runs', () => {
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
    expect(s.measured.ratio).toBeLessThan(1.1);
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
        const s = await simulate({ ...base, ...o, hours: Math.max(0.3, 2.5 / o.desktops) }, a, seed);
        closes(s);
        expect(s.measured.staleness.max).toBeLessThanOrEqual(o.eta);
        expect(s.measured.stale).toBe(0);
        expect(s.measured.rate).toBeGreaterThan(0);
        expect(s.stats.batches).toBeGreaterThan(1);
        expect(s.measured.failed).toBe(0);
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
