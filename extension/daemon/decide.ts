/** The decisions of the daemon client, without clock, socket or file. */
import type { Build } from '../../runtime/protocol/version.js';

/**
 * Whether this window replaces a daemon that was found. Builds are totally ordered by time and only the strictly newer
 * side ever replaces the other, so that two windows with different extensions never replace each other's daemon in
 * turns. It is asked to drain, so a run under way always ends first.
 */
export const replaces = (ours: Build, theirs: Build): boolean => ours.time > theirs.time;

const firstMs = 100,
  mostMs = 10_000;
/**
 * ms before attempt `n` (1, 2, …) to connect again: doubled each time, with full jitter on its upper half, so that
 * windows do not connect all at once.
 */
export function backoffMs(n: number, random: () => number): number {
  const ceiling = Math.min(mostMs, firstMs * 2 ** (n - 1));
  return ceiling / 2 + random() * (ceiling / 2);
}

const mostRestarts = 3,
  windowMs = 5 * 60_000;
/** A daemon that keeps dying is restarted at most 3 times in 5 minutes. */
export class RestartGuard {
  #restarts: number[] = [];
  /** Counts a restart at `now` (ms), or refuses it. */
  allow(now: number): boolean {
    if (this.spent(now)) return false;
    this.#restarts.push(now);
    return true;
  }
  spent(now: number): boolean {
    this.#restarts = this.#restarts.filter((t) => now - t < windowMs);
    return this.#restarts.length >= mostRestarts;
  }
  /** The user asked for a start: forgets earlier restarts. */
  forget(): void {
    this.#restarts = [];
  }
}
