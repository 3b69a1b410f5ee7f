import { StudioError } from '../domain/index.js';
import { EVALUATION_SPLITS, type EvaluationSplit } from '../run/evaluateRun.js';
import type { Options } from './options.js';

/** `--split`, which commander gives a default. */
export function splitOption(o: Options): EvaluationSplit {
  const wanted = String(o['split']),
    split = EVALUATION_SPLITS.find((s) => s === wanted);
  if (split) return split;
  throw new StudioError('config.invalid', `--split ${wanted}: unknown`, `Use ${EVALUATION_SPLITS.join(', ')}.`);
}
