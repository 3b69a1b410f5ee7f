import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { lowest, quantile, settled, slopeOf } from '../../soak/fit.js';
import { memoryBar, reported, soakReport, type SoakReport, type Soaked } from '../../soak/report.js';

const MINUTE = 60_000;
/** Half an hour of a run whose daemon grows by so many MB an hour. */
function run(
  mbPerHour: number,
  o: { readonly leak?: number; readonly slow?: number; readonly own?: number } = {},
): Soaked {
  const at = Array.from({ length: 180 }, (_, i) => i * 10_000);
  return {
    minutes: 30,
    others: 0,
    looks: at.length,
    samples: at.map((t, i) => ({
      at: t,
      role: 'daemon',
      pid: 1,
      rssMb: 200 + (mbPerHour * t) / (60 * MINUTE) + (i % 3),
      descriptors: 40 + Math.floor((o.leak ?? 0) * i),
      threads: 12,
    })),
    folder: at.map((t, i) => ({
      at: t,
      value: 0,
      steps: i * 10,
      journal: i * 5000,
      index: 0,
      frames: 1000 * Math.sqrt(i),
    })),
    held: at.map((_, i) => ({ socket: 9, 'frame-#': Math.floor(i / 45), pipe: 180 - i })),
    delays: at.map(() => lateIn(o.slow ?? 2)),
    late: at.map(() => lateIn(2 * (o.slow ?? 2))),
    ownLate: at.map(() => lateIn(o.own ?? 2)),
    inside: [{ at: 90_000, heapMb: 30, outsideMb: 40 }],
    answers: at.map(() => ({ question: 'getRun', ms: 3 })),
    drawn: at.map(() => 16),
  };
}
/** A second of which two hundredths of the moments are so many ms late. */
const lateIn = (ms: number): number[] => Object.assign(new Array<number>(ms).fill(0), { 0: 196, [ms - 1]: 4 });
const failed = (s: Soaked): string[] =>
  soakReport(s)
    .bars.filter((b) => !b.ok)
    .map((b) => b.name);

describe('a soak', () => {
  it('finds memory that grows, descriptors that are not closed, and an event loop that is late', () => {
    expect(failed(run(0))).toEqual([]);
    expect(failed(run(80))).toEqual(['memory of daemon, MB an hour']);
    expect(failed(run(0, { leak: 0.1 }))).toEqual(['descriptors of daemon']);
    expect(failed(run(0, { slow: 45 }))).toEqual(['event loop of the daemon, p99 ms']);
    expect(failed(run(0, { own: 45 }))).toEqual([
      'event loop of the daemon without waiting for a processor, p99 ms of all moments',
    ]);
    // One second in a hundred may be worse, and is reported.
    const once = run(0),
      bad = [lateIn(4), lateIn(4), lateIn(90), ...once.late.slice(3)];
    expect(soakReport({ ...once, late: bad }).event_loop_ms).toEqual({
      p99: 2,
      moments_p99: 4,
      own_moments_p99: 2,
      worst_seconds_p99: 4,
      max: 90,
    });
    expect(soakReport(run(0)).course.slice(0, 2)).toEqual([
      { minute: 0, daemon: 202 },
      { minute: 1, daemon: 202, 'daemon heap': 30, 'daemon buffers': 40 },
    ]);
    expect(failed({ ...run(0), answers: [{ question: 'getRun', ms: 500 }] })).toEqual([
      'answers to the window, p99 ms',
    ]);
    expect(failed({ ...run(0), drawn: [500] })).toEqual(['pictures of the pages, p99 ms']);
    expect(failed({ ...run(0), drawn: [] })).toEqual([]);
    // How late something is on a machine that others use says nothing; what it holds does.
    expect(
      soakReport({ ...run(0), answers: [1, 2, 9].map((ms) => ({ question: 'getRun', ms })) }).answer_ms.by_question,
    ).toEqual({ getRun: { p50: 2, p99: 9, first_third: { p50: 1, p99: 1 }, last_third: { p50: 9, p99: 9 } } });
    expect(failed({ ...run(80, { slow: 45 }), answers: [{ question: 'getRun', ms: 500 }], others: 0.6 })).toEqual([
      'memory of daemon, MB an hour',
    ]);
  });
  it('says growth with its error, and that it cannot be told where the allowance lies within that', () => {
    const of = (mb_per_hour: number, error: number, judged = true) => {
      const { value, half, goal, untold, ok } = memoryBar('daemon', { mean_mb: 300, mb_per_hour, error }, judged);
      return { value, half, goal, untold, ok };
    };
    expect(of(10, 9)).toEqual({ value: 10, half: 18, goal: 30, untold: undefined, ok: true });
    expect(of(10, 11)).toEqual({ value: 10, half: 22, goal: 30, untold: true, ok: false });
    // As the extension host of the recorded hour: its lower end, 7, is no growth that was measured.
    expect(of(135, 64)).toMatchObject({ untold: true, ok: false });
    expect(of(60, 14)).toEqual({ value: 60, half: 28, goal: 30, untold: undefined, ok: false });
    expect(of(60, 14, false)).toMatchObject({ untold: undefined, ok: true });
    expect(of(NaN, NaN)).toMatchObject({ untold: true, ok: false });
  });
  it('of the committed records has the bars that their slopes give', () => {
    for (const file of ['soak', 'soak-45-busy']) {
      const record = JSON.parse(readFileSync(`test/soak/results/${file}.json`, 'utf8')) as SoakReport;
      expect(reported(record), file).toEqual(record);
    }
  });
  it('reports the slope of a short run and does not judge it', () => {
    const short = soakReport({ ...run(80), minutes: 2 });
    expect(short.bars.every((b) => b.ok)).toBe(true);
    expect(short.memory['daemon']!.mb_per_hour).toBeCloseTo(80, 0);
  });
  it('says which descriptors the later half has more of', () => {
    // Floors of the medians of 0 to 89 and 90 to 179, by 45.
    expect(soakReport(run(0)).descriptors_gained).toEqual({ 'frame-#': 2 });
  });
  it('finds a journal whose steps cost more and more', () => {
    const s = run(0);
    expect(failed({ ...s, folder: s.folder.map((f, i) => ({ ...f, journal: i * i * 100 })) })).toEqual([
      'journal bytes a step, end against middle',
    ]);
  });
});

describe('figures over time', () => {
  it('have a slope by least squares, with its error', () => {
    const line = Array.from({ length: 60 }, (_, i) => ({ at: i * MINUTE, value: 5 + 2 * i }));
    expect(slopeOf(line)).toMatchObject({ perHour: 120, mean: 64 });
    expect(slopeOf(line).error).toBeCloseTo(0, 6);
    expect(slopeOf([]).perHour).toBeNaN();
  });
  it('have a lowest one in each stretch: what is left after garbage was collected', () => {
    const saw = Array.from({ length: 40 }, (_, i) => ({ at: i * MINUTE, value: 100 + (i % 7) * 30 }));
    expect(lowest(saw, 10 * MINUTE).map((p) => p.value)).toEqual([100, 100, 100, 100]);
    const leak = saw.map((p, i) => ({ ...p, value: p.value + i }));
    expect(slopeOf(lowest(leak, 10 * MINUTE)).perHour).toBeCloseTo(60, 0);
  });
  it('have quantiles, and a first part that does not count', () => {
    expect([0.5, 0.99, 1].map((q) => quantile([4, 1, 3, 2], q))).toEqual([2, 4, 4]);
    expect(
      settled(
        [0, 10, 20, 30].map((at) => ({ at, value: 0 })),
        1 / 3,
      ).map((p) => p.at),
    ).toEqual([10, 20, 30]);
  });
});
