/** The charts of curation as data, from what each mechanism says of itself. Pure. */
import type {
  ChartUnit,
  CurationChart,
  CurationChartData,
  Histogram,
  TableFilter,
} from '../../runtime/protocol/types.js';
import { binPosition, type Cell } from '../ui/chartMath.js';
import type { ChartSeries, ChartSpec, Mark } from '../ui/chartSpec.js';
import { fromDaemon, t } from '../ui/words.js';
import { count, decimal, decimalTick, percent, percentTick } from './format.js';
import type { Model } from './model.js';
import { ground, originOf, timeAxis } from './specs.js';

type Data<F extends CurationChartData['form']> = Extract<CurationChartData, { form: F }>;
type Families = Data<'families'>['families'];

export interface Spread {
  readonly at: number[];
  readonly mean: number[];
  readonly low: number[];
  readonly high: number[];
}
/** Mean, least and most over the families of the value each has at that moment, at most `points` moments. */
export function spreadOver(families: Families, points = 400): Spread {
  const moves = families
    .flatMap((g, f) => g.at.map((at, i) => ({ at, f, value: g.value[i]! })))
    .sort((a, b) => a.at - b.at);
  const now = new Array<number | undefined>(families.length).fill(undefined),
    out: Spread = { at: [], mean: [], low: [], high: [] },
    every = Math.max(1, Math.ceil(moves.length / points));
  moves.forEach((m, i) => {
    now[m.f] = m.value;
    if (i % every !== 0 && i !== moves.length - 1) return;
    const known = now.filter((v): v is number => v !== undefined);
    out.at.push(m.at);
    out.mean.push(known.reduce((a, b) => a + b, 0) / known.length);
    out.low.push(Math.min(...known));
    out.high.push(Math.max(...known));
  });
  return out;
}

const formats: Readonly<Record<ChartUnit, (v: number) => string>> = {
  count,
  share: (v) => percent(v),
  decimal,
};
const ticks: Readonly<Record<ChartUnit, (v: number, step: number) => string>> = {
  count: decimalTick,
  share: percentTick,
  decimal: decimalTick,
};
const oneDigit = (v: number | undefined): string => decimal(v === undefined ? undefined : Number(v.toFixed(1)));

/** Families that a chart of the view can show by themselves. */
export const familiesOf = (charts: readonly CurationChart[]): string[] =>
  [...new Set(charts.flatMap((c) => (c.data.form === 'families' ? c.data.families.map((f) => f.family) : [])))].sort();

/** A chart that a mechanism described; `family`: the one to show beside all, where the chart has families. */
export function curationSpec(m: Model, chart: CurationChart, family?: string): ChartSpec {
  switch (chart.data.form) {
    case 'families':
      return familiesSpec(m, chart, chart.data, family);
    case 'series':
      return seriesSpec(m, chart, chart.data);
    case 'histogram':
      return histogramSpec(chart, chart.data);
    case 'bars':
      return barsSpec(chart, chart.data);
  }
}

/** A value of each family over time: of all as mean and range, and of one. */
function familiesSpec(m: Model, { words }: CurationChart, data: Data<'families'>, family?: string): ChartSpec {
  const origin = originOf(m),
    one = data.families.find((g) => g.family === family),
    s = spreadOver(data.families),
    i = s.mean.length - 1,
    mine = one?.value.at(-1),
    series: ChartSeries[] = [];
  if (i >= 0)
    series.push({
      kind: 'line',
      label: fromDaemon(words.label),
      hue: 'blue',
      x: s.at.map((at) => at - origin),
      y: s.mean,
      low: s.low,
      high: s.high,
      width: 2,
    });
  if (one && one.at.length > 0)
    series.push({
      kind: 'steps',
      label: one.family,
      hue: 'orange',
      x: one.at.map((at) => at - origin),
      y: one.value,
      width: 2,
      dash: [6, 3],
    });
  const summary =
    i < 0
      ? fromDaemon(words.empty)
      : fromDaemon(words.summary, decimal(s.mean[0]), oneDigit(s.mean[i]), s.low[i]!, s.high[i]!);
  return {
    x: timeAxis(),
    ...ground(m),
    y: { format: oneDigit, floor: 0, integers: true },
    series,
    empty: fromDaemon(words.empty),
    summary: mine === undefined ? summary : `${summary} ${t('{0}: {1} now.', one!.family, mine)}`,
  };
}

function bars(h: Histogram, label: string): ChartSeries {
  return { kind: 'bars', label, hue: 'blue', x: h.counts.map((_, i) => i + 0.5), y: h.counts };
}
const total = (h: Histogram): number => h.counts.reduce((a, b) => a + b, 0);
/** Share of the counts below a value, counting the part of its bin. */
export function shareBelow(h: Histogram, value: number): number {
  const p = binPosition(h.edges, value),
    whole = Math.floor(p);
  return (
    (h.counts.slice(0, whole).reduce((a, b) => a + b, 0) + (h.counts[whole] ?? 0) * (p - whole)) / Math.max(1, total(h))
  );
}

function histogramSpec({ words, unit }: CurationChart, h: Data<'histogram'>): ChartSpec {
  const n = total(h),
    format = formats[unit],
    { mark } = h,
    marks: Mark[] = mark
      ? [
          {
            axis: 'x',
            at: binPosition(h.edges, mark.at),
            label: fromDaemon(mark.label, format(mark.at)),
            hue: 'orange',
          },
        ]
      : [];
  return {
    x: { kind: 'bins', label: fromDaemon(words.label), edges: h.edges, format, tick: ticks[unit] },
    y: { format: count, floor: 0, integers: true },
    series: n > 0 ? [bars(h, fromDaemon(words.label))] : [],
    marks,
    summary: [
      fromDaemon(words.summary, count(n), format(h.edges[0] ?? 0), format(h.edges.at(-1) ?? 0)),
      mark?.summary ? fromDaemon(mark.summary, format(mark.at), percent(shareBelow(h, mark.at))) : '',
    ]
      .filter(Boolean)
      .join(' '),
    empty: fromDaemon(words.empty),
  };
}

/** The rollouts that were trained so many updates behind. */
const behindBar = (n: number, lag: number, fromUpdate: number | undefined): TableFilter | undefined =>
  n === 0
    ? undefined
    : { lag: { min: lag, max: lag }, ...(fromUpdate === undefined ? {} : { update: { min: fromUpdate } }) };

function barsSpec({ words }: CurationChart, { counts, behind, onTop }: Data<'bars'>): ChartSpec {
  const n = counts.reduce((a, b) => a + b, 0),
    more = onTop?.counts.reduce((a, b) => a + b, 0) ?? 0,
    x = counts.map((_, i) => i + 0.5),
    mean = counts.reduce((a, c, i) => a + c * i, 0) / Math.max(1, n),
    label = fromDaemon(words.label);
  return {
    x: { kind: 'bins', label, names: counts.map((_, i) => String(i)), format: String, tick: String },
    y: { format: count, floor: 0, integers: true },
    series: [
      // Drawn first: what the other bars leave of it stands on them.
      ...(onTop && more > 0
        ? [
            {
              kind: 'bars' as const,
              label: fromDaemon(onTop.label),
              hue: 'purple' as const,
              x,
              y: counts.map((c, i) => c + (onTop.counts[i] ?? 0)),
            },
          ]
        : []),
      ...(n > 0 ? [{ kind: 'bars' as const, label, hue: 'blue' as const, x, y: counts }] : []),
    ],
    ...(behind ? { behind: (_x, at) => behindBar(counts[at] ?? 0, at, behind.fromUpdate) } : {}),
    summary: [
      fromDaemon(words.summary, count(n), decimal(Number(mean.toFixed(2))), mostOf(counts)),
      onTop && more > 0 ? fromDaemon(onTop.summary, count(more), mostOf(onTop.counts)) : '',
    ]
      .filter(Boolean)
      .join(' '),
    empty: fromDaemon(words.empty),
  };
}

const mostOf = (counts: readonly number[]): number => counts.findLastIndex((c) => c > 0);

function seriesSpec(m: Model, { words, unit }: CurationChart, data: Data<'series'>): ChartSpec {
  const origin = originOf(m),
    format = formats[unit],
    { at, mark } = data,
    value = data.meanOf === undefined ? data.value : rollingMean(data.value, data.meanOf),
    y: readonly Cell[] = value,
    marks: Mark[] = mark
      ? [{ axis: 'y', at: mark.at, label: fromDaemon(mark.label, format(mark.at)), hue: 'orange' }]
      : [];
  return {
    x: timeAxis(),
    ...ground(m),
    y: { format, tick: ticks[unit], floor: 0, ceil: data.ceil },
    series:
      at.length === 0
        ? []
        : [
            {
              kind: data.sum ? 'steps' : 'line',
              label: fromDaemon(words.label),
              hue: 'blue',
              x: at.map((time) => time - origin),
              y,
            },
          ],
    marks,
    summary: fromDaemon(words.summary, format(value.at(-1) ?? 0)),
    empty: fromDaemon(words.empty),
  };
}
/** Mean of each value and up to n - 1 before it. */
export function rollingMean(values: readonly number[], n: number): number[] {
  let sum = 0;
  return values.map((v, i) => {
    sum += v - (i >= n ? values[i - n]! : 0);
    return sum / Math.min(n, i + 1);
  });
}
export function tisSpec(m: Model): ChartSpec {
  const h = m.curation?.tis,
    n = h ? total(h) : 0,
    edges = h?.edges ?? [],
    top = h?.counts.at(-1) ?? 0;
  return {
    x: {
      kind: 'bins',
      label: t('importance weight of a token'),
      edges,
      format: (v) => decimal(Number(v.toFixed(3))),
      tick: decimalTick,
    },
    y: { format: count, floor: 0, integers: true },
    series: h && n > 0 ? [bars(h, t('tokens'))] : [],
    summary: t(
      'Truncated importance weights of the newest updates: {0} tokens, {1} of them in the highest bin.',
      count(n),
      percent(n > 0 ? top / n : 0),
    ),
    empty: t('No update.'),
  };
}
