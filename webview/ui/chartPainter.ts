/** Draws what is stale and on screen, at most every `everyMs`; what a person does is drawn in the next frame. */
export interface Painted {
  /** Marks it stale; `now`: a person did it, so it is drawn in the next frame. */
  invalidate(now?: boolean): void;
  dispose(): void;
}
interface View {
  readonly draw: () => void;
  stale: boolean;
  visible: boolean;
}

export class Painter {
  readonly #views = new Map<Element, View>();
  readonly #seen: IntersectionObserver;
  readonly #everyMs: number;
  #last = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;

  constructor(everyMs = 250) {
    this.#everyMs = everyMs;
    this.#seen = new IntersectionObserver(
      (entries) => {
        for (const e of entries) {
          const v = this.#views.get(e.target);
          if (v) v.visible = e.isIntersecting;
        }
        if ([...this.#views.values()].some((v) => v.visible && v.stale)) this.#ask(true);
      },
      { rootMargin: '160px' },
    );
    document.addEventListener('visibilitychange', () => this.#ask(true));
  }
  add(element: Element, draw: () => void): Painted {
    const view: View = { draw, stale: true, visible: false };
    this.#views.set(element, view);
    this.#seen.observe(element);
    return {
      invalidate: (now = false) => {
        view.stale = true;
        if (view.visible) this.#ask(now);
      },
      dispose: () => {
        this.#views.delete(element);
        this.#seen.unobserve(element);
      },
    };
  }
  #ask(now: boolean): void {
    if (document.hidden) return;
    const wait = now ? 0 : this.#last + this.#everyMs - performance.now();
    if (wait <= 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#nextFrame();
      return;
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#nextFrame();
    }, wait);
  }
  #nextFrame(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#paint());
  }
  #paint(): void {
    this.#frame = 0;
    this.#last = performance.now();
    for (const v of this.#views.values())
      if (v.visible && v.stale) {
        v.stale = false;
        v.draw();
      }
  }
}
