import type { RunConfig } from '../../config/index.js';

/**
 * Everything that can be chosen about training. Defaults: DART's where they fit a small policy, measured ones otherwise
 * (spec/embedded-trainer.md 6, 8).
 */
export interface TrainerOptions {
  /** Policy-gradient form: PPO's clip per token, GSPO's ratio per step, CISPO's clipped weight (spec/losses.md). */
  readonly objective: 'ppo' | 'gspo' | 'cispo';
  readonly epsLow: number;
  readonly epsHigh: number;
  /** Bound of the loss at negative advantages (dual clip), in units of -A. */
  readonly dualClip: number;
  /**
   * Rollout correction: truncated importance weight per token or per step, IcePop (weight 0 outside `icePopBand`), or
   * none.
   */
  readonly correction: 'token' | 'sequence' | 'icepop' | 'none';
  readonly tisCap: number;
  readonly icePopBand: readonly [number, number];
  /** k3 KL to the reference (the weights after the last imitation); 0 saves its forward pass. */
  readonly klBeta: number;
  readonly entropyCoefficient: number;
  /** Weight of -log p for demonstrations without an advantage inside `update`. */
  readonly imitationCoefficient: number;
  /** Temperature the replicas sample at: log-probs are those of the tempered distribution. */
  readonly temperature: number;

  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly adamEpsilon: number;
  readonly weightDecay: number;
  /** Largest global norm of the gradient. */
  readonly gradClip: number;
  /** Optimizer steps over which the learning rate of `update` rises to `lr`. */
  readonly warmup: number;
  /** Model inputs per optimizer step of `update`; 0 = the whole batch in one step, as DART does. */
  readonly minibatchStates: number;

  /**
   * Model inputs per optimizer step of `imitate`. Small ones learn far more from the same number of states (320
   * demonstrations: 8 beat 32 clearly).
   */
  readonly imitateStates: number;
  /** Share of the target moved to the four neighbouring cells in `imitate`. */
  readonly cellSmoothing: number;

  /**
   * Weight of a reading lesson added to every `imitate` and `update` step once there were lessons, so that a few
   * demonstrations do not blur the eyes; 0 = none.
   */
  readonly readingCoefficient: number;

  /**
   * Model inputs per forward/backward; larger batches accumulate gradients. Four stay in the cache and share the
   * per-node cost.
   */
  readonly microBatch: number;
  /** Action slots per model input; a state with more samples takes several places. */
  readonly slots: number;
  /** Intra-op threads of ONNX Runtime. */
  readonly threads: number;
  /** Where `exportWeights` writes; best a tmpfs. Default: `weights/` beside the checkpoints. */
  readonly exportDir?: string;
}

export const TRAINER_DEFAULTS: TrainerOptions = {
  objective: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 10,
  correction: 'token',
  tisCap: 1,
  icePopBand: [0.5, 5],
  klBeta: 0,
  entropyCoefficient: 0.02,
  imitationCoefficient: 0.1,
  temperature: 1,
  lr: 1e-3,
  beta1: 0.9,
  beta2: 0.98,
  adamEpsilon: 1e-8,
  weightDecay: 0.01,
  gradClip: 1,
  warmup: 20,
  minibatchStates: 0,
  readingCoefficient: 0.5,
  imitateStates: 8,
  cellSmoothing: 0.1,
  microBatch: 4,
  slots: 8,
  threads: 1,
};

/** The run file's options in the trainer's own words. `exportDir`: where it writes the policy of each version. */
export function trainerOptions(c: RunConfig, exportDir: string): Partial<TrainerOptions> {
  const t = c.trainer;
  return {
    objective: t.algorithm,
    epsLow: t.epsLow,
    epsHigh: t.epsHigh,
    dualClip: t.dualClip,
    correction: t.tis.enabled ? 'token' : 'none',
    tisCap: t.tis.cap,
    klBeta: t.klBeta,
    entropyCoefficient: t.entropyBonus,
    imitationCoefficient: t.imitationCoef,
    temperature: c.policy.temperature,
    lr: t.lr,
    weightDecay: t.weightDecay,
    gradClip: t.gradClip,
    minibatchStates: t.minibatchStates,
    threads: t.threads,
    exportDir,
    readingCoefficient: c.warmStart.reading.coef,
  };
}
