import { coordinate, table, text } from './html.js';

/** A chart that stands still: SVG with a sentence for screen readers, and its numbers as a table. */
export interface PlotSeries {
  readonly label: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly low?: readonly number[];
  readonly high?: readonly number[];
  /** Points with bars for their intervals, joined; else a line with a band. */
  readonly points?: boolean;
}
export interface Plot {
  readonly title: string;
  readonly says?: string;
  readonly series: readonly PlotSeries[];
  /** ms. */
  readonly x: { readonly label: string; readonly format: (v: number) => string };
  /** `log`: by powers of ten; what is 0, or six of them below the largest value, lies at the bottom. */
  readonly y: {
    readonly format: (v: number) => string;
    readonly range?: readonly [number, number];
    readonly log?: boolean;
  };
  readonly wide?: boolean;
}

const HEIGHT = 190,
  LEFT = 52,
  RIGHT = 14,
  TOP = 8,
  BOTTOM = 34;
/** Rows of a chart's table; a curve has more points than anybody reads. */
const MOST_ROWS = 60;

const MOST_TICKS = 100;
/** A round number at or above a fifth of the span. */
function tickStep(span: number): number {
  const raw = span / 4,
    unit = 10 ** Math.floor(Math.log10(raw));
  return unit * ([1, 2, 2.5, 5, 10].find((k) => k * unit >= raw * 0.999) ?? 10);
}
export function ticks(low: number, high: number): number[] {
  // Values that differ by next to nothing of their size have no room for round ones between them.
  if (!(high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)))) return [low];
  const by = tickStep(high - low),
    first = Math.ceil(low / by - 1e-9);
  if (!Number.isFinite(by) || low + by === low) return [low];
  return Array.from({ length: Math.min(MOST_TICKS, Math.floor(high / by + 1e-9) - first + 1) }, (_, i) => {
    const v = (first + i) * by;
    return Math.abs(v) < by * 1e-9 ? 0 : v;
  });
}

const SECOND = 1000,
  MINUTE = 60 * SECOND,
  HOUR = 60 * MINUTE,
  TIMES = [
    ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
    ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
    ...[1, 2, 3, 6, 12, 24, 48, 120].map((n) => n * HOUR),
  ];
/** Round times, at most eight of them. */
export function timeTicks(low: number, high: number): number[] {
  const by = TIMES.find((t) => (high - low) / t <= 7) ?? (high - low) / 4;
  return Array.from(
    { length: Math.floor(high / by) - Math.ceil(low / by) + 1 },
    (_, i) => (Math.ceil(low / by) + i) * by,
  );
}

function extent(values: readonly number[]): [number, number] {
  let low = Infinity,
    high = -Infinity;
  for (const v of values)
    if (Number.isFinite(v)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  if (low > high) return [0, 1];
  if (low === high) return [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
  return [low, high];
}

/** Maps values to places between bottom (0) and top (1), and says which of them have a line. */
interface Scale {
  readonly at: (v: number) => number;
  readonly ticks: readonly number[];
}
function linear([low, high]: readonly [number, number]): Scale {
  return { at: (v) => (v - low) / (high - low), ticks: ticks(low, high) };
}
const MOST_POWERS = 6;
export function logarithmic(values: readonly number[]): Scale {
  const powers = values.filter((v) => v > 0 && v < Infinity).map(Math.log10);
  if (powers.length === 0) return linear(extent(values));
  const top = Math.max(...powers.map(Math.ceil)),
    bottom = Math.min(top - 1, Math.max(top - MOST_POWERS, Math.floor(Math.min(...powers))));
  return {
    at: (v) => (v > 0 ? Math.max(0, (Math.log10(v) - bottom) / (top - bottom)) : 0),
    ticks: Array.from({ length: top - bottom + 1 }, (_, i) => 10 ** (bottom + i)),
  };
}

export function plot(p: Plot): string {
  const series = p.series.filter((s) => s.x.length > 0);
  if (series.length === 0) return '';
  const width = p.wide === true ? 1000 : 420,
    [x0, x1] = extent(series.flatMap((s) => [...s.x])),
    ys = series.flatMap((s) => [...s.y, ...(s.low ?? []), ...(s.high ?? [])]),
    y = p.y.log === true ? logarithmic(ys) : linear(p.y.range ?? extent(ys)),
    px = (x: number): string => coordinate(LEFT + ((x - x0) / (x1 - x0)) * (width - LEFT - RIGHT)),
    py = (v: number): string => coordinate(TOP + (1 - y.at(v)) * (HEIGHT - TOP - BOTTOM));
  const rows = y.ticks.map(
      (v) =>
        `<path class="grid" d="M${LEFT} ${py(v)}H${width - RIGHT}"/><text x="${LEFT - 6}" y="${py(v)}" dy="4" text-anchor="end">${text(p.y.format(v))}</text>`,
    ),
    columns = timeTicks(x0, x1).map(
      (v) => `<text x="${px(v)}" y="${HEIGHT - BOTTOM + 14}" text-anchor="middle">${text(p.x.format(v))}</text>`,
    ),
    drawn = series.map((s, i) => ink(s, i, px, py)),
    last = series.map((s) => `${s.label}: ${p.y.format(s.y.at(-1)!)} at the end`).join('; ');
  return `<figure${p.wide === true ? ' class="first"' : ''}><h3>${text(p.title)}</h3>${p.says === undefined ? '' : `<p class="dim">${text(p.says)}</p>`}
<div class="legend">${series.map((s, i) => `<span><svg viewBox="0 0 26 10" aria-hidden="true"><path class="line s${i % 4}" d="M0 5H26"/></svg>${text(s.label)}</span>`).join('')}</div>
<svg class="plot" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${text(`${p.title}. ${last}.`)}">${rows.join('')}${columns.join('')}<text x="${(width + LEFT) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${text(p.x.label)}</text>${drawn.join('')}</svg>
<details><summary>Numbers</summary>${series.map((s) => numbers(p, s)).join('')}</details></figure>`;
}

function ink(s: PlotSeries, i: number, px: (x: number) => string, py: (y: number) => string): string {
  const { low, high } = s,
    hue = `s${i % 4}`,
    line = s.x.map((x, k) => `${k === 0 ? 'M' : 'L'}${px(x)} ${py(s.y[k]!)}`).join('');
  const intervals =
    !low || !high
      ? ''
      : s.points === true
        ? `<path class="line ${hue}" d="${s.x.map((x, k) => `M${px(x)} ${py(low[k]!)}V${py(high[k]!)}`).join('')}"/>`
        : `<path class="band ${hue}" d="${s.x.map((x, k) => `${k === 0 ? 'M' : 'L'}${px(x)} ${py(high[k]!)}`).join('')}${s.x
            .map((_, k) => s.x.length - 1 - k)
            .map((k) => `L${px(s.x[k]!)} ${py(low[k]!)}`)
            .join('')}Z"/>`;
  const dots =
    s.points === true
      ? s.x.map((x, k) => `<circle class="dot ${hue}" cx="${px(x)}" cy="${py(s.y[k]!)}" r="4.5"/>`).join('')
      : '';
  return `${intervals}<path class="line ${hue}" d="${line}"/>${dots}`;
}

function numbers(p: Plot, s: PlotSeries): string {
  const every = Math.max(1, Math.ceil(s.x.length / MOST_ROWS)),
    rows = s.x.flatMap((x, k) =>
      k % every === 0 || k === s.x.length - 1
        ? [
            [
              text(p.x.format(x)),
              text(p.y.format(s.y[k]!)),
              s.low && s.high ? text(`${p.y.format(s.low[k]!)} to ${p.y.format(s.high[k]!)}`) : '',
            ],
          ]
        : [],
    ),
    banded = s.low !== undefined;
  return table(
    every > 1 ? `${s.label} (every ${every}th of ${s.x.length} points)` : s.label,
    [p.x.label, 'Value', ...(banded ? ['95 %'] : [])],
    rows.map((r) => (banded ? r : r.slice(0, 2))),
  );
}
