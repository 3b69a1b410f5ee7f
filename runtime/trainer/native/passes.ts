import type { EmbeddedBatch, Random } from '../../domain/index.js';
import { correctionMetrics, sequenceRatio } from '../objective/corrections.js';
import { equalParts } from '../schedule.js';
import type { PackedState } from './packing.js';

/** How often an update goes through its batch, and in which parts. */

export interface Minibatch {
  readonly states: readonly PackedState[];
  /** Optimizer steps of all passes that are known to be made. */
  readonly planned: number;
}
/**
 * The minibatches of an update, of at most `size` states (0 = all), pass after pass. Whether there is another pass is
 * asked when the one before is done.
 */
export function* minibatches(
  states: readonly PackedState[],
  b: EmbeddedBatch,
  size: number,
  rng: Random,
): Generator<Minibatch> {
  const perPass = equalParts(states, size).length;
  for (let pass = 0; states.length > 0 && worthAnotherPass(b, pass, states); pass++) {
    const order = perPass === 1 ? states : rng.shuffle(states),
      planned = Math.max(b.epochs, pass + 1) * perPass;
    for (const part of equalParts(order, size)) yield { states: part, planned };
  }
}

/** Whether another pass pays: the effective sample size, measured in the last pass, is still high enough. */
const worthAnotherPass = (b: EmbeddedBatch, pass: number, states: readonly PackedState[]): boolean =>
  pass < b.epochs || (b.reuse !== undefined && pass < b.reuse.epochs && reuseEss(states) >= b.reuse.ess);

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
