/** The axes of a chart: where ticks are and what stands at them. */
import type uPlot from 'uplot';
import { binPosition, binValue, decadeTicks, durationTicks, niceTicks } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import type { Theme } from './chartTheme.js';

export interface AxisLook {
  readonly theme: Theme;
  readonly font: string;
  /** Height of the chart, in pixels. */
  readonly height: number;
  /** Whether it has no axes. */
  readonly compact: boolean;
}
/** `spec`: the chart's newest; one of another shape gets axes of its own. */
export function axesOf(spec: () => ChartSpec, o: AxisLook): uPlot.Axis[] {
  const { x } = spec(),
    line = { stroke: o.theme.grid, width: 1 },
    axis = {
      stroke: o.theme.dim,
      font: o.font,
      grid: line,
      ticks: { ...line, size: 4 },
      gap: 3,
      show: !o.compact,
    },
    label = x.kind === 'time' ? {} : { label: x.label, labelFont: o.font, labelSize: 18, labelGap: 0 };
  return [
    {
      ...axis,
      size: 26,
      splits: (u, _i, min, max) => xTicks(spec(), min, max, u.width),
      values: (_u, splits) => xNames(spec(), splits),
      ...label,
    },
    {
      ...axis,
      size: (_u, values) =>
        12 + Math.round(o.theme.fontPx * 0.5 * Math.max(3, ...(values ?? []).map((v) => String(v).length))),
      splits: (_u, _i, min, max) => yTicks(spec(), min, max, Math.max(2, Math.floor(o.height / 38))),
      values: (_u, splits) => yNames(spec(), splits),
    },
  ];
}
const stepOf = (splits: readonly number[]): number => (splits.length > 1 ? splits[1]! - splits[0]! : 0);
function yTicks({ y }: ChartSpec, min: number, max: number, wanted: number): number[] {
  return y.log ? decadeTicks(min, max, wanted) : niceTicks(min, max, wanted, y.integers);
}
function yNames({ y }: ChartSpec, splits: readonly number[]): string[] {
  if (y.log) return splits.map((v) => y.format(10 ** v));
  return once(splits.map((v) => y.tick?.(v, stepOf(splits)) ?? y.format(v)));
}
function xTicks({ x }: ChartSpec, min: number, max: number, width: number): number[] {
  const wanted = Math.max(2, Math.floor(width / (x.kind === 'bins' ? 64 : 90)));
  if (x.names) {
    const every = Math.max(1, Math.ceil(x.names.length / wanted));
    return x.names.flatMap((_, i) => (i % every === 0 ? [i + 0.5] : []));
  }
  // Round values of what the bins hold, wherever between two edges they lie.
  if (x.edges)
    return niceTicks(x.edges[0] ?? 0, x.edges.at(-1) ?? 1, wanted)
      .map((v) => binPosition(x.edges!, v))
      .filter((v) => v >= min && v <= max);
  return x.kind === 'time' ? durationTicks(min, max, wanted) : niceTicks(min, max, wanted, true);
}
function xNames({ x }: ChartSpec, splits: readonly number[]): string[] {
  if (x.names) return splits.map((v) => x.names![Math.floor(v)] ?? '');
  if (x.edges) {
    const values = splits.map((v) => binValue(x.edges!, v));
    return once(values.map((v) => x.tick(v, stepOf(values))));
  }
  const step = splits.length > 1 ? stepOf(splits) : (splits[0] ?? 0) % 60_000 === 0 ? 60_000 : 1000;
  return once(splits.map((v) => x.tick(v, step)));
}
/** Words that would repeat those before them say nothing: their place stays empty. */
const once = (words: readonly string[]): string[] => words.map((w, i) => (words.indexOf(w) === i ? w : ''));
