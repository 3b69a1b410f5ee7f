import { StudioError } from '../domain/index.js';
import { EVALUATION_SPLITS, type EvaluationSplit, type ProbeSet } from '../run/evaluateCheckpoint.js';
import type { Options } from './options.js';

/** `--split`, which commander gives a default. */
export function splitOption(o: Options): EvaluationSplit {
  const wanted = String(o['split']),
    split = EVALUATION_SPLITS.find((s) => s === wanted);
  if (split) return split;
  throw new StudioError('config.invalid', `--split ${wanted}: unknown`, `Use ${EVALUATION_SPLITS.join(', ')}.`);
}

/** `--dev`: the tasks for tuning in place of those for reporting. */
export const setOption = (o: Options): ProbeSet => (o['dev'] === true ? 'dev' : 'test');
