import type { RunError } from '../domain/index.js';
import { Fifo } from './fifo.js';
import { isAway, newPlace, type Place, type PlaceFailure, type PlaceInPool } from './poolPlace.js';
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
  /**
   * Replaces `quarantineMs` when the newest failure says that the engine or the cluster is away: the place is not at
   * fault.
   */
  readonly awayMs: number;
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

/** Failures of a place that are kept. */
const KEPT = 20;

/**
 * States of a place: starting -> ready -> leased -> resetting -> ready ...; broken while its desktop is being replaced
 * or waits for the next attempt. Invariants (tested): a place is under at most one lease; leases are granted in the
 * order of their requests; never more leases than `size`; every waiter gets exactly one grant, refusal or cancellation.
 */
export class PoolMachine {
  readonly #rules: PoolRules;
  readonly #byId = new Map<number, PlaceInPool>();
  readonly #queue = new Fifo<number>();
  // Events are many with many places: what they look at is kept up to date, and no event goes over all places.
  /** Places whose desktop is to be started. */
  readonly #toStart = new Fifo<PlaceInPool>();
  /** The desktop that has been ready longest is leased first, so that all are used. */
  readonly #ready = new Fifo<PlaceInPool>();
  #creating = 0;
  #leased = 0;
  #quarantined = 0;
  #wanted = 0;
  #nextPlace = 1;
  #closed = false;
  #out: PoolEffect[] = [];

  constructor(rules: PoolRules) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#wanted;
  }
  get waiting(): number {
    return this.#queue.size;
  }
  get places(): readonly Place[] {
    return [...this.#byId.values()];
  }
  place(id: number): Place | undefined {
    return this.#byId.get(id);
  }
  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  resize(n: number, now: number): PoolEffect[] {
    if (this.#closed) return [];
    this.#wanted = n;
    const want = n === 0 ? 0 : n + this.#rules.spares;
    const all = [...this.#byId.values()];
    let staying = all.filter((p) => !p.leaving).length;
    // A place that was to be removed may stay after all.
    for (const p of all)
      if (staying < want && p.leaving && !p.destroying) {
        p.leaving = false;
        staying++;
      }
    for (; staying < want; staying++) this.#add(now);
    const cheapest: readonly DesktopState[] = ['broken', 'starting', 'ready', 'resetting', 'leased'];
    const victims = [...this.#byId.values()]
      .filter((p) => !p.leaving)
      .sort((a, b) => cheapest.indexOf(a.state) - cheapest.indexOf(b.state))
      .slice(0, staying - want);
    for (const p of victims) this.#leave(p, now);
    return this.#flush(now);
  }

  request(waiter: number, now: number): PoolEffect[] {
    this.#queue.add(waiter);
    // With every place in quarantine, no other place can serve the request: all get another chance.
    if (this.#allQuarantined) for (const p of this.#byId.values()) this.#tryAgain(p, now);
    return this.#flush(now);
  }

  cancel(waiter: number, now: number): PoolEffect[] {
    this.#queue.delete(waiter);
    return this.#flush(now);
  }

  created(place: number, now: number): PoolEffect[] {
    const p = this.#at(place);
    this.#createEnded(p);
    p.has = true;
    p.age = 0;
    p.lost = false;
    if (p.leaving) this.#takeDown(p, now);
    else this.#set(p, 'ready', now);
    return this.#flush(now);
  }

  createFailed(place: number, error: RunError, now: number): PoolEffect[] {
    const p = this.#at(place);
    this.#createEnded(p);
    this.#failed(p, error, now);
    return this.#flush(now);
  }

  /**
   * The lease on a place ended; `fault` when the desktop was at fault. A desktop that is broken without a fault was
   * broken by its programs: it is replaced, and that does not count as a failure of the place.
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
    const p = this.#byId.get(place);
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
    const p = this.#byId.get(place);
    if (p && p.state === 'broken' && !p.has && !p.leaving) this.#tryAgain(p, now);
    return this.#flush(now);
  }

  /** Refuses all waiting requests and destroys every desktop, leased or not. */
  close(error: RunError, now: number): PoolEffect[] {
    this.#refuseAll(error);
    this.#closed = true;
    this.#wanted = 0;
    for (const p of [...this.#byId.values()]) {
      if (p.state === 'leased') {
        p.leaving = true;
        this.#takeDown(p, now);
      } else this.#leave(p, now);
    }
    return this.#flush(now);
  }

  #at(place: number): PlaceInPool {
    const p = this.#byId.get(place);
    if (!p) throw new RangeError(`the pool has no place ${place}`);
    return p;
  }

  #add(now: number): void {
    const p = newPlace(this.#nextPlace++, now);
    this.#byId.set(p.id, p);
    this.#toStart.add(p);
  }

  #createEnded(p: PlaceInPool): void {
    if (p.creating) this.#creating--;
    p.creating = false;
  }

  get #allQuarantined(): boolean {
    return this.#quarantined === this.#byId.size;
  }
  #setQuarantined(p: PlaceInPool, quarantined: boolean): void {
    if (p.quarantined === quarantined) return;
    p.quarantined = quarantined;
    this.#quarantined += quarantined ? 1 : -1;
  }

  #refuseAll(error: RunError): void {
    for (let waiter = this.#queue.shift(); waiter !== undefined; waiter = this.#queue.shift())
      this.#out.push({ do: 'refuse', waiter, error });
  }

  #set(p: PlaceInPool, state: DesktopState, now: number): void {
    if (p.state === state) return;
    if (p.state === 'ready') this.#ready.delete(p);
    else if (p.state === 'starting') this.#toStart.delete(p);
    else if (p.state === 'leased') this.#leased--;
    p.state = state;
    p.since = now;
    if (state === 'ready') this.#ready.add(p);
    else if (state === 'starting' && !p.has) this.#toStart.add(p);
    else if (state === 'leased') this.#leased++;
    this.#out.push({ do: 'state', place: p.id, state });
  }

  #leave(p: PlaceInPool, now: number): void {
    p.leaving = true;
    if (p.state === 'ready' || (p.state === 'broken' && p.has)) this.#takeDown(p, now);
    else if (!p.has && !p.creating) this.#remove(p, now);
    // Places that are starting, resetting or leased are removed when that ends.
  }

  #remove(p: PlaceInPool, now: number): void {
    this.#set(p, 'stopped', now);
    this.#setQuarantined(p, false);
    this.#byId.delete(p.id);
  }

  #takeDown(p: PlaceInPool, now: number): void {
    if (p.destroying) return;
    p.destroying = true;
    this.#set(p, p.leaving ? 'stopped' : 'starting', now);
    this.#out.push({ do: 'destroy', place: p.id });
  }

  #replace(p: PlaceInPool, error: RunError, now: number): void {
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

  #failed(p: PlaceInPool, error: RunError, now: number): void {
    p.failures++;
    this.#note(p, error, now);
    if (p.leaving && !p.has) {
      this.#remove(p, now);
      return;
    }
    this.#replace(p, error, now);
  }

  #note(p: PlaceInPool, error: RunError, at: number): void {
    p.streak++;
    p.log = [...p.log, { at, error }].slice(-KEPT);
  }

  /** Ends a quarantine or a pause. The next failure in a row brings the place back into quarantine. */
  #tryAgain(p: PlaceInPool, now: number): void {
    if (p.has || p.creating) return;
    if (p.quarantined) p.streak = this.#rules.maxFailures - 1;
    this.#setQuarantined(p, false);
    this.#set(p, 'starting', now);
  }

  /** A place without a desktop: start another, now or later, or put it into quarantine. */
  #again(p: PlaceInPool, now: number): void {
    if (p.streak >= this.#rules.maxFailures) {
      this.#quarantine(p, now);
      return;
    }
    if (p.failures === 0) {
      this.#set(p, 'starting', now);
      this.#toStart.add(p); // it may have been starting while its last desktop was destroyed
      return;
    }
    this.#set(p, 'broken', now);
    this.#out.push({ do: 'retryLater', place: p.id, delayMs: this.#rules.backoffMs(p.failures) });
  }

  #quarantine(p: PlaceInPool, now: number): void {
    this.#setQuarantined(p, true);
    p.failures = 0;
    this.#set(p, 'broken', now);
    this.#out.push({ do: 'quarantined', place: p.id, log: p.log });
    const delayMs = isAway(p.log) ? this.#rules.awayMs : this.#rules.quarantineMs;
    this.#out.push({ do: 'retryLater', place: p.id, delayMs });
    if (this.#allQuarantined) this.#refuseAll(p.lastError!);
  }

  /** Starts what should start, leases what is ready, and returns the effects. */
  #flush(now: number): PoolEffect[] {
    while (this.#creating < this.#rules.startParallel) {
      const p = this.#toStart.shift();
      if (!p) break;
      p.creating = true;
      this.#creating++;
      this.#out.push({ do: 'create', place: p.id });
    }
    while (this.#queue.size > 0 && this.#ready.size > 0 && this.#leased < this.#wanted) {
      const p = this.#ready.shift()!;
      p.failures = 0;
      this.#set(p, 'leased', now);
      this.#out.push({ do: 'grant', place: p.id, waiter: this.#queue.shift()! });
    }
    return this.#out.splice(0);
  }
}
