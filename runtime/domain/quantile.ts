/**
 * Quantile with linear interpolation between order statistics; `q` in [0, 1]. Undefined for no values; beside a value that
 * is infinite it is that value.
 */
export function quantile(values: readonly number[], q: number): number | undefined {
  if (values.length === 0) return undefined;
  const xs = [...values].sort((a, b) => a - b);
  const at = Math.min(1, Math.max(0, q)) * (xs.length - 1);
  const lo = Math.floor(at),
    a = xs[lo]!,
    b = xs[Math.min(lo + 1, xs.length - 1)]!;
  if (at === lo || !Number.isFinite(a)) return a;
  return Number.isFinite(b) ? a + (b - a) * (at - lo) : b;
}
