import type { RunReader } from '../data/store/runStore.js';
import type { ReadView } from '../interchange/writers/write.js';
import type { Interpreter } from '../queries/steps.js';
import { trajectoryView } from '../queries/trajectory.js';
import { configOf } from './facts.js';
import { interpreterOf } from './interpreter.js';

/** Interpreters of the runs that are being read: an export asks once a trajectory. */
const interpreters = new WeakMap<RunReader, Interpreter>();

/** A finished trajectory with tokens, weights and verdict, for files that stand alone. */
export const recordedView: ReadView = (run, rollout) => {
  let interpreter = interpreters.get(run);
  if (!interpreter) interpreters.set(run, (interpreter = interpreterOf({ config: configOf(run) })));
  return trajectoryView(run, rollout, { alive: false, interpreter });
};
