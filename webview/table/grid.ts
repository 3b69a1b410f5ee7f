/**
 * The rows near the window of a list of any length, as an ARIA grid: one stop of the tab key, arrow keys move the active
 * cell, Enter opens the trajectory. Row elements are used again while one scrolls.
 */
import type { OutcomeKind, TableFilter } from '../../runtime/protocol/types.js';
import { placeWords } from '../dashboard/flow.js';
import { h, icon, replace, scheduler, set, text } from '../ui/dom.js';
import { t, whole } from '../ui/words.js';
import { outcomeIcons } from '../inspector/header.js';
import { roving } from '../ui/roving.js';
import { scrollTo, windowOf, type Strip } from '../ui/virtual.js';
import { columns, type Column, type ColumnKey } from './columns.js';
import type { Pictures } from './pictures.js';
import type { SortColumn, TableSort } from './query.js';
import type { Rows } from './rows.js';

const rowHeight = 46,
  overscan = 4;

export interface GridActions {
  sort(by: SortColumn): void;
  filter(anchor: HTMLElement, key: ColumnKey): void;
  open(rollout: string, beside: boolean): void;
  /** A character was typed: it begins a search. */
  type(character: string): void;
  /** Another row is active: what it is, for screen readers. */
  active(at: number): void;
}
export interface GridView {
  readonly rows: Rows;
  readonly listing: Uint32Array;
  readonly sort: TableSort;
  readonly filter: TableFilter;
}
interface RowView {
  readonly element: HTMLElement;
  readonly cells: readonly HTMLElement[];
  readonly picture: HTMLImageElement;
  readonly outcome: { readonly icon: HTMLElement; readonly words: HTMLElement };
  readonly task: { readonly name: HTMLElement; readonly asked: HTMLElement };
  at: number;
  /** Index of the trajectory, and the revision it was drawn at. */
  shows: string;
}
const activeId = 'tb-active';

export class Grid {
  readonly element: HTMLElement;
  readonly #body = h('div', { class: 'tb-body', role: 'rowgroup' });
  readonly #heads = new Map<
    ColumnKey,
    { readonly cell: HTMLElement; readonly sort: HTMLElement; readonly filter?: HTMLElement }
  >();
  readonly #actions: GridActions;
  readonly #pictures: Pictures;
  readonly #pool: RowView[] = [];
  readonly #draw = scheduler(() => this.#drawRows());
  #drawn = new Map<number, RowView>();
  #v: GridView | undefined;
  #pointed: { readonly row: RowView; readonly cell: HTMLElement } | undefined;
  #active = { at: 0, column: 2 };

  constructor(pictures: Pictures, actions: GridActions) {
    this.#actions = actions;
    this.#pictures = pictures;
    pictures.changed = () => {
      for (const r of this.#drawn.values()) this.#drawPicture(r);
    };
    this.element = h(
      'div',
      {
        class: 'tb-grid',
        role: 'grid',
        tabindex: 0,
        'aria-label': t('Trajectories'),
        'aria-colcount': columns.length,
        'aria-readonly': 'true',
        on: { keydown: (e) => this.#key(e), scroll: () => this.#scrolled() },
      },
      h('div', { class: 'tb-heads', role: 'rowgroup' }, this.#head()),
      this.#body,
    );
    roving(this.element.querySelector<HTMLElement>('.tb-head')!, 'button');
    this.element.style.setProperty(
      '--tb-columns',
      columns.map((c) => (c.grows ? `minmax(${c.width}px, 1fr)` : `${c.width}px`)).join(' '),
    );
    this.element.style.setProperty('--tb-width', `${columns.reduce((a, c) => a + c.width, 0)}px`);
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }
  focus(): void {
    this.element.focus({ preventScroll: true });
  }
  /** Index of the active trajectory among the listed. */
  get active(): number {
    return this.#active.at;
  }

  /** Id of the active trajectory. */
  get rollout(): string | undefined {
    const i = this.#v?.listing[this.#active.at];
    return i === undefined ? undefined : this.#v?.rows.rollout[i];
  }

  render(v: GridView): void {
    const old = this.#v,
      kept = old?.listing[this.#active.at];
    this.#v = v;
    if (old && kept !== undefined && (old.listing !== v.listing || old.rows !== v.rows)) {
      // The active row stays the same trajectory where it is still listed.
      const at = old.rows === v.rows ? v.listing.indexOf(kept) : -1;
      this.#active = { ...this.#active, at: Math.max(0, at) };
      if (at < 0) this.element.scrollTop = 0;
    }
    set(this.element, { 'aria-rowcount': v.listing.length + 1 });
    this.#body.style.height = `${v.listing.length * rowHeight}px`;
    for (const c of columns) this.#drawHead(c, v);
    this.#drawRows();
  }
  /** Scrolls to the first row: the list was narrowed or put in another order. */
  top(): void {
    this.element.scrollTop = 0;
    this.#active = { ...this.#active, at: 0 };
  }

  /** Makes a trajectory the active one; false where it is not listed. */
  goTo(rollout: string): boolean {
    const v = this.#v,
      at = v ? v.listing.indexOf(v.rows.rollout.indexOf(rollout)) : -1;
    if (at >= 0) this.#activate(at, this.#active.column);
    return at >= 0;
  }

  #head(): HTMLElement {
    return h(
      'div',
      { class: 'tb-row tb-head', role: 'row', 'aria-rowindex': 1 },
      columns.map((c, i) => {
        const sort =
            c.key === 'picture'
              ? h('span', { class: 'sr-only' }, c.title)
              : h(
                  'button',
                  {
                    type: 'button',
                    class: 'tb-sort',
                    title: [c.says, t('Click to sort.')].filter(Boolean).join(' '),
                    on: { click: () => this.#actions.sort(c.key as SortColumn) },
                  },
                  h('span', null, c.title),
                  icon('blank'),
                ),
          filter = c.filter
            ? h(
                'button',
                {
                  type: 'button',
                  class: 'tb-filter',
                  'aria-label': t('Filter by {0}', c.title),
                  title: t('Filter by {0}', c.title),
                  on: { click: (e) => this.#actions.filter(e.currentTarget as HTMLElement, c.key) },
                },
                icon('filter'),
              )
            : undefined,
          cell = h(
            'div',
            { class: ['tb-cell', c.number && 'number'], role: 'columnheader', 'aria-colindex': i + 1 },
            sort,
            filter,
          );
        this.#heads.set(c.key, { cell, sort, ...(filter ? { filter } : {}) });
        return cell;
      }),
    );
  }
  #drawHead(c: Column, { sort, filter }: GridView): void {
    const head = this.#heads.get(c.key)!,
      sorted = sort.by === c.key;
    if (c.key !== 'picture')
      set(head.cell, { 'aria-sort': sorted ? (sort.descending ? 'descending' : 'ascending') : 'none' });
    const arrow = head.sort.querySelector('.codicon');
    if (arrow)
      set(arrow as HTMLElement, {
        class: `codicon codicon-${sorted ? (sort.descending ? 'arrow-down' : 'arrow-up') : 'blank'}`,
      });
    if (!head.filter || !c.filter) return;
    const on = filter[c.filter] !== undefined;
    set(head.filter, { class: ['tb-filter', on && 'on'] });
    set(head.filter.firstElementChild as HTMLElement, { class: `codicon codicon-filter${on ? '-filled' : ''}` });
  }

  get #strip(): Strip {
    return {
      count: this.#v?.listing.length ?? 0,
      item: rowHeight,
      viewport: this.element.clientHeight - rowHeight,
      scroll: this.element.scrollTop,
    };
  }
  #scrolled(): void {
    this.#draw();
    this.#pictures.moving();
  }
  #drawRows(): void {
    const v = this.#v;
    if (!v) return;
    const { from, to } = windowOf(this.#strip, overscan),
      drawn = new Map<number, RowView>();
    for (const [at, r] of this.#drawn) {
      if (at >= from && at < to) drawn.set(at, r);
      else this.#pool.push(r);
    }
    for (let at = from; at < to; at++) {
      let r = drawn.get(at);
      if (!r) {
        r = this.#pool.pop() ?? this.#newRow();
        drawn.set(at, r);
      }
      this.#drawRow(r, at, v);
    }
    for (const r of this.#pool) r.element.hidden = true;
    this.#drawn = drawn;
    this.#point();
    this.#pictures.want([...drawn.values()].map((r) => v.rows.rollout[v.listing[r.at]!]!));
  }
  #newRow(): RowView {
    const picture = h('img', { class: 'tb-picture', alt: '', prop: { decoding: 'async', draggable: false } }),
      words = h('span'),
      outcome = { icon: icon('blank'), words },
      task = {
        name: h('span', { class: 'tb-task', dir: 'auto' }),
        asked: h('span', { class: 'tb-asked', dir: 'auto' }),
      };
    const cells: HTMLElement[] = columns.map((c, i) =>
        h(
          'div',
          { class: ['tb-cell', c.number && 'number', `tb-${c.key}`], role: 'gridcell', 'aria-colindex': i + 1 },
          c.key === 'picture'
            ? picture
            : c.key === 'outcome'
              ? [outcome.icon, words]
              : c.key === 'task'
                ? [task.name, task.asked]
                : undefined,
        ),
      ),
      element = h('div', { class: 'tb-row', role: 'row' }, cells),
      row: RowView = { element, cells, picture, outcome, task, at: -1, shows: '' };
    element.addEventListener('click', (e) => {
      const cell = (e.target as HTMLElement).closest<HTMLElement>('.tb-cell');
      this.#activate(row.at, Math.max(0, cell ? cells.indexOf(cell) : 0));
      this.#open(row.at, e.ctrlKey || e.metaKey);
    });
    element.addEventListener('pointerenter', () => this.#explain(row));
    this.#body.append(element);
    return row;
  }
  #drawRow(r: RowView, at: number, v: GridView): void {
    const i = v.listing[at]!,
      shows = `${i} ${v.rows.revision}`;
    r.element.hidden = false;
    if (r.at !== at) {
      r.at = at;
      r.element.style.transform = `translateY(${at * rowHeight}px)`;
      set(r.element, { 'aria-rowindex': at + 2 });
      r.element.classList.toggle('odd', at % 2 === 1);
    }
    if (r.shows === shows) return;
    r.shows = shows;
    const outcome = v.rows.word('outcome', i) as OutcomeKind;
    columns.forEach((c, k) => {
      if (c.key === 'picture') return;
      const words = c.text(v.rows, i);
      if (c.key === 'outcome') {
        set(r.outcome.icon, { class: `codicon codicon-${outcomeIcons[outcome]} ${outcome}` });
        text(r.outcome.words, v.rows.has(i, 'truncated') ? t('{0}, step limit', words) : words);
      } else if (c.key === 'task') {
        text(r.task.name, words);
        text(r.task.asked, v.rows.word('instruction', i));
      } else text(r.cells[k]!, words);
    });
    this.#drawPicture(r);
  }
  /** Explains the row under the pointer; nobody points while rows fly by. */
  #explain(r: RowView): void {
    const v = this.#v,
      i = v?.listing[r.at];
    if (!v || i === undefined) return;
    const place = v.rows.word('ledger', i);
    set(r.cells[1]!, { title: r.outcome.words.textContent });
    set(r.cells.at(-2)!, { title: place === '' ? undefined : placeWords(place, v.rows.over)[1] });
    set(r.cells[2]!, { title: `${v.rows.word('instruction', i)}\n${v.rows.rollout[i]!}` });
  }
  #drawPicture(r: RowView): void {
    const v = this.#v,
      i = v?.listing[r.at];
    if (!v || i === undefined) return;
    const uri = this.#pictures.of(v.rows.rollout[i]!) ?? '';
    if ((r.picture.getAttribute('src') ?? '') === uri) return;
    if (uri === '') r.picture.removeAttribute('src');
    else r.picture.src = uri;
  }

  /** Shows which cell the keys act on. */
  #point(): void {
    const { at, column } = this.#active,
      row = this.#drawn.get(at),
      cell = row?.cells[column],
      old = this.#pointed;
    if (old?.cell === cell && old?.row === row) return;
    this.#pointed = row && cell ? { row, cell } : undefined;
    if (old) {
      old.row.element.classList.remove('active');
      old.row.element.removeAttribute('aria-selected');
      old.cell.classList.remove('active');
      old.cell.removeAttribute('id');
    }
    if (row && cell) {
      row.element.classList.add('active');
      row.element.setAttribute('aria-selected', 'true');
      cell.classList.add('active');
      cell.id = activeId;
    }
    set(this.element, { 'aria-activedescendant': cell ? activeId : undefined });
  }
  #activate(at: number, column: number): void {
    const count = this.#v?.listing.length ?? 0,
      moved = at !== this.#active.at;
    this.#active = {
      at: Math.max(0, Math.min(count - 1, at)),
      column: Math.max(0, Math.min(columns.length - 1, column)),
    };
    const scroll = scrollTo(this.#strip, this.#active.at);
    if (scroll !== this.element.scrollTop && count > 0) this.element.scrollTop = scroll;
    this.#drawRows();
    if (moved) this.#actions.active(this.#active.at);
  }
  #open(at: number, beside: boolean): void {
    const i = this.#v?.listing[at];
    if (this.#v && i !== undefined) this.#actions.open(this.#v.rows.rollout[i]!, beside);
  }
  #key(e: KeyboardEvent): void {
    if (e.target !== this.element || e.altKey) return;
    const { at, column } = this.#active,
      ctrl = e.ctrlKey || e.metaKey,
      page = Math.max(1, Math.floor(this.#strip.viewport / rowHeight) - 1),
      last = (this.#v?.listing.length ?? 1) - 1;
    const to: Readonly<Record<string, readonly [number, number]>> = {
        ArrowDown: [ctrl ? last : at + 1, column],
        ArrowUp: [ctrl ? 0 : at - 1, column],
        ArrowRight: [at, column + 1],
        ArrowLeft: [at, column - 1],
        PageDown: [at + page, column],
        PageUp: [at - page, column],
        Home: ctrl ? [0, column] : [at, 0],
        End: ctrl ? [last, column] : [at, columns.length - 1],
      },
      there = to[e.key];
    if (there) this.#activate(...there);
    else if (e.key === 'Enter') this.#open(at, ctrl);
    else if (e.key.length === 1 && !ctrl && e.key !== ' ' && e.key !== '?') this.#actions.type(e.key);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}

/** Instead of rows: what there is none of, and what to do about it. */
export const noRows = (slot: HTMLElement, words: string | undefined): void => {
  slot.hidden = words === undefined;
  replace(slot, words === undefined ? undefined : [icon('search'), h('p', null, words)]);
};
/** A count, with the number of trajectories that are too old to be listed beside it. */
export const withOlder = (words: string, older = 0): string =>
  older > 0 ? t('{0}; {1} older ones are only counted', words, whole(older)) : words;
export const countWords = (listed: number, loaded: number, total: number): string =>
  loaded < total
    ? t('{0} of {1} trajectories, {2} read', whole(listed), whole(total), whole(loaded))
    : listed === total
      ? t('{0} trajectories', whole(total))
      : t('{0} of {1} trajectories', whole(listed), whole(total));
