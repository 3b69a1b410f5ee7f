/** Success by application, where a run has many tasks of several; tasks that cannot be done are a row of their own. */
import { byApplication, sumOf, wilson, type ApplicationTasks } from '../../runtime/protocol/shared.js';
import type { TaskRow } from '../../runtime/protocol/types.js';
import { t, whole } from '../ui/words.js';
import { interval, percent } from './format.js';

export interface ApplicationRow {
  readonly name: string;
  readonly tasks: string;
  /** Episodes of the newest evaluations that succeeded, with the 95 % interval. */
  readonly evaluation: string;
  readonly rollouts: string;
}
/** Empty where tasks are few, or of one application. Pure. */
export function applicationRows(tasks: readonly TaskRow[]): readonly ApplicationRow[] {
  const groups = byApplication(tasks).flatMap((g) => {
      const feasible = g.rows.filter((r) => !r.infeasible);
      return feasible.length === 0 ? [] : [rowOf(nameOf(g), sumOf(g.app, feasible))];
    }),
    impossible = tasks.filter((r) => r.infeasible);
  return groups.length === 0 || impossible.length === 0
    ? groups
    : [...groups, rowOf(t('Cannot be done'), sumOf(undefined, impossible))];
}
const nameOf = ({ app }: ApplicationTasks): string =>
  app === undefined ? t('No application') : app === '' ? t('Several applications') : app;
function rowOf(name: string, { rows, episodes, solved, rollouts, successes }: ApplicationTasks): ApplicationRow {
  const w = wilson(solved, episodes);
  return {
    name,
    tasks: whole(rows.length),
    evaluation:
      episodes === 0
        ? ''
        : t('{0}, {1} ({2} of {3} episodes)', percent(w.rate), interval(w.low, w.high), whole(solved), whole(episodes)),
    rollouts: t('{0} of {1}', whole(successes), whole(rollouts)),
  };
}
