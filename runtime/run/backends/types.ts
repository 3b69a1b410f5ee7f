import type { LearnBatch, PolicyVersion, Trajectory } from '../../domain/index.js';
import type { FrameStore } from '../../data/types.js';
import type { Policy, SyncReport } from '../../policy/types.js';
import type { ModelPoolEvent, ModelPoolStatus } from '../../rollout/types.js';
import type { CheckpointRef, ImitateOptions, UpdateReport } from '../../trainer/types.js';
import type { RunParts } from '../parts.js';

/**
 * What a run knows of the policy it rolls out and trains. How a step becomes numbers or tokens, what weights are and
 * which engine computes with them stays inside: curation, ledger, staleness, planner and publishing are the same for
 * every backend.
 */
export interface PolicyBackend {
  readonly policy: Policy;
  /** Where the screens of rollouts are kept; a backend may look at them as they pass. */
  readonly frames: FrameStore;
  /** Absent where an endpoint is asked whose weights are not ours. */
  readonly replicas?: Replicas;
  /** Absent: rolled out and evaluated, never trained. */
  readonly learner?: Learner;
  /** What the policy learns before anything is demonstrated. */
  readonly lessons?: (r: RunParts) => Promise<void>;
}

/** The copies of a policy that act. */
export interface Replicas {
  /** Oldest version that one of them still answers with. */
  readonly oldest: PolicyVersion;
  status(): ModelPoolStatus;
  onEvent(listener: (e: ModelPoolEvent) => void): () => void;
}

/** A policy's engine of training. Calls are made one after another. */
export interface Learner {
  /** Whether the policy has words for what was done in a step. */
  expressible(t: Trajectory, step: number): boolean;
  /** `sampleWeights` of the report are in the order of the batch's steps. */
  update(b: LearnBatch): Promise<UpdateReport>;
  /** Passes over demonstrations; absent where the engine cannot imitate. */
  imitate?(b: LearnBatch, o: ImitateOptions): Promise<UpdateReport>;
  /** The present weights, to be published when the run says so. */
  snapshot(): Promise<Snapshot>;
  checkpoint(): Promise<CheckpointRef>;
  /** Ends a lesson under way after its present step; what was learned so far stays. */
  interrupt(): void;
}

/** Weights of one version on their way to the replicas. */
export interface Snapshot {
  readonly version: PolicyVersion;
  /** One replica at a time; rejects, and the old weights stay in use, when they cannot be read. */
  publish(): Promise<SyncReport>;
}
