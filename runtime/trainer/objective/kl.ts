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
