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
 * A step to learn from, and how much. What the policy saw and said in it is in the trajectory; how a trainer takes that
 * is its backend's business.
 */
export interface LearnStep {
  readonly trajectory: Trajectory;
  /** The group that it is trained in, which a success from the pool was never in; absent of what is only imitated. */
  readonly group?: GroupId;
  readonly step: number;
  /**
   * `policy`: a policy-gradient term with the step's advantage. `imitation`: trained by the imitation loss; a
   * demonstration's behaviour log-probs are never invented.
   */
  readonly kind: 'policy' | 'imitation';
  readonly advantage: number;
  /** Weight of this step in the aggregation (1 / number of kept steps of its trajectory, and so on); 0 = masked. */
  readonly weight: number;
  /**
   * `imitation` only: the weight of its -log p, instead of the trainer's imitation coefficient. For a person's step in
   * a group this is its advantage; for a replayed success, what its family needs (`trainer.imitation`).
   */
  readonly coefficient?: number;
  /**
   * `policy` only: a pool success older than the staleness bound. It is trained as any pre-collected success, without
   * behaviour log-probs.
   */
  readonly precollected?: true;
}
export interface LearnBatch extends Omit<TrainBatch, 'samples'> {
  readonly steps: readonly LearnStep[];
}

/** A step as a trainer takes it: credit that is the same for every policy, and in subtypes its input and targets. */
export interface StepSample extends Omit<LearnStep, 'trajectory' | 'group' | 'precollected'> {
  readonly rollout: RolloutId;
  /** log pi_rollout of each token; absent -> truncated importance weight 1. */
  readonly rolloutLogprobs?: Float32Array;
  readonly version?: PolicyVersion;
}
/** A step of the embedded policy. */
export interface EmbeddedSample extends StepSample {
  /** Equal keys = equal model inputs: the trainer runs forward and backward once per key. */
  readonly stateKey: string;
  readonly state: EncodedState;
  /** Global choice ids (policySpec.ts), 1 to 3 of them. */
  readonly choices: Int32Array;
  /** A demonstrated text that was read from the screen: the last choice, its place, is missing, and the trainer looks for it. */
  readonly reads?: string;
}
export type EmbeddedBatch = TrainBatch<EmbeddedSample>;

export interface TrainBatch<S extends StepSample = StepSample> {
  readonly id: BatchId;
  readonly samples: readonly S[];
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
