import type { State } from '../inspector/state.js';
import { t } from '../ui/words.js';

/** Why a trajectory cannot be annotated here. */
export function annotateRefusal(s: State): string | undefined {
  if (s.input.document)
    return t(
      'This trajectory was opened from a file. Annotations belong to a run: open the trajectory from its run, or import the file into one.',
    );
  if (s.recorded?.live || s.recorded?.row.outcome === 'running')
    return t(
      'This rollout is still running: it can be annotated once it has ended. To act in it now, take it over from its desktop.',
    );
  return s.input.run === undefined
    ? t('This trajectory belongs to no run; only trajectories of a run can be annotated.')
    : undefined;
}
