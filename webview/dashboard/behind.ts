/** The trajectories behind a point of a chart, as a filter of the table; pure. */
import { probePrefix } from '../../runtime/protocol/shared.js';
import type { TableFilter } from '../../runtime/protocol/types.js';
import type { ChartSpec } from '../ui/chartSpec.js';
import type { Model } from './model.js';
import { originOf, overall, type AxisKind, type MetricChart } from './specs.js';
import { interpolate } from './stats.js';

type Behind = NonNullable<ChartSpec['behind']>;

/** Figures of throughput say what happened in so long before. */
const rateWindowMs = 120_000;

/** An evaluation: its episodes. A point of the rolling mean: the rollouts it is the mean of, by when they ended. */
export function behindSuccess(m: Model, axis: AxisKind, family?: string): Behind {
  const origin = originOf(m),
    { at: times = [], rollout: counts = [] } = overall(m) ?? {},
    of = family === undefined ? {} : { family: [family] };
  const place = (time: number): number => (axis === 'time' ? time - origin : (interpolate(times, counts, time) ?? 0));
  return (x): TableFilter | undefined => {
    const evaluation = m.evals.findLast((e) => place(e.at) === x);
    if (evaluation) {
      const { version, label } = evaluation,
        again = m.evals.some((e) => e !== evaluation && e.version === version);
      return {
        ...of,
        origin: ['probe'],
        version: { min: version, max: version },
        // When several evaluations have one version, the ids of their episodes tell which.
        ...(again ? { text: probePrefix(label) } : {}),
      };
    }
    const curve = m.curves.find((c) => c.family === family && !c.infeasible);
    if (!curve || curve.at.length === 0) return undefined;
    const max = axis === 'time' ? origin + x : (interpolate(counts, times, x) ?? origin),
      rollout = interpolate(curve.at, curve.rollout, max) ?? 0,
      min = interpolate(curve.rollout, curve.at, Math.max(1, rollout - curve.window + 1)) ?? origin;
    return {
      ...of,
      origin: ['rollout'],
      outcome: ['success', 'failure'],
      time: { min: Math.floor(min), max: Math.ceil(max) },
    };
  };
}

/** A figure of an update: what it was trained on. Another one: the rollouts that ended in the time it is about. */
export function behindMetric(m: Model, c: MetricChart): Behind {
  const name = c.lines[0]!.name,
    origin = originOf(m);
  return (x): TableFilter | undefined => {
    if (name.startsWith('update.')) {
      const s = m.series.get(name),
        i = s?.at.findIndex((time) => time - origin === x) ?? -1,
        version = s?.version?.[i];
      return version === undefined ? undefined : { update: { min: version, max: version } };
    }
    return { origin: ['rollout'], time: { min: Math.floor(origin + x - rateWindowMs), max: Math.ceil(origin + x) } };
  };
}
