/**
 * A chart: uPlot's canvas, a legend that reads out values, a keyboard cursor, a sentence for screen readers and the
 * numbers as a table. With its axes, series and ink the only place that knows uPlot. Drawn by a Painter, so off screen it costs nothing.
 */
import uPlot from 'uplot';
import { axesOf } from './chartAxes.js';
import { ChartCopy, type ReadDrawn } from './chartCopy.js';
import { chartFigure } from './chartFigure.js';
import { chartLegend, plotHint, swatch, type Legend } from './chartLegend.js';
import { drawGround, drawMarks, drawPoints } from './chartInk.js';
import { ZoomGroup } from './chartZoom.js';
import { joinOnX, moveCursor, nearest, type Cell, type Range } from './chartMath.js';
import type { Painted, Painter } from './chartPainter.js';
import { aboveWords, summaryWords, gapsAt, plotted, verticalRange, wholeRange } from './chartScale.js';
import { columnsOf, isEmpty, shapeOf, type ChartSpec } from './chartSpec.js';
import { chartTable } from './chartTable.js';
import { seriesOf } from './chartSeries.js';
import { placeWords, pointWords, valueWords } from './chartRead.js';
import { theme } from './chartTheme.js';
import type { TableFilter } from '../../runtime/protocol/types.js';
import { h, replace, text } from './dom.js';
import { button, setPressed } from './toolkit.js';
import { t } from './words.js';

export interface ChartOptions {
  /** Title, with what it explains; the chart's name for screen readers is `name`. */
  readonly heading: HTMLElement;
  readonly name: string;
  readonly painter: Painter;
  readonly height: number;
  /** Small: no axes, no table. */
  readonly compact?: boolean;
  /** Charts of one key share their crosshair, and on a time axis what is zoomed to. */
  readonly sync?: string;
  /** Opens the list behind a point (`behind` of the spec). */
  readonly open?: ((behind: TableFilter) => void) | undefined;
  /** More controls beside the title. */
  readonly controls?: readonly HTMLElement[];
}
let ids = 0;

export class Chart {
  readonly element: HTMLElement;
  readonly #o: ChartOptions;
  readonly #plot: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #summary: HTMLElement;
  readonly #legendBox: HTMLElement;
  readonly #tableBox: HTMLElement;
  readonly #painted: Painted;
  readonly #resized: ResizeObserver;
  readonly #copy: ChartCopy;
  readonly #tableButton: HTMLElement | undefined;
  readonly #wholeButton: HTMLElement | undefined;
  readonly #group: ZoomGroup | undefined;
  #legend: Legend | undefined;
  #spec: ChartSpec | undefined;
  #u: uPlot | undefined;
  #shape = '';
  #x: number[] = [];
  #columns: Cell[][][] = [];
  #y: Range & { readonly above?: number } = { min: 0, max: 1 };
  /** Own range; a chart on a shared time axis takes the group's. */
  #own: Range | undefined;
  #cursor: number | undefined;
  #asTable = false;
  #pressed = 0;

  constructor(o: ChartOptions) {
    this.#o = o;
    const id = `chart-${++ids}`;
    this.#summary = h('p', { id, class: 'sr-only' });
    this.#empty = h('p', { class: 'chart-empty', hidden: true });
    this.#legendBox = h('div', { class: 'chart-legend' });
    this.#tableBox = h('div', {
      class: 'chart-table',
      hidden: true,
      tabindex: 0,
      role: 'region',
      'aria-label': t('{0}, as a table', o.name),
    });
    this.#plot = this.#surface(id);
    this.#tableButton = o.compact
      ? undefined
      : button(t('{0}: show as table', o.name), () => this.#toggleTable(), {
          kind: 'icon',
          icon: 'table',
          pressed: false,
        });
    this.#wholeButton = o.compact
      ? undefined
      : button(t('Reset zoom'), () => this.#zoomTo(undefined), {
          icon: 'zoom-out',
          title: t('Show the whole range again (Escape or double click)'),
        });
    if (this.#wholeButton) this.#wholeButton.hidden = true;
    this.#copy = new ChartCopy(o.name, () => this.#data(), this.#tableButton);
    this.#copy.element.hidden = true;
    this.#group = o.sync && !o.compact ? ZoomGroup.of(o.sync) : undefined;
    this.#group?.add(this);
    this.element = chartFigure(
      { compact: o.compact, heading: o.heading },
      [this.#wholeButton, o.controls, o.compact ? undefined : this.#copy.element],
      [this.#legendBox, this.#summary, this.#empty, this.#plot, this.#tableBox],
    );
    this.#painted = o.painter.add(this.element, () => this.#draw());
    this.#resized = new ResizeObserver(() => {
      if (this.#u && this.#plot.clientWidth !== this.#u.width) this.#painted.invalidate(true);
    });
    this.#resized.observe(this.#plot);
  }

  /** The drawing surface, with a cursor that keys move. `says`: the id of its summary. */
  #surface(says: string): HTMLElement {
    const { name, compact, open, height } = this.#o;
    return h('div', {
      class: 'chart-plot',
      role: 'slider',
      tabindex: 0,
      'aria-label': t('{0}: cursor', name),
      'aria-describedby': says,
      'aria-valuemin': 0,
      'aria-valuemax': 0,
      'aria-valuenow': 0,
      'aria-valuetext': t('No point chosen'),
      title: plotHint(compact === true, open !== undefined),
      style: { height: `${height}px` },
      on: {
        keydown: (e) => this.#key(e),
        blur: () => this.#moveTo(undefined),
        pointerdown: (e) => {
          this.#pressed = e.clientX;
        },
        // A drag zooms.
        click: (e) => void (Math.abs(e.clientX - this.#pressed) <= 4 && this.#openBehind()),
      },
    });
  }

  update(spec: ChartSpec, now = false): void {
    this.#spec = spec;
    this.#painted.invalidate(now);
  }
  /** Colours or fonts changed: draws again when it is next visible. */
  retheme(): void {
    this.#shape = '';
    this.#painted.invalidate(true);
  }
  dispose(): void {
    this.#resized.disconnect();
    this.#group?.drop(this);
    this.#painted.dispose();
    this.#u?.destroy();
    this.element.remove();
  }

  #draw(): void {
    const spec = this.#spec;
    if (!spec) return;
    const empty = isEmpty(spec);
    this.#empty.hidden = !empty;
    this.#plot.hidden = empty || this.#asTable;
    this.#legendBox.hidden = empty;
    this.#tableBox.hidden = empty || !this.#asTable;
    this.#copy.element.hidden = empty;
    if (empty) {
      text(this.#summary, spec.empty);
      text(this.#empty, spec.empty);
      this.#u?.destroy();
      this.#u = undefined;
      this.#shape = '';
      return;
    }
    const joined = joinOnX(spec.series.map((s) => ({ x: s.x, columns: columnsOf(s) })));
    this.#x = joined.x;
    this.#columns = joined.columns;
    this.#y = verticalRange(spec, joined.columns);
    text(this.#summary, summaryWords(spec, this.#y.above));
    const shape = shapeOf(spec);
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#legend = chartLegend(spec.series);
      replace(this.#legendBox, this.#legend.element);
      this.#u?.destroy();
      this.#u = undefined;
    }
    if (this.#asTable)
      replace(
        this.#tableBox,
        chartTable(
          this.#o.name,
          spec,
          this.#x,
          this.#columns.map((c) => c[0]!),
        ),
      );
    else this.#plotNow(spec);
    this.#read();
  }

  #data(): ReturnType<ReadDrawn> {
    const spec = this.#spec;
    return spec && { name: this.#o.name, spec, x: this.#x, columns: this.#columns, canvas: this.#u?.ctx.canvas };
  }
  #plotNow(spec: ChartSpec): void {
    const width = this.#plot.clientWidth;
    if (width < 20) {
      this.#painted.invalidate();
      return;
    }
    const data = [this.#x, ...plotted(this.#columns, spec.y.log ?? false).flat()] as uPlot.AlignedData;
    if (!this.#u) {
      this.#u = new uPlot(this.#options(spec, width), data, this.#plot);
      if (this.#wholeButton) this.#wholeButton.hidden = this.#zoom === undefined;
      return;
    }
    if (this.#wholeButton) this.#wholeButton.hidden = this.#zoom === undefined;
    if (this.#u.width !== width) this.#u.setSize({ width, height: this.#o.height });
    this.#u.setData(data);
    if (this.#cursor !== undefined) this.#showCursor();
  }

  #options(spec: ChartSpec, width: number): uPlot.Options {
    const t = theme(),
      compact = this.#o.compact === true,
      font = `${Math.round(t.fontPx * 0.85)}px ${t.font}`;
    const { series, bands } = seriesOf(spec, t, compact, (u) => gapsAt(u, this.#spec?.outages ?? [], this.#x));
    return {
      width,
      height: this.#o.height,
      legend: { show: false },
      padding: [8, compact ? 4 : spec.x.kind === 'bins' ? 12 : 22, compact ? 4 : 0, compact ? 4 : 0],
      series,
      bands,
      scales: { x: { time: false, range: () => this.#xRange() }, y: { range: () => [this.#y.min, this.#y.max] } },
      axes: axesOf(() => this.#spec ?? spec, { theme: t, font, height: this.#o.height, compact }),
      cursor: this.#cursorOptions(compact),
      hooks: this.#hooks(font, compact),
    };
  }
  #cursorOptions(compact: boolean): uPlot.Cursor {
    return {
      y: false,
      points: { size: 6, fill: (u, i) => String((u.series[i]!.stroke as () => string)()), show: true },
      drag: { x: !compact, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          this.#zoomTo(undefined);
          return null;
        },
      },
      ...(this.#o.sync
        ? {
            sync: {
              key: this.#o.sync,
              setSeries: false,
              scales: ['x', null],
              filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
            },
          }
        : {}),
    };
  }
  #hooks(font: string, compact: boolean): uPlot.Hooks.Arrays {
    return {
      drawClear: [(u) => drawGround(u, this.#spec ?? {}, theme(), font, compact)],
      draw: [
        (u) => {
          drawMarks(u, this.#spec?.marks ?? [], theme(), font);
          drawPoints(u, this.#spec!.series, theme(), compact);
        },
      ],
      setCursor: [
        (u) => {
          if (document.activeElement !== this.#plot || u.cursor.event) this.#hover(u);
        },
      ],
      setSelect: [
        (u) => {
          if (u.select.width > 4)
            this.#zoomTo({
              min: u.posToVal(u.select.left, 'x'),
              max: u.posToVal(u.select.left + u.select.width, 'x'),
            });
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    };
  }
  #whole(): [number, number] {
    return wholeRange(this.#spec!, this.#x);
  }
  /** The zoom group that a time axis shares. */
  get #shared(): ZoomGroup | undefined {
    return this.#spec?.x.kind === 'time' ? this.#group : undefined;
  }
  get #zoom(): Range | undefined {
    return this.#shared ? this.#shared.range : this.#own;
  }
  #xRange(): [number, number] {
    const zoom = this.#zoom;
    return zoom ? [zoom.min, zoom.max] : this.#whole();
  }
  #zoomTo(r: Range | undefined): void {
    if (this.#shared) this.#shared.set(r);
    else {
      this.#own = r;
      this.zoomed();
    }
  }
  /** Called when the zoomed range has changed, here or in a chart that shares it. */
  zoomed(): void {
    if (this.#wholeButton) this.#wholeButton.hidden = this.#zoom === undefined;
    this.#u?.setScale('x', { min: 0, max: 1 });
  }

  // The cursor: with the mouse, uPlot's; with the keyboard, ours.
  #hover(u: uPlot): void {
    this.#cursor =
      u.cursor.left !== undefined && u.cursor.left >= 0 ? nearest(this.#x, u.posToVal(u.cursor.left, 'x')) : undefined;
    this.#read();
  }
  #key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === 'Enter') {
      if (!this.#openBehind()) return;
    } else if (this.#copy.key(e.key)) {
      /* it is done */
    } else if (e.key === 'Escape') {
      if (this.#cursor === undefined && !this.#zoom) return;
      this.#zoomTo(undefined);
      this.#moveTo(undefined);
    } else if ((e.key === '+' || e.key === '=' || e.key === '-') && !this.#o.compact) {
      const [a, b] = this.#xRange(),
        [lo, hi] = this.#whole(),
        at = this.#x[this.#cursor ?? this.#x.length - 1] ?? b,
        f = e.key === '-' ? 2 : 0.5;
      const min = Math.max(lo, at - (at - a) * f),
        max = Math.min(hi, at + (b - at) * f);
      this.#zoomTo(max - min >= hi - lo || max <= min ? undefined : { min, max });
    } else {
      const to = moveCursor(e.key, this.#cursor, this.#x.length, e.shiftKey);
      if (to === undefined) return;
      this.#moveTo(to);
    }
    e.preventDefault();
    e.stopPropagation();
  }
  /** Whether the point under the cursor has a list behind it. */
  #openBehind(): boolean {
    const at = this.#cursor,
      behind = at === undefined ? undefined : this.#spec?.behind?.(this.#x[at]!, at);
    if (!behind || !this.#o.open) return false;
    this.#o.open(behind);
    return true;
  }
  #moveTo(i: number | undefined): void {
    this.#cursor = i;
    this.#showCursor();
    this.#read();
  }
  #showCursor(): void {
    const u = this.#u;
    if (!u) return;
    u.cursor.event = undefined;
    u.setCursor(
      this.#cursor === undefined ? { left: -10, top: -10 } : { left: u.valToPos(this.#x[this.#cursor]!, 'x'), top: 0 },
      false,
    );
  }
  /** Values under the cursor, or the newest ones, in the legend and for screen readers. */
  #read(): void {
    const spec = this.#spec,
      n = this.#x.length;
    if (!spec || !this.#legend || n === 0) return;
    const at = Math.min(this.#cursor ?? n - 1, n - 1),
      bins = spec.x.kind === 'bins';
    const place = placeWords(spec, this.#x, at),
      values = valueWords(spec, this.#columns, at);
    this.#legend.read(
      this.#cursor === undefined ? (this.#y.above ? aboveWords(this.#y.above) : '') : t('at {0}', place),
      bins && this.#cursor === undefined ? values.map(() => '') : values,
    );
    const words = this.#cursor === undefined ? t('No point chosen') : pointWords(spec, place, values);
    const p = this.#plot;
    if (p.getAttribute('aria-valuetext') !== words) {
      p.setAttribute('aria-valuetext', words);
      p.setAttribute('aria-valuenow', String(at));
      p.setAttribute('aria-valuemax', String(n - 1));
    }
  }
  #toggleTable(): void {
    this.#asTable = !this.#asTable;
    if (this.#tableButton) setPressed(this.#tableButton, this.#asTable);
    this.#painted.invalidate(true);
  }
}
export { swatch };
