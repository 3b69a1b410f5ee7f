/**
 * Utilisation lanes: what every desktop, replica and the trainer did, on one time axis. Canvas, zoom, follow, a cursor
 * by mouse and keyboard.
 */
import type { Lanes } from '../../runtime/protocol/types.js';
import type { Painted } from './chartPainter.js';
import { h, replace, text } from './dom.js';
import { makeFills, paintAxis, paintLanes, prepare, type Fills } from './lanesInk.js';
import { fillLegend } from './lanesLegend.js';
import type { LanesOptions } from './lanesOptions.js';
import { spanWords, summaryWords } from './lanesWords.js';
import {
  clampWindow,
  followWindow,
  inSlots,
  layoutRows,
  moveSpan,
  panWindow,
  rowAt,
  spanAt,
  syncBands,
  windowOn,
  zoomWindow,
  type Layout,
  type SlotLane,
  type Window,
} from './lanesMath.js';
import { button, setPressed } from './toolkit.js';
import { t } from './words.js';

const keys = t(
  'Drag to move; Ctrl with the wheel, or + and -, to zoom; arrow keys go from span to span, Enter opens the trajectory.',
);
const look = { row: 16, gap: 4, heading: 22 },
  axisHeight = 22,
  maxHeight = 380;
type Cursor = { readonly row: number; readonly span: number };

export class LanesView {
  readonly element: HTMLElement;
  readonly #o: LanesOptions;
  readonly #axis = h('canvas', { class: 'lanes-axis', 'aria-hidden': 'true' });
  readonly #canvas = h('canvas', { class: 'lanes-canvas', 'aria-hidden': 'true' });
  readonly #space = h('div', { class: 'lanes-space' }, this.#canvas);
  readonly #body: HTMLElement;
  readonly #summary = h('p', { class: 'sr-only', id: 'lanes-summary' });
  readonly #empty = h('p', { class: 'chart-empty', hidden: true }, t('Nothing was recorded in this time range.'));
  readonly #read = h('div', { class: 'lanes-read' });
  readonly #spoken = h('div', { class: 'sr-only', role: 'status' });
  readonly #legend = h('ul', { class: 'lanes-legend', 'aria-label': t('Activities') });
  readonly #follow: HTMLElement;
  readonly #measuredButton: HTMLElement;
  readonly #painted: Painted;
  /** The known lanes; `#lanes` has them with desktops by their places. */
  #known: Lanes['lanes'] = [];
  #lanes: Lanes & { readonly lanes: readonly SlotLane[] } = { from: 0, to: 1, lanes: [], syncs: [], merged: false };
  #limits: Window = { from: 0, to: 1 };
  #window: Window = { from: 0, to: 1 };
  #layout: Layout = { rows: [], headings: [], height: 0 };
  #fills: Fills | undefined;
  #answered = false;
  #measured: Window | undefined;
  #following = false;
  #cursor: Cursor | undefined;
  #drag: { readonly x: number; readonly window: Window; moved: boolean } | undefined;

  constructor(o: LanesOptions) {
    this.#o = o;
    this.#body = this.#makeBody();
    this.#listen();
    this.#follow = button(t('Follow live'), () => this.setFollow(!this.#following, true), {
      icon: 'debug-line-by-line',
      pressed: false,
      title: t('Keep the newest time in view'),
    });
    this.#measuredButton = button(t('RL'), () => this.#measured && this.#show(this.#measured), {
      title: t('Time range of the utilisation card'),
    });
    this.#measuredButton.hidden = true;
    this.element = h(
      'div',
      { class: 'lanes' },
      this.#toolbar(),
      this.#axis,
      this.#body,
      this.#empty,
      this.#read,
      this.#spoken,
      this.#summary,
      h('p', { class: 'sr-only', id: 'lanes-keys' }, keys),
    );
    this.#painted = o.painter.add(this.element, () => this.#draw());
    new ResizeObserver(() => this.#painted.invalidate(true)).observe(this.#body);
    this.#say();
  }

  #makeBody(): HTMLElement {
    return h(
      'div',
      {
        class: 'lanes-body',
        tabindex: 0,
        role: 'application',
        'aria-roledescription': t('timeline'),
        'aria-label': t('Utilisation lanes'),
        'aria-describedby': 'lanes-summary lanes-keys',
        on: {
          keydown: (e) => this.#key(e),
          focus: () => this.#painted.invalidate(true),
          blur: () => this.#clearCursor(),
          scroll: () => this.#painted.invalidate(true),
        },
      },
      this.#space,
    );
  }
  #listen(): void {
    this.#body.addEventListener('wheel', (e) => this.#wheel(e), { passive: false });
    this.#canvas.addEventListener('pointerdown', (e) => this.#down(e));
    this.#canvas.addEventListener('pointermove', (e) => this.#move(e));
    this.#canvas.addEventListener('pointerup', (e) => this.#up(e));
    this.#canvas.addEventListener('pointerleave', () => {
      if (!this.#drag && document.activeElement !== this.#body) this.#clearCursor();
    });
    this.#canvas.addEventListener('dblclick', () => this.#open());
  }
  #toolbar(): HTMLElement {
    return h(
      'div',
      { class: 'lanes-tools' },
      this.#follow,
      button(t('Zoom in'), () => this.#zoom(0.5, 0.5), { kind: 'icon', icon: 'zoom-in', title: t('Zoom in (+)') }),
      button(t('Zoom out'), () => this.#zoom(2, 0.5), { kind: 'icon', icon: 'zoom-out', title: t('Zoom out (-)') }),
      button(t('Whole run'), () => this.#show(this.#limits), {
        kind: 'icon',
        icon: 'screen-full',
        title: t('Whole run (0)'),
      }),
      this.#measuredButton,
      this.#legend,
    );
  }

  get window(): Window {
    return this.#window;
  }
  get following(): boolean {
    return this.#following;
  }
  get width(): number {
    return Math.max(50, this.#body.clientWidth - this.#gutter());
  }

  /**
   * `lanes` undefined: not known yet. `limits`: the whole run so far; with follow on, the window goes with its end.
   * `measured`: what the utilisation card is about.
   */
  update(known: Lanes | undefined, limits: Window, measured?: Window): void {
    this.#measured = measured;
    this.#measuredButton.hidden = measured === undefined;
    const lanes = known ?? { from: limits.from, to: limits.to, lanes: [], syncs: [], merged: false };
    this.#answered ||= known !== undefined;
    const moved = limits.to !== this.#limits.to;
    const c = this.#cursor,
      old = c && this.#laneOf(c.row),
      start = c && old?.start[c.span];
    const same = lanes.lanes === this.#known,
      slots = same ? this.#lanes.lanes : inSlots(lanes.lanes, (place) => t('desktop {0}', place + 1));
    if (!same) this.#layout = layoutRows(slots, look);
    this.#known = lanes.lanes;
    this.#lanes = { ...lanes, lanes: slots };
    this.#limits = limits;
    // The span under the cursor keeps it, wherever it now stands in its columns.
    if (old && start !== undefined) this.#cursor = this.#find(old.id, start);
    if (this.#following && moved && !this.#drag) {
      this.#window = followWindow(this.#window, limits);
      this.#o.onWindow(this.#window, this.width, 'live');
    }
    this.#painted.invalidate();
  }
  /** First window, or a restored one. */
  reveal(w: Window, limits: Window, follow: boolean): void {
    this.#limits = limits;
    this.#window = clampWindow(w, limits);
    this.setFollow(follow);
    this.#o.onWindow(this.#window, this.width, 'live');
    this.#painted.invalidate(true);
  }
  setFollow(on: boolean, byPerson = false): void {
    this.#following = on;
    setPressed(this.#follow, on);
    this.#follow.setAttribute('appearance', on ? 'primary' : 'secondary');
    if (!byPerson) return;
    this.#o.onFollow(on);
    if (on) {
      this.#window = followWindow(
        { from: this.#window.from, to: Math.min(this.#window.to, this.#window.from + 120_000) },
        this.#limits,
      );
      this.#o.onWindow(this.#window, this.width, 'person');
      this.#painted.invalidate(true);
    }
  }
  /** Whether "follow" has a meaning: the run is live. */
  setLive(live: boolean): void {
    this.#follow.hidden = !live;
    if (!live && this.#following) this.setFollow(false);
  }
  retheme(): void {
    this.#fills = undefined;
    this.#painted.invalidate(true);
  }

  #gutter(): number {
    return this.#body.clientWidth < 560 ? 66 : 104;
  }
  #draw(): void {
    const nothing = this.#answered && this.#layout.rows.length === 0;
    this.#empty.hidden = !nothing;
    this.#body.hidden = this.#axis.hidden = this.#read.hidden = nothing;
    if (nothing) {
      this.#describe();
      return;
    }
    const width = this.#body.clientWidth,
      height = Math.min(maxHeight, Math.max(60, this.#layout.height));
    if (width < 40) return;
    this.#body.style.height = `${height}px`;
    this.#space.style.height = `${Math.max(height, this.#layout.height)}px`;
    const c = prepare(this.#canvas, width, height);
    if (!this.#fills) {
      this.#fills = makeFills(c);
      fillLegend(this.#legend);
    }
    paintAxis(this.#axis, width, axisHeight, this.#gutter(), this.#window, this.#limits.from, this.#o.tick);
    paintLanes(
      this.#canvas,
      {
        width,
        height,
        gutter: this.#gutter(),
        scroll: this.#body.scrollTop,
        window: this.#window,
        ...this.#lanes,
        layout: this.#layout,
        bands: syncBands(this.#lanes.syncs),
        cursor: this.#cursor,
        focused: document.activeElement === this.#body,
      },
      this.#fills,
    );
    this.#describe();
  }
  #describe(): void {
    text(this.#summary, summaryWords(this.#lanes, this.#window, this.#limits.from, this.#o.moment));
  }
  // Actions of a person: zoom, drag, point, keys.
  #show(w: Window): void {
    this.#window = clampWindow(w, this.#limits);
    if (this.#following && this.#window.to < this.#limits.to - 1) {
      this.setFollow(false);
      this.#o.onFollow(false);
    }
    this.#o.onWindow(this.#window, this.width, 'person');
    this.#painted.invalidate(true);
  }
  #zoom(factor: number, at: number): void {
    this.#show(zoomWindow(this.#window, factor, this.#following ? 1 : at, this.#limits));
  }
  #timeAt(clientX: number): number {
    const b = this.#canvas.getBoundingClientRect(),
      g = this.#gutter();
    return (
      this.#window.from + ((clientX - b.left - g) / Math.max(1, b.width - g)) * (this.#window.to - this.#window.from)
    );
  }
  #wheel(e: WheelEvent): void {
    if (
      e.ctrlKey ||
      e.metaKey ||
      (document.activeElement === this.#body &&
        !e.shiftKey &&
        Math.abs(e.deltaY) > Math.abs(e.deltaX) &&
        this.#layout.height <= maxHeight)
    ) {
      e.preventDefault();
      this.#zoom(
        Math.exp(Math.max(-120, Math.min(120, e.deltaY)) * 0.004),
        (this.#timeAt(e.clientX) - this.#window.from) / (this.#window.to - this.#window.from),
      );
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      this.#show(panWindow(this.#window, (e.deltaX || e.deltaY) / Math.max(200, this.width), this.#limits));
    }
  }
  #down(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.#drag = { x: e.clientX, window: this.#window, moved: false };
    this.#canvas.setPointerCapture(e.pointerId);
    this.#body.focus({ preventScroll: true });
  }
  #move(e: PointerEvent): void {
    const d = this.#drag;
    if (d) {
      if (!d.moved && Math.abs(e.clientX - d.x) < 4) return;
      d.moved = true;
      this.#show(panWindow(d.window, (d.x - e.clientX) / this.width, this.#limits));
      return;
    }
    this.#pick(e);
  }
  #up(e: PointerEvent): void {
    const moved = this.#drag?.moved;
    this.#drag = undefined;
    if (!moved) this.#pick(e);
  }
  #pick(e: PointerEvent): void {
    const b = this.#canvas.getBoundingClientRect(),
      row = rowAt(this.#layout, e.clientY - b.top + this.#body.scrollTop),
      lane = this.#laneOf(row);
    const span =
      lane && e.clientX - b.left >= this.#gutter()
        ? spanAt(lane, this.#timeAt(e.clientX), ((this.#window.to - this.#window.from) / this.width) * 3)
        : -1;
    const next = span >= 0 ? { row, span } : undefined;
    if (next?.row === this.#cursor?.row && next?.span === this.#cursor?.span) return;
    this.#cursor = next;
    this.#say();
    this.#painted.invalidate(true);
  }
  #find(lane: string, start: number): Cursor | undefined {
    const row = this.#layout.rows.findIndex((r) => this.#lanes.lanes[r.lane]!.id === lane),
      span = row < 0 ? -1 : spanAt(this.#laneOf(row)!, start);
    return span < 0 ? undefined : { row, span };
  }
  #laneOf(row: number): SlotLane | undefined {
    const r = this.#layout.rows[row];
    return r && this.#lanes.lanes[r.lane];
  }
  #key(e: KeyboardEvent): void {
    if (e.altKey || e.ctrlKey || e.metaKey || e.target !== this.#body) return;
    if (e.key === '+' || e.key === '=') this.#zoom(0.5, 0.5);
    else if (e.key === '-') this.#zoom(2, 0.5);
    else if (e.key === '0') this.#show(this.#limits);
    else if (e.key === 'PageUp' || e.key === 'PageDown')
      this.#show(panWindow(this.#window, e.key === 'PageUp' ? -0.8 : 0.8, this.#limits));
    else if (e.key === 'f') this.setFollow(!this.#following, true);
    else if (e.key === 'Enter' || e.key === ' ') this.#open();
    else if (e.key === 'Escape' && this.#cursor) this.#clearCursor();
    else {
      const to = moveSpan(
        e.key,
        this.#cursor,
        this.#layout.rows.map((r) => this.#lanes.lanes[r.lane]!),
        this.#window,
      );
      if (!to) return;
      this.#cursor = to;
      this.#bringIntoView(to);
      text(this.#spoken, this.#say());
      this.#painted.invalidate(true);
    }
    e.preventDefault();
  }
  #clearCursor(): void {
    this.#cursor = undefined;
    this.#say();
    this.#painted.invalidate(true);
  }
  #bringIntoView(c: Cursor): void {
    const l = this.#laneOf(c.row)!,
      r = this.#layout.rows[c.row]!,
      a = l.start[c.span]!,
      b = a + l.ms[c.span]!,
      w = this.#window;
    if (a < w.from || b > w.to) this.#show(windowOn(w, a, b));
    if (r.y < this.#body.scrollTop + look.heading) this.#body.scrollTop = r.y - look.heading;
    else if (r.y + r.height > this.#body.scrollTop + this.#body.clientHeight)
      this.#body.scrollTop = r.y + r.height - this.#body.clientHeight + 4;
  }
  #open(): void {
    const c = this.#cursor,
      id = c && this.#laneOf(c.row)?.rollout[c.span];
    if (id) this.#o.onOpen(id);
  }
  /** The span under the cursor in words. */
  #say(): string {
    const c = this.#cursor,
      l = c && this.#laneOf(c.row),
      start = c && l?.start[c.span];
    if (!c || !l || start === undefined) {
      replace(
        this.#read,
        h('span', { class: 'hint', 'aria-hidden': 'true' }, `${t('Hover over a span for details.')} ${keys}`),
      );
      return '';
    }
    const id = l.rollout[c.span],
      words = spanWords(l, c.span, this.#o.moment(start - this.#limits.from), this.#window, this.#lanes.concurrency);
    replace(
      this.#read,
      h('span', null, words.join(' · ')),
      id ? button(t('Open {0}', id), () => this.#o.onOpen(id), { icon: 'open-preview' }) : undefined,
    );
    return words.join(', ');
  }
}
