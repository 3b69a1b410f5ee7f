import type { RunError } from '../domain/index.js';
import type { DesktopState } from './types.js';

/**
 * The rules of a pool, without a clock and without desktops: report what happened, and carry out the effects it
 * returns, in order.
 */
export interface PoolRules {
  /** Desktops kept beyond the number that may be leased at once, so that a lease does not wait for a reset. */
  readonly spares: number;
  /**
   * After this many resets in place a desktop is replaced by a new one, because a reset cannot reach everything (say,
   * the agent's memory).
   */
  readonly hardResetEvery: number;
  /** Desktops started at the same time: more only take CPU from each other. */
  readonly startParallel: number;
  /**
   * Failures in a row (starts, resets, and leases that ended with a fault of the desktop) after which a place is
   * quarantined: no desktop is made for it for `quarantineMs`, or until every place is in quarantine and somebody asks.
   */
  readonly maxFailures: number;
  readonly quarantineMs: number;
  /** ms to wait before the next try after the n-th failure in a row (n from 1). */
  readonly backoffMs: (n: number) => number;
}

export type PoolEffect =
  | { readonly do: 'create'; readonly place: number }
  | { readonly do: 'reset'; readonly place: number }
  /** Destroy the place's desktop, then report destroyed(). */
  | { readonly do: 'destroy'; readonly place: number }
  | { readonly do: 'grant'; readonly place: number; readonly waiter: number }
  | { readonly do: 'refuse'; readonly waiter: number; readonly error: RunError }
  | { readonly do: 'retryLater'; readonly place: number; readonly delayMs: number }
  | { readonly do: 'replaced'; readonly place: number; readonly error: RunError }
  | { readonly do: 'quarantined'; readonly place: number; readonly log: readonly PlaceFailure[] }
  | { readonly do: 'state'; readonly place: number; readonly state: DesktopState };

/** A failure of a place: of what kind and why, with what the desktop said. */
export interface PlaceFailure {
  readonly at: number;
  readonly error: RunError;
}
/** Failures of a place that are kept. */
const KEPT = 20;

export interface Place {
  readonly id: number;
  readonly state: DesktopState;
  readonly since: number;
  readonly resets: number;
  readonly replaced: number;
  readonly quarantined: boolean;
  /** The newest failures, oldest first; they stay until a lease has ended well. */
  readonly log: readonly PlaceFailure[];
}
interface Mutable extends Place {
  state: DesktopState;
  since: number;
  resets: number;
  replaced: number;
  quarantined: boolean;
  log: PlaceFailure[];
  /** Failures in a row since a lease ended well. */
  streak: number;
  /** Resets in place of the current desktop. */
  age: number;
  /** Failures in a row since its last lease. */
  failures: number;
  /** A desktop exists (or is being destroyed). */
  has: boolean;
  /** Its create effect was returned. */
  creating: boolean;
  destroying: boolean;
  /** The leased desktop is already dead. */
  lost: boolean;
  /** To be removed: the pool shrank. */
  leaving: boolean;
  lastError?: RunError;
}

/**
 * States of a place: starting -> ready -> leased -> resetting -> ready ...; broken while its desktop is being replaced
 * or waits for the next attempt. Invariants (tested): a place is under at most one lease; leases are granted in the
 * order of their requests; never more leases than `size`; every waiter gets exactly one grant, refusal or cancellation.
 */
export class PoolMachine {
  readonly #rules: PoolRules;
  readonly #places_: Mutable[] = [];
  #queue: number[] = [];
  #size_ = 0;
  #nextPlace = 1;
  #closed = false;
  #out: PoolEffect[] = [];

  constructor(rules: PoolRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#size_;
  }
  get waiting(): number {
    return this.#queue.length;
  }
  get places(): readonly Place[] {
    return this.#places_;
  }
  get isEmpty(): boolean {
    return this.#places_.length === 0;
  }

  resize(n: number, now: number): PoolEffect[] {
    if (this.#closed) return [];
    this.#size_ = n;
    const want = n === 0 ? 0 : n + this.#rules.spares;
    let staying = this.#places_.filter((p) => !p.leaving).length;
    // A place that was to be removed may stay after all.
    for (const p of this.#places_)
      if (staying < want && p.leaving && !p.destroying) {
        p.leaving = false;
        staying++;
      }
    for (; staying < want; staying++)
      this.#places_.push({
        id: this.#nextPlace++,
        state: 'starting',
        since: now,
        resets: 0,
        replaced: 0,
        quarantined: false,
        log: [],
        streak: 0,
        age: 0,
        failures: 0,
        has: false,
        creating: false,
        destroying: false,
        lost: false,
        leaving: false,
      });
    const cheapest: readonly DesktopState[] = ['broken', 'starting', 'ready', 'resetting', 'leased'];
    const victims = this.#places_
      .filter((p) => !p.leaving)
      .sort((a, b) => cheapest.indexOf(a.state) - cheapest.indexOf(b.state))
      .slice(0, staying - want);
    for (const p of victims) this.#leave(p, now);
    return this.#flush(now);
  }

  request(waiter: number, now: number): PoolEffect[] {
    this.#queue.push(waiter);
    // Nobody else can serve it: places in quarantine get another chance.
    if (this.#places_.every((p) => p.quarantined)) for (const p of this.#places_) this.#tryAgain(p, now);
    return this.#flush(now);
  }

  cancel(waiter: number, now: number): PoolEffect[] {
    this.#queue = this.#queue.filter((w) => w !== waiter);
    return this.#flush(now);
  }

  created(place: number, now: number): PoolEffect[] {
    const p = this.#at(place);
    p.creating = false;
    p.has = true;
    p.age = 0;
    p.lost = false;
    if (p.leaving) this.#takeDown(p, now);
    else this.#set(p, 'ready', now);
    return this.#flush(now);
  }

  createFailed(place: number, error: RunError, now: number): PoolEffect[] {
    const p = this.#at(place);
    p.creating = false;
    this.#failed(p, error, now);
    return this.#flush(now);
  }

  /**
   * The lease on a place ended; `fault` when the desktop was at fault. Broken without a fault is what its programs did to
   * it: it is replaced, and the place is none the worse for it.
   */
  released(place: number, broken: boolean, now: number, fault?: RunError): PoolEffect[] {
    const p = this.#at(place);
    if (p.state !== 'leased') return [];
    const error = fault ?? (p.lost ? p.lastError : undefined);
    if (fault || (error && !broken)) this.#note(p, error!, now);
    else if (!broken) {
      p.streak = 0;
      p.log = [];
    }
    if (p.leaving) this.#takeDown(p, now);
    else if (broken || p.lost)
      this.#replace(
        p,
        error ?? {
          kind: 'desktop.lost',
          message: 'The desktop was returned as broken.',
          remedy: 'It is replaced automatically.',
        },
        now,
      );
    else if (p.age + 1 >= this.#rules.hardResetEvery) this.#takeDown(p, now);
    else {
      this.#set(p, 'resetting', now);
      this.#out.push({ do: 'reset', place });
    }
    return this.#flush(now);
  }

  resetDone(place: number, now: number): PoolEffect[] {
    const p = this.#at(place);
    if (p.state !== 'resetting') return [];
    p.resets++;
    p.age++;
    if (p.leaving) this.#takeDown(p, now);
    else if (p.lost) this.#failed(p, p.lastError!, now);
    else this.#set(p, 'ready', now);
    return this.#flush(now);
  }

  resetFailed(place: number, error: RunError, now: number): PoolEffect[] {
    const p = this.#at(place);
    if (p.state !== 'resetting') return [];
    if (p.leaving) this.#takeDown(p, now);
    else this.#failed(p, error, now);
    return this.#flush(now);
  }

  /** A desktop died. If leased, it is replaced when the lease ends; during a reset, when the reset ends. */
  lost(place: number, error: RunError, now: number): PoolEffect[] {
    const p = this.#places_.find((q) => q.id === place);
    if (!p || !p.has || p.destroying) return [];
    p.lost = true;
    p.lastError = error;
    if (p.state === 'ready') this.#failed(p, error, now);
    return this.#flush(now);
  }

  destroyed(place: number, now: number): PoolEffect[] {
    const p = this.#at(place);
    p.has = false;
    p.destroying = false;
    p.lost = false;
    if (p.leaving) this.#remove(p, now);
    else this.#again(p, now);
    return this.#flush(now);
  }

  retryDue(place: number, now: number): PoolEffect[] {
    const p = this.#places_.find((q) => q.id === place);
    if (p && p.state === 'broken' && !p.has && !p.leaving) this.#tryAgain(p, now);
    return this.#flush(now);
  }

  /** Refuses all waiting requests and destroys every desktop, leased or not. */
  close(error: RunError, now: number): PoolEffect[] {
    for (const waiter of this.#queue.splice(0)) this.#out.push({ do: 'refuse', waiter, error });
    this.#closed = true;
    this.#size_ = 0;
    for (const p of [...this.#places_]) {
      if (p.state === 'leased') {
        p.leaving = true;
        this.#takeDown(p, now);
      } else this.#leave(p, now);
    }
    return this.#flush(now);
  }

  #at(place: number): Mutable {
    const p = this.#places_.find((q) => q.id === place);
    if (!p) throw new RangeError(`the pool has no place ${place}`);
    return p;
  }

  #set(p: Mutable, state: DesktopState, now: number): void {
    if (p.state === state) return;
    p.state = state;
    p.since = now;
    this.#out.push({ do: 'state', place: p.id, state });
  }

  #leave(p: Mutable, now: number): void {
    p.leaving = true;
    if (p.state === 'ready' || (p.state === 'broken' && p.has)) this.#takeDown(p, now);
    else if (!p.has && !p.creating) this.#remove(p, now);
    // Places that are starting, resetting or leased are removed when that ends.
  }

  #remove(p: Mutable, now: number): void {
    this.#set(p, 'stopped', now);
    this.#places_.splice(this.#places_.indexOf(p), 1);
  }

  #takeDown(p: Mutable, now: number): void {
    if (p.destroying) return;
    p.destroying = true;
    this.#set(p, p.leaving ? 'stopped' : 'starting', now);
    this.#out.push({ do: 'destroy', place: p.id });
  }

  #replace(p: Mutable, error: RunError, now: number): void {
    p.replaced++;
    p.lastError = error;
    this.#set(p, 'broken', now);
    this.#out.push({ do: 'replaced', place: p.id, error });
    if (!p.has) {
      this.#again(p, now);
      return;
    }
    if (p.destroying) return;
    p.destroying = true;
    this.#out.push({ do: 'destroy', place: p.id });
  }

  #failed(p: Mutable, error: RunError, now: number): void {
    p.failures++;
    this.#note(p, error, now);
    if (p.leaving && !p.has) {
      this.#remove(p, now);
      return;
    }
    this.#replace(p, error, now);
  }

  #note(p: Mutable, error: RunError, at: number): void {
    p.streak++;
    p.log = [...p.log, { at, error }].slice(-KEPT);
  }

  /** Out of quarantine, or after a pause. The next failure in a row brings it back into quarantine. */
  #tryAgain(p: Mutable, now: number): void {
    if (p.has || p.creating) return;
    if (p.quarantined) p.streak = this.#rules.maxFailures - 1;
    p.quarantined = false;
    this.#set(p, 'starting', now);
  }

  /** A place without a desktop: start another, now or later, or put it into quarantine. */
  #again(p: Mutable, now: number): void {
    if (p.streak >= this.#rules.maxFailures) {
      this.#quarantine(p, now);
      return;
    }
    if (p.failures === 0) {
      this.#set(p, 'starting', now);
      return;
    }
    this.#set(p, 'broken', now);
    this.#out.push({ do: 'retryLater', place: p.id, delayMs: this.#rules.backoffMs(p.failures) });
  }

  #quarantine(p: Mutable, now: number): void {
    p.quarantined = true;
    p.failures = 0;
    this.#set(p, 'broken', now);
    this.#out.push({ do: 'quarantined', place: p.id, log: p.log });
    this.#out.push({ do: 'retryLater', place: p.id, delayMs: this.#rules.quarantineMs });
    if (this.#places_.every((q) => q.quarantined))
      for (const waiter of this.#queue.splice(0)) this.#out.push({ do: 'refuse', waiter, error: p.lastError! });
  }

  /** Starts what should start, leases what is ready, and returns the effects. */
  #flush(now: number): PoolEffect[] {
    let creating = this.#places_.filter((p) => p.creating).length;
    for (const p of this.#places_) {
      if (creating >= this.#rules.startParallel) break;
      if (p.state !== 'starting' || p.creating || p.has || p.leaving) continue;
      p.creating = true;
      creating++;
      this.#out.push({ do: 'create', place: p.id });
    }
    let leased = this.#places_.filter((p) => p.state === 'leased').length;
    // The desktop that has been ready longest goes first, so that all are used.
    const ready = this.#places_.filter((p) => p.state === 'ready').sort((a, b) => a.since - b.since || a.id - b.id);
    while (this.#queue.length > 0 && ready.length > 0 && leased < this.#size_) {
      const p = ready.shift()!;
      p.failures = 0;
      leased++;
      this.#set(p, 'leased', now);
      this.#out.push({ do: 'grant', place: p.id, waiter: this.#queue.shift()! });
    }
    return this.#out.splice(0);
  }
}
