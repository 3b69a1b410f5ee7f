/** The filter of one column: values to tick with how many rows have each, or two ends of a range. */
import type { ListColumn, RangeColumn, TableFilter, TableFlag, TableRange } from '../../runtime/protocol/types.js';
import { listColumns } from '../../runtime/protocol/shared.js';
import { h, replace } from '../ui/dom.js';
import { t, whole } from '../ui/words.js';
import { decimal } from '../dashboard/format.js';
import { columnOf, valueWords, type ColumnKey } from './columns.js';
import { popover } from './popover.js';
import { countsOf, extent } from './query.js';
import type { Rows } from './rows.js';

export const flagWords: Readonly<Record<TableFlag, string>> = {
  truncated: t('hit the step limit'),
  injected: t('used again from the experience pool'),
  assisted: t('a person acted'),
  annotated: t('annotated'),
  reviewed: t('reviewed'),
};
const flagsOf: Readonly<Partial<Record<ListColumn, readonly TableFlag[]>>> = {
  outcome: ['truncated'],
  origin: ['assisted', 'injected', 'annotated', 'reviewed'],
};
/** Values that are listed at once; the rest is found by typing. */
const most = 60;

export interface MenuTarget {
  readonly rows: Rows;
  filter(): TableFilter;
  change(f: TableFilter): void;
}
const isList = (c: ListColumn | RangeColumn): c is ListColumn => (listColumns as readonly string[]).includes(c);

export function openFilterMenu(anchor: HTMLElement, key: ColumnKey, target: MenuTarget): void {
  const { filter, title } = columnOf(key);
  if (!filter) return;
  popover(
    anchor,
    t('Filter by {0}', title),
    h('h2', { class: 'tb-menu-title' }, title),
    isList(filter) ? listMenu(filter, target) : rangeMenu(filter, target),
  );
}

/** Sets a part of the filter, or removes it where it filters nothing. */
export function withPart<K extends keyof TableFilter>(f: TableFilter, key: K, part: TableFilter[K]): TableFilter {
  const { [key]: _before, ...rest } = f;
  const none =
    part === undefined ||
    (Array.isArray(part) && part.length === 0) ||
    (typeof part === 'object' && !Array.isArray(part) && Object.keys(part).length === 0) ||
    part === '';
  return none ? rest : { ...rest, [key]: part };
}

function listMenu(c: ListColumn, { rows, filter, change }: MenuTarget): HTMLElement[] {
  const all = countsOf(rows, filter(), c),
    box = h('ul', { class: 'tb-menu-list' });
  const toggle = (value: string, on: boolean): void => {
    const now = filter()[c] ?? [];
    change(withPart(filter(), c, on ? [...now, value] : now.filter((v) => v !== value)));
  };
  const draw = (search: string): void => {
    const wanted = search.toLowerCase(),
      fit = all.filter((v) => `${v.value} ${valueWords(c, v.value, rows.over)}`.toLowerCase().includes(wanted)),
      ticked = filter()[c] ?? [];
    replace(
      box,
      fit.slice(0, most).map((v) =>
        h(
          'li',
          null,
          h(
            'label',
            { class: 'tb-choice' },
            h('input', {
              type: 'checkbox',
              prop: { checked: ticked.includes(v.value) },
              on: { change: (e) => toggle(v.value, (e.target as HTMLInputElement).checked) },
            }),
            h('span', { class: 'tb-choice-words' }, valueWords(c, v.value, rows.over)),
            h('span', { class: 'ds-quiet number' }, whole(v.n)),
          ),
        ),
      ),
      fit.length > most
        ? h('li', { class: 'ds-quiet tb-more' }, t('{0} more: type to find them', fit.length - most))
        : undefined,
      fit.length === 0 ? h('li', { class: 'ds-quiet tb-more' }, t('No matches')) : undefined,
    );
  };
  draw('');
  const search =
    all.length > 12
      ? h('input', {
          class: 'tb-input',
          type: 'search',
          placeholder: t('Find a value'),
          'aria-label': t('Find a value'),
          on: { input: (e) => draw((e.target as HTMLInputElement).value) },
        })
      : undefined;
  return [...(search ? [search] : []), box, ...(flagsOf[c] ?? []).map((f) => flagChoice(f, filter, change))];
}

function flagChoice(f: TableFlag, filter: MenuTarget['filter'], change: MenuTarget['change']): HTMLElement {
  const now = filter().flags?.[f];
  return h(
    'label',
    { class: 'tb-choice' },
    h('span', { class: 'tb-choice-words' }, flagWords[f]),
    h(
      'select',
      {
        class: 'tb-input',
        on: {
          change: (e) => {
            const { value } = e.target as HTMLSelectElement,
              { [f]: _before, ...rest } = filter().flags ?? {};
            change(withPart(filter(), 'flags', value === '' ? rest : { ...rest, [f]: value === 'yes' }));
          },
        },
      },
      (
        [
          ['', t('any')],
          ['yes', t('yes')],
          ['no', t('no')],
        ] as const
      ).map(([value, words]) =>
        h('option', { value, selected: value === (now === undefined ? '' : now ? 'yes' : 'no') }, words),
      ),
    ),
  );
}

function rangeMenu(c: RangeColumn, { rows, filter, change }: MenuTarget): HTMLElement[] {
  const all = extent(rows, c),
    input = (end: keyof TableRange, label: string): HTMLElement => {
      const now = filter()[c]?.[end];
      return h(
        'label',
        { class: 'tb-choice' },
        h('span', { class: 'tb-choice-words' }, label),
        h('input', {
          class: 'tb-input',
          type: c === 'time' ? 'datetime-local' : 'number',
          step: c === 'steps' || c === 'version' ? 1 : 'any',
          placeholder: all && c !== 'time' ? decimal(all[end]) : '',
          prop: { value: now === undefined ? '' : c === 'time' ? localTime(now) : String(now) },
          on: {
            input: (e) => {
              const { value } = e.target as HTMLInputElement,
                x = c === 'time' ? new Date(value).getTime() : Number(value),
                { [end]: _before, ...rest } = filter()[c] ?? {};
              change(withPart(filter(), c, value === '' || !Number.isFinite(x) ? rest : { ...rest, [end]: x }));
            },
          },
        }),
      );
    };
  return all
    ? [input('min', c === 'time' ? t('From') : t('At least')), input('max', c === 'time' ? t('Until') : t('At most'))]
    : [h('p', { class: 'ds-quiet tb-more' }, t('No trajectory here has this number.'))];
}
/** A time as a browser's input takes it: local, to the minute. */
function localTime(ms: number): string {
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return d.toISOString().slice(0, 16);
}
