/**
 * The coordinate systems models answer in, to and from screen pixels (runtime/policy/README.md#coordinates).
 * - relative1000: 0 to 1000 across the screen (UI-TARS 1.0, Qwen2-VL)
 * - qwen25: pixels of the image after the model's own smart_resize (UI-TARS 1.5, Qwen2.5-VL)
 * - relative999: 0 to 999 (Qwen3-VL)
 * - relative1: 0 to 1 (OpenCUA)
 * - absolute: screen pixels
 */
import type { Point, Size } from '../../domain/index.js';

export type CoordinateMode = 'relative1000' | 'qwen25' | 'relative999' | 'relative1' | 'absolute';

/** Must equal what the model server's image processor uses. Defaults are UI-TARS 1.5's. */
export interface ResizeLimits {
  readonly factor: number;
  readonly minPixels: number;
  readonly maxPixels: number;
}
export const UI_TARS_15_LIMITS: ResizeLimits = { factor: 28, minPixels: 100 * 28 * 28, maxPixels: 16384 * 28 * 28 };
/** smart_resize refuses pictures more elongated than this. */
const MAX_RATIO = 200;

/** Python's `round` to a multiple of `factor`: halves go to the even multiple, unlike Math.round. */
function roundBy(n: number, factor: number): number {
  const q = n / factor,
    low = Math.floor(q),
    rest = q - low;
  return (rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low) * factor;
}

/**
 * Qwen's smart_resize: sides are multiples of the factor, pixels within limits, aspect about kept. RangeError beyond a
 * ratio of 200.
 */
export function smartResize(size: Size, o: ResizeLimits = UI_TARS_15_LIMITS): Size {
  const { width, height } = size,
    { factor } = o;
  if (Math.max(width, height) / Math.min(width, height) > MAX_RATIO)
    throw new RangeError(`a ${width}x${height} picture is too elongated for the model (at most 1:${MAX_RATIO})`);
  let w = Math.max(factor, roundBy(width, factor)),
    h = Math.max(factor, roundBy(height, factor));
  if (w * h > o.maxPixels) {
    const beta = Math.sqrt((width * height) / o.maxPixels);
    w = Math.max(factor, Math.floor(width / beta / factor) * factor);
    h = Math.max(factor, Math.floor(height / beta / factor) * factor);
  } else if (w * h < o.minPixels) {
    const beta = Math.sqrt(o.minPixels / (width * height));
    w = Math.ceil((width * beta) / factor) * factor;
    h = Math.ceil((height * beta) / factor) * factor;
  }
  return { width: w, height: h };
}

/** How many model units span the screen. */
export function spanOf(mode: CoordinateMode, screen: Size, limits?: ResizeLimits): Size {
  switch (mode) {
    case 'relative1000':
      return { width: 1000, height: 1000 };
    case 'relative999':
      return { width: 999, height: 999 };
    case 'relative1':
      return { width: 1, height: 1 };
    case 'absolute':
      return screen;
    case 'qwen25':
      return smartResize(screen, limits);
  }
}

/** Model units to a pixel; what lies outside the screen is moved to its edge, as a pointer would be. */
export function toScreen(mode: CoordinateMode, p: Point, screen: Size, limits?: ResizeLimits): Point {
  const span = spanOf(mode, screen, limits);
  const clamp = (v: number, max: number): number => Math.min(Math.max(v, 0), max - 1);
  return {
    x: clamp(Math.round((p.x / span.width) * screen.width), screen.width),
    y: clamp(Math.round((p.y / span.height) * screen.height), screen.height),
  };
}

/** A pixel in model units: whole numbers, or 4 decimals in `relative1`. */
export function fromScreen(mode: CoordinateMode, p: Point, screen: Size, limits?: ResizeLimits): Point {
  const span = spanOf(mode, screen, limits),
    unit = mode === 'relative1' ? 10_000 : 1;
  return {
    x: Math.round((p.x / screen.width) * span.width * unit) / unit,
    y: Math.round((p.y / screen.height) * span.height * unit) / unit,
  };
}
