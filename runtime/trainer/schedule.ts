/** Linear warm-up over the first tenth (at most 50 steps), then a cosine down to 5 %. */
export function imitationRate(lr: number, step: number, steps: number): number {
  const warm = Math.max(1, Math.min(50, Math.floor(steps / 10)));
  if (step < warm) return (lr * (step + 1)) / warm;
  const x = (step - warm) / Math.max(1, steps - warm);
  return lr * (0.05 + 0.95 * 0.5 * (1 + Math.cos(Math.PI * x)));
}
/** A lesson reports the losses of this last share of its steps: what it reached, not the way there. */
export const REPORTED_SHARE = 1 / 10;
/** Optimizer steps whose losses are reported. */
export const reportedSteps = (steps: number): number => Math.max(1, Math.ceil(steps * REPORTED_SHARE));

/** `n` things in parts of at most `size`, sizes unlike by at most one, so that none is left over; 0 = one part. */
export function equalParts<T>(items: readonly T[], size: number): T[][] {
  const n = items.length,
    parts = size > 0 ? Math.max(1, Math.ceil(n / size)) : 1;
  return Array.from({ length: parts }, (_, i) =>
    items.slice(Math.floor((i * n) / parts), Math.floor(((i + 1) * n) / parts)),
  );
}
