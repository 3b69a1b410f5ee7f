/** A chart's numbers as a table: at most 200 rows, evenly chosen, the newest first for time. */
import type { Cell } from './chartMath.js';
import type { ChartSpec } from './chartSpec.js';
import { h } from './dom.js';
import { t } from './words.js';

const limit = 200;
export function tableRows(n: number, newestFirst: boolean): number[] {
  const k = Math.min(n, limit),
    rows = Array.from({ length: k }, (_, i) => (k === n ? i : Math.round((i * (n - 1)) / (k - 1))));
  return newestFirst ? rows.reverse() : rows;
}
export function chartTable(
  name: string,
  spec: ChartSpec,
  x: readonly number[],
  columns: readonly (readonly Cell[])[],
): HTMLElement {
  const bins = spec.x.kind === 'bins',
    { edges, names } = spec.x,
    rows = tableRows(x.length, !bins);
  const place = (i: number): string =>
    names
      ? (names[i] ?? '')
      : edges
        ? t('{0} to {1}', spec.x.format(edges[i]!), spec.x.format(edges[i + 1]!))
        : spec.x.format(x[i]!);
  return h(
    'table',
    null,
    h('caption', null, rows.length < x.length ? t('{0}, {1} of {2} points', name, rows.length, x.length) : name),
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        h('th', { scope: 'col' }, spec.x.label),
        spec.series.map((s) => h('th', { scope: 'col' }, s.label)),
      ),
    ),
    h(
      'tbody',
      null,
      rows.map((i) =>
        h(
          'tr',
          null,
          h('th', { scope: 'row' }, place(i)),
          columns.map((c) => h('td', null, c[i] === null || c[i] === undefined ? '' : spec.y.format(c[i]!))),
        ),
      ),
    ),
  );
}
