/** The same held-out task at successive policy versions; pure. */
import type { EpisodeStrip, OutcomeKind } from '../../runtime/protocol/types.js';
import { actionsWords } from '../ui/actions.js';
import type { Rows } from './rows.js';

export interface Attempt {
  readonly rollout: string;
  readonly version: number;
  readonly outcome: OutcomeKind;
  /** NaN: none. */
  readonly reward: number;
  readonly steps: number;
  readonly at: number;
}
export interface TaskHistory {
  readonly task: string;
  readonly family: string;
  readonly instruction: string;
  /** Oldest version first; of a version that was evaluated more than once the newest. */
  readonly attempts: readonly Attempt[];
  /** How often success became something else, or something else success. */
  readonly turns: number;
}

/** Tasks that at least two versions were evaluated on; those whose outcome changed come first, then by name. */
export function histories(rows: Rows): TaskHistory[] {
  const probe = rows.words.origin.find('probe'),
    byTask = new Map<number, number[]>();
  if (probe === undefined) return [];
  for (let i = 0; i < rows.length; i++) {
    if (rows.coded.origin[i] !== probe || Number.isNaN(rows.numbers.versionMax[i]!)) continue;
    const task = rows.coded.task[i]!,
      mine = byTask.get(task);
    if (mine) mine.push(i);
    else byTask.set(task, [i]);
  }
  return [...byTask.values()]
    .flatMap((of): TaskHistory[] => {
      const attempts = attemptsOf(rows, of),
        i = of[0]!;
      if (attempts.length < 2) return [];
      return [
        {
          task: rows.word('task', i),
          family: rows.word('family', i),
          instruction: rows.word('instruction', i),
          attempts,
          turns: attempts.filter((a, k) => k > 0 && won(a) !== won(attempts[k - 1]!)).length,
        },
      ];
    })
    .sort((a, b) => Number(b.turns > 0) - Number(a.turns > 0) || a.task.localeCompare(b.task, 'en', { numeric: true }));
}
const won = (a: Attempt): boolean => a.outcome === 'success';
function attemptsOf(rows: Rows, of: readonly number[]): Attempt[] {
  const newest = new Map<number, Attempt>();
  for (const i of of) {
    const a: Attempt = {
        rollout: rows.rollout[i]!,
        version: rows.numbers.versionMax[i]!,
        outcome: rows.word('outcome', i) as OutcomeKind,
        reward: rows.numbers.reward[i]!,
        steps: rows.numbers.steps[i]!,
        at: rows.time(i),
      },
      known = newest.get(a.version);
    if (a.outcome !== 'running' && (!known || a.at > known.at)) newest.set(a.version, a);
  }
  return [...newest.values()].sort((a, b) => a.version - b.version);
}

/** Whether two say the same of the same tasks. */
export const sameHistories = (a: readonly TaskHistory[], b: readonly TaskHistory[]): boolean =>
  a.length === b.length && a.every((x, i) => x.task === b[i]!.task && sameAttempts(x.attempts, b[i]!.attempts));
const sameAttempts = (a: readonly Attempt[], b: readonly Attempt[]): boolean =>
  a.length === b.length &&
  a.every((x, i) => {
    const y = b[i]!;
    return (
      x.rollout === y.rollout && x.version === y.version && x.outcome === y.outcome && Object.is(x.reward, y.reward)
    );
  });

/** First step at which one does something else than the one before it, or has ended; undefined where none does. */
export function firstDifference(before: EpisodeStrip, now: EpisodeStrip): number | undefined {
  const n = Math.max(before.steps.length, now.steps.length);
  for (let i = 0; i < n; i++) {
    const a = before.steps[i],
      b = now.steps[i];
    if (!a || !b || actionsWords(a.actions) !== actionsWords(b.actions)) return i;
  }
  return undefined;
}
/** The attempts that fit a page: the newest, and the first one. */
export const shownAttempts = (h: TaskHistory, most = 12): readonly Attempt[] =>
  h.attempts.length <= most ? h.attempts : [h.attempts[0]!, ...h.attempts.slice(h.attempts.length - most + 1)];
