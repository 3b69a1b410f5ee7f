/** The axes of a chart: where ticks are and what stands at them. */
import type uPlot from 'uplot';
import { durationTicks, niceTicks } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import type { Theme } from './chartTheme.js';

export interface AxisLook {
  readonly theme: Theme;
  readonly font: string;
  /** Of the chart, in pixels. */
  readonly height: number;
  /** Without axes. */
  readonly compact: boolean;
}
/** `spec`: the chart's newest; one of another shape gets axes of its own. */
export function axesOf(spec: () => ChartSpec, o: AxisLook): uPlot.Axis[] {
  const { x, y } = spec(),
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
      splits: (_u, _i, min, max) => niceTicks(min, max, Math.max(2, Math.floor(o.height / 38)), y.integers),
      values: (_u, splits) => splits.map((v) => y.format(v)),
    },
  ];
}
function xTicks({ x }: ChartSpec, min: number, max: number, width: number): number[] {
  const wanted = Math.max(2, Math.floor(width / (x.kind === 'bins' ? 64 : 90)));
  if (x.names) return x.names.map((_, i) => i + 0.5);
  return x.kind === 'time' ? durationTicks(min, max, wanted) : niceTicks(min, max, wanted, true);
}
function xNames({ x }: ChartSpec, splits: readonly number[]): string[] {
  const step = splits.length > 1 ? splits[1]! - splits[0]! : (splits[0] ?? 0) % 60_000 === 0 ? 60_000 : 1000;
  return splits.map((v) =>
    x.names ? (x.names[Math.floor(v)] ?? '') : x.edges ? x.format(x.edges[Math.round(v)] ?? NaN) : x.tick(v, step),
  );
}
