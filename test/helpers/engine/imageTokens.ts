import type { ResizeLimits } from '../../../runtime/policy/actions/coordinates.js';
import { imageTokens } from '../../../runtime/policy/actions/imageTokens.js';

/** Tokens of a PNG where a model resizes it by these limits. */
export const resizedTokens =
  (limits: ResizeLimits) =>
  (png: Uint8Array): number => {
    const v = new DataView(png.buffer, png.byteOffset, png.byteLength);
    return imageTokens({ width: v.getUint32(16), height: v.getUint32(20) }, limits);
  };
