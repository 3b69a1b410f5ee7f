/**
 * Points of actions as handles over the screenshot: dragged, or moved by the arrow keys. One move is one edit; Escape
 * puts the point back.
 */
import type { Action, Point } from '../ui/actions.js';
import { h, replace, set } from '../ui/dom.js';
import type { StageLayer } from '../ui/stage.js';
import type { Size, View } from '../ui/viewMath.js';
import { t } from '../ui/words.js';
import { movePoint, onScreen, pointsOf, type ActionPoint } from './actionFields.js';

export interface HandleActions {
  /** The step's actions with the point where it is now; undefined: as they were. */
  preview(actions: readonly Action[] | undefined): void;
  moved(action: number, value: Action): void;
  announce(words: string): void;
  left(): void;
}
const arrows: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
/** Least distance of two handles, px: that of their own size. */
const apart = 34;
/** Pixels of the screen that an arrow moves with Shift. */
const leap = 10;

export class Handles implements StageLayer {
  readonly element = h('div', { class: 'an-handles' });
  readonly #do: HandleActions;
  #actions: readonly Action[] = [];
  #handles: { readonly point: ActionPoint; readonly element: HTMLElement; now: Point }[] = [];
  #view: View = { scale: 1, x: 0, y: 0 };
  #picture: Size | undefined;
  /** The one that is away from where it was saved. */
  #moving: number | undefined;

  constructor(actions: HandleActions) {
    this.#do = actions;
  }

  /** The step's actions; none: nothing can be moved. */
  update(actions: readonly Action[]): void {
    if (actions === this.#actions) return;
    this.#actions = actions;
    const points = pointsOf(actions),
      same =
        points.length === this.#handles.length &&
        points.every((p, i) => p.name === this.#handles[i]!.point.name && p.action === this.#handles[i]!.point.action);
    this.#moving = undefined;
    if (same)
      this.#handles = this.#handles.map((x, i) => ({ element: x.element, point: points[i]!, now: points[i]!.at }));
    else {
      this.#handles = points.map((point, i) => ({ point, now: point.at, element: this.#button(i) }));
      replace(
        this.element,
        this.#handles.map((x) => x.element),
      );
    }
    this.#draw();
  }
  place(view: View, picture: Size | undefined): void {
    this.#view = view;
    this.#picture = picture;
    this.#draw();
  }
  /** Focuses the first point, ready for the arrow keys. */
  focus(): boolean {
    this.#handles[0]?.element.focus();
    return this.#handles.length > 0;
  }
  get count(): number {
    return this.#handles.length;
  }
  /** Saves a point that is on its way. */
  flush(): void {
    this.#finish();
  }

  #button(i: number): HTMLElement {
    const e = h('button', { type: 'button', class: 'an-handle' });
    let from: { readonly x: number; readonly y: number; readonly at: Point } | undefined;
    e.addEventListener('pointerdown', (p) => {
      p.stopPropagation();
      if (p.button !== 0 || !this.#picture) return;
      from = { x: p.clientX, y: p.clientY, at: this.#handles[i]!.now };
      e.setPointerCapture(p.pointerId);
    });
    e.addEventListener('pointermove', (p) => {
      if (from)
        this.#to(i, {
          x: from.at.x + (p.clientX - from.x) / this.#view.scale,
          y: from.at.y + (p.clientY - from.y) / this.#view.scale,
        });
    });
    e.addEventListener('pointerup', () => {
      if (!from) return;
      from = undefined;
      this.#finish();
    });
    e.addEventListener('pointercancel', () => {
      from = undefined;
      this.#cancel();
    });
    e.addEventListener('dblclick', (p) => p.stopPropagation());
    e.addEventListener('blur', () => {
      if (!from) this.#finish();
    });
    e.addEventListener('keydown', (k) => {
      const d = k.altKey || k.ctrlKey || k.metaKey ? undefined : arrows[k.key],
        here = this.#handles[i]!.now,
        far = k.shiftKey ? leap : 1;
      if (d) {
        this.#to(i, { x: here.x + d[0] * far, y: here.y + d[1] * far });
        this.#do.announce(`${this.#handles[i]!.now.x}, ${this.#handles[i]!.now.y}`);
      } else if (k.key === 'Escape') {
        from = undefined;
        if (this.#moving === undefined) this.#do.left();
        else {
          this.#cancel();
          this.#do.announce(t('Moved back'));
        }
      } else if (k.key === 'Enter') {
        this.#finish();
        this.#do.left();
      } else return;
      k.preventDefault();
      k.stopPropagation();
    });
    return e;
  }
  #to(i: number, p: Point): void {
    const x = this.#handles[i]!;
    if (!this.#picture) return;
    x.now = onScreen(p, this.#picture);
    this.#moving = i;
    this.#do.preview(this.#actions.map((a, n) => (n === x.point.action ? movePoint(a, x.point.end, x.now) : a)));
    this.#draw();
  }
  #finish(): void {
    const x = this.#moving === undefined ? undefined : this.#handles[this.#moving];
    this.#moving = undefined;
    if (!x) return;
    if (x.now.x === x.point.at.x && x.now.y === x.point.at.y) {
      this.#do.preview(undefined);
      return;
    }
    this.#do.moved(x.point.action, movePoint(this.#actions[x.point.action]!, x.point.end, x.now));
  }
  #cancel(): void {
    this.#moving = undefined;
    for (const x of this.#handles) x.now = x.point.at;
    this.#do.preview(undefined);
    this.#draw();
  }
  #draw(): void {
    const { scale, x, y } = this.#view;
    this.element.hidden = !this.#picture;
    // Ends of a short drag are taken apart, so that each can be hit; a handle moves its point by as much as it is moved
    // itself.
    const put = this.#handles.map((k) => ({ x: x + k.now.x * scale, y: y + k.now.y * scale }));
    this.#handles.forEach((k, i) => {
      const a = put[i - 1],
        b = put[i];
      if (k.point.end !== 'to' || !a || !b) return;
      const length = Math.hypot(b.x - a.x, b.y - a.y),
        lack = Math.max(0, apart - length) / 2,
        ux = length ? (b.x - a.x) / length : 1,
        uy = length ? (b.y - a.y) / length : 0;
      put[i - 1] = { x: a.x - ux * lack, y: a.y - uy * lack };
      put[i] = { x: b.x + ux * lack, y: b.y + uy * lack };
    });
    this.#handles.forEach((k, i) =>
      set(k.element, {
        style: { transform: `translate(${put[i]!.x}px, ${put[i]!.y}px)` },
        class: ['an-handle', this.#moving === i && 'moving'],
        'aria-label': t(
          '{0} at {1}, {2}. Drag it, or move it with the arrow keys, with Shift by {3} pixels; Enter saves, Escape moves it back.',
          k.point.name,
          k.now.x,
          k.now.y,
          leap,
        ),
        title: t('{0}: drag to move', k.point.name),
      }),
    );
  }
}
