import { ignoreFailure } from '../../domain/index.js';
import type { Change } from '../types.js';
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
  #able: Promise<boolean> | undefined;
  #gone: Error | undefined;
  readonly #waiting = new Set<(e?: Error) => void>();

  /** A new X server: the whole screen has changed. */
  begin(x: X11Client): void {
    this.#x = x;
    this.#able = undefined;
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

  async #arm(x: X11Client): Promise<boolean> {
    this.#able ??= x.watchDamage().then(async (able) => {
      // A new watch begins with the whole screen as damage, which is not a change.
      if (able) {
        x.subtractDamage();
        await x.sync();
      }
      if (able)
        x.onEvent((e) => {
          if (e.type === 'damage' && this.#x === x) this.tell();
        });
      return able;
    });
    const able = await this.#able;
    // After the answer, earlier damage is subtracted and any new drawing makes an event.
    if (able) {
      x.subtractDamage();
      await x.sync();
    }
    return able;
  }
}
