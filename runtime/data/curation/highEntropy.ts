import { quantile, type Step, type Trajectory } from '../../domain/index.js';
import type { HighEntropyConfig } from '../config.js';

/**
 * H_t: mean entropy of the step's real tokens; undefined where the policy did not act, which leaves no trace
 * (runtime/data/README.md#high-entropy-steps).
 */
export function stepEntropy(step: Pick<Step, 'tokens'> & Partial<Pick<Step, 'origin'>>): number | undefined {
  const h = step.origin === 'human' ? undefined : step.tokens?.entropies;
  if (!h || h.length === 0) return undefined;
  let sum = 0;
  for (const x of h) sum += x;
  return sum / h.length;
}

/**
 * Which values to keep: those >= the quantile of the given ones. Absent values (padding, no trace) are never kept nor
 * counted. Exported for the published vectors (runtime/trainer/README.md#test-vectors).
 */
export function highEntropyMask(values: readonly (number | undefined)[], q: number): boolean[] {
  const threshold = quantile(
    values.filter((v) => v !== undefined),
    q,
  );
  return values.map((v) => v !== undefined && threshold !== undefined && atLeast(v, threshold));
}

/** Interpolating between equal values can land a rounding error above them; ties are kept. */
const atLeast = (v: number, threshold: number): boolean => v >= threshold - 1e-9 * Math.max(1, Math.abs(threshold));

export interface EntropySelection {
  /** Per trajectory, per step: trained or not. */
  readonly keep: readonly (readonly boolean[])[];
  /** The group's threshold; undefined when off or when no step has a trace. */
  readonly threshold: number | undefined;
}

/**
 * Keep the steps whose entropy is at or above the group's quantile (0.2 keeps the top 80 %). Ties are kept, a single
 * step is kept, steps without a trace are kept: nothing is known against them.
 */
export function selectHighEntropy(
  trajectories: readonly Pick<Trajectory, 'steps'>[],
  c: HighEntropyConfig,
): EntropySelection {
  const entropies = trajectories.map((t) => t.steps.map(stepEntropy));
  const threshold = c.enabled
    ? quantile(
        entropies.flat().filter((v) => v !== undefined),
        c.quantile,
      )
    : undefined;
  return {
    keep: entropies.map((hs) => hs.map((h) => h === undefined || threshold === undefined || atLeast(h, threshold))),
    threshold,
  };
}
