/** The meaning of a chart's marks, and their values at the cursor. */
import type { ChartSeries, Shape } from './chartSpec.js';
import { h, s, text } from './dom.js';
import { t } from './words.js';

export interface Legend {
  readonly element: HTMLElement;
  /** `note`: where the cursor is, or what else there is to say. */
  read(note: string, values: readonly string[]): void;
}

export function chartLegend(series: readonly ChartSeries[]): Legend {
  const place = h('span', { class: 'legend-place' });
  const values = series.map(() => h('span', { class: 'legend-value' }));
  const element = h(
    'div',
    { class: 'legend' },
    series.map((x, i) =>
      h('span', { class: 'legend-item' }, swatch(x), h('span', { class: 'legend-label' }, x.label), values[i]),
    ),
    place,
  );
  return {
    element,
    read(p, vs) {
      text(place, p);
      vs.forEach((v, i) => text(values[i]!, v));
    },
  };
}

/** A sample of a series' line, point or bar, in its colour and form. */
export function swatch(
  x: Pick<ChartSeries, 'kind' | 'hue'> & {
    readonly dash?: readonly number[];
    readonly shape?: Shape;
    readonly low?: unknown;
  },
): SVGElement {
  const box = (...c: SVGElement[]): SVGElement =>
    s('svg', { class: `swatch hue-${x.hue}`, viewBox: '0 0 22 12', width: 22, height: 12, 'aria-hidden': 'true' }, c);
  if (x.kind === 'bars') return box(s('rect', { class: 'swatch-fill', x: 5, y: 1.5, width: 12, height: 9 }));
  if (x.kind === 'points')
    return box(
      ...(x.low ? [s('path', { class: 'swatch-line', d: 'M11 0V12' })] : []),
      s('path', { class: 'swatch-solid', d: shapePath(x.shape ?? 'diamond', 11, 6, 4) }),
    );
  return box(
    ...(x.low ? [s('rect', { class: 'swatch-band', x: 0, y: 1, width: 22, height: 10 })] : []),
    s('path', { class: 'swatch-line', d: 'M0 6H22', 'stroke-dasharray': x.dash?.join(' ') }),
  );
}

/** A point's outline around (x, y) with radius r, as SVG path data. */
export function shapePath(shape: Shape, x: number, y: number, r: number): string {
  if (shape === 'square') return `M${x - r * 0.8} ${y - r * 0.8}h${r * 1.6}v${r * 1.6}h${-r * 1.6}Z`;
  if (shape === 'triangle') return `M${x} ${y - r}L${x + r} ${y + r * 0.8}H${x - r}Z`;
  return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
}

/** The hint on what the mouse can do in a plot. */
export const plotHint = (compact: boolean, opens: boolean): string | undefined =>
  [
    compact ? '' : t('Drag across to zoom in; double-click to show the whole range again'),
    t('Press c to copy the numbers as CSV, p the picture as PNG'),
    opens ? t('Click a point, or press Enter, to list the trajectories behind it') : '',
  ]
    .filter(Boolean)
    .join('\n') || undefined;
