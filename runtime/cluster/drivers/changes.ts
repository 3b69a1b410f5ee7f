import { ignoreFailure } from '../../domain/index.js';
import type { Change } from '../types.js';
import type { X11Client } from './x11Client.js';

/** Between two looks on a server that cannot say when it draws. */
const BLIND_MS = 100;

/**
 * Says when a screen may have changed, by X's own DAMAGE events: one round of "take back what was drawn, then wait" for
 * each who asks, so a screen at rest costs nothing and one that moves no more than its watchers look. Lives as long as
 * the desktop, through its resets.
 */
export class ChangeWatch {
  #x: X11Client | undefined;
  /** Undefined until it was asked for. */
  #able: Promise<boolean> | undefined;
  #gone: Error | undefined;
  readonly #waiting = new Set<(e?: Error) => void>();

  /** A new X server: everything is new. */
  begin(x: X11Client): void {
    this.#x = x;
    this.#able = undefined;
    this.#gone = undefined;
    this.tell();
  }
  /** The X server is gone, for good when there is an error. */
  end(gone?: Error): void {
    this.#x = undefined;
    this.#gone = gone;
    if (gone) for (const w of [...this.#waiting]) w(gone);
    else this.tell();
  }
  /** Something changed that is no drawing. */
  tell(): void {
    for (const w of [...this.#waiting]) w();
  }

  /** Resolves when whatever is drawn from then on will be told. */
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
    ignoreFailure(drawn, 'a lost desktop rejects it before anybody may have asked for it');
    this.#waiting.add(settle);
    if (signal.aborted) settle();
    const x = this.#x;
    // Between two X servers the next one tells; the end of this one is told by `end`.
    if (x && !signal.aborted) {
      const able = await this.#arm(x).catch(() => true);
      if (!able && this.#waiting.has(settle)) timer = setTimeout(settle, BLIND_MS);
    }
    return { drawn };
  }

  async #arm(x: X11Client): Promise<boolean> {
    this.#able ??= x.watchDamage().then(async (able) => {
      // A new watch begins with the whole screen as damage: that is no change.
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
    // Once it has answered: what was drawn before is taken back, what comes makes an event.
    if (able) {
      x.subtractDamage();
      await x.sync();
    }
    return able;
  }
}
