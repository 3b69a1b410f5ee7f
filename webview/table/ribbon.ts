/** The places of the listed rollouts, as one bar: each part is a filter. */
import type { TableFilter } from '../../runtime/protocol/types.js';
import { placeWords } from '../dashboard/flow.js';
import { percent } from '../dashboard/format.js';
import { h, replace } from '../ui/dom.js';
import { roving } from '../ui/roving.js';
import { t, whole } from '../ui/words.js';
import { countsOf } from './query.js';
import { withPart } from './filterMenu.js';
import type { Rows } from './rows.js';

const kindOf = (place: string): string =>
  place === 'trained' ? 'trained' : place.startsWith('retired:') ? 'retired' : 'flight';
const rank: Readonly<Record<string, number>> = { trained: 0, flight: 1, retired: 2 };

export class Ribbon {
  readonly element: HTMLElement;
  readonly #bar = h('div', { class: 'tb-ribbon-bar', 'aria-hidden': 'true' });
  readonly #parts = h('div', { class: 'tb-ribbon-parts', role: 'group', 'aria-label': t('Ledger: show only') });
  readonly #change: (f: TableFilter) => void;
  #shown = '';

  constructor(change: (f: TableFilter) => void) {
    this.#change = change;
    this.element = h('div', { class: 'tb-ribbon' }, this.#bar, this.#parts);
    roving(this.#parts, 'button');
  }
  render(rows: Rows, f: TableFilter): void {
    const parts = countsOf(rows, f, 'ledger')
        .filter((p) => p.value !== '' && p.n > 0)
        .sort((a, b) => rank[kindOf(a.value)]! - rank[kindOf(b.value)]! || b.n - a.n),
      on = f.ledger ?? [],
      key = JSON.stringify([parts, on, rows.over]);
    if (key === this.#shown) return;
    this.#shown = key;
    this.element.hidden = parts.length === 0;
    const all = parts.reduce((a, p) => a + p.n, 0),
      toggle = (place: string): void => {
        this.#change(withPart(f, 'ledger', on.includes(place) ? on.filter((x) => x !== place) : [...on, place]));
      };
    const dimmed = (place: string): string | false => on.length > 0 && !on.includes(place) && 'off';
    replace(
      this.#bar,
      parts.map((p) =>
        h('div', {
          class: ['tb-ribbon-part', kindOf(p.value), dimmed(p.value)],
          style: { 'flex-grow': p.n },
          title: `${placeWords(p.value, rows.over)[0]}: ${whole(p.n)}`,
          on: { click: () => toggle(p.value) },
        }),
      ),
    );
    const focused = this.#parts.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset['place']
      : undefined;
    replace(
      this.#parts,
      parts.map((p) => {
        const [words, says] = placeWords(p.value, rows.over);
        return h(
          'button',
          {
            type: 'button',
            class: ['tb-place', kindOf(p.value), dimmed(p.value)],
            'aria-pressed': String(on.includes(p.value)),
            title: says,
            data: { place: p.value },
            on: { click: () => toggle(p.value) },
          },
          h('span', { class: 'tb-swatch', 'aria-hidden': 'true' }),
          h('strong', { class: 'number' }, whole(p.n)),
          h('span', null, words),
          h('span', { class: 'ds-quiet number' }, percent(p.n / all, p.n / all < 0.1 ? 1 : 0)),
        );
      }),
    );
    if (focused !== undefined) this.#parts.querySelector<HTMLElement>(`[data-place="${CSS.escape(focused)}"]`)?.focus();
  }
}
