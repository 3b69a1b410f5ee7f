/**
 * Thumbnails of all steps in a row, virtualised; the band above them says which policy version decided. A listbox for
 * the keyboard.
 */
import type { StepView } from '../../runtime/protocol/types.js';
import { actionIcon, actionName, actionsWords } from './actions.js';
import { h, icon, replace, scheduler, set } from './dom.js';
import { entropyWords, type StepMark } from './entropy.js';
import { num } from './format.js';
import type { Frames } from './frames.js';
import {
  markShapes,
  markWords,
  noNotes,
  noteWords,
  originIcons,
  originWords,
  type Notes,
  type StepNote,
} from './notes.js';
import { spanWords, versionColour, type VersionSpan } from './versions.js';
import { move, moveOfKey, scrollTo, windowOf, type Strip } from './virtual.js';
import { t } from './words.js';

export interface FilmstripModel {
  readonly steps: readonly StepView[];
  readonly marks: readonly StepMark[];
  readonly spans: readonly VersionSpan[];
  readonly selected: number;
  /** Steps to point out (compare): position -> why. */
  readonly flags?: ReadonlyMap<number, string>;
  /** Notes by index of their step. */
  readonly notes?: Notes;
}
export interface FilmstripActions {
  select(position: number): void;
  context(step: StepView): string;
  /** Which steps are in sight. */
  scrolled?(from: number, to: number): void;
  readonly label: string;
}

export const itemWidth = 136;
let strips = 0;

export class Filmstrip {
  readonly element: HTMLElement;
  readonly #frames: Frames;
  readonly #actions: FilmstripActions;
  readonly #id = `strip-${++strips}`;
  readonly #list = h('div', {
    class: 'ds-film-list',
    role: 'listbox',
    tabindex: '0',
    'aria-orientation': 'horizontal',
  });
  readonly #band = h('div', { class: 'ds-film-band', 'aria-hidden': 'true' });
  readonly #track = h('div', { class: 'ds-film-track', role: 'presentation' });
  readonly #items = new Map<number, { readonly element: HTMLElement; readonly step: StepView; readonly key: string }>();
  #model: FilmstripModel = { steps: [], marks: [], spans: [], selected: -1 };
  #viewport = 0;
  /** Scroll position as last heard or set: asking the list would lay out the page in the middle of a change. */
  #scroll = 0;
  readonly #redraw = scheduler(() => this.#draw());

  constructor(frames: Frames, actions: FilmstripActions) {
    this.#frames = frames;
    this.#actions = actions;
    this.#list.setAttribute('aria-label', actions.label);
    this.#track.append(this.#band);
    this.#list.append(this.#track);
    this.element = h('div', { class: 'ds-film' }, this.#list);
    this.#list.addEventListener(
      'scroll',
      () => {
        this.#scroll = this.#list.scrollLeft;
        this.#redraw();
      },
      { passive: true },
    );
    this.#list.addEventListener(
      'wheel',
      (e) => {
        if (e.ctrlKey || e.shiftKey || e.deltaX !== 0 || this.#list.scrollWidth <= this.#list.clientWidth) return;
        e.preventDefault();
        this.#list.scrollLeft += e.deltaY * (e.deltaMode === 1 ? 24 : 1);
      },
      { passive: false },
    );
    this.#list.addEventListener('keydown', (e) => {
      const m = e.altKey || e.ctrlKey || e.metaKey ? undefined : moveOfKey[e.key];
      if (!m || this.#model.steps.length === 0) return;
      e.preventDefault();
      e.stopPropagation();
      actions.select(move(this.#strip(), Math.max(0, this.#model.selected), m));
    });
    this.#list.addEventListener('click', (e) => {
      const at = (e.target as Element).closest<HTMLElement>('[data-at]')?.dataset['at'];
      if (at !== undefined) actions.select(Number(at));
    });
    new ResizeObserver(() => {
      const first = this.#viewport === 0;
      this.#viewport = this.#list.clientWidth;
      if (first) this.reveal();
      this.#redraw();
    }).observe(this.#list);
  }

  update(m: FilmstripModel): void {
    const moved = m.selected !== this.#model.selected || m.steps.length !== this.#model.steps.length;
    this.#model = m;
    set(this.#track, { style: { width: `${m.steps.length * itemWidth}px` } });
    if (moved) this.reveal();
    this.#draw();
  }
  /** Draws again: pictures have come. */
  refresh(): void {
    this.#redraw();
  }
  focus(): void {
    // The page stays where its reader has scrolled it to.
    this.#list.focus({ preventScroll: true });
  }
  reveal(): void {
    if (this.#model.selected < 0) return;
    const strip = this.#strip();
    if (strip.viewport === 0) return;
    const to = scrollTo(strip, this.#model.selected);
    if (to !== strip.scroll) this.#list.scrollLeft = this.#scroll = to;
  }
  /** Brings an item (a fraction counts) to the left edge: two strips move as one. */
  scrollTo(item: number): void {
    const to = Math.round(item * itemWidth);
    if (Math.abs(this.#scroll - to) > 1) this.#list.scrollLeft = this.#scroll = to;
  }
  /** Measured by the observer; a key may come before its first word. */
  #strip(): Strip {
    return {
      count: this.#model.steps.length,
      item: itemWidth,
      viewport: this.#viewport || this.#list.clientWidth,
      scroll: this.#scroll,
    };
  }

  #draw(): void {
    const { steps, marks, selected, spans, flags, notes = noNotes } = this.#model,
      strip = this.#strip(),
      { from, to } = windowOf(strip, 4);
    for (const [i, x] of this.#items)
      if (i < from || i >= to) {
        x.element.remove();
        this.#items.delete(i);
      }
    for (let i = from; i < to; i++) {
      const step = steps[i]!,
        mark = marks[i],
        thumb = this.#frames.thumb(step.frame.hash),
        flag = flags?.get(i),
        note = notes.get(step.index);
      const key = `${step.index}|${i === selected}|${thumb ? ('uri' in thumb ? thumb.uri : thumb.missing) : ''}|${mark?.high}|${mark?.kept}|${mark?.entropy}|${flag ?? ''}|${steps.length}|${noteWords(note)}`;
      const there = this.#items.get(i);
      if (there?.key === key && there.step === step) continue;
      const element = this.#item(i, step, mark, thumb, flag, note);
      if (there) there.element.replaceWith(element);
      else this.#track.append(element);
      this.#items.set(i, { element, step, key });
    }
    replace(
      this.#band,
      spans
        .filter((x) => x.to > from && x.from < to)
        .map((x) =>
          h(
            'div',
            {
              class: 'ds-version',
              style: {
                left: `${x.from * itemWidth}px`,
                width: `${(x.to - x.from) * itemWidth}px`,
                '--colour': versionColour(x.version),
              },
            },
            h('span', { class: 'ds-version-name' }, spanWords(x)),
          ),
        ),
    );
    if (selected >= from && selected < to) this.#list.setAttribute('aria-activedescendant', `${this.#id}-${selected}`);
    else this.#list.removeAttribute('aria-activedescendant');
    this.#actions.scrolled?.(strip.scroll / itemWidth, (strip.scroll + strip.viewport) / itemWidth);
  }

  #item(
    i: number,
    step: StepView,
    mark: StepMark | undefined,
    thumb: ReturnType<Frames['thumb']>,
    flag: string | undefined,
    note: StepNote | undefined,
  ): HTMLElement {
    const selected = i === this.#model.selected;
    return h(
      'div',
      {
        id: `${this.#id}-${i}`,
        class: [
          'ds-shot',
          selected && 'selected',
          mark?.kept === false && 'dropped',
          flag !== undefined && 'flagged',
          note?.deleted && 'deleted',
        ],
        role: 'option',
        'aria-selected': String(selected),
        'aria-setsize': this.#model.steps.length,
        'aria-posinset': i + 1,
        style: { left: `${i * itemWidth}px` },
        data: { at: i },
        'data-vscode-context': this.#actions.context(step),
      },
      thumbView(step, thumb),
      noteChips(note),
      captionView(step, mark, flag, note),
    );
  }
}

/** A step in words, for its tip and for screen readers. */
const labelOf = (
  step: StepView,
  mark: StepMark | undefined,
  flag: string | undefined,
  note: StepNote | undefined,
): string =>
  [
    actionsWords(step.actions),
    mark?.entropy === undefined ? '' : entropyWords(num(mark.entropy), mark),
    mark?.kept === undefined ? '' : mark.kept ? t('kept') : t('dropped by the mask'),
    step.origin === 'policy'
      ? step.version === undefined
        ? ''
        : t('policy version {0}', step.version)
      : t('by {0}', originWords[step.origin]),
    noteWords(note),
    flag ?? '',
  ]
    .filter(Boolean)
    .join(', ');
const thumbView = (step: StepView, thumb: ReturnType<Frames['thumb']>): HTMLElement =>
  h(
    'div',
    {
      class: 'ds-thumb',
      'aria-hidden': 'true',
      style: {
        '--aspect':
          step.frame.width > 0 && step.frame.height > 0 ? `${step.frame.width} / ${step.frame.height}` : '16 / 10',
      },
    },
    thumb && 'uri' in thumb
      ? picture(thumb.uri)
      : h(
          'span',
          { class: 'ds-no-thumb', title: thumb?.missing },
          thumb ? icon('file-media') : undefined,
          thumb ? h('span', null, t('no picture')) : undefined,
        ),
  );
/** Number, action and marks under the picture. */
function captionView(
  step: StepView,
  mark: StepMark | undefined,
  flag: string | undefined,
  note: StepNote | undefined,
): HTMLElement {
  const a = step.actions[0],
    label = labelOf(step, mark, flag, note);
  return h(
    'div',
    { class: 'ds-shot-line', title: label },
    h('span', { class: 'sr-only' }, t('Step'), ' '),
    h('span', { class: 'ds-shot-number' }, step.index + 1),
    ' ',
    a ? icon(actionIcon(a)) : undefined,
    h('span', { class: 'ds-shot-name' }, a ? actionName(a) : t('no action')),
    step.origin === 'policy' ? undefined : icon(originIcons[step.origin]),
    note?.changed ? icon('edit') : undefined,
    h('span', { class: 'sr-only' }, `: ${label}`),
    flag === undefined ? undefined : icon('diff-modified'),
    mark?.high ? h('span', { class: 'ds-diamond', 'aria-hidden': 'true' }, '◆') : undefined,
  );
}
/** Marks of a person over the picture: shape and word. */
function noteChips(note: StepNote | undefined): HTMLElement | undefined {
  if (!note || (!note.deleted && note.marks.length === 0)) return undefined;
  const chip = (kind: string, name: string, words: string): HTMLElement =>
    h('span', { class: `ds-chip ${kind}` }, icon(name), words);
  return h(
    'div',
    { class: 'ds-chips', 'aria-hidden': 'true' },
    note.deleted ? chip('deleted', 'trash', t('deleted')) : undefined,
    note.marks.map((m) => chip(m, markShapes[m].icon, markWords[m])),
  );
}
function picture(uri: string): HTMLImageElement {
  const img = h('img', { alt: '', src: uri, decoding: 'async', draggable: 'false' });
  img.addEventListener(
    'error',
    () =>
      img.replaceWith(
        h(
          'span',
          { class: 'ds-no-thumb', title: t('The picture cannot be read') },
          icon('file-media'),
          h('span', null, t('no picture')),
        ),
      ),
    { once: true },
  );
  return img;
}
