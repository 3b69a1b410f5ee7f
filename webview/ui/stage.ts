/** The selected screenshot, large: the action on it, zoom, pan, before/after and the location heat map. */
import type { StepView } from '../../runtime/protocol/types.js';
import { screenshotAlt, type Action } from './actions.js';
import { h, icon, replace, s, scheduler, set, text } from './dom.js';
import type { Frames } from './frames.js';
import { percent } from './format.js';
import { heatCells, marksOf } from './overlay.js';
import { noteView, overlayView } from './overlayView.js';
import { roving } from './roving.js';
import { button, setPressed } from './toolkit.js';
import { centre, fit, keepInside, pan, pixelatedAbove, zoomAt, zoomStep, type Size, type View } from './viewMath.js';
import { t } from './words.js';

export interface StageModel {
  readonly step?: StepView;
  readonly shot: 'before' | 'after';
  readonly heat: boolean;
  /** Shown when there is no step. */
  readonly empty?: {
    readonly icon: string;
    readonly words: string;
    readonly busy?: boolean;
  };
}
export interface StageActions {
  shot(shot: 'before' | 'after'): void;
  heat(on: boolean): void;
  /** Shown to native menus: JSON of data-vscode-context. */
  context(step: StepView): string;
}
/**
 * Something of the page's own over the screenshot, told of every zoom and pan. `picture`: absent while there is none to
 * point at.
 */
export interface StageLayer {
  readonly element: HTMLElement;
  place(view: View, picture: Size | undefined): void;
}
type Rect = Size & { readonly x: number; readonly y: number };

export class Stage {
  readonly element: HTMLElement;
  readonly #frames: Frames;
  readonly #actions: StageActions;
  readonly #box = h('div', {
    class: 'ds-box',
    tabindex: '0',
    role: 'group',
    'aria-label': t('Screenshot. Plus and minus zoom, 0 fits, Alt with arrows pans.'),
  });
  readonly #surface = h('div', { class: 'ds-surface' });
  readonly #overlay = s('svg', { class: 'ds-overlay', 'aria-hidden': 'true' });
  readonly #notes = h('div', { class: 'ds-notes', 'aria-hidden': 'true' });
  readonly #placeholder = h('div', { class: 'ds-placeholder' });
  readonly #legend = h('div', { class: 'ds-legend', hidden: true });
  readonly #scale = h('span', { class: 'ds-scale', title: t('Zoom') });
  readonly #before: HTMLElement;
  readonly #after: HTMLElement;
  readonly #heatButton: HTMLElement | undefined;
  #model: StageModel = { shot: 'before', heat: false };
  #image: HTMLImageElement | undefined;
  #size: Size = { width: 0, height: 0 };
  #picture: Size | undefined;
  #view: View = { scale: 1, x: 0, y: 0 };
  #fitted = true;
  #highlight: Rect | undefined;
  #layer: StageLayer | undefined;
  #preview: readonly Action[] | undefined;
  readonly #redraw = scheduler(() => this.#draw());

  /** `compact`: without the heat map and save (the compare page). */
  constructor(frames: Frames, actions: StageActions, compact = false) {
    this.#frames = frames;
    frames.renewed = () => this.#show();
    this.#actions = actions;
    this.#before = button(t('Before'), () => actions.shot('before'), {
      pressed: true,
      title: t('Screen the decision was made on (b)'),
    });
    this.#after = button(t('After'), () => actions.shot('after'), {
      pressed: false,
      title: t('Screen after the action (b)'),
    });
    this.#heatButton = compact
      ? undefined
      : button(t('Click heat map'), () => actions.heat(!this.#model.heat), {
          icon: 'flame',
          pressed: false,
          title: t('Show click heat map: probability at each point (h)'),
          keys: 'h',
        });
    this.#box.append(this.#surface, this.#overlay, this.#placeholder, this.#notes, this.#legend);
    const bar = h(
      'div',
      { class: 'ds-toolbar', role: 'toolbar', 'aria-label': t('Screenshot') },
      h('div', { class: 'ds-segment' }, this.#before, this.#after),
      this.#heatButton,
      h('span', { class: 'ds-spring' }),
      button(t('Zoom out'), () => this.zoom(-1), { kind: 'icon', icon: 'zoom-out', title: t('Zoom out (-)') }),
      this.#scale,
      button(t('Zoom in'), () => this.zoom(1), { kind: 'icon', icon: 'zoom-in', title: t('Zoom in (+)') }),
      button(t('Fit'), () => this.fit(), { kind: 'icon', icon: 'screen-full', title: t('Fit the whole screen (0)') }),
    );
    roving(bar, 'vscode-button');
    this.element = h('div', { class: 'ds-stage' }, bar, this.#box);
    new ResizeObserver(([e]) => {
      this.#size = { width: e!.contentRect.width, height: e!.contentRect.height };
      this.#place();
    }).observe(this.#box);
    this.#listen();
  }

  update(m: StageModel): void {
    const old = this.#model;
    this.#model = m;
    if (m.step !== old.step) {
      this.#highlight = undefined;
      this.#preview = undefined;
    }
    if (m.shot !== old.shot) {
      setPressed(this.#before, m.shot === 'before');
      setPressed(this.#after, m.shot === 'after');
    }
    if (m.heat !== old.heat && this.#heatButton) setPressed(this.#heatButton, m.heat);
    this.#show();
  }
  /** Marks the location of the alternative under the pointer or focus. */
  highlight(r: Rect | undefined): void {
    this.#highlight = r;
    this.#redraw();
  }
  /** Draws these actions instead of the step's, while one of them is being moved. */
  preview(actions: readonly Action[] | undefined): void {
    this.#preview = actions;
    this.#redraw();
  }
  attach(layer: StageLayer): void {
    this.#layer = layer;
    this.#legend.before(layer.element);
    this.#redraw();
  }
  /** 'fit' or the scale, to be kept. */
  get zoomed(): number | undefined {
    return this.#fitted ? undefined : this.#view.scale;
  }
  setZoom(scale: number | undefined): void {
    if (scale === undefined) this.fit();
    else {
      this.#fitted = false;
      this.#view = this.#picture ? centre(this.#picture, this.#size, scale) : { ...this.#view, scale };
      this.#redraw();
    }
  }
  fit(): void {
    this.#fitted = true;
    this.#place();
  }
  zoom(direction: 1 | -1): void {
    this.#zoomBy(zoomStep(this.#view.scale, direction) / this.#view.scale, {
      x: this.#size.width / 2,
      y: this.#size.height / 2,
    });
  }
  actual(): void {
    this.#zoomBy(1 / this.#view.scale, { x: this.#size.width / 2, y: this.#size.height / 2 });
  }
  pan(dx: number, dy: number): void {
    if (this.#picture) {
      this.#view = pan(this.#view, dx, dy, this.#picture, this.#size);
      this.#redraw();
    }
  }
  focus(): void {
    this.#box.focus();
  }

  #zoomBy(factor: number, at: { readonly x: number; readonly y: number }): void {
    if (!this.#picture) return;
    this.#fitted = false;
    this.#view = zoomAt(this.#view, factor, at, this.#picture, this.#size);
    this.#redraw();
  }
  #listen(): void {
    const box = this.#box;
    box.addEventListener(
      'wheel',
      (e) => {
        if (!e.ctrlKey && !e.metaKey) return;
        e.preventDefault();
        const r = box.getBoundingClientRect();
        this.#zoomBy(Math.exp(-e.deltaY * (e.deltaMode === 1 ? 0.05 : 0.002)), {
          x: e.clientX - r.left,
          y: e.clientY - r.top,
        });
      },
      { passive: false },
    );
    let from: { x: number; y: number } | undefined;
    box.addEventListener('pointerdown', (e) => {
      if (e.button !== 0 || !this.#picture) return;
      from = { x: e.clientX, y: e.clientY };
      box.setPointerCapture(e.pointerId);
      box.classList.add('dragging');
    });
    box.addEventListener('pointermove', (e) => {
      if (!from) return;
      this.pan(e.clientX - from.x, e.clientY - from.y);
      from = { x: e.clientX, y: e.clientY };
    });
    const end = (): void => {
      from = undefined;
      box.classList.remove('dragging');
    };
    box.addEventListener('pointerup', end);
    box.addEventListener('pointercancel', end);
    box.addEventListener('dblclick', () => {
      if (this.#fitted) this.actual();
      else this.fit();
    });
  }

  #show(): void {
    const { step, shot, empty } = this.#model;
    if (!step) {
      this.#image = undefined;
      this.#picture = undefined;
      this.#surface.replaceChildren();
      this.#say(empty?.icon ?? 'device-desktop', empty?.words ?? '', empty?.busy);
      this.#redraw();
      return;
    }
    const link = shot === 'after' ? step.after : step.frame;
    set(this.#box, { 'data-vscode-context': this.#actions.context(step) });
    if (!link) {
      this.#lack(t('There is no screen after this action yet.'), step.frame);
      return;
    }
    const img = this.#frames.picture(link.hash);
    if (!img) {
      this.#lack(
        t(
          'The screenshot {0}… is outside the folders that this page may show. Keep the frames folder beside the file.',
          link.hash.slice(0, 12),
        ),
        link,
      );
      return;
    }
    img.alt = screenshotAlt(step, shot);
    if (img !== this.#image) {
      this.#image = img;
      this.#surface.replaceChildren(img);
      this.#placeholder.hidden = true;
      const settle = (): void => {
        if (this.#image !== img) return;
        this.#box.removeAttribute('aria-busy');
        if (img.naturalWidth === 0) {
          this.#lack(
            t('The screenshot {0}… cannot be read: the file is missing or damaged.', link.hash.slice(0, 12)),
            link,
          );
          return;
        }
        this.#setPicture({ width: img.naturalWidth, height: img.naturalHeight });
      };
      // A picture without an address is still being asked for.
      if (img.complete && img.src) settle();
      else {
        this.#box.setAttribute('aria-busy', 'true');
        img.addEventListener('load', settle, { once: true });
        img.addEventListener('error', settle, { once: true });
      }
    }
    this.#setPicture(link.width > 0 && link.height > 0 ? link : this.#picture);
  }
  /** Coordinates still make sense without a picture: the marks are drawn on an empty screen of its size. */
  #lack(why: string, size: Size): void {
    this.#image = undefined;
    this.#surface.replaceChildren();
    this.#box.removeAttribute('aria-busy');
    this.#say('file-media', why);
    this.#setPicture(size.width > 0 ? size : undefined);
  }
  #say(name: string, words: string, busy = false): void {
    this.#placeholder.hidden = false;
    replace(this.#placeholder, icon(busy ? 'loading codicon-modifier-spin' : name), h('p', null, words));
  }
  #setPicture(size: Size | undefined): void {
    const changed = size?.width !== this.#picture?.width || size?.height !== this.#picture?.height;
    this.#picture = size ? { width: size.width, height: size.height } : undefined;
    if (changed) this.#place();
    else this.#redraw();
  }
  #place(): void {
    if (this.#picture && this.#size.width > 0)
      this.#view = this.#fitted
        ? fit(this.#picture, { width: this.#size.width - 16, height: this.#size.height - 16 })
        : keepInside(this.#view, this.#picture, this.#size);
    if (this.#picture && this.#fitted) this.#view = centre(this.#picture, this.#size, this.#view.scale);
    this.#redraw();
  }

  #draw(): void {
    const { step, heat, shot } = this.#model,
      v = this.#view,
      p = this.#picture;
    set(this.#surface, {
      style: p
        ? {
            width: `${p.width}px`,
            height: `${p.height}px`,
            transform: `translate(${v.x}px, ${v.y}px) scale(${v.scale})`,
          }
        : {},
      class: ['ds-surface', v.scale > pixelatedAbove && 'pixelated', !p && 'none'],
    });
    text(this.#scale, p ? `${Math.round(v.scale * 100)} %` : '');
    const cells = step && heat ? heatCells(step.tokens) : [],
      { marks, notes } = marksOf(this.#preview ?? step?.actions ?? []);
    this.#overlay.setAttribute('class', shot === 'after' ? 'ds-overlay faded' : 'ds-overlay');
    this.#overlay.replaceChildren(
      ...(step && p ? overlayView({ marks, heat: cells, view: v, highlight: this.#highlight }) : []),
    );
    this.#layer?.place(v, step ? p : undefined);
    replace(this.#notes, step ? notes.map(noteView) : []);
    this.#legend.hidden = !(heat && step);
    if (heat && step)
      replace(
        this.#legend,
        cells.length
          ? [
              h('span', null, '0'),
              h('span', { class: 'ramp', 'aria-hidden': 'true' }),
              h('span', null, percent(cells.at(-1)!.probability)),
              h('span', null, t('probability of acting here')),
            ]
          : h('span', null, t('This step has no click heat map')),
      );
  }
}
