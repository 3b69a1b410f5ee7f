/** The tree Tasks: a node per task; many tasks of several applications stand under their application. */
import { byApplication, sumOf, type TaskGroup } from '../../runtime/protocol/shared.js';
import type { TaskRow } from '../../runtime/protocol/types.js';
import { percent, plain, t } from '../words.js';
import { applicationWord } from './applicationWord.js';
import type { Node } from './nodes.js';
import { lines, list, meanWord, type Row } from './rows.js';

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
  const label = app === undefined ? t('No application') : app === '' ? t('Several applications') : applicationWord(app),
    { episodes, solved, score, successes, rollouts, rolloutScore } = sumOf(app, rows),
    count = rows.length === 1 ? t('1 task') : t('{0} tasks', rows.length),
    evaluation =
      episodes === 0 ? '' : t('evaluation {0} ({1} of {2} episodes)', percent(solved / episodes), solved, episodes),
    partly = rows.some((r) => r.evaluation?.score !== undefined) ? meanWord(score) : '';
  return {
    id: `tasks of ${app ?? '-'}`,
    label,
    context: 'taskGroup',
    icon: { id: 'folder' },
    description: list(count, evaluation, partly),
    tooltip: lines(
      `**${plain(label)}**`,
      count,
      list(
        t('{0} of {1} rollouts succeeded', successes, rollouts),
        rows.some((r) => r.score !== undefined) && meanWord(rolloutScore),
      ),
      list(evaluation, partly) || undefined,
    ),
    spoken: [label, count, evaluation, partly].filter((x) => x !== '').join(', '),
  };
}
