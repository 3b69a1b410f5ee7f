import { clamp, type ClipBand } from '../../../runtime/trainer/objective/policyLoss.js';

/**
 * Policy-gradient losses per token, to be minimised, in plain TypeScript: what trainer/native/model/lossGraph.ts must
 * compute inside ONNX Runtime. Held to published vectors by test/unit/trainer, and the graph to them by
 * test/integration/trainer. `r` = pi/pi_old, `a` = advantage.
 */

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
