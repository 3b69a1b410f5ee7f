/** A chart as data. Each series has its own ascending x; the chart joins them. */
import type { TableFilter } from '../../runtime/protocol/types.js';
import type { Cell, Range } from './chartMath.js';

/** Colours by name; what they are is the theme's (chartTheme.ts). */
export type Hue = 'blue' | 'green' | 'red' | 'orange' | 'yellow' | 'purple' | 'plain';

export type Shape = 'diamond' | 'square' | 'triangle';
interface Common {
  readonly label: string;
  readonly hue: Hue;
  readonly x: readonly number[];
  readonly y: readonly Cell[];
  /** Confidence band of a line, error bars of points. */
  readonly low?: readonly Cell[];
  readonly high?: readonly Cell[];
}
export type ChartSeries = Common &
  (
    | { readonly kind: 'line' | 'steps'; readonly dash?: readonly number[]; readonly width?: number }
    /** `joined`: a line from one to the next. */
    | { readonly kind: 'points'; readonly shape: Shape; readonly joined?: boolean }
    | { readonly kind: 'bars' }
  );
/** A straight line across: a bound, a threshold. */
export interface Mark {
  readonly axis: 'x' | 'y';
  readonly at: number;
  readonly label: string;
  readonly hue: Hue;
}

export interface XAxis {
  readonly kind: 'time' | 'number' | 'bins';
  readonly label: string;
  /** Edges of bins: n + 1 ascending; x of bin i is i + 0.5. */
  readonly edges?: readonly number[];
  /** Bins named one by one instead of by their edges. */
  readonly names?: readonly string[];
  readonly format: (x: number) => string;
  /** Ticks; `step` is their distance. */
  readonly tick: (x: number, step: number) => string;
}
export interface YAxis {
  readonly format: (y: number) => string;
  /** Ticks; `step` is their distance. Without it `format` says them. */
  readonly tick?: (y: number, step: number) => string;
  /** The scale goes by decades; values that are not above 0 are at the bottom. */
  readonly log?: boolean;
  readonly range?: Range;
  /** Always inside the range. */
  readonly floor?: number;
  readonly ceil?: number;
  readonly integers?: boolean;
}
export interface ChartSpec {
  readonly x: XAxis;
  readonly y: YAxis;
  readonly series: readonly ChartSeries[];
  readonly marks?: readonly Mark[];
  /** Beginnings of phases along x. */
  readonly phases?: readonly { readonly at: number; readonly label: string }[];
  /** Stretches of x in which nothing was going on: lines stop at one and go on after it. */
  readonly outages?: readonly { readonly from: number; readonly to: number }[];
  /** The trajectories behind a point, by its place along x and among the points; undefined where none are. */
  readonly behind?: (x: number, at: number) => TableFilter | undefined;
  /** The chart in a sentence or two. */
  readonly summary: string;
  /** Instead of a plot when there is no point. */
  readonly empty: string;
}

export const isEmpty = (s: ChartSpec): boolean => s.series.every((x) => x.x.length === 0);
/** uPlot's columns per series: the values, then the edges of a band. */
export const columnsOf = (s: ChartSeries): readonly (readonly Cell[])[] =>
  s.low && s.high ? [s.y, s.low, s.high] : [s.y];
/** Series that differ in more than their numbers need a new plot. */
export const shapeOf = (s: ChartSpec): string =>
  JSON.stringify([
    s.x.kind,
    s.y.log,
    s.series.map((x) => [x.kind, x.label, x.hue, x.low !== undefined, 'dash' in x ? x.dash : 0]),
  ]);
