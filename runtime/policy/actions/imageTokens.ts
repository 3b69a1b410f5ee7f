import type { Size } from '../../domain/index.js';
import { smartResize, UI_TARS_15_LIMITS, type CoordinateMode, type ResizeLimits } from './coordinates.js';

/** Qwen3-VL's processor: patches of 16 pixels, merged 2 by 2. */
export const QWEN3_LIMITS: ResizeLimits = { factor: 32, minPixels: 65_536, maxPixels: 16_777_216 };

/** The image processor of the models that write coordinates in this way. */
export const limitsOf = (mode: CoordinateMode): ResizeLimits =>
  mode === 'relative999' ? QWEN3_LIMITS : UI_TARS_15_LIMITS;

/** The part of a run file's `trainer.remote.options` that is about pictures. */
export interface PixelOptions {
  readonly minPixels?: number | undefined;
  readonly maxPixels?: number | undefined;
}
/**
 * Models that answer in pixels mean those of the picture as the engine resizes it, so the engine's limits apply here,
 * too.
 */
export function resizeLimits(mode: CoordinateMode, o: PixelOptions | undefined): ResizeLimits {
  const usual = limitsOf(mode);
  return { ...usual, minPixels: o?.minPixels ?? usual.minPixels, maxPixels: o?.maxPixels ?? usual.maxPixels };
}

/**
 * Tokens of a picture in a prompt: one for each square of `factor` pixels after resizing
 * (runtime/config/README.md#what-an-update-costs). RangeError beyond a ratio of 200.
 */
export function imageTokens(size: Size, limits: ResizeLimits): number {
  const { width, height } = smartResize(size, limits);
  return (width / limits.factor) * (height / limits.factor);
}
