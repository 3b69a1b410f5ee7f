/** Group-relative advantages (runtime/trainer/README.md#advantages). */

export interface AdvantageOptions {
  /**
   * What mean and deviation are taken over: every trajectory once, or every step (long trajectories weigh more; the
   * paper's form).
   */
  readonly baseline: 'step' | 'trajectory';
  /** Divide by the n-1 standard deviation, or only subtract the mean. */
  readonly norm: 'std' | 'none';
}
export const ADVANTAGE_EPSILON = 1e-6;

/**
 * Mean and n-1 standard deviation; a single value counts as mean 0, deviation 1 (runtime/trainer/README.md#advantages).
 */
export function groupStatistics(rewards: readonly number[]): { readonly mean: number; readonly std: number } {
  const n = rewards.length;
  if (n === 0) throw new RangeError('a group without rewards has no statistics');
  if (n === 1) return { mean: 0, std: 1 };
  const mean = rewards.reduce((a, b) => a + b, 0) / n;
  return { mean, std: Math.sqrt(rewards.reduce((a, r) => a + (r - mean) ** 2, 0) / (n - 1)) };
}

/**
 * Advantage of each trajectory, shared by all of its steps: (R - mean) / (std + 1e-6).
 * `steps` are the numbers of steps per trajectory, trained or not: a mask decides what is trained, not what it is compared
 * with. Only the `step` baseline looks at them; a trajectory without a step counts as one.
 */
export function groupAdvantages(rewards: readonly number[], steps: readonly number[], o: AdvantageOptions): number[] {
  if (steps.length !== rewards.length)
    throw new RangeError(`${rewards.length} rewards but ${steps.length} step counts`);
  const population =
    o.baseline === 'trajectory'
      ? rewards
      : rewards.flatMap((r, i) => new Array<number>(Math.max(1, steps[i]!)).fill(r));
  const { mean, std } = groupStatistics(population);
  return rewards.map((r) => (o.norm === 'std' ? (r - mean) / (std + ADVANTAGE_EPSILON) : r - mean));
}
