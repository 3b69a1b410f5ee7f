/**
 * The entropy timeline: a bar a step over the whole trajectory, a slider for the keyboard, numbers on hover and focus.
 */
import { h, replace, s, scheduler, set, text } from './dom.js';
import { entropyWords, stepAt, timeline, xOf, type Bar, type StepMark, type Timeline } from './entropy.js';
import { num } from './format.js';
import { markShapes, markWords, noNotes, noteWords, type Notes } from './notes.js';
import { moveOfKey, move } from './virtual.js';
import { t } from './words.js';

export interface TimelineModel {
  readonly marks: readonly StepMark[];
  /** Number people see for a position. */
  readonly numberOf: (position: number) => number;
  readonly selected: number;
  readonly threshold?: number;
  /** Whether curation has still to say what is kept. */
  readonly undecided?: boolean;
  /** Notes by position, not by index. */
  readonly notes?: Notes;
}

const deletedPath = 'M-4,0h8';
/** Bars, room for the diamonds over them, and for people's marks under them. */
const height = 52,
  top = 12,
  foot = 14;

export class TimelineView {
  readonly element: HTMLElement;
  readonly #select: (position: number) => void;
  readonly #maxSlot: number;
  readonly #slider = h('div', {
    class: 'ds-time-slider',
    role: 'slider',
    tabindex: '0',
    'aria-label': t('Step, with entropy'),
    'aria-orientation': 'horizontal',
  });
  readonly #svg = s('svg', { class: 'ds-time-bars', height: height + top, width: '100%', 'aria-hidden': 'true' });
  readonly #sight = s('g', { class: 'ds-time-cursor' });
  readonly #cursor = s('g', { class: 'ds-time-cursor' });
  readonly #bars = s('g');
  readonly #notes = s('g', { class: 'ds-time-notes' });
  readonly #tip = h('div', { class: 'ds-tip', role: 'tooltip', id: 'ds-time-tip', hidden: true });
  readonly #noteLegend = h('p', { class: 'ds-time-legend', hidden: true });
  readonly #summary = h('p', { class: 'ds-time-summary' });
  #model: TimelineModel = { marks: [], numberOf: (p) => p + 1, selected: -1 };
  #geometry: Timeline = timeline([], { width: 1, height, maxSlot: 1 });
  #width = 0;
  #seen: readonly [number, number] = [0, 0];
  #drawn: { readonly marks?: readonly StepMark[]; readonly threshold?: number; readonly width: number } = { width: -1 };
  #noted: Notes = noNotes;
  #notedAt: Timeline | undefined;
  readonly #redraw = scheduler(() => this.#draw());

  constructor(o: { readonly select: (position: number) => void; readonly maxSlot: number }) {
    this.#select = o.select;
    this.#maxSlot = o.maxSlot;
    this.#svg.append(
      s(
        'defs',
        null,
        s(
          'pattern',
          { id: 'ds-hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
          s('line', { x1: 0, y1: 0, x2: 0, y2: 5, class: 'hatch' }),
        ),
      ),
      this.#sight,
      this.#bars,
      this.#notes,
      this.#cursor,
    );
    this.#slider.append(this.#svg, this.#tip);
    this.element = h(
      'div',
      { class: 'ds-time' },
      this.#slider,
      h('div', { class: 'ds-time-foot' }, legend(), this.#noteLegend, this.#summary),
    );
    new ResizeObserver(() => {
      this.#width = this.#slider.clientWidth;
      this.#redraw();
    }).observe(this.#slider);
    this.#listen();
  }

  update(m: TimelineModel): void {
    this.#model = m;
    this.#redraw();
  }
  /** Steps in sight of the filmstrip, as fractions of positions. */
  see(from: number, to: number): void {
    this.#seen = [from, to];
    this.#redraw();
  }

  #listen(): void {
    const e = this.#slider;
    const at = (x: number): number | undefined => stepAt(this.#geometry, x - e.getBoundingClientRect().left);
    let down = false;
    e.addEventListener('pointerdown', (p) => {
      const i = at(p.clientX);
      if (p.button !== 0 || i === undefined) return;
      down = true;
      e.setPointerCapture(p.pointerId);
      this.#select(i);
    });
    e.addEventListener('pointermove', (p) => {
      const i = at(p.clientX);
      if (i === undefined) {
        this.#hide();
        return;
      }
      this.#show(i);
      if (down && i !== this.#model.selected) this.#select(i);
    });
    e.addEventListener('pointerup', () => {
      down = false;
    });
    e.addEventListener('pointercancel', () => {
      down = false;
    });
    e.addEventListener('pointerleave', () => this.#hide());
    e.addEventListener('focus', () => {
      if (e.matches(':focus-visible')) this.#show(this.#model.selected);
    });
    e.addEventListener('blur', () => this.#hide());
    e.addEventListener('keydown', (k) => {
      if (k.key === 'Escape') {
        this.#hide();
        return;
      }
      const m = k.altKey || k.ctrlKey || k.metaKey ? undefined : moveOfKey[k.key],
        n = this.#model.marks.length;
      if (!m || n === 0) return;
      k.preventDefault();
      k.stopPropagation();
      const to = move(
        { count: n, item: this.#geometry.slot, viewport: this.#width / 4, scroll: 0 },
        Math.max(0, this.#model.selected),
        k.key === 'ArrowUp' ? 'next' : k.key === 'ArrowDown' ? 'previous' : m,
      );
      this.#select(to);
      this.#show(to);
    });
  }
  #show(i: number): void {
    const m = this.#model.marks[i];
    if (!m) {
      this.#hide();
      return;
    }
    text(this.#tip, this.#words(i, m));
    this.#tip.hidden = false;
    const half = this.#tip.offsetWidth / 2,
      x = Math.max(half + 4, Math.min(this.#width - half - 4, xOf(this.#geometry, i)));
    set(this.#tip, { style: { left: `${x}px` } });
    this.#slider.setAttribute('aria-describedby', 'ds-time-tip');
  }
  #words(i: number, m: StepMark): string {
    const note = noteWords(this.#model.notes?.get(i));
    return `${wordsOf(m, this.#model.numberOf(i), this.#model.threshold)}${note ? `; ${note}` : ''}`;
  }
  #hide(): void {
    this.#tip.hidden = true;
    this.#slider.removeAttribute('aria-describedby');
  }

  #draw(): void {
    const { marks, selected, threshold, numberOf, notes = noNotes } = this.#model;
    if (this.#drawn.marks !== marks || this.#drawn.threshold !== threshold || this.#drawn.width !== this.#width) {
      this.#drawn = { marks, width: this.#width, threshold };
      this.#geometry = timeline(marks, {
        width: this.#width,
        height,
        maxSlot: this.#maxSlot,
        threshold,
      });
      const g = this.#geometry,
        end = Math.min(this.#width, g.bars.length * g.slot);
      replace(
        this.#bars,
        s('line', { class: 'base', x1: 0, x2: end, y1: top + height - 0.5, y2: top + height - 0.5 }),
        g.bars.map((b) => barView(b)),
        g.thresholdY === undefined
          ? undefined
          : s('line', { class: 'threshold', x1: 0, x2: end, y1: top + g.thresholdY, y2: top + g.thresholdY }),
      );
      text(this.#summary, summaryWords(marks, threshold, this.#model.undecided ?? false));
    }
    if (this.#noted !== notes || this.#notedAt !== this.#geometry) {
      this.#noted = notes;
      this.#notedAt = this.#geometry;
      this.#drawNotes(notes);
    }
    this.#drawSight(marks.length, selected);
    const m = marks[selected];
    set(this.#slider, {
      'aria-valuemin': marks.length ? numberOf(0) : 0,
      'aria-valuemax': marks.length ? numberOf(marks.length - 1) : 0,
      'aria-valuenow': m ? numberOf(selected) : 0,
      'aria-valuetext': m ? this.#words(selected, m) : t('no steps'),
    });
  }
  /** Draws the part that the filmstrip shows, and the cursor. */
  #drawSight(count: number, selected: number): void {
    const g = this.#geometry,
      x = selected < 0 ? -10 : xOf(g, selected),
      fits = count * this.#maxSlot <= this.#width + 1;
    const w = Math.max(8, Math.min(g.slot, 40));
    this.#sight.replaceChildren(
      ...(fits || count === 0
        ? []
        : [
            s('rect', {
              class: 'seen',
              x: (this.#seen[0] / g.perBar) * g.slot,
              width: Math.max(2, ((this.#seen[1] - this.#seen[0]) / g.perBar) * g.slot),
              y: 1,
              height: top + height - 2,
              rx: 2,
            }),
          ]),
    );
    this.#cursor.replaceChildren(
      ...(selected < 0
        ? []
        : [s('rect', { class: 'frame', x: x - w / 2 - 1, width: w + 2, y: 1, height: top + height - 2, rx: 2 })]),
    );
  }
  /**
   * Draws one shape for each kind of mark under its bar; where several steps share a bar, for the first that has it.
   */
  #drawNotes(notes: Notes): void {
    const g = this.#geometry,
      taken = new Set<string>(),
      shapes: SVGElement[] = [];
    for (const [i, n] of notes) {
      const x = xOf(g, i),
        deep = n.deleted ? ['deleted' as const] : n.marks;
      deep.forEach((k, row) => {
        const key = `${Math.round(x)}|${row}`;
        if (taken.has(key)) return;
        taken.add(key);
        const dx = g.slot >= 16 ? (row - (deep.length - 1) / 2) * 11 : 0;
        if (!dx && row) return;
        shapes.push(
          s('path', {
            class: k,
            d: k === 'deleted' ? deletedPath : markShapes[k].path,
            transform: `translate(${x + dx} ${top + height + 7})`,
          }),
        );
      });
    }
    this.#notes.replaceChildren(...shapes);
    const all = [...notes.values()],
      kinds = (['key', 'redundant', 'wrong', 'deleted'] as const)
        .map((k) => ({ k, n: all.filter((x) => (k === 'deleted' ? x.deleted : x.marks.includes(k))).length }))
        .filter((x) => x.n > 0);
    this.#noteLegend.hidden = kinds.length === 0;
    replace(
      this.#noteLegend,
      kinds.map(({ k, n }) =>
        h(
          'span',
          null,
          s(
            'svg',
            { class: 'ds-time-notes', width: 11, height: 11, viewBox: '-5 -5 10 10', 'aria-hidden': 'true' },
            s('path', { class: k, d: k === 'deleted' ? deletedPath : markShapes[k].path }),
          ),
          `${n} ${k === 'deleted' ? t('deleted') : markWords[k]}`,
        ),
      ),
    );
    set(this.#svg, { height: top + height + (shapes.length ? foot : 0) });
  }
}

function barView(b: Bar): SVGElement {
  const cx = b.x + b.width / 2,
    y = top + b.y,
    d = Math.min(5, Math.max(2.5, b.width / 2 + 1));
  return s(
    'g',
    { class: ['bar', b.high && 'high', b.kept === false && 'dropped', b.entropy === undefined && 'none'] },
    b.entropy === undefined
      ? s('circle', { cx, cy: top + height - 3, r: 1.5 })
      : s('rect', { x: b.x, y, width: b.width, height: b.height, rx: Math.min(2, b.width / 3) }),
    b.high
      ? s('path', { class: 'diamond', d: `M${cx},${y - 2 - 2 * d}l${d},${d}l${-d},${d}l${-d},${-d}z` })
      : undefined,
  );
}
/** "Step 12: entropy 0.84, high; threshold 0.61; kept". */
export function wordsOf(m: StepMark, number: number, threshold: number | undefined): string {
  return [
    m.entropy === undefined
      ? t('Step {0}: no entropy (nobody sampled it)', number)
      : t('Step {0}: {1}', number, entropyWords(num(m.entropy, 3), m)),
    threshold === undefined ? '' : t('threshold {0}', num(threshold, 3)),
    m.kept === undefined ? '' : m.kept ? t('kept') : t('dropped by the mask'),
  ]
    .filter(Boolean)
    .join('; ');
}
function legend(): HTMLElement {
  const swatch = (c: string): HTMLElement => h('span', { class: `swatch ${c}`, 'aria-hidden': 'true' });
  return h(
    'p',
    { class: 'ds-time-legend' },
    h('strong', null, t('Entropy')),
    h('span', { title: t('Trained on: mean token entropy not below the threshold') }, swatch('kept'), t('kept')),
    h('span', { title: t('Left out of the loss by the entropy mask') }, swatch('dropped'), t('dropped')),
    h(
      'span',
      { title: t('The fifth of the steps where the policy hesitated most. n and p go from one to the next.') },
      h('span', { class: 'ds-diamond', 'aria-hidden': 'true' }, '◆'),
      t('high'),
    ),
    h('span', { title: t('The 20th percentile of the group’s step entropies') }, swatch('line'), t('threshold')),
  );
}
function summaryWords(marks: readonly StepMark[], threshold: number | undefined, undecided: boolean): string {
  const high = marks.filter((m) => m.high).length,
    dropped = marks.filter((m) => m.kept === false).length,
    known = marks.filter((m) => m.kept !== undefined).length;
  return [
    threshold === undefined
      ? undecided
        ? t('No threshold yet')
        : t('No threshold')
      : t('Threshold {0}', num(threshold, 3)),
    t('{0} high', high),
    known ? t('{0} kept, {1} dropped', known - dropped, dropped) : undecided ? t('mask not known yet') : t('no mask'),
  ].join(' · ');
}
