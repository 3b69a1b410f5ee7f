/** The desktop's picture: patches drawn in order on one canvas, shown fitted or at a zoom, an action marked on it. */
import { ignoreFailure } from '../../runtime/protocol/failures.js';
import type { Action } from '../ui/actions.js';
import { h, icon, replace, s, text } from '../ui/dom.js';
import { marksOf, type HeatCell } from '../ui/overlay.js';
import { noteView, overlayView } from '../ui/overlayView.js';
import { button, setPressed } from '../ui/toolkit.js';
import {
  centre,
  fit,
  keepInside,
  pan,
  pixelatedAbove,
  zoomAt,
  zoomStep,
  type Size,
  type View,
} from '../ui/viewMath.js';
import { t } from '../ui/words.js';

export interface Patch {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly png: Uint8Array;
  readonly screen: Size;
}
/**
 * An action drawn over the picture; the same `key` is the same drawing. `proposal`: words of what has not been done
 * yet.
 */
export interface Marked {
  readonly key: string;
  readonly actions: readonly Action[];
  readonly proposal?: string;
  /** Places where the policy would have acted, with probabilities. */
  readonly heat?: readonly HeatCell[];
}
/** Chosen zoom; undefined = fit. */
export type Zoom = number | undefined;
const viewing = t('Live picture. Plus and minus zoom, 0 fits, 1 shows every pixel, arrows pan.');
const working = t(
  'The desktop, under your control. Press Enter or K to give it the keyboard, Control and Alt together to take it back. Plus and minus zoom, 0 fits, 1 shows every pixel, arrows pan.',
);

/** A page that nobody sees keeps the patches as they came; beyond this many they are drawn to be rid of them. */
const keptUnseen = 256;
const covers = (a: Patch, b: Patch): boolean =>
  a.x <= b.x &&
  a.y <= b.y &&
  a.x + a.width >= b.x + b.width &&
  a.y + a.height >= b.y + b.height &&
  a.screen.width === b.screen.width &&
  a.screen.height === b.screen.height;

export class Picture {
  readonly element: HTMLElement;
  readonly tools: HTMLElement;
  readonly #canvas = h('canvas', { class: 'live-canvas', role: 'img', 'aria-label': t('Desktop') });
  readonly #overlay = s('svg', { class: 'ds-overlay', 'aria-hidden': 'true' });
  readonly #notes = h('div', { class: 'ds-notes', 'aria-hidden': 'true' });
  readonly #box: HTMLElement;
  readonly #scale = h('span', { class: 'ds-scale number' });
  readonly #fitButton: HTMLElement;
  readonly #fullButton: HTMLElement;
  readonly #handButton: HTMLElement;
  readonly #changed: (z: Zoom) => void;
  #screen: Size = { width: 0, height: 0 };
  #room: Size = { width: 0, height: 0 };
  #view: View = { scale: 1, x: 0, y: 0 };
  #zoom: Zoom;
  #marked: Marked | undefined;
  #queue: Promise<void> = Promise.resolve();
  #unseen: { readonly patch: Patch; readonly failed: (why: unknown) => void }[] = [];
  #held = false;
  #hand = false;
  /** The picture may be worked on, or moved about, or neither. */
  handChanged: () => void = () => undefined;

  constructor(zoom: Zoom, changed: (z: Zoom) => void) {
    this.#zoom = zoom;
    this.#changed = changed;
    this.#box = h(
      'div',
      {
        class: 'live-box',
        tabindex: 0,
        role: 'group',
        'aria-label': viewing,
        on: { keydown: (e) => this.#key(e), pointerdown: (e) => this.#grab(e) },
      },
      this.#canvas,
      this.#overlay,
      this.#notes,
    );
    this.#box.addEventListener('wheel', (e) => this.#wheel(e), { passive: false });
    this.element = this.#box;
    this.#fitButton = button(t('Fit'), () => this.#set(undefined), {
      title: t('Fit the whole screen (0)'),
      pressed: zoom === undefined,
    });
    this.#fullButton = button('100 %', () => this.#set(1), {
      title: t('Actual size (1)'),
      pressed: zoom === 1,
    });
    this.#handButton = button(t('Pan the picture'), () => this.#setHand(!this.#hand), {
      kind: 'icon',
      icon: 'move',
      title: t('Pan and zoom the picture with the mouse instead of acting on it'),
      pressed: false,
    });
    this.#handButton.hidden = true;
    this.tools = h(
      'div',
      { class: 'live-tools', role: 'toolbar', 'aria-label': t('Picture') },
      this.#fitButton,
      this.#fullButton,
      button(t('Zoom out'), () => this.#ladder(-1), { kind: 'icon', icon: 'zoom-out', title: t('Zoom out (-)') }),
      this.#scale,
      button(t('Zoom in'), () => this.#ladder(1), { kind: 'icon', icon: 'zoom-in', title: t('Zoom in (+)') }),
      this.#handButton,
    );
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.#drawUnseen();
    });
    new ResizeObserver(([e]) => {
      this.#room = { width: e!.contentRect.width, height: e!.contentRect.height };
      this.#place();
    }).observe(this.#box);
  }
  get has(): boolean {
    return this.#screen.width > 0;
  }
  /** The picture's rectangle in the window, in client pixels, and the size of the screen it shows. */
  place(): { readonly rect: DOMRect; readonly screen: Size } {
    return { rect: this.#canvas.getBoundingClientRect(), screen: this.#screen };
  }
  /**
   * A person works on the picture: the mouse and the wheel are the desktop's, unless they are asked to move the
   * picture.
   */
  hold(on: boolean): void {
    if (on === this.#held) return;
    this.#held = on;
    this.#box.setAttribute('aria-label', on ? working : viewing);
    this.#box.classList.toggle('held', on);
    if (!on) this.#setHand(false);
    this.#place();
  }
  /** Whether mouse and wheel are the desktop's now. */
  get worksOn(): boolean {
    return this.#held && !this.#hand;
  }

  /** Draws differences in the order they came. A hidden page draws nothing. */
  patch(p: Patch, failed: (why: unknown) => void): void {
    if (!document.hidden) {
      this.#drawUnseen();
      this.#draw(p, failed);
      return;
    }
    this.#unseen = this.#unseen.filter((u) => !covers(p, u.patch));
    this.#unseen.push({ patch: p, failed });
    if (this.#unseen.length > keptUnseen) this.#drawUnseen();
  }
  #drawUnseen(): void {
    for (const { patch, failed } of this.#unseen.splice(0)) this.#draw(patch, failed);
  }
  /** Decoded at once, beside the page's thread; drawn when those before it are. */
  #draw(p: Patch, failed: (why: unknown) => void): void {
    const decoded = createImageBitmap(new Blob([p.png as Uint8Array<ArrayBuffer>], { type: 'image/png' }));
    ignoreFailure(decoded, 'the queue below hears of it');
    this.#queue = this.#queue.then(async () => {
      try {
        const image = await decoded;
        if (p.screen.width !== this.#screen.width || p.screen.height !== this.#screen.height) {
          this.#screen = p.screen;
          this.#canvas.width = p.screen.width;
          this.#canvas.height = p.screen.height;
          this.#place();
        }
        this.#canvas.getContext('2d', { alpha: false })!.drawImage(image, p.x, p.y);
        image.close();
      } catch (e) {
        failed(e);
      }
    });
  }
  /** Marks an action; `words` name the picture. */
  show(marked: Marked | undefined, words: string, still: boolean): void {
    if (this.#canvas.getAttribute('aria-label') !== words) this.#canvas.setAttribute('aria-label', words);
    this.#box.classList.toggle('still', still);
    if (marked?.key === this.#marked?.key) return;
    this.#marked = marked;
    this.#place();
  }

  #place(): void {
    if (!this.has || this.#room.width === 0) return;
    const v = (this.#view =
      this.#zoom === undefined
        ? fit(this.#screen, this.#room)
        : this.#view.scale === this.#zoom
          ? keepInside(this.#view, this.#screen, this.#room)
          : centre(this.#screen, this.#room, this.#zoom));
    const c = this.#canvas.style;
    c.width = `${this.#screen.width * v.scale}px`;
    c.height = `${this.#screen.height * v.scale}px`;
    c.transform = `translate(${v.x}px, ${v.y}px)`;
    c.imageRendering = v.scale > pixelatedAbove ? 'pixelated' : 'auto';
    const { marks, notes } = marksOf(this.#marked?.actions ?? []),
      proposal = this.#marked?.proposal;
    replace(this.#overlay, overlayView({ marks, heat: this.#marked?.heat ?? [], view: v }));
    replace(
      this.#notes,
      proposal === undefined
        ? undefined
        : h('div', { class: 'note live-proposed' }, icon('hubot'), h('span', null, proposal)),
      notes.map(noteView),
    );
    this.#overlay.classList.toggle('proposal', proposal !== undefined);
    this.#handButton.hidden =
      !this.#held ||
      (this.#screen.width * v.scale <= this.#room.width + 1 && this.#screen.height * v.scale <= this.#room.height + 1);
    if (this.#handButton.hidden && this.#hand) this.#setHand(false);
    text(this.#scale, `${Math.round(v.scale * 100)} %`);
    setPressed(this.#fitButton, this.#zoom === undefined);
    setPressed(this.#fullButton, this.#zoom === 1);
  }
  #setHand(on: boolean): void {
    if (on === this.#hand) return;
    this.#hand = on;
    setPressed(this.#handButton, on);
    this.#box.classList.toggle('hand', on);
    this.handChanged();
  }
  #set(z: Zoom): void {
    this.#zoom = z;
    this.#changed(z);
    this.#place();
  }
  #move(v: View): void {
    this.#view = v;
    if (this.#zoom !== v.scale) {
      this.#zoom = v.scale;
      this.#changed(v.scale);
    }
    this.#place();
  }
  #ladder(d: 1 | -1): void {
    this.#move(
      zoomAt(
        this.#view,
        zoomStep(this.#view.scale, d) / this.#view.scale,
        { x: this.#room.width / 2, y: this.#room.height / 2 },
        this.#screen,
        this.#room,
      ),
    );
  }
  #key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const by = 60,
      d: Readonly<Record<string, readonly [number, number]>> = {
        ArrowLeft: [by, 0],
        ArrowRight: [-by, 0],
        ArrowUp: [0, by],
        ArrowDown: [0, -by],
      };
    const go = d[e.key];
    if (e.key === '+' || e.key === '=') this.#ladder(1);
    else if (e.key === '-') this.#ladder(-1);
    else if (e.key === '0') this.#set(undefined);
    else if (e.key === '1') this.#set(1);
    else if (go && this.#zoom !== undefined) this.#move(pan(this.#view, go[0], go[1], this.#screen, this.#room));
    else return;
    e.preventDefault();
  }
  #wheel(e: WheelEvent): void {
    if (!this.has || this.worksOn) return;
    e.preventDefault();
    const b = this.#box.getBoundingClientRect();
    this.#move(
      zoomAt(
        this.#view,
        Math.exp(-Math.max(-120, Math.min(120, e.deltaY)) * 0.003),
        { x: e.clientX - b.left, y: e.clientY - b.top },
        this.#screen,
        this.#room,
      ),
    );
  }
  #grab(e: PointerEvent): void {
    if (e.button !== 0 || this.#zoom === undefined || this.worksOn) return;
    const from = this.#view,
      end = new AbortController();
    this.#box.setPointerCapture(e.pointerId);
    this.#box.addEventListener(
      'pointermove',
      (m) => this.#move(pan(from, m.clientX - e.clientX, m.clientY - e.clientY, this.#screen, this.#room)),
      { signal: end.signal },
    );
    for (const t of ['pointerup', 'pointercancel'] as const)
      this.#box.addEventListener(t, () => end.abort(), { signal: end.signal });
  }
}
