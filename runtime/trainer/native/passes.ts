import { correctionMetrics, sequenceRatio } from '../objective/corrections.js';
import type { PackedState } from './packing.js';

/**
 * Effective sample size / n of the policy samples as last seen (`now`) against the policy before the update (`old`),
 * one weight a step.
 */
export function reuseEss(states: readonly PackedState[]): number {
  const weights = states.flatMap((p) =>
    p.slots.flatMap((s) =>
      s.term === 'policy' ? [sequenceRatio(s.now.subarray(0, s.tokens), s.old.subarray(0, s.tokens))] : [],
    ),
  );
  return correctionMetrics(weights, 1).ess;
}
