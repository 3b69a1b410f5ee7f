/** The order of tasks when choosing one to demonstrate: those where it helps most come first. */
import type { TaskRow } from '../../runtime/protocol/types.js';
import { percent, t } from '../words.js';

/**
 * `unsolved`: tried and never solved, so that groups fail as a whole; `untried`: nothing known yet; `solved`:
 * sometimes; `last`: held out for evaluation, or impossible.
 */
export type RecordGroup = 'unsolved' | 'untried' | 'solved' | 'last';
export const recordGroups: readonly RecordGroup[] = ['unsolved', 'untried', 'solved', 'last'];
export function recordGroup(k: TaskRow): RecordGroup {
  if (k.heldOut || k.infeasible) return 'last';
  return k.rollouts === 0 ? 'untried' : k.successes === 0 ? 'unsolved' : 'solved';
}
const rate = (k: TaskRow): number => k.rate ?? (k.rollouts > 0 ? k.successes / k.rollouts : 0);
/** Never solved first, those without a success in the pool before the others, then by success, lowest first. */
export function recordOrder(tasks: readonly TaskRow[]): readonly TaskRow[] {
  return [...tasks].sort(
    (a, b) =>
      recordGroups.indexOf(recordGroup(a)) - recordGroups.indexOf(recordGroup(b)) ||
      (recordGroup(a) === 'solved' ? rate(a) - rate(b) : 0) ||
      (a.poolEntries ?? 0) - (b.poolEntries ?? 0) ||
      b.rollouts - a.rollouts ||
      a.family.localeCompare(b.family),
  );
}
export const groupWord = (g: RecordGroup): string =>
  ({
    unsolved: t('Never solved'),
    untried: t('Not tried yet'),
    solved: t('Solved sometimes'),
    last: t('Held out or impossible'),
  })[g];
/** The task's instruction; its programs stand beside its name. */
export function asksOf(k: TaskRow): string {
  const apps = `${k.apps?.join(', ') ?? ''}: `;
  return k.title?.startsWith(apps) ? k.title.slice(apps.length) : (k.title ?? '');
}
export function recordWords(k: TaskRow): string {
  const pool = k.poolEntries ?? 0,
    tried =
      k.rollouts === 0
        ? ''
        : k.successes === 0
          ? t('0 of {0} rollouts', k.rollouts)
          : t('success {0}', percent(rate(k)));
  return [
    tried,
    pool === 0 ? '' : pool === 1 ? t('1 in the pool') : t('{0} in the pool', pool),
    k.apps?.join(', ') ?? '',
    k.heldOut ? t('held out') : '',
    k.infeasible ? t('cannot be done') : '',
  ]
    .filter((x) => x !== '')
    .join(' · ');
}
