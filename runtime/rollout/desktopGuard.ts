import { activeTimeout } from '../concurrency/activeTimeout.js';
import { StudioError } from '../domain/index.js';
import type { Clock } from './clock.js';
import { abortable } from './clock.js';
import type { Desktop, SettleOptions } from '../cluster/types.js';
import { AGAIN_MS, lastRest, rest, type RestOptions } from './rest.js';

/**
 * After an abort, a call that still runs on the desktop after this long makes the desktop count as broken. A cut
 * connection does not extend it, because whoever stops the run is waiting.
 */
const LINGER_MS = 5000;
/** How long the connection of a desktop was cut so far, ms. */
export const stalledMsOf =
  (desktop: Pick<Desktop, 'stalledMs'>): (() => number) =>
  () =>
    desktop.stalledMs?.() ?? 0;

/** Pause between two checks that a desktop still answers while long work runs on it. */
const ASK_MS = 10_000;

/**
 * Makes calls into the desktop: cancelled with the rollout, bounded in time, and known to have ended before the desktop
 * is released.
 */
export class DesktopGuard {
  timedOut = false;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal;
  readonly #stalledMs: () => number;
  readonly #pending = new Set<Promise<unknown>>();
  #calls = 0;
  #since = 0;
  #spentMs = 0;

  /** `stalledMs`: time for which the desktop's connection was cut, which counts against no time limit. */
  constructor(
    deps: { readonly clock: Clock; readonly desktopTimeoutMs?: number },
    signal: AbortSignal,
    stalledMs: () => number = () => 0,
  ) {
    this.#clock = deps.clock;
    this.#timeoutMs = deps.desktopTimeoutMs ?? 30_000;
    this.#signal = signal;
    this.#stalledMs = stalledMs;
  }

  /** ms in which the rollout waited for the desktop, a call under way included, while it could be reached. */
  get spentMs(): number {
    return this.#spentMs + (this.#calls > 0 ? this.#activeMs() - this.#since : 0);
  }
  /** The clock, standing still while the connection is cut. */
  #activeMs(): number {
    return this.#clock.now() - this.#stalledMs();
  }

  /** A call to the desktop itself, bounded in time. `lastsMs`: the call's own duration, added to the limit. */
  call<T>(work: Promise<T>, what: string, lastsMs = 0): Promise<T> {
    if (this.#calls++ === 0) this.#since = this.#activeMs();
    const over = (): void => {
      if (--this.#calls === 0) this.#spentMs += this.#activeMs() - this.#since;
    };
    work.then(over, over);
    const limitMs = lastsMs + this.#timeoutMs;
    const bounded = new Promise<T>((resolve, reject) => {
      const onTime = (): void => {
        this.timedOut = true;
        reject(
          new StudioError(
            'desktop.lost',
            `The desktop did not answer ${what} for ${limitMs} ms.`,
            'It is replaced automatically and the rollout is retried.',
          ),
        );
      };
      const stop = activeTimeout(limitMs, this.#stalledMs, onTime, (ms, fn) => this.#clock.after(ms, fn));
      work.then(
        (v) => {
          stop();
          resolve(v);
        },
        (e: unknown) => {
          stop();
          reject(e);
        },
      );
    });
    return this.free(bounded, what);
  }

  /** Waits until the desktop is at rest. */
  rest(desktop: Pick<Desktop, 'settle'>, o: RestOptions): Promise<boolean> {
    return rest(this.#settling(desktop), o, () =>
      this.free(new Promise<void>((done) => this.#clock.after(AGAIN_MS, done)), 'A wait'),
    );
  }

  /** Waits for what is still on its way before the task is judged. */
  async lastRest(desktop: Pick<Desktop, 'settle'>, signal: AbortSignal): Promise<void> {
    await lastRest(this.#settling(desktop), signal);
  }
  #settling(desktop: Pick<Desktop, 'settle'>): Pick<Desktop, 'settle'> {
    return { settle: (s?: SettleOptions) => this.call(desktop.settle(s), 'settle', s?.maxMs) };
  }

  /**
   * Work on a desktop with its own, long time limits. Rejects as soon as the desktop itself stops answering.
   */
  watched<T>(work: Promise<T>, desktop: Pick<Desktop, 'answers'>, what: string): Promise<T> {
    let over = false,
      cancel = (): void => undefined;
    const silence = new Promise<never>((_, reject) => {
      const wait = (): void => {
        if (over) return;
        cancel = this.#clock.after(ASK_MS, () => {
          this.call(desktop.answers?.() ?? Promise.resolve(), 'while it was used').then(wait, reject);
        });
      };
      wait();
    });
    return Promise.race([this.free(work, what), silence]).finally(() => {
      over = true;
      cancel();
    });
  }

  /** Work with its own time limits (setup, verify, storage). */
  free<T>(work: Promise<T>, what: string): Promise<T> {
    this.#pending.add(work);
    const over = (): void => {
      this.#pending.delete(work);
    };
    work.then(over, over);
    return abortable(work, this.#signal, what);
  }

  /** Waits until no call is running on the desktop; false when that takes too long. */
  async quiet(): Promise<boolean> {
    if (this.#pending.size === 0) return true;
    return new Promise<boolean>((resolve) => {
      const stop = this.#clock.after(LINGER_MS, () => resolve(false));
      void Promise.allSettled([...this.#pending]).then(() => {
        stop();
        resolve(true);
      });
    });
  }
}
