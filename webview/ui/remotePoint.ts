/**
 * The pointer over the picture of a remote screen: where it is there, which buttons changed, how many wheel clicks.
 * Pure.
 */
import type { Point } from './actions.js';
import type { Size } from './viewMath.js';

/** The picture as it lies in the window, in client pixels: a zoom, a pan and the device's pixels are all in it. */
export interface Rect {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The pixel of the screen under a client position, the nearest one when it lies outside. */
export function onScreen(client: Point, picture: Rect, screen: Size): Point & { readonly inside: boolean } {
  const axis = (at: number, from: number, length: number, pixels: number): number =>
    length > 0 ? Math.max(0, Math.min(pixels - 1, Math.floor(((at - from) * pixels) / length))) : 0;
  const within = (at: number, from: number, length: number): boolean => at >= from && at < from + length;
  return {
    x: axis(client.x, picture.left, picture.width, screen.width),
    y: axis(client.y, picture.top, picture.height, screen.height),
    inside: within(client.x, picture.left, picture.width) && within(client.y, picture.top, picture.height),
  };
}

export type PointerButton = 'left' | 'middle' | 'right';
const bits: readonly (readonly [number, PointerButton])[] = [
  [1, 'left'],
  [2, 'right'],
  [4, 'middle'],
];
/**
 * The changes of buttons between two values of `PointerEvent.buttons`: a second button of a chord has no event of its
 * own.
 */
export const changedButtons = (
  before: number,
  now: number,
): { readonly button: PointerButton; readonly down: boolean }[] =>
  bits.filter(([b]) => (before & b) !== (now & b)).map(([b, button]) => ({ button, down: (now & b) !== 0 }));

export interface WheelMove {
  readonly deltaX: number;
  readonly deltaY: number;
  /** 0 pixels, 1 lines, 2 pages. */
  readonly deltaMode: number;
}
/**
 * Beyond this a move is a click of a mouse wheel (browsers report 53 to 120 pixels for one); below, a touchpad, whose
 * moves add up.
 */
const notch = 40,
  padPixels = 60,
  mousePixels = 100,
  mostAtOnce = 20;

/** Turns wheel moves into whole wheel clicks; what is left over counts towards the next. */
export class WheelClicks {
  readonly #rest = { x: 0, y: 0 };
  /** Clicks, positive = right and down; undefined while they do not make one. */
  take(e: WheelMove): { readonly dx: number; readonly dy: number } | undefined {
    const dx = this.#axis('x', e.deltaX, e.deltaMode),
      dy = this.#axis('y', e.deltaY, e.deltaMode);
    return dx || dy ? { dx, dy } : undefined;
  }
  #axis(axis: 'x' | 'y', delta: number, mode: number): number {
    const whole = (n: number): number => Math.max(-mostAtOnce, Math.min(mostAtOnce, n)) || 0;
    if (mode !== 0)
      return whole(Math.sign(delta) * Math.max(1, Math.round(Math.abs(mode === 1 ? delta / 3 : delta * 3))));
    if (Math.abs(delta) >= notch) {
      this.#rest[axis] = 0;
      return whole(Math.sign(delta) * Math.max(1, Math.round(Math.abs(delta) / mousePixels)));
    }
    // A change of direction starts from zero.
    const sum = Math.sign(delta) === -Math.sign(this.#rest[axis]) ? delta : this.#rest[axis] + delta,
      n = Math.trunc(sum / padPixels);
    this.#rest[axis] = sum - n * padPixels;
    return whole(n);
  }
}
