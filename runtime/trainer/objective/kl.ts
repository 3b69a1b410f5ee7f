/** Estimators of KL(pi || ref) from one sample, by x = log(ref/pi) (runtime/trainer/README.md#kl). */
export const k1 = (x: number): number => -x;
export const k3 = (x: number): number => Math.exp(x) - x - 1;

/** The KL term of the objective: k3 with x clamped to +-20 and the result to +-10 (runtime/trainer/README.md#kl). */
export function klTerm(logp: number, ref: number): number {
  const x = Math.min(Math.max(ref - logp, -20), 20);
  return Math.min(Math.max(k3(x), -10), 10);
}
