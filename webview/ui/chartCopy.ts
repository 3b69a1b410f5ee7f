/** A chart for elsewhere: its numbers as CSV, or what is drawn as a PNG, in the clipboard. */
import type { HostAction } from '../protocol.js';
import { chartCsv, type ChartData } from './chartCsv.js';
import type { ChartSpec } from './chartSpec.js';
import { theme, type Theme } from './chartTheme.js';
import { h, icon, replace, text } from './dom.js';
import { hostActionEvent } from './host.js';
import { roving } from './roving.js';
import { button } from './toolkit.js';
import { t } from './words.js';

const GAP = 10;
/** Title and legend above what is drawn, on the ground of the theme. */
export function chartPicture({ name, spec }: ChartData, drawn: HTMLCanvasElement): Promise<Blob | null> {
  const look = theme(),
    ratio = drawn.width / (drawn.clientWidth || drawn.width),
    line = Math.round(look.fontPx * 1.6),
    out = document.createElement('canvas'),
    items = legendLines(spec, look, drawn.width / ratio - 2 * GAP);
  out.width = drawn.width;
  out.height = drawn.height + Math.round(ratio * (GAP + line * (1 + items.length)));
  const c = out.getContext('2d')!;
  c.fillStyle = look.background;
  c.fillRect(0, 0, out.width, out.height);
  c.scale(ratio, ratio);
  c.textBaseline = 'middle';
  c.fillStyle = look.foreground;
  c.font = `600 ${look.fontPx}px ${look.font}`;
  c.fillText(name, GAP, GAP / 2 + line / 2, drawn.width / ratio - 2 * GAP);
  c.font = `${look.fontPx * 0.9}px ${look.font}`;
  items.forEach((row, i) => {
    const y = GAP / 2 + line * (i + 1.5);
    for (const { at, series } of row) {
      c.fillStyle = look.hues[series.hue];
      if (series.kind === 'line' || series.kind === 'steps') c.fillRect(GAP + at, y - 1, 16, 2);
      else c.fillRect(GAP + at + 4, y - 4, 8, 8);
      c.fillStyle = look.foreground;
      c.fillText(series.label, GAP + at + 22, y);
    }
  });
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.drawImage(drawn, 0, out.height - drawn.height);
  return new Promise((resolve) => out.toBlob(resolve, 'image/png'));
}
interface Placed {
  readonly at: number;
  readonly series: ChartSpec['series'][number];
}
/** Which entries stand beside one another. */
function legendLines(spec: ChartSpec, look: Theme, width: number): Placed[][] {
  const c = document.createElement('canvas').getContext('2d')!,
    lines: Placed[][] = [];
  c.font = `${look.fontPx * 0.9}px ${look.font}`;
  let at = Infinity;
  for (const series of spec.series) {
    const needs = 22 + c.measureText(series.label).width + 2 * GAP;
    if (at + needs > width) {
      lines.push([]);
      at = 0;
    }
    lines.at(-1)!.push({ at, series });
    at += needs;
  }
  return lines;
}

async function base64(b: Blob): Promise<string> {
  const bytes = new Uint8Array(await b.arrayBuffer());
  let s = '';
  for (let i = 0; i < bytes.length; i += 0x8000) s += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(s);
}

/** Undefined before there is anything; no canvas before it was drawn. */
export type ReadDrawn = () => (ChartData & { readonly canvas: HTMLCanvasElement | undefined }) | undefined;

/** Buttons and keys of one chart. */
export class ChartCopy {
  /** Both buttons and what the chart puts beside them: one stop of the tab key. */
  readonly element: HTMLElement;
  readonly #of: ReadDrawn;
  readonly #said = h('span', { class: 'sr-only', role: 'status' });
  readonly #csv: HTMLElement;
  readonly #png: HTMLElement;

  constructor(name: string, of: ReadDrawn, ...others: readonly (HTMLElement | undefined)[]) {
    this.#of = of;
    this.#csv = button(t('{0}: copy as CSV', name), () => this.csv(), {
      kind: 'icon',
      icon: 'copy',
      title: t('Copy as CSV'),
    });
    this.#png = button(t('{0}: copy as PNG', name), () => void this.png(), {
      kind: 'icon',
      icon: 'device-camera',
      title: t('Copy as PNG'),
    });
    this.element = h(
      'span',
      { class: 'chart-tools', role: 'toolbar', 'aria-label': t('{0}: tools', name) },
      this.#csv,
      this.#png,
      others,
      this.#said,
    );
    roving(this.element, 'vscode-button');
  }
  /** Handles a key of the focused plot; false when it has no such key. */
  key(key: string): boolean {
    if (key === 'c') this.csv();
    else if (key === 'p') void this.png();
    else return false;
    return true;
  }
  csv(): void {
    const data = this.#of();
    if (!data) return;
    this.#act({ action: 'copy', text: chartCsv(data) });
    this.#done(this.#csv, 'copy');
  }
  async png(): Promise<void> {
    const data = this.#of(),
      blob = data?.canvas && (await chartPicture(data, data.canvas));
    if (!data || !blob) return;
    try {
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })]);
      this.#done(this.#png, 'device-camera');
    } catch {
      // An editor that lets no page write pictures to the clipboard saves a file instead.
      this.#act({ action: 'saveChart', name: data.name, png: await base64(blob) });
    }
  }
  #act(action: HostAction): void {
    document.dispatchEvent(new CustomEvent(hostActionEvent, { detail: action }));
  }
  #done(b: HTMLElement, was: string): void {
    replace(b, icon('check'));
    text(this.#said, t('Copied'));
    setTimeout(() => {
      replace(b, icon(was));
      text(this.#said, '');
    }, 1500);
  }
}
