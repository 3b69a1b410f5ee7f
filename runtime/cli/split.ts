import { StudioError } from '../domain/index.js';
import { EVALUATION_SPLITS, type EvaluationSplit, type ProbeSet } from '../run/evaluateCheckpoint.js';
import { countOption, type Options } from './options.js';

/** `--split`, which commander gives a default. */
export function splitOption(o: Options): EvaluationSplit {
  const wanted = String(o['split']),
    split = EVALUATION_SPLITS.find((s) => s === wanted);
  if (split) return split;
  throw new StudioError('config.invalid', `--split ${wanted}: unknown`, `Use ${EVALUATION_SPLITS.join(', ')}.`);
}

/** `--dev`: the tasks for tuning in place of those for reporting. */
export const setOption = (o: Options): ProbeSet => (o['dev'] === true ? 'dev' : 'test');

/** A family has so many tasks of a split; further numbers are those of another split. */
const MOST_SKIPPED = 100_000;
/** `--skip`: so many tasks of each family, the first ones, are left out. */
export const skipOption = (o: Options): number | undefined => countOption(o, 'skip', 0, MOST_SKIPPED);
