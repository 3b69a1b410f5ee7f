/** How the losses of tokens become the loss of a batch (runtime/trainer/README.md#aggregation). */

/**
 * Weight of each kept step: the steps of a trajectory share its weight 1, or every step weighs 1 (the paper's mean over
 * steps, in which long trajectories weigh more). `kept` = steps of its trajectory that are trained.
 */
export const stepWeight = (balance: 'step' | 'trajectory', kept: number): number =>
  balance === 'trajectory' ? 1 / Math.max(1, kept) : 1;

/**
 * What each token's loss counts in "seq-mean-token-mean", per step: weight / sum of weights / number of tokens. A step
 * without tokens or weight does not count.
 */
export function tokenShares(tokens: readonly number[], weights: readonly number[]): number[] {
  const counts = (i: number): boolean => tokens[i]! > 0 && weights[i] !== 0;
  const norm = weights.reduce((n, w, i) => (counts(i) ? n + w : n), 0);
  return tokens.map((t, i) => (counts(i) && norm !== 0 ? weights[i]! / norm / t : 0));
}
