/**
 * Policy-gradient losses per token, to be minimised (runtime/trainer/README.md#policy-gradient). `r` = pi/pi_old, `a` =
 * advantage. This is the readable reference of what model/lossGraph.ts computes inside ONNX Runtime; tests hold the two
 * together.
 */

/** Bounds of log-ratios before exponentiation (3g). */
export const MAX_LOG_RATIO = 20;
export const clamp = (x: number, lo: number, hi: number): number => Math.min(Math.max(x, lo), hi);
export const ratioOf = (logp: number, old: number): number =>
  Math.exp(clamp(logp - old, -MAX_LOG_RATIO, MAX_LOG_RATIO));

export interface ClipBand {
  readonly low: number;
  readonly high: number;
}

/** Unclipped importance sampling: -rA. */
export const importanceSampling = (r: number, a: number): number => -r * a;

/** max(-rA, -clip(r, 1-low, 1+high) A). */
export const ppoClip = (r: number, a: number, band: ClipBand): number =>
  Math.max(-r * a, -clamp(r, 1 - band.low, 1 + band.high) * a);

/** PPO clip bounded by -cA where A < 0, so that one very unlikely bad token cannot dominate. */
export function dualClip(r: number, a: number, band: ClipBand, c: number): number {
  const l = ppoClip(r, a, band);
  return a < 0 ? Math.min(l, -c * a) : l;
}

/** CISPO: -sg(clip(r)) A log p; the gradient reaches every token, only its weight is clipped. */
export const cispo = (r: number, a: number, logp: number, band: ClipBand): number =>
  -clamp(r, 1 - band.low, 1 + band.high) * a * logp;

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

/**
 * Mean over each step's tokens, then weighted mean over steps ("seq-mean-token-mean"). A step without tokens or weight
 * does not count.
 */
export function seqMeanTokenMean(losses: readonly ArrayLike<number>[], weights?: readonly number[]): number {
  let total = 0,
    norm = 0;
  losses.forEach((step, i) => {
    const w = weights?.[i] ?? 1;
    if (step.length === 0 || w === 0) return;
    let s = 0;
    for (let t = 0; t < step.length; t++) s += step[t]!;
    total += (w * s) / step.length;
    norm += w;
  });
  return norm === 0 ? 0 : total / norm;
}
