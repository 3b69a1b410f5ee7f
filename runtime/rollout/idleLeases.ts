import type { RunError } from '../domain/index.js';
import type { Lease } from '../cluster/types.js';

interface Idle {
  readonly lease: Lease;
  /** How long the scheduler waited for this lease. */
  readonly waitMs: number;
  /** Unsubscribes from the events of its desktop. */
  readonly off: () => void;
}

/** Leased desktops without work, oldest first. One that dies is removed and reported, so that no rollout begins on it. */
export class IdleLeases {
  readonly #all: Idle[] = [];
  readonly #died: (lease: Lease, fault: RunError) => void;

  constructor(died: (lease: Lease, fault: RunError) => void) {
    this.#died = died;
  }

  get length(): number {
    return this.#all.length;
  }

  add(lease: Lease, waitMs: number): void {
    const off = lease.desktop.onEvent((e) => {
      if (e.type !== 'lost') return;
      off();
      this.#all.splice(
        this.#all.findIndex((x) => x.lease === lease),
        1,
      );
      this.#died(lease, e.error);
    });
    this.#all.push({ lease, waitMs, off });
  }
  /** The oldest, of which there must be one. */
  take(): Omit<Idle, 'off'> {
    const { off, ...oldest } = this.#all.shift()!;
    off();
    return oldest;
  }
  /** Takes out the newest `n`. */
  drop(n: number): Lease[] {
    return this.#all.splice(this.#all.length - n).map(({ lease, off }) => {
      off();
      return lease;
    });
  }
}
