import { ignoreFailure } from '../../concurrency/failures.js';
import type { Change } from '../types.js';
import { Drawn } from './drawn.js';
import type { X11Client } from './x11Client.js';

/** Polling interval for an X server without DAMAGE events. */
const BLIND_MS = 100;

/**
 * Reports when a screen may have changed, by X's DAMAGE events. Each request subtracts the damage so far and waits for
 * more, so a screen at rest costs nothing and a busy one only as much as its watchers ask. Lives as long as the
 * desktop, through its resets.
 */
export class ChangeWatch {
  #x: X11Client | undefined;
  /** Undefined until the first request. */
  #watched: Promise<Drawn | undefined> | undefined;
  #gone: Error | undefined;
  readonly #waiting = new Set<(e?: Error) => void>();

  /** A new X server: the whole screen has changed. */
  begin(x: X11Client): void {
    this.#x = x;
    this.#watched = undefined;
    this.#gone = undefined;
    this.tell();
  }
  /** The X server has ended; with an error, for good. */
  end(gone?: Error): void {
    this.#x = undefined;
    this.#gone = gone;
    if (gone) for (const w of [...this.#waiting]) w(gone);
    else this.tell();
  }
  /** Reports a change that drew nothing. */
  tell(): void {
    for (const w of [...this.#waiting]) w();
  }

  /** Resolves when anything drawn from then on will be reported. */
  async next(signal: AbortSignal): Promise<Change> {
    if (this.#gone) throw this.#gone;
    let timer: NodeJS.Timeout | undefined;
    let settle!: (e?: Error) => void;
    const drawn = new Promise<void>((resolve, reject) => {
      const aborted = (): void => settle();
      settle = (e) => {
        clearTimeout(timer);
        this.#waiting.delete(settle);
        signal.removeEventListener('abort', aborted);
        if (e) reject(e);
        else resolve();
      };
      signal.addEventListener('abort', aborted, { once: true });
    });
    ignoreFailure(drawn, 'a lost desktop may reject it before anything awaits it');
    this.#waiting.add(settle);
    if (signal.aborted) settle();
    const x = this.#x;
    // Between two X servers the next one reports; `end` reports the end of this one.
    if (x && !signal.aborted) {
      const able = await this.#arm(x).catch(() => true);
      if (!able && this.#waiting.has(settle)) timer = setTimeout(settle, BLIND_MS);
    }
    return { drawn };
  }

  /** False when the server cannot. */
  async #arm(x: X11Client): Promise<boolean> {
    this.#watched ??= this.#watch(x);
    const drawn = await this.#watched;
    if (!drawn) return false;
    // After the answer, what was drawn before is done with and any new drawing makes an event.
    drawn.subtract();
    await x.sync();
    return true;
  }
  async #watch(x: X11Client): Promise<Drawn | undefined> {
    const drawn = await Drawn.watch(x);
    if (!drawn) return undefined;
    // A new watch begins with the whole screen as drawn, which is not a change.
    drawn.subtract();
    await x.sync();
    drawn.onDrawn(() => {
      if (this.#x === x) this.tell();
    });
    return drawn;
  }
}
