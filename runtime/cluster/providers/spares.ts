import { ignoreFailure } from '../../concurrency/failures.js';
import type { Desktop, DesktopSpec } from '../types.js';

/** A desktop that says whether it is gone. */
export type Losable = Desktop & { readonly isLost: boolean };

export interface SparesOptions<D extends Losable> {
  /** How many stand ready. */
  readonly wanted: number;
  /** How many are started at the same time. */
  readonly atOnce: number;
  boot(spec: DesktopSpec, signal: AbortSignal): Promise<D>;
  destroy(desktop: D): Promise<void>;
}

/** Desktops started before somebody asks for them. Those of one key are alike. */
export class Spares<D extends Losable> {
  readonly #o: SparesOptions<D>;
  /** Oldest first. */
  readonly #ready: { readonly key: string; readonly desktop: D }[] = [];
  readonly #starting = new Set<Promise<void>>();
  readonly #ended = new AbortController();

  constructor(o: SparesOptions<D>) {
    this.#o = o;
  }

  take(key: string): D | undefined {
    const at = this.#ready.findIndex((s) => s.key === key && !s.desktop.isLost);
    return at < 0 ? undefined : this.#ready.splice(at, 1)[0]!.desktop;
  }
  /** Destroys the oldest, whose place a desktop of another kind takes; false where there is none. */
  async makeRoom(): Promise<boolean> {
    const oldest = this.#ready.shift();
    if (oldest) await this.#o.destroy(oldest.desktop);
    return oldest !== undefined;
  }
  /** Starts in the background what is missing; a full or failing host only means fewer. */
  refill(spec: DesktopSpec, key: string): void {
    const { wanted, atOnce } = this.#o,
      missing = Math.min(wanted - this.#ready.length, atOnce) - this.#starting.size;
    for (let i = 0; i < missing && !this.#ended.signal.aborted; i++) {
      const one = this.#o
        .boot(spec, this.#ended.signal)
        .then(
          (desktop) => this.#keep(desktop, key),
          () => {
            // The next desktop is started when it is asked for, and says what is wrong.
          },
        )
        .finally(() => {
          this.#starting.delete(one);
        });
      this.#starting.add(one);
    }
  }
  /** Resolves when none is being started. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#starting]);
  }
  /** Starts no more and forgets those there are; whoever made them destroys them. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.settled();
    this.#ready.length = 0;
  }

  #keep(desktop: D, key: string): void {
    this.#ready.push({ key, desktop });
    desktop.onEvent((e) => {
      const at = e.type === 'lost' ? this.#ready.findIndex((s) => s.desktop === desktop) : -1;
      if (at < 0) return;
      this.#ready.splice(at, 1);
      ignoreFailure(this.#o.destroy(desktop), 'it is gone; reap() removes what is left of it');
    });
  }
}
