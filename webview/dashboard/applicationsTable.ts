/** Success by application, as a table. */
import type { TaskRow } from '../../runtime/protocol/types.js';
import { h, replace } from '../ui/dom.js';
import { t } from '../ui/words.js';
import { applicationRows, type ApplicationRow } from './applications.js';

export class ApplicationsTable {
  readonly element = h('div', { class: 'applications' });

  render(tasks: readonly TaskRow[]): void {
    const rows = applicationRows(tasks);
    replace(this.element, rows.length === 0 ? undefined : table(rows));
  }
}

function table(rows: readonly ApplicationRow[]): HTMLElement {
  const columns: readonly (readonly [string, keyof ApplicationRow])[] = [
    [t('Tasks'), 'tasks'],
    [t('Evaluation'), 'evaluation'],
    [t('Mean score of the evaluation'), 'score'],
    [t('Rollouts that succeeded'), 'rollouts'],
    [t('Mean score of the rollouts'), 'rolloutScore'],
  ];
  const shown = columns.filter(([, key]) => rows[0]?.[key] !== undefined),
    head = [t('Application'), ...shown.map(([title]) => title)];
  return h(
    'div',
    { class: 'ds-table-scroll', tabindex: '0', role: 'region', 'aria-label': t('Success by application') },
    h(
      'table',
      { class: 'ds-table' },
      h('caption', null, t('By application')),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head.map((x, i) => h('th', { scope: 'col', class: i === 0 ? '' : 'number' }, x)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((r) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, r.name),
            shown.map(([, key]) => h('td', { class: 'number' }, r[key])),
          ),
        ),
      ),
    ),
  );
}
