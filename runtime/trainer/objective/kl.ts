/** Estimators of KL(pi || ref) from one sample, by x = log(ref/pi) (runtime/trainer/README.md#kl). */
export const k1 = (x: number): number => -x;
export const k3 = (x: number): number => Math.exp(x) - x - 1;

/** Bounds on the KL estimate and on the log-ratio it is made of (runtime/trainer/README.md#kl). */
const MAX_KL = 10,
  MAX_X = 20;

/** The KL term of the objective: k3 with x clamped to +-20 and the result to +-10 (runtime/trainer/README.md#kl). */
export function klTerm(logp: number, ref: number): number {
  const x = Math.min(Math.max(ref - logp, -MAX_X), MAX_X);
  return Math.min(Math.max(k3(x), -MAX_KL), MAX_KL);
}
/** d klTerm / d log p = 1 - ref/pi, and 0 where a bound acts. */
export function klSlope(logp: number, ref: number): number {
  const x = ref - logp;
  return Math.abs(x) > MAX_X || k3(x) > MAX_KL ? 0 : 1 - Math.exp(x);
}

/** Log-probs of a step's tokens, f32[T]: of the policy now, as the update began, and of the one that sampled them. */
export interface Moved {
  readonly now: ArrayLike<number>;
  readonly old: ArrayLike<number>;
  readonly rollout: ArrayLike<number> | undefined;
}
/**
 * KL(pi_old || pi), nats per token: how far an update has moved the policy (runtime/trainer/README.md#target-kl). The
 * mean of k3, bounded as the KL term is, over tokens that a policy sampled and whose log-prob it recorded; NaN without
 * any. A demonstrated token is no sample: it would count by how unlikely it was, in an injected success too.
 */
export function klMoved(steps: Iterable<Moved>): number {
  let sum = 0,
    n = 0;
  for (const { now, old, rollout } of steps)
    for (let t = 0; rollout && t < rollout.length; t++) {
      if (!Number.isFinite(rollout[t])) continue;
      sum += klTerm(old[t]!, now[t]!);
      n++;
    }
  return n === 0 ? NaN : sum / n;
}

/**
 * How far above the target the noisy estimate of one minibatch may be: the factor of Spinning Up and Stable-Baselines3.
 */
const TOLERANCE = 1.5;
/** Whether an update ends before the step of the minibatch that `kl` was measured on; never for target 0. Pure. */
export const movedTooFar = (kl: number, target: number): boolean => target > 0 && kl > TOLERANCE * target;
