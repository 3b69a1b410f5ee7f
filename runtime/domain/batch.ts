import type { BatchId, FamilyId, GroupId, PolicyVersion, RolloutId } from './ids.js';
import type { EncodedState } from './policySpec.js';
import type { Trajectory } from './trajectory.js';

/** The N trajectories of one task, ready for curation. `injected` came from the experience pool. */
export interface Group {
  readonly id: GroupId;
  readonly family: FamilyId;
  readonly trajectories: readonly Trajectory[];
  readonly injected: readonly RolloutId[];
}

/**
 * One step as the trainer sees it. `kind: 'policy'` has behaviour log-probs and an advantage; `kind: 'imitation'` has
 * neither (a demonstration's behaviour log-probs are never invented) and is trained by the imitation loss, or by policy
 * gradient with w = 1 when `advantage` is given.
 */
export interface StepSample {
  readonly rollout: RolloutId;
  readonly step: number;
  /** Equal keys = equal model inputs: the trainer runs forward and backward once per key. */
  readonly stateKey: string;
  readonly state: EncodedState;
  /** Global choice ids (policySpec.ts), 1 to 3 of them. */
  readonly choices: Int32Array;
  /** log pi_rollout of each choice; absent -> truncated importance weight 1. */
  readonly rolloutLogprobs?: Float32Array;
  readonly kind: 'policy' | 'imitation';
  /**
   * `imitation` only: the weight of its -log p, instead of the trainer's imitation coefficient. For a person's step in
   * a group this is its advantage.
   */
  readonly coefficient?: number;
  readonly advantage: number;
  /** Weight of this step in the aggregation (1 / number of kept steps of its trajectory, and so on); 0 = masked. */
  readonly weight: number;
  readonly version?: PolicyVersion;
}

export interface TrainBatch {
  readonly id: BatchId;
  readonly samples: readonly StepSample[];
  /** Optimizer passes over the batch. */
  readonly epochs: number;
  /**
   * Further passes, up to `epochs` in all, as long as the effective sample size of the policy samples under the weights
   * reached is at least `ess` of their number.
   */
  readonly reuse?: { readonly epochs: number; readonly ess: number };
  /** Share of the learning rate that this batch is trained with, in [0, 1]; default 1. */
  readonly lrScale?: number;
}
