import { describe, expect, it } from 'vitest';
import { behindMetric, behindSuccess } from '../../../webview/dashboard/behind.js';
import { throughputCharts, trainerCharts } from '../../../webview/dashboard/metricCharts.js';
import { emptyModel, reduce, type Model } from '../../../webview/dashboard/model.js';
import { originOf, overall, successSpec } from '../../../webview/dashboard/specs.js';
import { probeOrders } from '../../../runtime/run/evaluateEpisodes.js';
import { makeRun } from '../../helpers/pages/dashboard/run.js';

const r = makeRun({ infeasible: true }),
  m: Model = [
    { type: 'open' as const, run: r.run, daemon: 'ready' as const },
    { type: 'detail' as const, detail: r.detail },
    { type: 'series' as const, series: r.series },
    { type: 'curves' as const, curves: r.curves, evals: r.detail.evals },
  ].reduce(reduce, emptyModel());

describe('the list behind a point', () => {
  it.each(['time', 'rollouts'] as const)('of an evaluation: its episodes, whatever the axis (%s)', (axis) => {
    const points = successSpec(m, axis).series.find((s) => s.kind === 'points')!,
      behind = behindSuccess(m, axis);
    expect(points.x.length).toBeGreaterThan(1);
    points.x.forEach((x, i) => {
      // Before the first rollout several may have the same place on the axis of rollouts: the newest of them.
      const { version } = m.evals[points.x.lastIndexOf(x)]!;
      expect(behind(x, i)).toMatchObject({ origin: ['probe'], version: { min: version, max: version } });
    });
  });
  it('of one of two evaluations of the same version: its own episodes alone', () => {
    const [first, second, third] = m.evals,
      twice: Model = {
        ...m,
        evals: [first!, { ...second!, version: 3, label: 'warm start' }, { ...third!, version: 3, label: 'final' }],
      },
      version = { min: 3, max: 3 },
      behind = (i: number): unknown => behindSuccess(twice, 'time')(twice.evals[i]!.at - originOf(twice), 0);
    expect([behind(1), behind(2)]).toEqual([
      { origin: ['probe'], version, text: 'probe/warm start/' },
      { origin: ['probe'], version, text: 'probe/final/' },
    ]);
    expect(behind(0)).toEqual({ origin: ['probe'], version: { min: first!.version, max: first!.version } });
    // Their names come from evaluateEpisodes.ts.
    const tasks = { probes: () => [{ family: 'f', seed: 1 }], taskOf: () => 't', source: { task: () => ({}) } };
    expect(probeOrders(tasks as never, 1, 'final', 3, 5)[0]!.rollout).toMatch(/^probe\/final\//);
  });
  it('of the rolling mean: as many rollouts as it is the mean of, up to that moment', () => {
    const curve = overall(m)!,
      at = curve.at.length - 5,
      f = behindSuccess(m, 'time')(curve.at[at]! - originOf(m), at)!;
    expect(f).toMatchObject({ origin: ['rollout'], outcome: ['success', 'failure'] });
    expect(f.time!.max).toBe(Math.ceil(curve.at[at]!));
    const ended = curve.at.map((time, i) => [time, curve.rollout[i]!] as const),
      inside = ended.filter(([time]) => time >= f.time!.min! && time <= f.time!.max!).map(([, n]) => n);
    expect(Math.max(...inside) - Math.min(...inside)).toBeLessThanOrEqual(curve.window);
    expect(Math.max(...inside) - Math.min(...inside)).toBeGreaterThan(curve.window / 2);
    const family = m.curves.find((c) => c.family !== undefined)!.family!;
    expect(behindSuccess(m, 'time', family)(curve.at[at]! - originOf(m), at)).toMatchObject({ family: [family] });
    expect(behindSuccess(emptyModel(), 'time')(5, 0)).toBeUndefined();
  });
  it('of an update: what it was trained on; of a rate: the two minutes it is about', () => {
    const loss = trainerCharts.find((c) => c.lines[0]!.name === 'update.loss')!,
      made = m.series.get('update.loss')!,
      s = { ...made, version: made.at.map((_, i) => i + 3) },
      known: Model = { ...m, series: new Map([...m.series, ['update.loss', s]]) },
      origin = originOf(m);
    expect(s.at.length).toBeGreaterThan(2);
    expect(behindMetric(known, loss)(s.at[2]! - origin, 2)).toEqual({
      update: { min: 5, max: 5 },
    });
    expect(behindMetric(known, loss)(-5, 0)).toBeUndefined();
    expect(behindMetric(m, throughputCharts[0]!)(600_000, 0)).toEqual({
      origin: ['rollout'],
      time: { min: origin + 480_000, max: origin + 600_000 },
    });
  });
});
