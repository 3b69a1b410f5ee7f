/** The charts of success and throughput as data, from the model. Pure. */
import type { EvalPoint, PhaseSpan, SuccessCurve, TaskRow } from '../../runtime/protocol/types.js';
import type { Cell } from '../ui/chartMath.js';
import type { ChartSeries, ChartSpec, Hue, Mark, XAxis } from '../ui/chartSpec.js';
import { t } from '../ui/words.js';
import { clock, count, interval, percent, percentTick, tickTime } from './format.js';
import { evalRate, last, type Model, type SeriesName } from './model.js';
import { interpolate, wilson } from './stats.js';

export type AxisKind = 'time' | 'rollouts';
export const originOf = (m: Model): number => m.detail?.summary.createdAt ?? 0;
export const timeAxis = (): XAxis => ({
  kind: 'time',
  label: t('Time since the run began'),
  format: clock,
  tick: tickTime,
});
const rolloutAxis = (): XAxis => ({
  kind: 'number',
  label: t('rollouts that ended in success or failure'),
  format: (x) => t('{0} rollouts', count(x)),
  tick: (x) => count(x),
});

const phaseWords: Readonly<Record<PhaseSpan['phase'], string>> = {
  reading: t('reading'),
  demonstrations: t('demonstrations'),
  'warm start': t('warm start'),
  training: t('RL'),
};
/** Phases and outages of the run on a time axis, and in words. */
export function ground(m: Model): Pick<ChartSpec, 'phases' | 'outages'> {
  const origin = originOf(m),
    { phases = [], outages = [] } = m.detail?.timeline ?? {};
  return {
    phases: phases.map((p) => ({ at: p.from - origin, label: phaseWords[p.phase] })),
    outages: outages.map((o) => ({ from: o.from - origin, to: o.to - origin })),
  };
}
function groundWords({ phases = [], outages = [] }: Pick<ChartSpec, 'phases' | 'outages'>): string {
  return [
    phases.length > 0 ? t('Phases: {0}.', phases.map((p) => t('{0} from {1}', p.label, clock(p.at))).join(', ')) : '',
    ...outages.map((o) => t('The run was not active from {0} to {1}.', clock(o.from), clock(o.to))),
  ]
    .filter(Boolean)
    .join(' ');
}

/** Evaluations of the fixed probe set; `family`: only its episodes. */
interface Probe {
  readonly at: number;
  readonly rate: number;
  readonly low: number;
  readonly high: number;
}
export function probes(evals: readonly EvalPoint[], family?: string): Probe[] {
  return evals.flatMap((e) => {
    if (family === undefined) {
      const rate = evalRate(e);
      return rate === undefined ? [] : [{ at: e.at, rate, low: e.low, high: e.high }];
    }
    const f = e.perFamily[family],
      w = f && wilson(f.successes, f.episodes);
    return w ? [{ at: e.at, ...w }] : [];
  });
}
const infeasibleProbes = (evals: readonly EvalPoint[]): Probe[] =>
  evals.flatMap((e) => {
    const w = e.infeasible && wilson(e.infeasible.successes, e.infeasible.episodes);
    return w ? [{ at: e.at, ...w }] : [];
  });

/** The curve all others are placed by on the rollout axis. */
export const overall = (m: Model): SuccessCurve | undefined =>
  m.curves.find((c) => c.family === undefined && !c.infeasible);

/**
 * The curve without its first few rollouts, whose mean jumps from 0 to 1 and says nothing; a curve that is still short
 * stays whole.
 */
function settled(c: SuccessCurve): SuccessCurve {
  const i = c.rollout.length > 40 ? c.rollout.findIndex((r) => r >= 8) : 0;
  return i <= 0
    ? c
    : {
        ...c,
        at: c.at.slice(i),
        rollout: c.rollout.slice(i),
        mean: c.mean.slice(i),
        low: c.low.slice(i),
        high: c.high.slice(i),
      };
}

/** The label of a curve of training rollouts, which says what it is the mean of. */
export const trainingLabel = ({ window, balanced, infeasible, family }: SuccessCurve): string =>
  infeasible && family === undefined
    ? t('training, infeasible tasks')
    : balanced && balanced.families > 1
      ? t('training, mean of {0} tasks, newest {1} rollouts each', balanced.families, balanced.each)
      : t('training, newest {0} rollouts', window);

/** Success over time or rollouts: of all tasks, or of one family. */
export function successSpec(m: Model, axis: AxisKind, family?: string): ChartSpec {
  const origin = originOf(m),
    all = overall(m),
    mine = m.curves.filter((c) => c.family === family);
  const place = (at: number): number =>
    axis === 'time' ? at - origin : (interpolate(all?.at ?? [], all?.rollout ?? [], at) ?? 0);
  const lines = mine
    .map(settled)
    .filter((c) => c.at.length > 0)
    .map((c): ChartSeries => ({
      kind: 'line',
      label: trainingLabel(c),
      hue: c.infeasible ? 'orange' : 'blue',
      dash: c.infeasible ? [6, 4] : undefined,
      width: 1.25,
      x: axis === 'time' ? c.at.map((t) => t - origin) : c.rollout,
      y: c.mean,
      low: c.low,
      high: c.high,
    }));
  const dots = (label: string, hue: Hue, shape: 'diamond' | 'square', ps: readonly Probe[]): ChartSeries[] =>
    ps.length === 0
      ? []
      : [
          {
            kind: 'points',
            shape,
            joined: true,
            label,
            hue,
            x: ps.map((p) => place(p.at)),
            y: ps.map((p) => p.rate),
            low: ps.map((p) => p.low),
            high: ps.map((p) => p.high),
          },
        ];
  const feasible = probes(m.evals, family),
    under = axis === 'time' ? ground(m) : {};
  return {
    x: axis === 'time' ? timeAxis() : rolloutAxis(),
    y: { format: (v) => percent(v), tick: percentTick, range: { min: -0.04, max: 1.04 } },
    ...under,
    series: [
      ...dots(t('evaluation, fixed tasks'), 'purple', 'diamond', feasible),
      ...(family === undefined
        ? dots(t('evaluation, infeasible tasks'), 'orange', 'square', infeasibleProbes(m.evals))
        : []),
      ...lines,
    ],
    summary: [successSummary(family, mine, feasible), family === undefined ? groundWords(under) : '']
      .filter(Boolean)
      .join(' '),
    empty:
      family === undefined
        ? t('No rollout has ended; the curve starts with the first.')
        : t('No rollouts of this task.'),
  };
}
function successSummary(family: string | undefined, curves: readonly SuccessCurve[], ps: readonly Probe[]): string {
  const parts = [family ? t('Success of {0}.', family) : t('Success over all tasks.')],
    c = curves.find((x) => !x.infeasible),
    i = (c?.mean.length ?? 0) - 1,
    p = ps.at(-1);
  if (p)
    parts.push(
      t(
        '{0} evaluations; the first {1}, the last {2} ({3}).',
        ps.length,
        percent(ps[0]!.rate),
        percent(p.rate),
        interval(p.low, p.high),
      ),
    );
  if (c && i >= 0)
    parts.push(
      t(
        '{0}: {1} at first, {2} now, 95 % band {3}.',
        trainingLabel(c),
        percent(c.mean[0]),
        percent(c.mean[i]),
        interval(c.low[i], c.high[i]),
      ),
    );
  return parts.join(' ');
}

export interface LineOf {
  readonly name: SeriesName;
  readonly label: string;
  readonly hue: Hue;
  readonly dash?: readonly number[];
}
export interface MetricChart {
  readonly title: string;
  readonly says: string;
  readonly lines: readonly LineOf[];
  readonly format: (v: number) => string;
  readonly tick?: (v: number, step: number) => string;
  readonly floor?: number;
  readonly ceil?: number;
  /** Whole numbers alone at the axis. */
  readonly integers?: boolean;
  readonly log?: boolean;
  /** Shown only where it was recorded. */
  readonly optional?: boolean;
  readonly marks?: (m: Model) => readonly Mark[];
}

/** Series of the run over time. What towers over the rest is left out of the scale, and said. */
export function metricSpec(m: Model, c: MetricChart): ChartSpec {
  const origin = originOf(m),
    series = c.lines.flatMap((l): ChartSeries[] => {
      const s = m.series.get(l.name);
      return s && s.at.length > 0
        ? [
            {
              kind: 'line',
              label: l.label,
              hue: l.hue,
              dash: l.dash,
              x: s.at.map((t) => t - origin),
              y: s.value as readonly Cell[],
            },
          ]
        : [];
    });
  const marks = c.marks?.(m) ?? [],
    top = Math.max(...marks.map((k) => k.at));
  const words = series.map((s) => {
    const ys = s.y.filter((v): v is number => v !== null);
    return t(
      '{0} {1}, between {2} and {3}',
      s.label,
      c.format(ys.at(-1)!),
      c.format(Math.min(...ys)),
      c.format(Math.max(...ys)),
    );
  });
  const under = ground(m);
  return {
    x: timeAxis(),
    ...under,
    y: {
      format: c.format,
      tick: c.tick,
      integers: c.integers,
      log: c.log,
      floor: c.floor,
      ceil: marks.length > 0 ? Math.max(c.ceil ?? -Infinity, top * 1.25) : c.ceil,
    },
    series,
    marks,
    summary:
      `${c.title}. ${words.join('; ')}${marks.map((k) => `; ${k.label}`).join('')}. ${groundWords(under)}`.trim(),
    empty: t('No values.'),
  };
}

export type RateKey = 'rolloutsPerHour' | 'stepsPerMinute' | 'trainedActionsPerMinute';
export const boundName = {
  rolloutsPerHour: 'run.boundRolloutsPerHour',
  stepsPerMinute: 'run.boundStepsPerMinute',
  trainedActionsPerMinute: 'run.boundTrainedActionsPerMinute',
} as const satisfies Record<RateKey, SeriesName>;
/** Limit of a rate (X*, runtime/rollout/README.md#throughput-bound): now, or as the run last recorded it. */
export const boundNow = (m: Model, k: RateKey): number | undefined => m.status?.bounds?.[k] ?? last(m, boundName[k]);
export const rateNow = (m: Model, k: RateKey): number | undefined => m.status?.[k] ?? last(m, `run.${k}`);
/** A rate as a share of its limit; a little above 1 where both were measured over different stretches of time. */
export const shareOfBound = (value: number | undefined, limit: number | undefined): number | undefined =>
  value === undefined || limit === undefined || !(limit > 0) ? undefined : value / limit;

/** The number that stands for a task: its newest evaluation, before there is one its newest rollouts. */
export const successOf = (k: TaskRow): number | undefined => k.evaluation?.rate ?? k.rate;
export type TaskSort = 'name' | 'lowest' | 'most';
/** Order of the cards. Pure. */
export function sortTasks(tasks: readonly TaskRow[], sort: TaskSort): TaskRow[] {
  const byName = (a: TaskRow, b: TaskRow): number => a.family.localeCompare(b.family, 'en', { numeric: true });
  return [...tasks].sort(
    (a, b) =>
      (sort === 'lowest' ? (successOf(a) ?? 2) - (successOf(b) ?? 2) : sort === 'most' ? b.rollouts - a.rollouts : 0) ||
      byName(a, b),
  );
}
