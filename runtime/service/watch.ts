import type { Desktop } from '../cluster/types.js';
import { type Frame, ServiceError } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { pngOf } from '../data/store/png.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { ScreenPatch } from './types.js';

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/**
 * A desktop's screen: whole at first, then the rectangle that changed. The framebuffer is looked at when something was
 * drawn and at most `maxFps` times a second; a screen at rest costs nothing, whatever its desktop does. The next look
 * waits until the last patch was taken, so a slow consumer gets the newest state and never a queue. Ends when the
 * desktop is gone.
 */
export function watchDesktop(
  registry: DesktopRegistry | undefined,
  id: string,
  o: { readonly maxFps: number },
  signal: AbortSignal,
): { width: number; height: number; patches: AsyncIterable<ScreenPatch> } {
  const desktop = registry?.desktop(id);
  if (!registry || !desktop)
    throw new ServiceError(
      'not.found',
      `There is no desktop ${id}.`,
      'Choose one from the list of desktops; it may have been replaced.',
    );
  const { width, height } = desktop.screen,
    pause = 1000 / Math.min(60, Math.max(0.2, o.maxFps));

  return { width, height, patches: patches(registry, id, pause, signal) };
}

/** `pause`: ms between two looks at least. */
async function* patches(
  registry: DesktopRegistry,
  id: string,
  pause: number,
  signal: AbortSignal,
): AsyncGenerator<ScreenPatch, void, undefined> {
  const news = new Bell(signal);
  let last: Frame | undefined,
    gone = false;
  const off = registry.onChange((which, row) => {
    if (which !== id) return;
    gone = row === undefined;
    news.ring();
  });
  try {
    while (!signal.aborted) {
      const d = registry.desktop(id),
        began = performance.now();
      if (!d || gone) return;
      news.rung = false;
      // Watching begins before the look: what is drawn meanwhile is the next change.
      const change = await orUndefined(
        d.changes?.(signal) ?? Promise.resolve(undefined),
        'then it is looked at when something is said of it',
      );
      const frame = await orUndefined(d.observe(), 'between two sessions of its X server there is nothing to see');
      if (signal.aborted) return;
      if (frame) {
        const rect = patchRect(last, frame);
        if (rect) yield { ...rect, at: frame.capturedAt, png: await pngOf(crop(frame, rect)) };
        if (last) d.recycle?.(last);
        last = frame;
      }
      await untilDrawn(change, news, () => !gone && !signal.aborted && registry.desktop(id) === d);
      await untilPassed(began + pause, news, signal);
    }
  } finally {
    off();
    news.close();
  }
}

/** The rectangle to send so that a viewer who has `last` sees `frame`; undefined when they are the same. */
function patchRect(last: Frame | undefined, frame: Frame): Rect | undefined {
  return last && last.width === frame.width && last.height === frame.height
    ? changedRect(last, frame)
    : { x: 0, y: 0, width: frame.width, height: frame.height };
}

/**
 * Waits until something was drawn, or the desktop is no longer the one that is watched. One that was lost, or cannot
 * say when it draws, is looked at again when something is said of it.
 */
async function untilDrawn(
  change: Awaited<ReturnType<NonNullable<Desktop['changes']>>> | undefined,
  news: Bell,
  same: () => boolean,
): Promise<void> {
  let drawn = false;
  void change?.drawn.then(
    () => {
      drawn = true;
      news.ring();
    },
    () => {
      news.ring();
    },
  );
  while (!drawn && same()) {
    await news.next();
    if (!change) break;
  }
}

/** A timer may ring a little early: it is set again for what is left. `at`: of `performance.now()`. */
async function untilPassed(at: number, news: Bell, signal: AbortSignal): Promise<void> {
  for (let left = at - performance.now(); left > 0 && !signal.aborted; left = at - performance.now())
    await news.within(left);
}

/** A signal to wait for that may ring before anything waits. */
class Bell {
  rung = false;
  readonly #signal: AbortSignal;
  #wake: (() => void) | undefined;
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.ring);
  }
  ring = (): void => {
    this.rung = true;
    this.#wake?.();
  };
  async next(): Promise<void> {
    if (!this.rung && !this.#signal.aborted)
      await new Promise<void>((r) => {
        this.#wake = r;
      });
    this.#wake = undefined;
    this.rung = false;
  }
  /** A pause that only the signal cuts short. */
  within(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#signal.addEventListener('abort', done, { once: true });
    });
  }
  close(): void {
    this.#signal.removeEventListener('abort', this.ring);
  }
}

/** The smallest rectangle that holds every changed pixel; undefined when none has. Both frames are of one size. */
export function changedRect(a: Frame, b: Frame): Rect | undefined {
  const { width, height } = b,
    row = width * 4;
  const same = (y: number): boolean => a.data.compare(b.data, y * row, (y + 1) * row, y * row, (y + 1) * row) === 0;
  let top = 0,
    bottom = height - 1;
  while (top < height && same(top)) top++;
  if (top === height) return undefined;
  while (same(bottom)) bottom--;
  const pa = words(a),
    pb = words(b);
  let left = width,
    right = -1;
  for (let y = top; y <= bottom; y++) {
    const at = y * width;
    for (let x = 0; x < left; x++)
      if (pa[at + x] !== pb[at + x]) {
        left = x;
        break;
      }
    for (let x = width - 1; x > right; x--)
      if (pa[at + x] !== pb[at + x]) {
        right = x;
        break;
      }
  }
  return { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}
function words(f: Frame): Uint32Array {
  const { data } = f;
  if (data.byteOffset % 4 === 0) return new Uint32Array(data.buffer, data.byteOffset, f.width * f.height);
  return new Uint32Array(Uint8Array.from(data).buffer);
}
function crop(f: Frame, r: Rect): Frame {
  const data = Buffer.allocUnsafe(r.width * r.height * 4);
  for (let y = 0; y < r.height; y++)
    f.data.copy(data, y * r.width * 4, ((r.y + y) * f.width + r.x) * 4, ((r.y + y) * f.width + r.x + r.width) * 4);
  return { width: r.width, height: r.height, data, capturedAt: f.capturedAt };
}
