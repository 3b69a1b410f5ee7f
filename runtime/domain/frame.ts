import type { Size } from './actionArguments.js';

/**
 * A screen as captured: BGRX, 4 bytes a pixel, rows top to bottom without padding. Whoever holds the frame owns the
 * buffer.
 */
export interface Frame extends Size {
  readonly data: Buffer;
  /** ms since the epoch. */
  readonly capturedAt: number;
}

/**
 * A stored frame: `hash` is the hex sha-256 of width, height and RGB pixels; the file is `frames/<2 hex>/<hash>.png`.
 */
export interface FrameRef extends Size {
  readonly hash: string;
}
