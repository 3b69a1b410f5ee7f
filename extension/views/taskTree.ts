/** The tree Tasks: a node per task; many tasks of several applications stand under their application. */
import type { TaskRow } from '../../runtime/protocol/types.js';
import { percent, plain, t } from '../words.js';
import type { Node, TaskGroup } from './nodes.js';
import { lines, list, type Row } from './rows.js';

/** Fewer tasks are found at a glance without groups. */
const MANY = 20;

const groupOf = ({ apps = [] }: TaskRow): TaskGroup => (apps.length > 1 ? '' : apps[0]);

export function taskChildren(tasks: readonly TaskRow[], parent: Node | undefined): readonly Node[] {
  const nodes = (rows: readonly TaskRow[]): Node[] => rows.map((row) => ({ kind: 'task', row }));
  if (parent) return parent.kind === 'taskGroup' ? nodes(tasks.filter((r) => groupOf(r) === parent.app)) : [];
  const groups = [...new Set(tasks.map(groupOf))];
  if (tasks.length <= MANY || groups.length < 2) return nodes(tasks);
  // By name; then tasks of several applications, and those of none.
  const rank = (app: TaskGroup): string => (app === undefined ? '2' : app === '' ? '1' : `0${app}`);
  return groups
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
    .map((app) => ({ kind: 'taskGroup', app, rows: tasks.filter((r) => groupOf(r) === app) }));
}

export function taskGroupRow(app: TaskGroup, rows: readonly TaskRow[]): Row {
  const label = app === undefined ? t('No application') : app === '' ? t('Several applications') : app,
    sum = (of: (r: TaskRow) => number | undefined): number => rows.reduce((all, r) => all + (of(r) ?? 0), 0),
    episodes = sum((r) => r.evaluation?.episodes),
    solved = sum((r) => r.evaluation?.successes),
    count = rows.length === 1 ? t('1 task') : t('{0} tasks', rows.length),
    evaluation =
      episodes === 0 ? '' : t('evaluation {0} ({1} of {2} episodes)', percent(solved / episodes), solved, episodes);
  return {
    id: `tasks of ${app ?? '-'}`,
    label,
    context: 'taskGroup',
    icon: { id: 'folder' },
    description: list(count, evaluation),
    tooltip: lines(
      `**${plain(label)}**`,
      count,
      t(
        '{0} of {1} rollouts succeeded',
        sum((r) => r.successes),
        sum((r) => r.rollouts),
      ),
      evaluation || undefined,
    ),
    spoken: [label, count, evaluation].filter((x) => x !== '').join(', '),
  };
}
