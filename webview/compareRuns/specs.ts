/** The charts of the comparison as data. Pure. */
import { clock, count, decimal, decimalTick, percent, percentTick, tickTime } from '../dashboard/format.js';
import { correctionCharts, throughputCharts, trainerCharts } from '../dashboard/metricCharts.js';
import type { ChartSeries, ChartSpec, XAxis } from '../ui/chartSpec.js';
import { t } from '../ui/words.js';
import { metricLine, type CompareAxis, type Entity, type Line } from './model.js';

export const axisWords: Readonly<Record<CompareAxis, string>> = {
  time: t('by active time'),
  updates: t('by updates'),
  rollouts: t('by rollouts'),
  actions: t('by trained actions'),
  tokens: t('by trained tokens'),
};
const numbers = (label: string, format: (x: number) => string): XAxis => ({
  kind: 'number',
  label,
  format,
  tick: (x) => count(x),
});
export const xAxis: Readonly<Record<CompareAxis, () => XAxis>> = {
  time: () => ({
    kind: 'time',
    label: t('Time the run was active; stops are left out'),
    format: clock,
    tick: tickTime,
  }),
  updates: () => numbers(t('updates of the trainer'), (x) => t('{0} updates', count(x))),
  rollouts: () => numbers(t('rollouts that ended in success or failure'), (x) => t('{0} rollouts', count(x))),
  actions: () => numbers(t('actions trained on'), (x) => t('{0} trained actions', count(x))),
  tokens: () =>
    numbers(t('tokens trained on: choices of actions, or tokens of answers'), (x) => t('{0} trained tokens', count(x))),
};

/** How a metric is drawn. */
export interface MetricLook {
  readonly name: string;
  readonly title: string;
  readonly says: string;
  readonly format: (v: number) => string;
  readonly tick?: ((v: number, step: number) => string) | undefined;
  readonly floor?: number | undefined;
  readonly ceil?: number | undefined;
  readonly log?: boolean | undefined;
}
const looksOf = (charts: typeof trainerCharts): MetricLook[] =>
  charts.flatMap((c) =>
    c.lines
      .filter((l) => !l.name.startsWith('run.bound'))
      .map((l, _, all) => ({
        name: l.name,
        title: all.length === 1 ? c.title : t('{0}: {1}', c.title, l.label),
        says: c.says,
        format: c.format,
        tick: c.tick,
        floor: c.floor,
        ceil: c.ceil,
        log: c.log,
      })),
  );
export const trainingLooks = looksOf([...trainerCharts, ...correctionCharts]);
export const throughputLooks = looksOf(throughputCharts);
const known = new Set([...trainingLooks, ...throughputLooks].map((l) => l.name));
/** Looks of the other metrics that the runs recorded, under the names they have in exports. */
export const otherLooks = (names: readonly string[]): MetricLook[] =>
  names
    .filter((n) => !known.has(n) && n !== 'run.elapsedMs' && n !== 'update.version')
    .map((name) => ({
      name,
      title: name,
      says: t('The metric {0}, as the run recorded it.', name),
      format: decimal,
      tick: decimalTick,
    }));

const seriesOf = (e: Entity, l: Line, width?: number): ChartSeries[] =>
  l.x.length === 0
    ? []
    : [{ kind: 'line', label: e.label, hue: e.hue, dash: e.dash, width, x: l.x, y: l.y, low: l.low, high: l.high }];

function spec(
  title: string,
  axis: CompareAxis,
  y: ChartSpec['y'],
  lines: readonly (readonly [Entity, Line])[],
  empty: string,
  width?: number,
): ChartSpec {
  const said = lines.flatMap(([e, l]) =>
    l.y.length === 0 ? [] : [t('{0}: {1} at the end', e.label, y.format(l.y.at(-1)!))],
  );
  return {
    x: xAxis[axis](),
    y,
    series: lines.flatMap(([e, l]) => seriesOf(e, l, width)),
    summary: `${title}, ${axisWords[axis]}. ${said.join('; ')}`.trim(),
    empty,
  };
}
const shares: ChartSpec['y'] = { format: (v) => percent(v), tick: percentTick, floor: 0, ceil: 1 };
export const successSpec = (
  title: string,
  axis: CompareAxis,
  entities: readonly Entity[],
  line: (e: Entity, axis: CompareAxis) => Line,
  empty: string,
): ChartSpec =>
  spec(
    title,
    axis,
    shares,
    entities.map((e) => [e, line(e, axis)] as const),
    empty,
    2,
  );
export const metricSpec = (look: MetricLook, axis: CompareAxis, entities: readonly Entity[]): ChartSpec =>
  spec(
    look.title,
    axis,
    { format: look.format, tick: look.tick, floor: look.floor, ceil: look.ceil, log: look.log },
    entities.map((e) => [e, metricLine(e, look.name, axis)] as const),
    t('No values.'),
  );
