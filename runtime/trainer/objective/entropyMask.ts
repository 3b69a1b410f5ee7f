/** High-entropy selection over tokens (TRL's form; spec/losses.md). Steps are selected by the data manager with the same quantile. */

/** Quantile by linear interpolation between order statistics, q in [0, 1]. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return NaN;
  const s = [...values].sort((a, b) => a - b), at = q * (s.length - 1), i = Math.floor(at);
  return s[i]! + (at - i) * ((s[i + 1] ?? s[i]!) - s[i]!);
}

/** true where a token is unpadded and its entropy reaches the q-quantile over all unpadded tokens. */
export function highEntropyMask(entropies: readonly (readonly number[])[], unpadded: readonly (readonly boolean[])[], q: number): boolean[][] {
  const real = entropies.flatMap((row, i) => row.filter((_, j) => unpadded[i]![j]));
  const threshold = quantile(real, q);
  // A value interpolated onto itself may differ in the last bit: compare with a margin far below any real difference.
  return entropies.map((row, i) => row.map((h, j) => unpadded[i]![j]! && h >= threshold - 1e-12));
}
