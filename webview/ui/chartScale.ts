/** The part of a chart's numbers that is drawn, and its range. */
import type uPlot from 'uplot';
import { lowerBound, robustRange, type Cell, type Range } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import { t, whole } from './words.js';

type Columns = readonly (readonly (readonly Cell[])[])[];

/** Columns as they are drawn: on a logarithmic axis their powers of ten, without what has none. */
export const plotted = (columns: Columns, log: boolean | undefined): Columns =>
  log ? columns.map((s) => s.map((c) => c.map((v) => (v !== null && v > 0 ? Math.log10(v) : null)))) : columns;

/** Range of the drawn values. `above`: points that tower over the rest and are left out. */
export function verticalRange({ y, series }: ChartSpec, columns: Columns): Range & { readonly above?: number } {
  if (y.range) return y.range;
  const values = plotted(columns, y.log).flat(2);
  if (y.log) {
    const drawn = values.filter((v): v is number => v !== null),
      low = drawn.reduce((a, v) => Math.min(a, v), Infinity),
      high = drawn.reduce((a, v) => Math.max(a, v), -Infinity);
    return drawn.length > 0 ? { min: low - 0.1, max: Math.max(high, low + 0.5) + 0.1 } : { min: -1, max: 0 };
  }
  const top = values.reduce<number>((a, v) => Math.max(a, v ?? 0), 0);
  return robustRange(values, series.some((s) => s.kind === 'bars') ? { ...y, ceil: top * 1.06 } : y);
}
/** All of x: from the first point to the last, or every bin. */
export function wholeRange({ x }: ChartSpec, points: readonly number[]): [number, number] {
  const bins = x.edges ? x.edges.length - 1 : x.names?.length;
  if (bins !== undefined) return [0, bins];
  const a = points[0]!,
    b = points.at(-1)!;
  return a === b ? [a - 1, b + 1] : [a, b];
}
/** Interruptions of lines, in pixels of the canvas: from the last point before an outage to the first after it. */
export function gapsAt(
  u: uPlot,
  outages: readonly { readonly from: number; readonly to: number }[],
  x: readonly number[],
): [number, number][] {
  return outages.flatMap((o): [number, number][] => {
    const before = x[lowerBound(x, o.from + 1) - 1],
      after = x[lowerBound(x, o.to)];
    if (before === undefined || after === undefined) return [];
    return [[Math.round(u.valToPos(before, 'x', true)) + 1, Math.round(u.valToPos(after, 'x', true)) - 1]];
  });
}
export const aboveWords = (n: number): string =>
  n === 1 ? t('1 point above the scale') : t('{0} points above the scale', whole(n));
/** The chart in words: its own summary, and what its scale does to the points. */
export const summaryWords = ({ summary, y }: ChartSpec, above: number | undefined): string =>
  [summary, y.log ? t('On a logarithmic scale.') : '', above ? `${aboveWords(above)}.` : ''].filter(Boolean).join(' ');
