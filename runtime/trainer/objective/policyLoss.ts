/**
 * The policy-gradient loss of one token, to be minimised, and its derivative (runtime/trainer/README.md#policy-gradient).
 * `r` = pi/pi_old, `a` = advantage. objective.ts sums them up for a batch; native/model/lossGraph.ts computes the same
 * inside ONNX Runtime and is held to these.
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

/** max(-rA, -clip(r, 1-low, 1+high) A). */
export const ppoClip = (r: number, a: number, band: ClipBand): number =>
  Math.max(-r * a, -clamp(r, 1 - band.low, 1 + band.high) * a);

/** PPO clip bounded by -cA where A < 0, so that one very unlikely bad token cannot dominate. */
export function dualClip(r: number, a: number, band: ClipBand, c: number): number {
  const l = ppoClip(r, a, band);
  return a < 0 ? Math.min(l, -c * a) : l;
}
/** d dualClip / dr: 0 where a bound acts. */
export const dualClipSlope = (r: number, a: number, band: ClipBand, c: number): number =>
  clipState(r, a, band, c) === 'none' ? -a : 0;

/** d cispo / d log p: the ratio is a weight here, and no gradient flows through it. */
export const cispoSlope = (r: number, a: number, band: ClipBand): number => -clamp(r, 1 - band.low, 1 + band.high) * a;
/** CISPO: -sg(clip(r)) A log p; the gradient reaches every token, only its weight is clipped. */
export const cispo = (r: number, a: number, logp: number, band: ClipBand): number => cispoSlope(r, a, band) * logp;

/** d ratio / d log p: the ratio itself, and 0 beyond the bound on log-ratios. */
export const ratioSlope = (r: number, logp: number, old: number): number =>
  Math.abs(logp - old) > MAX_LOG_RATIO ? 0 : r;
