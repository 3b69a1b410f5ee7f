/** Small parts of the page: sections that fold, tiles with a key figure, charts with a title that explains itself. */
import { Chart, type ChartOptions } from '../ui/chart.js';
import type { Painter } from '../ui/chartPainter.js';
import { h, s, set, text, type Child } from '../ui/dom.js';
import { explain, term } from './tip.js';
import { percent } from './format.js';

/** A part of the page under a heading; `toggled` hears when a person folds it. */
export function section(
  id: string,
  title: string,
  says: string,
  open: boolean,
  toggled: (open: boolean) => void,
  ...body: Child[]
): HTMLElement {
  const details = h(
    'details',
    { open, class: 'section-fold' },
    h('summary', null, h('h2', { id: `h-${id}` }, title), h('span', { class: 'section-says' }, says)),
    h('div', { class: 'section-body' }, body),
  );
  details.addEventListener('toggle', () => toggled(details.open));
  return h('section', { class: 'section', id, 'aria-labelledby': `h-${id}` }, details);
}

export interface ChartPart {
  readonly title: string;
  readonly says: string;
  readonly painter: Painter;
  readonly height?: number;
  readonly sync?: string;
  readonly controls?: readonly HTMLElement[];
  readonly level?: 'h3' | 'h4';
  readonly open?: ChartOptions['open'];
}
export function titledChart(o: ChartPart): Chart {
  const options: ChartOptions = {
    heading: h(o.level ?? 'h3', { class: 'chart-title' }, term(o.title, o.says)),
    name: o.title,
    painter: o.painter,
    height: o.height ?? 180,
    sync: o.sync || undefined,
    controls: o.controls,
    open: o.open,
  };
  return new Chart(options);
}

export interface TileState {
  readonly value: string;
  readonly detail?: string;
  /** Share beside its bound, and words. */
  readonly bar?: { readonly share: number; readonly words: string };
  readonly bars?: readonly { readonly label: string; readonly share: number | undefined; readonly hue: string }[];
  readonly spark?: readonly number[];
  readonly tone?: 'bad' | 'good';
}
export interface Tile {
  readonly element: HTMLElement;
  set(t: TileState): void;
}
export function tile(label: string, says: string): Tile {
  const value = h('span', { class: 'tile-value' }),
    detail = h('span', { class: 'tile-detail' }),
    extra = h('div', { class: 'tile-extra' });
  const box = explain(
    h(
      'div',
      { class: 'tile', tabindex: -1, role: 'group' },
      h('span', { class: 'tile-label' }, label),
      value,
      extra,
      detail,
    ),
    says,
  );
  let shown = '';
  return {
    element: h('li', null, box),
    set(t) {
      const key = JSON.stringify(t);
      if (key === shown) return;
      shown = key;
      text(value, t.value);
      text(detail, t.detail ?? '');
      value.classList.toggle('bad', t.tone === 'bad');
      const words = [t.value, t.bar?.words, t.detail, ...(t.bars ?? []).map((b) => `${b.label} ${percent(b.share)}`)]
        .filter(Boolean)
        .join(', ');
      box.setAttribute('aria-label', `${label}: ${words}`);
      extra.replaceChildren(
        ...(t.bar ? [bar(t.bar.share, 'blue'), h('span', { class: 'tile-detail' }, t.bar.words)] : []),
        ...(t.bars ?? []).map((b) =>
          h(
            'div',
            { class: 'tile-row' },
            h('span', null, b.label),
            bar(b.share ?? 0, b.hue),
            h('span', { class: 'tile-share' }, percent(b.share)),
          ),
        ),
        ...(t.spark && t.spark.length > 1 ? [sparkline(t.spark)] : []),
      );
    },
  };
}
function bar(share: number, hue: string): HTMLElement {
  const over = share > 1.005;
  return h(
    'div',
    { class: ['bar', `hue-${hue}`, over && 'over'], 'aria-hidden': 'true' },
    h('div', { class: 'bar-fill', style: { width: `${Math.max(0, Math.min(1, share)) * 100}%` } }),
  );
}
/** Values in [0, 1] as a line. */
export function sparkline(values: readonly number[]): SVGElement {
  const w = 100,
    hgt = 24,
    d = values
      .map(
        (v, i) =>
          `${i === 0 ? 'M' : 'L'}${((i / (values.length - 1)) * w).toFixed(2)} ${((1 - Math.max(0, Math.min(1, v))) * (hgt - 2) + 1).toFixed(2)}`,
      )
      .join('');
  return s(
    'svg',
    { class: 'spark hue-blue', viewBox: `0 0 ${w} ${hgt}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('path', { class: 'spark-line', d, 'vector-effect': 'non-scaling-stroke' }),
  );
}

export interface Progress {
  readonly element: HTMLElement;
  set(share: number | undefined, words: string): void;
}
export function progressBar(name: string): Progress {
  const inner = h('div', { class: 'progress-fill' }),
    element = h(
      'div',
      { class: 'progress', role: 'progressbar', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': 100 },
      inner,
    );
  return {
    element,
    set(share, words) {
      element.hidden = share === undefined;
      if (share === undefined) return;
      const pc = Math.round(Math.max(0, Math.min(1, share)) * 1000) / 10;
      inner.style.width = `${pc}%`;
      set(element, { 'aria-valuenow': Math.round(pc), 'aria-valuetext': words });
    },
  };
}
