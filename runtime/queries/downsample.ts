/**
 * Min-max downsampling: which points of a curve to keep so that a chart of `max` points shows every peak and trough the
 * whole one would. Indices ascending, first and last among them; all of them when there are no more than `max`.
 */
export function downsample(values: ArrayLike<number>, max: number): number[] {
  const n = values.length;
  if (n <= max) return Array.from({ length: n }, (_, i) => i);
  if (max < 4) return [0, n - 1].slice(0, max);
  const buckets = Math.floor((max - 2) / 2),
    out: number[] = [0];
  for (let b = 0; b < buckets; b++) {
    const from = 1 + Math.floor((b * (n - 2)) / buckets),
      to = 1 + Math.floor(((b + 1) * (n - 2)) / buckets);
    if (from >= to) continue;
    let lo = from,
      hi = from;
    for (let i = from + 1; i < to; i++) {
      if (values[i]! < values[lo]!) lo = i;
      if (values[i]! > values[hi]!) hi = i;
    }
    out.push(Math.min(lo, hi));
    if (lo !== hi) out.push(Math.max(lo, hi));
  }
  out.push(n - 1);
  return out;
}
export const pick = <T>(xs: ArrayLike<T>, at: readonly number[]): T[] => at.map((i) => xs[i]!);

/** Equal bins over [lo, hi] (taken from the values when absent); what lies outside counts in the outermost bin. */
export function histogram(
  values: readonly number[],
  bins: number,
  lo = 0,
  hi = Math.max(lo, ...values.slice(0, 10_000)),
): { edges: number[]; counts: number[] } {
  const width = (hi - lo) / bins || 1 / bins,
    counts = new Array<number>(bins).fill(0);
  for (const v of values)
    if (Number.isFinite(v)) counts[Math.min(bins - 1, Math.max(0, Math.floor((v - lo) / width)))]!++;
  return { edges: Array.from({ length: bins + 1 }, (_, i) => lo + i * width), counts };
}
