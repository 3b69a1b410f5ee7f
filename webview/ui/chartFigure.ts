import { h, type Child } from './dom.js';

/** The frame of a chart: its heading beside what can be done with it, and its parts below. */
export const chartFigure = (
  o: { readonly compact: boolean | undefined; readonly heading: Child },
  controls: readonly Child[],
  parts: readonly Child[],
): HTMLElement =>
  h(
    'figure',
    { class: ['chart', o.compact && 'chart-compact'] },
    h('figcaption', { class: 'chart-head' }, o.heading, h('span', { class: 'chart-controls' }, controls)),
    parts,
  );
