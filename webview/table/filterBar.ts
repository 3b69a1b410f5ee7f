/** Search, what the list is filtered by, and filters that were saved. */
import type {
  ListColumn,
  RangeColumn,
  SavedTableFilter,
  TableFilter,
  TableFlag,
} from '../../runtime/protocol/types.js';
import { listColumns, rangeColumns } from '../../runtime/protocol/shared.js';
import { dayTime, decimal } from '../dashboard/format.js';
import { h, icon, replace } from '../ui/dom.js';
import { t } from '../ui/words.js';
import { button, textField } from '../ui/toolkit.js';
import { columns, valueWords } from './columns.js';
import { flagWords, withPart } from './filterMenu.js';
import { popover } from './popover.js';
import { isEmptyFilter } from './query.js';

export interface FilterBarActions {
  change(f: TableFilter): void;
  keep(filter: SavedTableFilter): void;
  drop(name: string): void;
}
interface Chip {
  readonly words: string;
  readonly without: TableFilter;
}

export class FilterBar {
  readonly element: HTMLElement;
  readonly #actions: FilterBarActions;
  readonly #search: HTMLElement & { value?: string };
  readonly #chips = h('div', { class: 'tb-chips', role: 'group', 'aria-label': t('Filters in effect') });
  readonly #savedButton: HTMLElement;
  #filter: TableFilter = {};
  #saved: readonly SavedTableFilter[] = [];
  #over = false;
  #shown = '';

  constructor(actions: FilterBarActions) {
    this.#actions = actions;
    this.#search = textField(
      t('Search'),
      '',
      (v) => actions.change(withPart(this.#filter, 'text', v.trim())),
      t('Search in instruction, task and id'),
    );
    this.#search.classList.add('tb-search');
    this.#savedButton = button(t('Saved filters'), () => this.#menu(), { icon: 'bookmark' });
    this.element = h(
      'div',
      { class: 'tb-bar' },
      this.#search,
      this.#chips,
      h('span', { class: 'ds-spring' }),
      this.#savedButton,
    );
  }
  /** Begins a search with what was typed in the list. */
  type(character: string): void {
    this.#search.focus();
    this.#search.value = `${this.#search.value ?? ''}${character}`;
    this.#actions.change(withPart(this.#filter, 'text', this.#search.value.trim()));
  }
  focusSearch(): void {
    this.#search.focus();
  }
  render(filter: TableFilter, saved: readonly SavedTableFilter[], over: boolean): void {
    this.#filter = filter;
    this.#over = over;
    this.#saved = saved;
    if ((this.#search.value ?? '').trim() !== (filter.text ?? '') && document.activeElement !== this.#search)
      this.#search.value = filter.text ?? '';
    const key = JSON.stringify([filter, over]);
    if (key === this.#shown) return;
    this.#shown = key;
    const chips = chipsOf(filter, over);
    replace(
      this.#chips,
      chips.map((c) =>
        h(
          'button',
          {
            type: 'button',
            class: 'tb-chip',
            title: t('Remove this filter'),
            'aria-label': t('Remove filter: {0}', c.words),
            on: { click: () => this.#actions.change(c.without) },
          },
          h('span', null, c.words),
          icon('close'),
        ),
      ),
      chips.length > 0
        ? h(
            'button',
            { type: 'button', class: 'ds-link', on: { click: () => this.#actions.change({}) } },
            t('Clear filters'),
          )
        : undefined,
    );
  }

  #menu(): void {
    const menu = popover(
      this.#savedButton,
      t('Saved filters'),
      h('h2', { class: 'tb-menu-title' }, t('Saved filters')),
      this.#saved.length === 0 ? h('p', { class: 'ds-quiet tb-more' }, t('None yet.')) : undefined,
      h(
        'ul',
        { class: 'tb-menu-list' },
        this.#saved.map((s) =>
          h(
            'li',
            { class: 'tb-saved' },
            h(
              'button',
              {
                type: 'button',
                class: 'tb-saved-name',
                on: {
                  click: () => {
                    menu.close();
                    this.#actions.change(s.filter);
                  },
                },
              },
              h('span', null, s.name),
              h(
                'span',
                { class: 'ds-quiet' },
                chipsOf(s.filter, this.#over)
                  .map((c) => c.words)
                  .join(' · '),
              ),
            ),
            button(
              t('Delete filter {0}', s.name),
              () => {
                menu.close();
                this.#actions.drop(s.name);
              },
              { kind: 'icon', icon: 'trash', title: t('Delete filter {0}', s.name) },
            ),
          ),
        ),
      ),
      isEmptyFilter(this.#filter)
        ? h('p', { class: 'ds-quiet tb-more' }, t('Filter the list to save its filter.'))
        : this.#saveForm(() => menu.close()),
    );
  }
  #saveForm(close: () => void): HTMLElement {
    const name = h('input', {
        class: 'tb-input',
        type: 'text',
        maxlength: 60,
        placeholder: t('Name'),
        'aria-label': t('Name of the filter'),
      }),
      save = (): void => {
        const called = name.value.trim();
        if (called === '') return;
        close();
        this.#actions.keep({ name: called, filter: this.#filter });
      };
    name.addEventListener('keydown', (e) => {
      if (e.key === 'Enter') save();
    });
    return h('div', { class: 'tb-save' }, name, button(t('Save filter'), save, { kind: 'primary' }));
  }
}

const titleOf = (c: ListColumn | RangeColumn): string =>
  c === 'update'
    ? t('Trained in the update to')
    : c === 'lag'
      ? t('Updates behind when trained')
      : (columns.find((x) => x.filter === c)?.title ?? c);
/** One chip for each part of the filter; the search has its own field. `over`: nobody works on the run. */
function chipsOf(f: TableFilter, over: boolean): Chip[] {
  const chips: Chip[] = [];
  for (const c of listColumns)
    if (f[c]) {
      const shown = f[c].slice(0, 3).map((v) => valueWords(c, v, over)),
        rest = f[c].length - shown.length;
      chips.push({
        words: t('{0}: {1}', titleOf(c), [...shown, ...(rest > 0 ? [t('{0} more', rest)] : [])].join(', ')),
        without: withPart(f, c, undefined),
      });
    }
  if (f.task !== undefined)
    chips.push({ words: t('{0}: {1}', t('Task'), f.task), without: withPart(f, 'task', undefined) });
  if (f.rollouts !== undefined)
    chips.push({ words: t('these {0}', f.rollouts.length), without: withPart(f, 'rollouts', undefined) });
  for (const c of rangeColumns)
    if (f[c]) chips.push({ words: rangeWords(c, f[c]), without: withPart(f, c, undefined) });
  for (const [k, on] of Object.entries(f.flags ?? {}) as [TableFlag, boolean][]) {
    const { [k]: _gone, ...rest } = f.flags ?? {};
    chips.push({
      words: on ? flagWords[k] : t('not: {0}', flagWords[k]),
      without: withPart(f, 'flags', rest),
    });
  }
  return chips;
}
function rangeWords(c: RangeColumn, { min, max }: { readonly min?: number; readonly max?: number }): string {
  const say = c === 'time' ? dayTime : c === 'version' || c === 'update' ? (v: number): string => `v${v}` : decimal,
    title = titleOf(c);
  if (min !== undefined && max !== undefined)
    return min === max ? t('{0}: {1}', title, say(min)) : t('{0}: {1} to {2}', title, say(min), say(max));
  return min !== undefined ? t('{0}: at least {1}', title, say(min)) : t('{0}: at most {1}', title, say(max ?? 0));
}
