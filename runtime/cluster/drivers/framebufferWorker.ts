import { readSync } from 'node:fs';
import { messageOf, type Size } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { portOf } from '../../concurrency/workerPort.js';
import { BandEncoder } from './bandEncoder.js';
import { DrawnRows, type Rows } from './drawnRows.js';

/** A message that asks a thread for the file of a screen. */
export interface FramebufferAsked {
  readonly id: number;
  /** Number of the screen; the other fields are the same each time. */
  readonly screen: number;
  /** Open in this process, whose threads share it. */
  readonly fd: number;
  readonly size: Size;
  /** Bytes to the first pixel, and of a row in the file. */
  readonly offset: number;
  readonly bytesPerLine: number;
  /** Socket of its X server, which tells what of it was drawn; without one all of it is read each time. */
  readonly display?: string;
}
/** Or it will not be asked for again. */
export type FramebufferJob = FramebufferAsked | { readonly forget: number };
/** The answer. With `id` alone the screen has not changed. */
export interface FramebufferDone {
  readonly id: number;
  readonly png?: Uint8Array;
  /** The framebuffer cannot be read. */
  readonly error?: string;
  /** The thread could not make a file of what it read, for want of memory. */
  readonly failed?: true;
}

/** An error that lies in the file, not in the thread. */
class Unreadable extends Error {}

/** Body of a thread that reads framebuffers and makes files of them: of each screen one after the other. */
export function runFramebufferWorker(): void {
  const port = portOf('framebuffer'),
    screens = new Map<number, ScreenHere>();
  const answer = (done: FramebufferDone): void =>
    port.postMessage(done, done.png ? [done.png.buffer as ArrayBuffer] : []);
  port.on('message', (job: FramebufferJob) => {
    if ('forget' in job) {
      screens.get(job.forget)?.close();
      screens.delete(job.forget);
      return;
    }
    const { screen } = job;
    let here = screens.get(screen);
    if (!here) screens.set(screen, (here = new ScreenHere(job)));
    here.encode(job, answer);
  });
}

type Made = Omit<FramebufferDone, 'id'>;

/** A screen that this thread reads. */
class ScreenHere {
  /** Encoder with the picture read last; undefined after a failure. */
  #encoder: BandEncoder | undefined;
  /** Once its X server has answered; not for long after one that does not. */
  #drawn: DrawnRows | undefined;
  #closed = false;
  #chain: Promise<void> = Promise.resolve();

  constructor({ display, size }: FramebufferAsked) {
    if (display !== undefined) void this.#open(display, size);
  }
  /** Answers one job after another. */
  encode(job: FramebufferAsked, answer: (done: FramebufferDone) => void): void {
    this.#chain = this.#chain.then(async () => {
      const seen = this.#look(job, await this.#told((d) => d.since()));
      // Sent now; the X server answers while the file is made.
      const asked = this.#told((d) => d.wasRead());
      answer({ id: job.id, ...('changed' in seen ? this.#file(seen.changed) : seen) });
      await asked;
    });
  }
  close(): void {
    this.#closed = true;
    this.#drawn?.close();
  }

  #look(job: FramebufferAsked, rows: readonly Rows[] | undefined): { readonly changed: readonly number[] } | Made {
    try {
      return { changed: (this.#encoder ??= encoderOf(job)).look(rows) };
    } catch (e) {
      return this.#failed(e);
    }
  }
  #file(changed: readonly number[]): Made {
    try {
      const png = this.#encoder!.file(changed);
      return png ? { png } : {};
    } catch (e) {
      return this.#failed(e);
    }
  }
  #failed(e: unknown): Made {
    this.#encoder = undefined;
    return e instanceof Unreadable ? { error: e.message } : { failed: true };
  }

  /** Opens the connection to the X server. Nobody waits for it: until it is open, all of the screen is read. */
  async #open(display: string, size: Size): Promise<void> {
    const drawn = await orUndefined(DrawnRows.open(display, size), 'then all of the screen is read each time');
    if (this.#closed) drawn?.close();
    else this.#drawn = drawn;
  }
  /** Asks the X server; one that fails once is not asked again. */
  async #told<T>(ask: (d: DrawnRows) => Promise<T>): Promise<T | undefined> {
    try {
      return this.#drawn && (await ask(this.#drawn));
    } catch {
      this.#drawn?.close();
      this.#drawn = undefined;
      return undefined;
    }
  }
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
