import type { ObjectiveOptions, ObjectiveStep } from '../../../runtime/trainer/objective/objective.js';

/** Unclipped importance sampling, -rA: what a server calls `importance_sampling`; the trainer never uses it unclipped. */
export const importanceSampling = (r: number, a: number): number => -r * a;

/**
 * The objective written down a second time, straight from runtime/trainer/README.md and without a shared line: what
 * closed forms are checked against, by central differences. `frozen` holds the log-probs at which everything is taken
 * through which no gradient flows.
 */
export function referenceLoss(
  steps: readonly ObjectiveStep[],
  o: ObjectiveOptions,
  frozen: readonly ArrayLike<number>[],
): number {
  let total = 0,
    norm = 0;
  steps.forEach((s, j) => {
    const tokens: number[] = [];
    for (let t = 0; t < s.now.length; t++) {
      const unknown = s.rollout !== undefined && !Number.isFinite(s.rollout[t]);
      if (s.mask?.[t] === 0 || (unknown && s.term === 'policy' && o.unknownBehaviour === 'masked')) continue;
      tokens.push(t);
    }
    if (tokens.length === 0 || s.weight === 0) return;
    norm += s.weight;
    let sum = 0;
    for (const t of tokens) sum += tokenLoss(s, o, frozen[j]!, tokens, t);
    total += (s.weight * sum) / tokens.length;
  });
  return norm === 0 ? 0 : total / norm;
}

function tokenLoss(
  s: ObjectiveStep,
  o: ObjectiveOptions,
  frozen: ArrayLike<number>,
  tokens: readonly number[],
  t: number,
): number {
  const x = s.now[t]!;
  if (s.term === 'imitation') return -(s.coefficient ?? o.imitationCoef) * x;
  const a = typeof s.advantage === 'number' ? s.advantage : s.advantage[t]!,
    old = (i: number): number => (s.old ?? frozen)[i]!,
    bound = (y: number, m: number): number => (y > m ? m : y < -m ? -m : y);
  const ratio = (now: ArrayLike<number>): number =>
    o.algorithm === 'gspo'
      ? Math.exp(tokens.map((i) => bound(now[i]! - old(i), 20)).reduce((p, q) => p + q) / tokens.length)
      : Math.exp(bound(now[t]! - old(t), 20));
  const clip = (r: number): number => Math.max(Math.min(r, 1 + o.epsHigh), 1 - o.epsLow);
  let l: number;
  if (o.algorithm === 'cispo') l = -clip(ratio(frozen)) * a * x;
  else {
    const r = ratio(s.now);
    l = -Math.min(r * a, clip(r) * a);
    if (a < 0 && l > -a * o.dualClip) l = -a * o.dualClip;
  }
  const roll = s.rollout;
  if (o.tis.enabled && roll && Number.isFinite(roll[t])) {
    const of = o.tis.level === 'token' ? [t] : tokens.filter((i) => Number.isFinite(roll[i]));
    l *= Math.min(
      Math.exp(
        bound(
          of.map((i) => old(i) - roll[i]!).reduce((p, q) => p + q),
          20,
        ),
      ),
      o.tis.cap,
    );
  }
  if (o.klBeta === 0) return l;
  const k = bound(s.reference![t]! - x, 20);
  return l + o.klBeta * Math.min(Math.exp(k) - k - 1, 10);
}

/**
 * Largest difference of `gradient` from central differences of `referenceLoss`, relative to the largest slope of the
 * batch, or to a thousandth of the loss: smaller slopes drown in its rounding. Exact to about 1e-8 away from kinks.
 */
export function gradientError(
  steps: readonly ObjectiveStep[],
  o: ObjectiveOptions,
  gradient: readonly ArrayLike<number>[],
): number {
  const frozen = steps.map((s) => Array.from(s.now)),
    h = 1e-5;
  let worst = 0,
    scale = 0;
  steps.forEach((s, j) => {
    for (let t = 0; t < s.now.length; t++) {
      const at = (d: number): number => {
        const now = Array.from(s.now);
        now[t]! += d;
        return referenceLoss(steps.with(j, { ...s, now }), o, frozen);
      };
      const slope = (at(h) - at(-h)) / (2 * h);
      worst = Math.max(worst, Math.abs(slope - gradient[j]![t]!));
      scale = Math.max(scale, Math.abs(slope));
    }
  });
  const loss = Math.abs(referenceLoss(steps, o, frozen));
  return worst === 0 ? 0 : worst / Math.max(scale, 1e-3 * loss, 1e-9);
}
