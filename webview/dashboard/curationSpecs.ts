/** The charts of curation as data, from the model. Pure. */
import type { CurationView, Histogram, Series } from '../../runtime/protocol/types.js';
import { binPosition, type Cell } from '../ui/chartMath.js';
import type { ChartSeries, ChartSpec } from '../ui/chartSpec.js';
import { t } from '../ui/words.js';
import { clock, count, decimal, percent } from './format.js';
import type { Model } from './model.js';
import { originOf, timeAxis } from './specs.js';

type Groups = CurationView['groups'];
export interface Spread {
  readonly at: number[];
  readonly mean: number[];
  readonly low: number[];
  readonly high: number[];
}
/** Mean, least and most over the families of the value each has at that moment, at most `points` moments. */
export function spreadOver(groups: Groups, pick: 'size' | 'cap', points = 400): Spread {
  const moves = groups
    .flatMap((g, f) => g.at.map((at, i) => ({ at, f, value: g[pick][i]! })))
    .sort((a, b) => a.at - b.at);
  const now = new Array<number | undefined>(groups.length).fill(undefined),
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

/** N or the length cap over time: of all tasks as mean and range, or of one. */
export function groupsSpec(m: Model, pick: 'size' | 'cap', family?: string): ChartSpec {
  const groups = m.curation?.groups ?? [],
    origin = originOf(m),
    one = groups.find((g) => g.family === family),
    s = spreadOver(groups, pick),
    what = pick === 'size' ? t('Rollouts per group (N)') : t('Length cap');
  const series: ChartSeries[] =
    s.at.length === 0
      ? []
      : [
          {
            kind: 'line',
            label: t('mean over tasks, with range'),
            hue: 'blue',
            x: s.at.map((t) => t - origin),
            y: s.mean,
            low: s.low,
            high: s.high,
            width: 2,
          },
        ];
  if (one && one.at.length > 0)
    series.push({
      kind: 'steps',
      label: one.family,
      hue: 'orange',
      x: one.at.map((t) => t - origin),
      y: one[pick],
      width: 2,
      dash: [6, 3],
    });
  const i = s.mean.length - 1,
    mine = one?.[pick].at(-1),
    figures = (): (string | number)[] => [
      what,
      decimal(s.mean[0]),
      decimal(Number(s.mean[i]!.toFixed(1))),
      s.low[i]!,
      s.high[i]!,
    ];
  return {
    x: timeAxis(),
    y: { format: (v) => decimal(Number(v.toFixed(1))), floor: 0, integers: true },
    series,
    empty: t('No group has been opened yet.'),
    summary:
      i < 0
        ? t('{0}: no group yet.', what)
        : [
            pick === 'size'
              ? t('{0}: mean {1} rollouts at first, {2} now, between {3} and {4} over the tasks.', ...figures())
              : t('{0}: mean {1} steps at first, {2} now, between {3} and {4} over the tasks.', ...figures()),
            mine === undefined ? '' : t('{0}: {1} now.', one!.family, mine),
          ]
            .filter(Boolean)
            .join(' '),
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

export function entropySpec(m: Model): ChartSpec {
  const h = m.curation?.entropy ?? { edges: [], counts: [] },
    threshold = m.curation?.threshold,
    n = total(h);
  return {
    x: { kind: 'bins', label: t('mean token entropy of a step, nats'), edges: h.edges, format: decimal, tick: decimal },
    y: { format: count, floor: 0, integers: true },
    series: n > 0 ? [bars(h, t('steps'))] : [],
    marks:
      threshold === undefined
        ? []
        : [
            {
              axis: 'x',
              at: binPosition(h.edges, threshold),
              label: t('20 % threshold {0}', decimal(threshold)),
              hue: 'orange',
            },
          ],
    summary: [
      t(
        'Entropy of {0} steps of the newest rollouts, from {1} to {2} nats.',
        count(n),
        decimal(h.edges[0]),
        decimal(h.edges.at(-1)),
      ),
      threshold === undefined
        ? ''
        : t(
            'Threshold of the last group: {0}; about {1} of these steps lie below it and would be dropped.',
            decimal(threshold),
            percent(shareBelow(h, threshold)),
          ),
    ]
      .filter(Boolean)
      .join(' '),
    empty: t('No step has been decided yet.'),
  };
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
      tick: decimal,
    },
    y: { format: count, floor: 0, integers: true },
    series: h && n > 0 ? [bars(h, t('tokens'))] : [],
    summary: t(
      'Truncated importance weights of the newest updates: {0} tokens, {1} of them in the bin at the cap.',
      count(n),
      percent(n > 0 ? top / n : 0),
    ),
    empty: t('No update yet.'),
  };
}
export function stalenessSpec(m: Model): ChartSpec {
  const rows = [...(m.curation?.staleness ?? [])].sort((a, b) => a.lag - b.lag),
    most = rows.at(-1)?.lag ?? 0,
    counts = Array.from(
      { length: rows.length ? most + 1 : 0 },
      (_, lag) => rows.find((r) => r.lag === lag)?.rollouts ?? 0,
    ),
    n = counts.reduce((a, b) => a + b, 0);
  return {
    x: {
      kind: 'bins',
      label: t('updates behind when trained'),
      names: counts.map((_, i) => String(i)),
      format: String,
      tick: String,
    },
    y: { format: count, floor: 0, integers: true },
    series:
      n > 0 ? [{ kind: 'bars', label: t('rollouts'), hue: 'blue', x: counts.map((_, i) => i + 0.5), y: counts }] : [],
    summary: t(
      'Staleness of {0} trained rollouts: mean {1}, at most {2} updates behind.',
      count(n),
      decimal(Number((counts.reduce((a, c, lag) => a + c * lag, 0) / Math.max(1, n)).toFixed(2))),
      most,
    ),
    empty: t('Nothing trained yet.'),
  };
}
function seriesSpec(
  m: Model,
  s: Series | undefined,
  o: {
    readonly label: string;
    readonly title: string;
    readonly kind: 'line' | 'steps';
    readonly format: (v: number) => string;
    readonly ceil?: number;
    readonly empty: string;
    readonly mark?: { readonly at: number; readonly label: string };
  },
): ChartSpec {
  const origin = originOf(m),
    y = (s?.value ?? []) as readonly Cell[],
    at = s?.at ?? [];
  return {
    x: timeAxis(),
    y: { format: o.format, floor: 0, ceil: o.ceil },
    series: at.length === 0 ? [] : [{ kind: o.kind, label: o.label, hue: 'blue', x: at.map((t) => t - origin), y }],
    marks: o.mark ? [{ axis: 'y', at: o.mark.at, label: o.mark.label, hue: 'orange' }] : [],
    summary: t('{0}: {1} at {2}.', o.title, o.format(s?.value.at(-1) ?? 0), clock((at.at(-1) ?? origin) - origin)),
    empty: o.empty,
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
const keptOver = 20;
export const keptSpec = (m: Model): ChartSpec =>
  seriesSpec(m, m.curation && { ...m.curation.keptSeries, value: rollingMean(m.curation.keptSeries.value, keptOver) }, {
    label: t('mean of {0} groups', keptOver),
    title: t('Share of steps kept'),
    kind: 'line',
    format: (v) => percent(v),
    ceil: 1,
    empty: t('No group formed yet.'),
    mark: { at: 0.8, label: t('top 80 %') },
  });
/** The series is a running sum. */
export function injectionsSpec(m: Model): ChartSpec {
  const s = m.curation?.injections;
  return {
    ...seriesSpec(m, s, {
      label: t('successes added'),
      title: t('Pool injections'),
      kind: 'steps',
      format: count,
      empty: t('No group of failures needed help yet.'),
    }),
    summary: t(
      'Pool injections: {0} times every rollout of a group failed and an earlier success was added.',
      count(s?.value.at(-1) ?? 0),
    ),
  };
}
