import { readSync } from 'node:fs';
import { messageOf, type Size } from '../../domain/index.js';
import { portOf } from '../../domain/workerPort.js';
import { BandEncoder } from './bandEncoder.js';

/** To a thread: the file of a screen is asked for. */
export interface FramebufferAsked {
  readonly id: number;
  /** Whose screen it is; what follows is the same each time. */
  readonly screen: number;
  /** Open in this process, whose threads share it. */
  readonly fd: number;
  readonly size: Size;
  /** Bytes to the first pixel, and of a row in the file. */
  readonly offset: number;
  readonly bytesPerLine: number;
}
/** Or it will not be asked for again. */
export type FramebufferJob = FramebufferAsked | { readonly forget: number };
/** Neither file nor error: the screen is the one before. */
export interface FramebufferDone {
  readonly id: number;
  readonly png?: Uint8Array;
  readonly error?: string;
}

/** Body of a thread that reads framebuffers and makes files of them, one after the other. */
export function runFramebufferWorker(): void {
  const port = portOf('framebuffer'),
    screens = new Map<number, BandEncoder>();
  port.on('message', (job: FramebufferJob) => {
    if ('forget' in job) {
      screens.delete(job.forget);
      return;
    }
    const { id, screen } = job;
    try {
      let encoder = screens.get(screen);
      if (!encoder) screens.set(screen, (encoder = encoderOf(job)));
      const png = encoder.encode();
      if (!png) return port.postMessage({ id } satisfies FramebufferDone);
      port.postMessage({ id, png } satisfies FramebufferDone, [png.buffer as ArrayBuffer]);
    } catch (e) {
      screens.delete(screen);
      port.postMessage({ id, error: messageOf(e) } satisfies FramebufferDone);
    }
  });
}

function encoderOf({ fd, size, offset, bytesPerLine }: FramebufferAsked): BandEncoder {
  const row = 4 * size.width;
  const read = (into: Buffer, at: number): void => {
    if (readSync(fd, into, 0, into.length, at) !== into.length) throw new Error('it is too short');
  };
  return new BandEncoder(size, (into, y) => {
    if (bytesPerLine === row) return read(into, offset + y * row);
    for (let r = 0; r * row < into.length; r++)
      read(into.subarray(r * row, (r + 1) * row), offset + (y + r) * bytesPerLine);
  });
}
