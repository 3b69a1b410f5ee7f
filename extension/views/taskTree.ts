/** The tree Tasks: a node per task; many tasks of several applications stand under their application. */
import { byApplication, sumOf, type TaskGroup } from '../../runtime/protocol/shared.js';
import type { TaskRow } from '../../runtime/protocol/types.js';
import { percent, plain, t } from '../words.js';
import type { Node } from './nodes.js';
import { lines, list, type Row } from './rows.js';

export function taskChildren(tasks: readonly TaskRow[], parent: Node | undefined): readonly Node[] {
  const nodes = (rows: readonly TaskRow[]): Node[] => rows.map((row) => ({ kind: 'task', row })),
    groups = byApplication(tasks);
  if (parent) {
    const open = parent.kind === 'taskGroup' && groups.find((g) => g.app === parent.app);
    return open ? nodes(open.rows) : [];
  }
  return groups.length === 0 ? nodes(tasks) : groups.map(({ app, rows }) => ({ kind: 'taskGroup', app, rows }));
}

export function taskGroupRow(app: TaskGroup, rows: readonly TaskRow[]): Row {
  const label = app === undefined ? t('No application') : app === '' ? t('Several applications') : app,
    { episodes, solved, successes, rollouts } = sumOf(app, rows),
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
      t('{0} of {1} rollouts succeeded', successes, rollouts),
      evaluation || undefined,
    ),
    spoken: [label, count, evaluation].filter((x) => x !== '').join(', '),
  };
}
