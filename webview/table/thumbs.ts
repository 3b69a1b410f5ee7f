/** Pictures of steps at the size of a thumbnail, which fill in when they are there. */
import type { FrameLink } from '../../runtime/protocol/types.js';
import type { Action } from '../ui/actions.js';
import { h, s } from '../ui/dom.js';
import { Frames, type FramesHost } from '../ui/frames.js';

type Mark = { readonly at: { readonly x: number; readonly y: number }; readonly kind: 'did' | 'expected' | 'at' };

export class Thumbs {
  readonly #frames: Frames;
  readonly #waiting = new Map<HTMLImageElement, string>();
  constructor(host: FramesHost) {
    this.#frames = new Frames(host);
    this.#frames.changed = () => this.#fill();
  }
  open(run: string): void {
    this.#waiting.clear();
    this.#frames.open(run, `${run}/frames`);
  }
  /** A picture with marks where a step clicked, and where the success does. */
  picture(frame: FrameLink, marks: readonly Mark[] = []): HTMLElement {
    const img = h('img', { alt: '', prop: { decoding: 'async', draggable: false } });
    this.#waiting.set(img, frame.hash);
    queueMicrotask(() => this.#fill());
    return h(
      'span',
      { class: 'tb-thumb', style: { 'aspect-ratio': `${frame.width} / ${frame.height}` } },
      img,
      marks.length === 0
        ? undefined
        : s(
            'svg',
            { viewBox: `0 0 ${frame.width} ${frame.height}`, 'aria-hidden': 'true' },
            marks.map((m) => markOf(m, frame.width / 22)),
          ),
    );
  }
  #fill(): void {
    for (const [img, hash] of this.#waiting) {
      const thumb = this.#frames.thumb(hash);
      if (!thumb) continue;
      if (!thumb.standsIn) this.#waiting.delete(img);
      if ('missing' in thumb) img.title = thumb.missing;
      else {
        img.removeAttribute('title');
        if (img.getAttribute('src') !== thumb.uri) img.src = thumb.uri;
      }
    }
  }
}
/** A cross where it went wrong, a ring where it should have been, or was. */
export function markOf({ at, kind }: Mark, size: number): SVGElement {
  return kind === 'did'
    ? s('path', {
        class: 'tb-mark did',
        d: `M${at.x - size} ${at.y - size}l${2 * size} ${2 * size}M${at.x - size} ${at.y + size}l${2 * size} ${-2 * size}`,
      })
    : s('circle', { class: `tb-mark ${kind}`, cx: at.x, cy: at.y, r: size });
}
/** The point of an action; for a drag, its beginning. */
export const pointOf = (a: Action | undefined): { readonly x: number; readonly y: number } | undefined =>
  a === undefined ? undefined : 'at' in a ? a.at : 'from' in a ? a.from : undefined;
