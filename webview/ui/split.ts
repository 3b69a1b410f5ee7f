/** The bar between two panes: dragged, or moved by the arrow keys. */
import { h, set } from './dom.js';

/** Sets the custom property `--split` (px, width of the right pane) on `parent`. */
export function splitter(
  parent: HTMLElement,
  o: {
    readonly label: string;
    readonly value: number;
    readonly min: number;
    readonly max: number;
    changed(value: number): void;
  },
): HTMLElement {
  let value = o.value;
  const bar = h('div', {
    class: 'ds-split',
    role: 'separator',
    tabindex: '0',
    'aria-orientation': 'vertical',
    'aria-label': o.label,
    'aria-valuemin': o.min,
    'aria-valuemax': o.max,
  });
  const put = (v: number, tell = true): void => {
    value = Math.round(Math.max(o.min, Math.min(o.max, v)));
    set(parent, { style: { '--split': `${value}px` } });
    bar.setAttribute('aria-valuenow', String(value));
    if (tell) o.changed(value);
  };
  put(value, false);
  let from: { x: number; value: number } | undefined;
  bar.addEventListener('pointerdown', (e) => {
    from = { x: e.clientX, value };
    bar.setPointerCapture(e.pointerId);
  });
  bar.addEventListener('pointermove', (e) => {
    if (from) put(from.value + from.x - e.clientX);
  });
  const end = (): void => {
    from = undefined;
  };
  bar.addEventListener('pointerup', end);
  bar.addEventListener('pointercancel', end);
  bar.addEventListener('keydown', (e) => {
    const d = e.key === 'ArrowLeft' ? 16 : e.key === 'ArrowRight' ? -16 : 0;
    if (!d || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    put(value + d);
  });
  return bar;
}
