/** Wilson score interval of a success rate, 95 %. n = 0 gives [0, 1]. */
export function wilson(
  successes: number,
  n: number,
  z = 1.959964,
): { readonly rate: number; readonly low: number; readonly high: number } {
  if (n === 0) return { rate: NaN, low: 0, high: 1 };
  const p = successes / n;
  const z2 = z * z;
  const centre = (p + z2 / (2 * n)) / (1 + z2 / n);
  const half = (z / (1 + z2 / n)) * Math.sqrt((p * (1 - p)) / n + z2 / (4 * n * n));
  return { rate: p, low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}
