import { setMaxListeners } from 'node:events';
import { StudioError, messageOf, type Trajectory } from '../../../runtime/domain/index.js';
import type { Acting } from './acting.js';
import { episode, type BoxScreen, type Frames } from './episodes.js';

/** Clients that act without a pause while versions are published. */

export interface Call {
  readonly began: number;
  readonly ended: number;
  /** Undefined where it failed. */
  readonly version: number | undefined;
  /** The oldest version that a server answered with when it was asked. */
  readonly oldest: number;
}

export class Clients {
  readonly calls: Call[] = [];
  readonly episodes: Trajectory[] = [];
  readonly failures: { readonly at: number; readonly why: string }[] = [];
  readonly #acting: Acting;
  readonly #screens: readonly BoxScreen[];
  readonly #frames: Frames;
  readonly #running: Promise<unknown>;
  readonly #ended = new AbortController();
  #more: (() => void)[] = [];
  #stopped = false;

  constructor(n: number, acting: Acting, screens: readonly BoxScreen[], frames: Frames) {
    this.#acting = acting;
    this.#screens = screens;
    this.#frames = frames;
    // Every call of every client listens to it.
    setMaxListeners(0, this.#ended.signal);
    this.#running = Promise.all(Array.from({ length: n }, (_, i) => this.#client(i)));
  }

  /** The newest episodes, as soon as there are `n` more than now. */
  async next(n: number): Promise<Trajectory[]> {
    const from = this.episodes.length;
    while (this.episodes.length < from + n && !this.#stopped)
      await new Promise<void>((resolve) => this.#more.push(resolve));
    return this.episodes.slice(from);
  }
  /** Calls that began after this moment, as soon as `n` of them have ended. */
  async callsSince(moment: number, n: number): Promise<Call[]> {
    for (;;) {
      const calls = this.calls.filter((c) => c.began > moment);
      if (calls.length >= n || this.#stopped) return calls;
      await this.next(1);
    }
  }
  /** Each client ends its episode first. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #client(client: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const at = (7 * client + 3 * n) % this.#screens.length,
        shown = [0, 1, 2].map((i) => this.#screens[(at + i) % this.#screens.length]!);
      try {
        this.episodes.push(
          await episode(this.#acting.backend.policy, `client-${client}-${n}`, shown, this.#frames, {
            signal: this.#ended.signal,
            onCall: () => this.#call(),
          }),
        );
      } catch (e) {
        const why = e instanceof StudioError ? `${e.kind}: ${e.message}` : messageOf(e);
        this.failures.push({ at: performance.now(), why });
        // One that fails at once must not fill the memory.
        if (this.failures.length > 200) this.#stopped = true;
      }
      for (const wake of this.#more.splice(0)) wake();
    }
  }
  #call(): (version: number | undefined) => void {
    const began = performance.now(),
      { oldest } = this.#acting.replicas;
    return (version) => this.calls.push({ began, ended: performance.now(), version, oldest });
  }
}
