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
 * A screen as the PNG file that its desktop made of it, 8-bit RGB. The bytes that are stored are those that a model is
 * shown: nobody changes them, and whoever needs the picture may keep them.
 */
export interface EncodedFrame extends Size {
  readonly png: Buffer;
  readonly capturedAt: number;
}
export type Screenshot = Frame | EncodedFrame;
export const isEncoded = (s: Screenshot): s is EncodedFrame => 'png' in s;

/**
 * A stored frame. `hash` is a hex sha-256: of the file's bytes where the desktop encoded it, else of width, height and RGB
 * pixels.
 */
export interface FrameRef extends Size {
  readonly hash: string;
}
