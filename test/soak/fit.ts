/** Figures over time. Pure. */

export interface Point {
  /** ms. */
  readonly at: number;
  readonly value: number;
}
export interface Slope {
  /** Per hour. */
  readonly perHour: number;
  /** One standard error of it. */
  readonly error: number;
  readonly mean: number;
}

const HOUR_MS = 3_600_000;

/** Least squares; a slope that is not known (fewer than three points) is NaN. */
export function slopeOf(points: readonly Point[]): Slope {
  const n = points.length,
    mean = (f: (p: Point) => number): number => points.reduce((sum, p) => sum + f(p), 0) / n,
    at = mean((p) => p.at),
    value = mean((p) => p.value),
    spread = points.reduce((sum, p) => sum + (p.at - at) ** 2, 0);
  if (n < 3 || spread === 0) return { perHour: NaN, error: NaN, mean: n > 0 ? value : NaN };
  const slope = points.reduce((sum, p) => sum + (p.at - at) * (p.value - value), 0) / spread,
    rest = points.reduce((sum, p) => sum + (p.value - value - slope * (p.at - at)) ** 2, 0);
  return { perHour: slope * HOUR_MS, error: Math.sqrt(rest / (n - 2) / spread) * HOUR_MS, mean: value };
}

/** The value that a share `q` of all is not above. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? NaN;
}

/** What is left when the first share of the time is not counted: caches and pools fill then. */
export function settled<P extends Point>(points: readonly P[], warmUp: number): P[] {
  const from = points[0]?.at ?? 0,
    to = points.at(-1)?.at ?? 0;
  return points.filter((p) => p.at >= from + warmUp * (to - from));
}

/** The lowest point of each stretch of so many ms. */
export function lowest<P extends Point>(points: readonly P[], everyMs: number): P[] {
  const out = new Map<number, P>();
  for (const p of points) {
    const stretch = Math.floor((p.at - points[0]!.at) / everyMs),
      least = out.get(stretch);
    if (!least || p.value < least.value) out.set(stretch, p);
  }
  return [...out.values()];
}
