import type { ReadView } from '../interchange/writers/write.js';
import { trajectoryView } from '../queries/trajectory.js';
import { interpreter } from './interpreter.js';

const shown = interpreter({ baseline: 'trajectory', norm: 'std' });

/** A finished trajectory with tokens, weights and verdict, for files that stand alone. */
export const recordedView: ReadView = (run, rollout) =>
  trajectoryView(run, rollout, { alive: false, interpreter: shown });
