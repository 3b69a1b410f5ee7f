import { toRunError, type RunError } from '../domain/index.js';
import type { DesktopPool, Lease } from '../cluster/types.js';
import { growingMs, type Growth } from '../concurrency/pause.js';
import type { Clock } from '../rollout/clock.js';

const PAUSE: Growth = { baseMs: 1000, maxMs: 30_000 };

export interface PatientPoolDeps {
  readonly pool: Pick<DesktopPool, 'lease'>;
  readonly clock: Clock;
  /** Called when no desktop can be had for now, with the reason, and with undefined when there is one again. */
  readonly onWait: (why: RunError | undefined) => void;
}

/**
 * The desktops of a lesson. When none can be had for a while although some were (their engine is away), it asks again,
 * with growing pauses, as the scheduler does in reinforcement learning. When there never was one, it rejects at once:
 * the machine is not set up.
 */
export class PatientPool implements Pick<DesktopPool, 'lease'> {
  readonly #d: PatientPoolDeps;
  #hadOne = false;
  #waiting = false;

  constructor(d: PatientPoolDeps) {
    this.#d = d;
  }

  async lease(o: { signal: AbortSignal }): Promise<Lease> {
    for (let refused = 0; ; refused++) {
      try {
        const lease = await this.#d.pool.lease(o);
        this.#hadOne = true;
        this.#waits(undefined);
        return lease;
      } catch (e) {
        const error = toRunError(e);
        if (!this.#hadOne || o.signal.aborted || !error.kind.startsWith('desktop.')) throw e;
        this.#waits(error);
        await this.#pause(growingMs(PAUSE, refused), o.signal);
      }
    }
  }

  #waits(why: RunError | undefined): void {
    const waiting = why !== undefined;
    if (waiting !== this.#waiting) this.#d.onWait(why);
    this.#waiting = waiting;
  }

  /** Ends early when the signal fires; the pool itself then refuses the next request. */
  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#d.clock.after(ms, done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
