/** Geometry and arithmetic of charts: ticks, ranges, down-sampling, joining series on one axis. Pure. */

export interface Range {
  readonly min: number;
  readonly max: number;
}
export type Cell = number | null;

/** Round steps 1, 2, 5 x 10^n: about `count` of them cover the range. Values lie inside [min, max]. */
export function niceTicks(min: number, max: number, count: number, integers = false): number[] {
  if (!(max > min) || count < 1) return Number.isFinite(min) ? [min] : [];
  const raw = (max - min) / count,
    power = 10 ** Math.floor(Math.log10(raw)),
    m = raw / power;
  let step = (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * power;
  if (integers) step = Math.max(1, Math.round(step));
  return multiples(min, max, step);
}

const secondsSteps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];
/** Ticks of a duration axis in ms: whole seconds, minutes, hours, days. Below a second decimal steps. */
export function durationTicks(min: number, max: number, count: number): number[] {
  const span = max - min;
  if (!(span > 0) || count < 1) return [];
  if (span / count < 1000) return niceTicks(min, max, count, true);
  const i = secondsSteps.findIndex((s) => s * 1000 >= span / count);
  if (i < 0) return multiples(min, max, Math.ceil(span / count / 604_800_000) * 604_800_000);
  const ticks = multiples(min, max, secondsSteps[i]! * 1000);
  // A single tick says nothing about the scale.
  return ticks.length < 2 && i > 0 ? multiples(min, max, secondsSteps[i - 1]! * 1000) : ticks;
}
const MOST_TICKS = 100;
/** By their number, never by adding up: a step may be less than what two large values differ by. */
function multiples(min: number, max: number, step: number): number[] {
  const first = Math.ceil(min / step - 1e-9),
    last = Math.floor(max / step + 1e-9);
  if (!Number.isFinite(step) || max - min <= 1e-12 * Math.max(Math.abs(min), Math.abs(max))) return [min];
  return Array.from({ length: Math.max(0, Math.min(MOST_TICKS, last - first + 1)) }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

/**
 * Indices to keep so that at most `limit` points still show every peak: first, last and the extremes of each bucket,
 * ascending.
 */
export function keepExtremes(values: readonly number[], limit: number): number[] {
  const n = values.length;
  if (n <= limit || limit < 4)
    return Array.from({ length: Math.min(n, Math.max(limit, n <= limit ? n : 0)) }, (_, i) => i);
  const buckets = Math.floor((limit - 2) / 2),
    out = [0];
  for (let b = 0; b < buckets; b++) {
    const from = 1 + Math.floor((b * (n - 2)) / buckets),
      to = 1 + Math.floor(((b + 1) * (n - 2)) / buckets);
    let lo = from,
      hi = from;
    for (let i = from; i < to; i++) {
      if (values[i]! < values[lo]!) lo = i;
      if (values[i]! > values[hi]!) hi = i;
    }
    if (to > from) {
      out.push(Math.min(lo, hi));
      if (lo !== hi) out.push(Math.max(lo, hi));
    }
  }
  out.push(n - 1);
  return out;
}

/**
 * Vertical range that shows the bulk of the values: when single points tower over the rest (more than 6 x the 95th
 * percentile), they are left outside and counted in `above`. `floor`/`ceil` are always inside.
 */
export function robustRange(
  values: Iterable<Cell>,
  o: { readonly floor?: number; readonly ceil?: number } = {},
): Range & { readonly above: number } {
  const xs: number[] = [];
  for (const v of values) if (v !== null && Number.isFinite(v)) xs.push(v);
  if (xs.length === 0) return { min: o.floor ?? 0, max: o.ceil ?? 1, above: 0 };
  xs.sort((a, b) => a - b);
  const low = xs[0]!,
    p95 = xs[Math.floor((xs.length - 1) * 0.95)]!,
    high = xs.at(-1)!;
  const towers = xs.length >= 20 && p95 > low && high - low > 6 * (p95 - low);
  const top = towers ? low + (p95 - low) * 1.6 : high;
  let min = Math.min(low, o.floor ?? low),
    max = Math.max(top, o.ceil ?? top);
  if (min === max) {
    const d = Math.abs(min) * 0.1 || 1;
    min -= o.floor === undefined ? d : 0;
    max += d;
  }
  const pad = (max - min) * 0.06;
  return {
    min: o.floor !== undefined && min >= o.floor ? min : min - pad,
    max: o.ceil !== undefined && max <= o.ceil ? max : max + pad,
    above: towers ? xs.filter((x) => x > max + pad).length : 0,
  };
}

/**
 * Several series, each with its own ascending x, on the union of all x; holes are null. Equal x within a series: the
 * last one counts.
 */
export function joinOnX(
  series: readonly { readonly x: readonly number[]; readonly columns: readonly (readonly Cell[])[] }[],
): { readonly x: number[]; readonly columns: Cell[][][] } {
  const x = [...new Set(series.flatMap((s) => s.x))].sort((a, b) => a - b);
  const columns = series.map((s) => {
    const out = s.columns.map(() => new Array<Cell>(x.length).fill(null));
    let j = 0;
    for (let i = 0; i < s.x.length; i++) {
      while (x[j]! < s.x[i]!) j++;
      s.columns.forEach((c, k) => {
        out[k]![j] = c[i] ?? null;
      });
    }
    return out;
  });
  return { x, columns };
}

/**
 * Rows for names that begin at ascending places and are so wide, such that none runs into another or beyond `end`;
 * undefined where there is no row left for one, its place is outside, or the next begins within `near` of it: of places
 * that cannot be told apart the last alone has its name.
 */
export function rowsFor(
  names: readonly { readonly at: number; readonly width: number }[],
  o: {
    readonly start: number;
    readonly end: number;
    readonly rows: number;
    readonly gap: number;
    readonly near?: number;
  },
): (number | undefined)[] {
  const free = new Array<number>(o.rows).fill(-Infinity);
  return names.map(({ at, width }, i) => {
    if ((names[i + 1]?.at ?? Infinity) - at < (o.near ?? 0)) return undefined;
    const row = free.findIndex((from) => at >= from);
    if (row < 0 || at < o.start || at + width > o.end) return undefined;
    free[row] = at + width + o.gap;
    return row;
  });
}

/** The value a line has at index i: its own or the last one before it. */
export function valueAt(column: readonly Cell[], i: number): number | undefined {
  for (let k = Math.min(i, column.length - 1); k >= 0; k--) {
    const v = column[k];
    if (v !== null && v !== undefined) return v;
  }
  return undefined;
}

/** Index of the x nearest to `at`; -1 when there is none. */
export function nearest(x: readonly number[], at: number): number {
  if (x.length === 0) return -1;
  const i = lowerBound(x, at);
  if (i === 0) return 0;
  if (i === x.length) return i - 1;
  return x[i]! - at < at - x[i - 1]! ? i : i - 1;
}
/** First index whose x is not below `at`. */
export function lowerBound(x: readonly number[], at: number): number {
  let lo = 0,
    hi = x.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (x[mid]! < at) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** The cursor's next place among n points after a key; undefined: not a key of ours. */
export function moveCursor(key: string, i: number | undefined, n: number, shift = false): number | undefined {
  if (n === 0) return undefined;
  const page = Math.max(1, Math.round(n / 10)),
    at = i ?? n - 1,
    step = shift ? page : 1;
  const to =
    key === 'ArrowLeft' || key === 'ArrowDown'
      ? i === undefined
        ? n - 1
        : at - step
      : key === 'ArrowRight' || key === 'ArrowUp'
        ? i === undefined
          ? 0
          : at + step
        : key === 'PageDown'
          ? at - page
          : key === 'PageUp'
            ? at + page
            : key === 'Home'
              ? 0
              : key === 'End'
                ? n - 1
                : undefined;
  return to === undefined ? undefined : Math.max(0, Math.min(n - 1, to));
}

/**
 * Place of a value among histogram bins, in bins from the left: 1.5 = the middle of the second. Outside values stick to
 * the ends.
 */
export function binPosition(edges: readonly number[], value: number): number {
  const n = edges.length - 1;
  if (n < 1 || value <= edges[0]!) return 0;
  if (value >= edges[n]!) return n;
  const i = lowerBound(edges, value),
    b = edges[i] === value ? i : i - 1;
  return b + (value - edges[b]!) / (edges[b + 1]! - edges[b]!);
}
/** The value at a place among histogram bins: the inverse of `binPosition`. */
export function binValue(edges: readonly number[], place: number): number {
  const i = Math.max(0, Math.min(edges.length - 2, Math.floor(place)));
  return Number(((edges[i] ?? 0) + ((edges[i + 1] ?? 0) - (edges[i] ?? 0)) * (place - i)).toPrecision(12));
}
/** Ticks of a logarithmic axis whose range is given in powers of ten: whole powers, and 2 and 5 where there is room. */
export function decadeTicks(min: number, max: number, count: number): number[] {
  const out: number[] = [],
    span = max - min,
    within = span * 3 <= count ? [1, 2, 5] : [1],
    every = Math.max(1, Math.ceil(span / Math.max(1, count)));
  if (!Number.isFinite(span)) return [];
  const first = Math.floor(min / every),
    powers = Array.from({ length: Math.min(MOST_TICKS, Math.floor(max / every) - first + 1) }, (_, i) => first + i);
  for (const power of powers)
    for (const m of within) {
      const at = power * every + Math.log10(m);
      if (at >= min - 1e-9 && at <= max + 1e-9) out.push(Number(at.toPrecision(12)));
    }
  return out;
}
