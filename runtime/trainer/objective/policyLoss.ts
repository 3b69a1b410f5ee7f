/**
 * Ratios and clip bounds of the policy-gradient loss (runtime/trainer/README.md#policy-gradient), for the report of an update. `r` =
 * pi/pi_old, `a` = advantage. The loss itself is computed inside ONNX Runtime (native/model/lossGraph.ts).
 */

/** Bound on log-ratios before exponentiation. */
export const MAX_LOG_RATIO = 20;
export const clamp = (x: number, lo: number, hi: number): number => Math.min(Math.max(x, lo), hi);
export const ratioOf = (logp: number, old: number): number =>
  Math.exp(clamp(logp - old, -MAX_LOG_RATIO, MAX_LOG_RATIO));

export interface ClipBand {
  readonly low: number;
  readonly high: number;
}

/** GSPO's ratio of a whole step: exp of the mean log-ratio over its tokens. */
export function gspoRatio(logp: ArrayLike<number>, old: ArrayLike<number>): number {
  let s = 0;
  for (let i = 0; i < logp.length; i++) s += clamp(logp[i]! - old[i]!, -MAX_LOG_RATIO, MAX_LOG_RATIO);
  return Math.exp(s / Math.max(1, logp.length));
}

/** Which bound a ratio hits, for the clip fractions of the report. */
export function clipState(r: number, a: number, band: ClipBand, c: number): 'none' | 'low' | 'high' | 'dual' {
  if (a > 0 && r > 1 + band.high) return 'high';
  if (a < 0 && r > c) return 'dual';
  if (a < 0 && r < 1 - band.low) return 'low';
  return 'none';
}
