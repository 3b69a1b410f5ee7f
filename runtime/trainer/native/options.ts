import type { RunConfig } from '../../config/index.js';
import type { Augmentation } from '../types.js';

type FromTrainer =
  | 'algorithm'
  | 'epsLow'
  | 'epsHigh'
  | 'dualClip'
  | 'tis'
  | 'klBeta'
  | 'targetKl'
  | 'entropyBonus'
  | 'imitationCoef'
  | 'lr'
  | 'weightDecay'
  | 'gradClip'
  | 'minibatchStates'
  | 'threads';

/** The training options of the run file, under the run file's names. Defaults are in its schema only. */
export interface RunFileOptions extends Readonly<Pick<RunConfig['trainer'], FromTrainer>> {
  /** `policy.temperature`, at which the replicas sample: log-probs are those of the tempered distribution. */
  readonly temperature: number;
  /**
   * `warmStart.reading.coef`: weight of a reading lesson added to every `imitate` and `update` step after the lessons,
   * so that a few demonstrations do not undo what the policy learned about reading; 0 = none.
   */
  readonly readingCoef: number;
  /** How replayed successes are varied (`trainer.replayVaried`); absent: they are shown as they were. */
  readonly replayVary?: Augmentation;
}

/** The trainer's own constants, in no run file: measured on the embedded policy. */
export interface TrainerConstants {
  readonly beta1: number;
  readonly beta2: number;
  readonly adamEpsilon: number;
  /** Optimizer steps over which the learning rate of `update` rises to `lr`. */
  readonly warmup: number;
  /**
   * Model inputs per optimizer step of `imitate`. Small steps learn far more from the same number of states (320
   * demonstrations: 8 clearly beat 32).
   */
  readonly imitateStates: number;
  /** Share of the target moved to the four neighbouring cells in `imitate`. */
  readonly cellSmoothing: number;
  /**
   * Model inputs per forward/backward; larger batches accumulate gradients. Four stay in the cache and share the
   * per-node cost.
   */
  readonly microBatch: number;
  /** Action slots per model input; a state with more samples takes several inputs. */
  readonly slots: number;
  /** Where `exportWeights` writes; best a tmpfs. Default: `weights/` beside the checkpoints. */
  readonly exportDir?: string;
}
export type TrainerOptions = RunFileOptions & TrainerConstants;

export const TRAINER_CONSTANTS: TrainerConstants = {
  beta1: 0.9,
  beta2: 0.98,
  adamEpsilon: 1e-8,
  warmup: 20,
  imitateStates: 8,
  cellSmoothing: 0.1,
  microBatch: 4,
  slots: 8,
};

/** The training options of the run file, and where weights are written. */
export function trainerOptions(c: RunConfig, exportDir: string): RunFileOptions & Pick<TrainerConstants, 'exportDir'> {
  const { trainer: t } = c;
  return {
    algorithm: t.algorithm,
    epsLow: t.epsLow,
    epsHigh: t.epsHigh,
    dualClip: t.dualClip,
    tis: t.tis,
    klBeta: t.klBeta,
    targetKl: t.targetKl,
    entropyBonus: t.entropyBonus,
    imitationCoef: t.imitationCoef,
    temperature: c.policy.temperature,
    lr: t.lr,
    weightDecay: t.weightDecay,
    gradClip: t.gradClip,
    minibatchStates: t.minibatchStates,
    threads: t.threads,
    readingCoef: c.warmStart.reading.coef,
    ...(t.replayVaried ? { replayVary: { shift: c.warmStart.shift, tones: c.warmStart.tones } } : {}),
    exportDir,
  };
}
