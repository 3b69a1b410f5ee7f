import type { EmbeddedSample, PolicyVersion, StepSample, TrainBatch } from '../domain/index.js';

/**
 * Module 4, trainer: one engine per run, the same contract for every kind of sample `S` and of weights `W`. `update` is
 * one optimizer pass (or several) over a batch.
 */
export interface TrainerEngine<S extends StepSample, W extends Weights> {
  /** `sampleWeights` of the report are in the order of the batch's samples. */
  update(b: TrainBatch<S>): Promise<UpdateReport>;
  /** Supervised passes over demonstrations (behaviour cloning), e.g. the warm start. Absent where it cannot. */
  imitate?(b: TrainBatch<S>, o: ImitateOptions): Promise<UpdateReport>;
  /** Atomic: weights, optimizer, version, and whatever else going on from here needs. */
  checkpoint(): Promise<CheckpointRef>;
  /**
   * Takes the weights of a checkpoint, which then count as version `c.version`, even where they were written as another
   * one.
   */
  restore(c: CheckpointRef): Promise<void>;
  /** The present weights, in the form that replicas take. */
  exportWeights(): Promise<W>;
  /** Ends a lesson under way after its present step; what was learned so far stays. */
  interrupt(): void;
  close(): Promise<void>;
}
/** Weights of one version: a file, the name of an adapter, whatever the replicas of a backend understand. */
export interface Weights {
  readonly version: PolicyVersion;
}

/** The trainer of the embedded policy, in its own process. */
export interface EmbeddedTrainer extends TrainerEngine<EmbeddedSample, WeightsFile> {
  imitate(b: TrainBatch<EmbeddedSample>, o: ImitateOptions): Promise<UpdateReport>;
  /** Reading lessons on screens made for them: the base policy. */
  read(screens: readonly ReadingScreen[], o: ReadOptions): Promise<ReadReport>;
}
/**
 * A screen with words at known positions, to learn reading from before the demonstrations. `obs` as in EncodedState;
 * `buckets[i]` is a word's instruction bucket and `boxes` its rectangle x0, y0, x1, y1 in observation pixels (4 numbers
 * a word). `marks`: class (domain/alphabet.ts), x and y of the middle of every character, 3 numbers each, in observation
 * pixels; a text's edges and spaces are characters too.
 */
export interface ReadingScreen {
  readonly obs: Uint8Array;
  readonly buckets: Int32Array;
  readonly boxes: Int32Array;
  readonly marks: Float32Array;
}
/** Random changes that lessons make to a screen, so that no place and no colour is learned by heart. */
export interface Augmentation {
  /** Farthest shift each way, in observation pixels. */
  readonly shift: number;
  /** Share of screens shown in other tones (light on dark, less contrast, darker or brighter); absent: none. */
  readonly tones?: number;
}
export interface ReadOptions extends Augmentation {
  readonly steps: number;
  readonly lr: number;
  /** Steps of it that were made before, by a lesson that ended early. Default 0. */
  readonly from?: number;
  /** Ends after so many of the steps, with the learning rates of all of them. */
  readonly until?: number;
}
export interface ReadReport {
  readonly version: PolicyVersion;
  readonly ms: number;
  /** Mean -log p of a target cell over the last tenth of the steps. */
  readonly loss: number;
  readonly screens: number;
  readonly steps: number;
}

export interface ImitateOptions extends Augmentation {
  readonly steps: number;
  readonly lr: number;
  /** Steps of it that were made before, by a lesson that ended early. Default 0. */
  readonly from?: number;
  /** Ends after so many of the steps, with the learning rates of all of them. */
  readonly until?: number;
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
  /**
   * Choices of the actions (tokens of the answers) trained on, each once, however many passes; masked samples have none.
   * Samples that a stopped update did not reach count in none of these.
   */
  readonly tokens: number;
  /** Model inputs after de-duplication. */
  readonly states: number;
  readonly optimizerSteps: number;
  /**
   * Updates only: the optimizer steps of its passes. Fewer steps made, skipped ones counted, mean that it was stopped
   * (`trainer.targetKl`).
   */
  readonly plannedSteps: number;
  /**
   * Whole passes over the batch, and the effective sample size / n of its policy samples at the end, from the weights
   * under which each was last seen against those before the update. 1 with one pass in one step.
   */
  readonly epochs: number;
  readonly reuseEss: number;
  /** Mean over the optimizer steps, with warm-up and decay; NaN without one. */
  readonly lr: number;
  readonly loss: number;
  readonly policyLoss: number;
  readonly imitationLoss: number;
  /**
   * Nats: of the embedded policy the mean over whole decisions, of a language model over tokens. Of an update over what
   * the policy sampled itself; NaN where that is nothing.
   */
  readonly entropy: number;
  /** KL(train || rollout) estimators and reference KL, means over tokens. */
  readonly klK1: number;
  readonly klK3: number;
  readonly refKl: number;
  /**
   * Updates only: KL(before || now), nats per token, over the policy's own samples in the last forward pass, which is
   * that of the minibatch at which it was stopped; NaN without such samples.
   */
  readonly oldKl: number;
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
   * without rollout log-probs, NaN for imitation and masked samples and for those that a stopped update did not reach.
   */
  readonly sampleWeights?: Float32Array;
  /**
   * `update` only, for people: the same of each token of a sample's own answer, NaN where the behaviour is not known;
   * undefined for a sample without behaviour. Absent where the trainer keeps none.
   */
  readonly tokenWeights?: readonly (Float32Array | undefined)[];
}
