import type { PolicyVersion, TrainBatch } from '../domain/index.js';

/**
 * Module 4, trainer. One engine per run, in its own process; `update` is one optimizer pass (or several) over a batch.
 */
export interface TrainerEngine {
  update(b: TrainBatch): Promise<UpdateReport>;
  /** Reading lessons on screens made for them: the base policy. */
  read(screens: readonly ReadingScreen[], o: ReadOptions): Promise<ReadReport>;
  /** Supervised passes over demonstrations (behaviour cloning), e.g. the warm start. */
  imitate(b: TrainBatch, o: ImitateOptions): Promise<UpdateReport>;
  /** Atomic: weights + optimizer + rng + version, and a plain policy.onnx beside them. */
  checkpoint(): Promise<CheckpointRef>;
  restore(c: CheckpointRef): Promise<void>;
  /** The current weights as a flat f32 file for the replicas; written atomically. */
  exportWeights(): Promise<WeightsFile>;
  /** Ends a running `read` or `imitate` after its current step; what was learned so far is kept. */
  interrupt(): void;
  close(): Promise<void>;
}
/**
 * A screen with words at known positions, to learn reading from before the demonstrations. `obs` as in EncodedState;
 * `buckets[i]` is a word's instruction bucket and `boxes` its rectangle x0, y0, x1, y1 in observation pixels (4 numbers
 * a word).
 */
export interface ReadingScreen {
  readonly obs: Uint8Array;
  readonly buckets: Int32Array;
  readonly boxes: Int32Array;
}
export interface ReadOptions {
  readonly steps: number;
  readonly lr: number;
  readonly shift: number;
}
export interface ReadReport {
  readonly version: PolicyVersion;
  readonly ms: number;
  /** Mean -log p of a target cell over the last tenth of the steps. */
  readonly loss: number;
  readonly screens: number;
  readonly steps: number;
}

export interface ImitateOptions {
  readonly steps: number;
  readonly lr: number;
  /** Random shifts of the screenshot, in observation pixels, as augmentation. */
  readonly shift: number;
}
export interface CheckpointRef {
  readonly version: PolicyVersion;
  readonly dir: string;
}
export interface WeightsFile {
  readonly version: PolicyVersion;
  readonly path: string;
  readonly sha256: string;
}

export interface UpdateReport {
  readonly version: PolicyVersion;
  readonly ms: number;
  readonly samples: number;
  /** Model inputs after de-duplication. */
  readonly states: number;
  readonly optimizerSteps: number;
  /**
   * Passes over the batch, and the effective sample size / n of its policy samples at the end, from the weights under
   * which each was last seen against those before the update. 1 with one pass in one step.
   */
  readonly epochs: number;
  readonly reuseEss: number;
  readonly loss: number;
  readonly policyLoss: number;
  readonly imitationLoss: number;
  readonly entropy: number;
  /** KL(train || rollout) estimators and reference KL, means over tokens. */
  readonly klK1: number;
  readonly klK3: number;
  readonly refKl: number;
  readonly ratioMean: number;
  readonly ratioMax: number;
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly dualClip: number;
  /**
   * Truncated importance weights: mean, share at the cap, effective sample size / n, histogram over [0, C] in 20 bins.
   */
  readonly tisMean: number;
  readonly tisCapped: number;
  readonly ess: number;
  readonly tisHistogram: readonly number[];
  readonly gradNorm: number;
  readonly skippedNonFinite: number;
  /**
   * `update` only: the truncated importance weight of each sample, mean over its tokens, in the batch's order; 1
   * without rollout log-probs, NaN for imitation and masked samples.
   */
  readonly sampleWeights?: Float32Array;
}
