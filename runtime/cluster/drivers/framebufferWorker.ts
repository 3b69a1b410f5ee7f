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
/** Nothing of it: the screen is the one before. */
export interface FramebufferDone {
  readonly id: number;
  readonly png?: Uint8Array;
  /** The framebuffer cannot be read. */
  readonly error?: string;
  /** The thread could not make a file of what it read, for want of memory. */
  readonly failed?: true;
}

/** What is the matter with the file, not with the thread. */
class Unreadable extends Error {}

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
      port.postMessage(
        (e instanceof Unreadable ? { id, error: e.message } : { id, failed: true }) satisfies FramebufferDone,
      );
    }
  });
}

function encoderOf({ fd, size, offset, bytesPerLine }: FramebufferAsked): BandEncoder {
  const row = 4 * size.width;
  const read = (into: Buffer, at: number): void => {
    let got: number;
    try {
      got = readSync(fd, into, 0, into.length, at);
    } catch (e) {
      throw new Unreadable(messageOf(e));
    }
    if (got !== into.length) throw new Unreadable('it is too short');
  };
  return new BandEncoder(size, (into, y) => {
    if (bytesPerLine === row) return read(into, offset + y * row);
    for (let r = 0; r * row < into.length; r++)
      read(into.subarray(r * row, (r + 1) * row), offset + (y + r) * bytesPerLine);
  });
}
