import { parseRunFile } from '../../../runtime/config/index.js';
import {
  TRAINER_CONSTANTS,
  trainerOptions,
  type RunFileOptions,
  type TrainerConstants,
  type TrainerOptions,
} from '../../../runtime/trainer/native/options.js';

/**
 * Options a test of the trainer starts from: the run file's, but in one optimizer step an update, at the learning rate
 * and the weights of the side losses that these tests' problems were made for.
 */
export const baseTrainerOptions: TrainerOptions = {
  ...TRAINER_CONSTANTS,
  ...runFileOptions({ lr: 1e-3, minibatchStates: 0, entropyBonus: 0.02, imitationCoef: 0.1 }),
};

/** What a run file without trainer options gives, with some of it said otherwise. */
export function runFileOptions<T extends Partial<RunFileOptions & TrainerConstants>>(o: T): RunFileOptions & T {
  const { exportDir: _, ...given } = trainerOptions(parseRunFile({}), '');
  return { ...given, ...o };
}
