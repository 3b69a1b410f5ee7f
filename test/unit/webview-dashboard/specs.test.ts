import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  curationSpec,
  rollingMean,
  shareBelow,
  spreadOver,
  tisSpec,
} from '../../../webview/dashboard/curationSpecs.js';
import { emptyModel, reduce, type Model } from '../../../webview/dashboard/model.js';
import {
  metricSpec,
  probes,
  shareOfBound,
  sortTasks,
  successOf,
  successSpec,
} from '../../../webview/dashboard/specs.js';
import { correctionCharts, throughputCharts, trainerCharts } from '../../../webview/dashboard/metricCharts.js';
import type { CurationChart } from '../../../runtime/protocol/types.js';
import { isEmpty, type ChartSpec } from '../../../webview/ui/chartSpec.js';
import { makeRun, type MadeRun } from '../../helpers/pages/dashboard/run.js';

const modelOf = (r: MadeRun): Model =>
  [
    { type: 'open' as const, run: r.run, daemon: 'ready' as const },
    { type: 'detail' as const, detail: r.detail },
    { type: 'series' as const, series: r.series },
    { type: 'curves' as const, curves: r.curves, evals: r.detail.evals },
    { type: 'curation' as const, curation: r.curation },
  ].reduce(reduce, emptyModel());
const r = makeRun({ infeasible: true }),
  m = modelOf(r),
  none = reduce(emptyModel('/x', 'ready'), { type: 'curves', curves: [], evals: [] });
/** Without a run, the charts are those of a run that has nothing to show yet. */
const described = (x: Model): readonly CurationChart[] =>
  x.curation?.charts ?? r.curation.charts.map((c) => ({ ...c, data: nothing(c.data) }));
const nothing = (d: CurationChart['data']): CurationChart['data'] => {
  switch (d.form) {
    case 'families':
      return { form: 'families', families: [] };
    case 'series':
      return { form: 'series', at: [], value: [] };
    case 'histogram':
      return { form: 'histogram', edges: [], counts: [] };
    case 'bars':
      return { form: 'bars', counts: [] };
  }
};
const chart = (id: string, data?: CurationChart['data']): CurationChart => {
  const c = r.curation.charts.find((x) => x.id === id)!;
  return { ...c, ...(data ? { data } : {}) };
};
const every = (x: Model): ChartSpec[] => [
  successSpec(x, 'time'),
  successSpec(x, 'rollouts'),
  successSpec(x, 'time', 'desk/form-one'),
  ...[...throughputCharts, ...trainerCharts, ...correctionCharts].map((c) => metricSpec(x, c)),
  ...described(x).map((c) => curationSpec(x, c)),
  ...described(x).map((c) => curationSpec(x, c, 'desk/form-one')),
  tisSpec(x),
];

describe('every chart', () => {
  it('has ascending x, columns of one length, and a summary in whole words', () => {
    for (const s of every(m)) {
      expect(isEmpty(s)).toBe(false);
      expect(s.summary.length).toBeGreaterThan(20);
      expect(s.summary).not.toMatch(/undefined|NaN|–\b.*undefined/);
      for (const x of s.series) {
        for (let i = 1; i < x.x.length; i++) expect(x.x[i]!).toBeGreaterThanOrEqual(x.x[i - 1]!);
        expect(x.y.length).toBe(x.x.length);
        if (x.low) expect(x.low.length).toBe(x.x.length);
      }
    }
  });
  it('says what it waits for when there is nothing yet', () => {
    for (const s of every(none)) {
      expect(isEmpty(s)).toBe(true);
      expect(s.empty).toMatch(/\.$/);
      expect(s.summary).not.toMatch(/undefined|NaN/);
    }
  });
});

describe('success', () => {
  it('draws evaluations apart from training, and infeasible tasks apart from feasible ones', () => {
    const s = successSpec(m, 'time');
    expect(s.series.map((x) => [x.kind, x.hue])).toEqual([
      ['points', 'purple'],
      ['points', 'orange'],
      ['line', 'blue'],
      ['line', 'orange'],
    ]);
    expect(new Set(s.series.flatMap((x) => (x.kind === 'points' ? [x.shape] : []))).size).toBe(2);
    expect(successSpec(modelOf(makeRun()), 'time').series.map((x) => x.kind)).toEqual(['points', 'line']);
  });
  it('places evaluations among the rollouts on the other axis', () => {
    const points = successSpec(m, 'rollouts').series.find((x) => x.kind === 'points')!,
      line = successSpec(m, 'rollouts').series.find((x) => x.kind === 'line')!;
    for (const x of points.x) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x).toBeLessThanOrEqual(line.x.at(-1)!);
    }
    expect(points.x.at(-1)).toBeGreaterThan(points.x[1]!);
  });
  it('of a family counts only its own probe episodes', () => {
    const e = [{ ...r.detail.evals[0]!, perFamily: { a: { episodes: 4, successes: 1 } } }];
    expect(probes(e, 'a')[0]!.rate).toBe(0.25);
    expect(probes(e, 'b')).toEqual([]);
  });
  it('orders tasks by name, by need or by amount', () => {
    const t = (family: string, rate: number | undefined, rollouts: number) => ({
      family,
      rate,
      rollouts,
      successes: 0,
      spark: [],
    });
    const tasks = [t('b10', 0.9, 5), t('b2', 0.1, 9), t('a', undefined, 1)];
    expect(sortTasks(tasks, 'name').map((x) => x.family)).toEqual(['a', 'b2', 'b10']);
    expect(sortTasks(tasks, 'lowest').map((x) => x.family)).toEqual(['b2', 'b10', 'a']);
    expect(sortTasks(tasks, 'most').map((x) => x.family)).toEqual(['b2', 'b10', 'a']);
  });
});

describe('the number that stands for a task', () => {
  it('is its evaluation, and before there is one its newest rollouts', () => {
    const k = { family: 'a', rollouts: 20, successes: 16, spark: [], rate: 1, recent: 16 };
    expect(successOf(k)).toBe(1);
    const evaluation = { version: 3, episodes: 5, successes: 1, rate: 0.2, low: 0.04, high: 0.62 };
    expect(successOf({ ...k, evaluation })).toBe(0.2);
    expect(
      sortTasks(
        [
          { ...k, family: 'b', rate: 0.5 },
          { ...k, evaluation },
        ],
        'lowest',
      ).map((x) => x.family),
    ).toEqual(['a', 'b']);
  });
});

describe('bounds', () => {
  it('stand in their charts as a line that is always inside', () => {
    expect(metricSpec(m, throughputCharts[0]!).series.map((x) => x.label)).toEqual(['rollouts/h', 'limit']);
    const s = metricSpec(
      { ...m, series: new Map([...m.series].filter(([k]) => !k.startsWith('run.bound'))) },
      throughputCharts[0]!,
    );
    expect(s.series.length).toBe(1);
    expect(s.marks![0]!.at).toBe(r.status.bounds!.rolloutsPerHour);
    expect(s.y.ceil).toBeGreaterThan(s.marks![0]!.at);
    expect(shareOfBound(50, 200)).toBe(0.25);
    expect(shareOfBound(50, 0)).toBeUndefined();
    expect(shareOfBound(undefined, 3)).toBeUndefined();
  });
});

describe('what lies under the lines', () => {
  const long = makeRun({ outages: [[300_000, 480_000]] }),
    opened: Model = { ...m, detail: long.detail };
  it('phases and outages, in the chart and in its summary', () => {
    const s = metricSpec(opened, trainerCharts[0]!);
    expect(s.phases!.map((p) => p.label)).toEqual(['reading', 'demonstrations', 'warm start', 'RL']);
    expect(s.outages).toEqual([{ from: 300_000, to: 480_000 }]);
    expect(s.summary).toContain('The run was not active from 5:00 to 8:00.');
    expect(successSpec(opened, 'time').summary).toContain('Phases: reading from 0:09');
    // On the axis of rollouts there is no time to mark.
    expect(successSpec(opened, 'rollouts').outages).toBeUndefined();
  });
  it('the learning rate has a chart, and KL is drawn by decades', () => {
    expect(trainerCharts.flatMap((c) => c.lines.map((l) => l.name))).toContain('update.lr');
    expect(trainerCharts.flatMap((c) => c.lines.map((l) => l.name))).toContain('update.entropy');
    const kl = correctionCharts.find((c) => c.lines.some((l) => l.name === 'update.klK3'))!;
    expect(kl.log).toBe(true);
    expect(kl.lines.map((l) => l.name)).toContain('update.oldKl');
    // Only runs that weigh imitation by need record it.
    expect(correctionCharts.filter((c) => c.optional).map((c) => c.lines[0]!.name)).toEqual(['update.imitationFactor']);
  });
});

describe('curation', () => {
  it('the rolling mean averages the last values', () => {
    expect(rollingMean([1, 3, 5, 7], 2)).toEqual([1, 2, 4, 6]);
  });
  it('N over the tasks: mean lies between least and most at every moment', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.tuple(fc.nat(1000), fc.integer({ min: 1, max: 8 })), { minLength: 1, maxLength: 20 }), {
          minLength: 1,
          maxLength: 5,
        }),
        (fams) => {
          const groups = fams.map((g, i) => {
              const s = [...g].sort((a, b) => a[0] - b[0]);
              return { family: String(i), at: s.map((x) => x[0]), value: s.map((x) => x[1]) };
            }),
            out = spreadOver(groups);
          out.mean.forEach((v, i) => {
            expect(v).toBeGreaterThanOrEqual(out.low[i]! - 1e-9);
            expect(v).toBeLessThanOrEqual(out.high[i]! + 1e-9);
          });
          expect(out.mean.at(-1)).toBeCloseTo(groups.reduce((a, g) => a + g.value.at(-1)!, 0) / groups.length, 9);
        },
      ),
    );
  });
  it('one task stands out as a step line', () => {
    const s = curationSpec(m, chart('dynamicRollouts.size'), 'desk/form-one');
    expect(s.series[1]).toMatchObject({ kind: 'steps', label: 'desk/form-one' });
    expect(curationSpec(m, chart('dynamicRollouts.size'), 'not there').series.length).toBe(1);
  });
  it('the entropy threshold is placed in its bin, and the share below it told', () => {
    const h = { edges: [0, 1, 2, 4], counts: [20, 60, 20] };
    expect(shareBelow(h, 1)).toBeCloseTo(0.2);
    expect(shareBelow(h, 3)).toBeCloseTo(0.9);
    const entropy = chart('highEntropy.entropy'),
      mark = entropy.data.form === 'histogram' ? entropy.data.mark! : undefined;
    const s = curationSpec(m, chart('highEntropy.entropy', { form: 'histogram', ...h, mark: { ...mark!, at: 1 } }));
    expect(s.marks![0]!.at).toBe(1);
    expect(s.summary).toMatch(/about 20 %/);
  });
  it('staleness has a bar for every lag, also for those nobody had', () => {
    const s = curationSpec(m, chart('staleness.lag', { form: 'bars', counts: [8, 0, 0, 2] }));
    expect(s.series[0]!.y).toEqual([8, 0, 0, 2]);
    expect(s.summary).toMatch(/mean 0.6, at most 3/);
    // What a runtime of before says nothing of opens nothing.
    expect(s.behind).toBeUndefined();
  });
  it('successes that joined from the pool stand on the bars of staleness, and are not among what opens behind them', () => {
    const onTop = {
        counts: [0, 3, 0],
        label: 'with successes of the pool',
        summary: '{0} joined from the pool, at most {1} behind.',
      },
      s = curationSpec(m, chart('staleness.lag', { form: 'bars', counts: [8, 0, 2], behind: { by: 'lag' }, onTop }));
    expect(s.series.map((x) => [x.label, x.y])).toEqual([
      ['with successes of the pool', [8, 3, 2]],
      [expect.any(String), [8, 0, 2]],
    ]);
    expect(s.summary).toMatch(/Staleness of 10 .*3 joined from the pool, at most 1 behind/);
    expect(s.behind!(1.5, 1)).toBeUndefined();
    expect(s.behind!(0.5, 0)).toEqual({ lag: { min: 0, max: 0 } });
  });
  it('behind a bar of staleness are the rollouts that were trained so many updates behind, of the updates it counts', () => {
    const of = (behind: { by: 'lag'; fromUpdate?: number }): NonNullable<ReturnType<typeof curationSpec>['behind']> =>
      curationSpec(m, chart('staleness.lag', { form: 'bars', counts: [8, 0, 2], behind })).behind!;
    expect(of({ by: 'lag' })(2.5, 2)).toEqual({ lag: { min: 2, max: 2 } });
    expect(of({ by: 'lag', fromUpdate: 41 })(0.5, 0)).toEqual({ lag: { min: 0, max: 0 }, update: { min: 41 } });
    expect(of({ by: 'lag' })(1.5, 1)).toBeUndefined();
  });
});
