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
  /** Mean of the rewards of these episodes; only where one of the table has a partial score. */
  readonly score?: string;
  readonly rollouts: string;
  /** Score of the rollouts, likewise. */
  readonly rolloutScore?: string;
}
/** Empty where tasks are few, or of one application. Pure. */
export function applicationRows(tasks: readonly TaskRow[]): readonly ApplicationRow[] {
  const partial: PartialScores = {
      evaluation: tasks.some((r) => r.evaluation?.score !== undefined),
      rollouts: tasks.some((r) => r.score !== undefined),
    },
    groups = byApplication(tasks).flatMap((g) => {
      const feasible = g.rows.filter((r) => !r.infeasible);
      return feasible.length === 0 ? [] : [rowOf(nameOf(g), sumOf(g.app, feasible), partial)];
    }),
    impossible = tasks.filter((r) => r.infeasible);
  return groups.length === 0 || impossible.length === 0
    ? groups
    : [...groups, rowOf(t('Cannot be done'), sumOf(undefined, impossible), partial)];
}
/** Applications that have a word of the language instead of a name. */
const words: Readonly<Record<string, string>> = {
  os: t('Operating system'),
  terminal: t('Terminal'),
  files: t('Files'),
  pdf: t('PDF viewer'),
  image: t('Image viewer'),
};
const applicationWord = (name: string): string => (Object.hasOwn(words, name) ? words[name]! : name);
const nameOf = ({ app }: ApplicationTasks): string =>
  app === undefined ? t('No application') : app === '' ? t('Several applications') : applicationWord(app);
interface PartialScores {
  readonly evaluation: boolean;
  readonly rollouts: boolean;
}
const mean = (score: number | undefined): string => score?.toFixed(2) ?? '';
function rowOf(name: string, sum: ApplicationTasks, partial: PartialScores): ApplicationRow {
  const { rows, episodes, solved, rollouts, successes } = sum,
    w = wilson(solved, episodes);
  return {
    name,
    tasks: whole(rows.length),
    evaluation:
      episodes === 0
        ? ''
        : t('{0}, {1} ({2} of {3} episodes)', percent(w.rate), interval(w.low, w.high), whole(solved), whole(episodes)),
    ...(partial.evaluation ? { score: mean(sum.score) } : {}),
    rollouts: t('{0} of {1}', whole(successes), whole(rollouts)),
    ...(partial.rollouts ? { rolloutScore: mean(sum.rolloutScore) } : {}),
  };
}
