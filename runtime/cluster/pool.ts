import { setMaxListeners } from 'node:events';
import type { DesktopId, RunError, Screenshot } from '../domain/index.js';
import { id as brand, MOST_DESKTOPS, StudioError, monotonicNow, toRunError, cancelled } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { growingMs } from '../concurrency/pause.js';
import { PoolMachine, type PoolEffect, type PoolRules } from './poolMachine.js';
import type { Place } from './poolPlace.js';
import { ReferenceFrames } from './referenceFrames.js';
import type { Desktop, DesktopPool, DesktopProvider, DesktopSpec, Lease, PoolEvent, PoolStatus } from './types.js';

export interface PoolOptions {
  readonly provider: DesktopProvider;
  readonly spec: DesktopSpec;
  /** Leases at once. */
  readonly size: number;
  /** See PoolRules; defaults: no spares, replacement every 500 resets, 2 starts at once. */
  readonly spares?: number;
  readonly hardResetEvery?: number;
  readonly startParallel?: number;
  readonly maxFailures?: number;
  readonly quarantineMs?: number;
  readonly awayMs?: number;
  readonly backoffMs?: (n: number) => number;
  readonly now?: () => number;
  /** Calls back after so many ms; returns what cancels it. Default: timers of this process. */
  readonly after?: (ms: number, then: () => void) => () => void;
}

const RULES: PoolRules = {
  spares: 0,
  hardResetEvery: 500,
  startParallel: 2,
  maxFailures: 5,
  quarantineMs: 5 * 60_000,
  awayMs: 15_000,
  backoffMs: (n) => growingMs({ baseMs: 250, maxMs: 10_000 }, n - 1),
};

interface Waiter {
  grant(place: number): void;
  refuse(e: RunError): void;
}
interface Held {
  readonly desktop: Desktop;
  resetMs: number;
  off: () => void;
}

/**
 * A pool of desktops that are reset as soon as they are released. Starts at once; lease() reports failures to start.
 */
export function createPool(o: PoolOptions): DesktopPool {
  return new Pool(o);
}

/** The asynchronous shell around PoolMachine: it carries out effects and reports their results. */
class Pool implements DesktopPool {
  readonly #o: PoolOptions;
  readonly #machine: PoolMachine;
  readonly #held = new Map<number, Held>();
  readonly #placeOf = new Map<DesktopId, number>();
  readonly #waiters = new Map<number, Waiter>();
  readonly #listeners = new Set<(e: PoolEvent) => void>();
  readonly #retries = new Map<number, () => void>();
  readonly #reference = new ReferenceFrames();
  readonly #stopping = new AbortController();
  #nextWaiter = 1;
  #closing: Promise<void> | undefined;
  #emptied: (() => void) | undefined;

  constructor(o: PoolOptions) {
    this.#o = o;
    const given = Object.fromEntries(
      Object.entries({
        spares: o.spares,
        hardResetEvery: o.hardResetEvery,
        startParallel: o.startParallel,
        maxFailures: o.maxFailures,
        quarantineMs: o.quarantineMs,
        awayMs: o.awayMs,
        backoffMs: o.backoffMs,
      }).filter(([, v]) => v !== undefined),
    );
    this.#machine = new PoolMachine({ ...RULES, ...given });
    this.#carryOut(this.#machine.resize(checkSize(o.size), this.#now()));
  }

  lease({ signal }: { signal: AbortSignal }): Promise<Lease> {
    if (signal.aborted) return Promise.reject(waitCancelled());
    if (this.#closing) return Promise.reject(closedError());
    setMaxListeners(0, signal); // many rollouts share one signal: not a leak
    return new Promise<Lease>((resolve, reject) => {
      const waiter = this.#nextWaiter++;
      const end = (): void => {
        signal.removeEventListener('abort', abort);
        this.#waiters.delete(waiter);
      };
      const abort = (): void => {
        end();
        this.#carryOut(this.#machine.cancel(waiter, this.#now()));
        reject(waitCancelled());
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiters.set(waiter, {
        grant: (place) => {
          end();
          resolve(this.#leaseOf(place));
        },
        refuse: (e) => {
          end();
          reject(new StudioError(e.kind, e.message, e.remedy, e.details ? { details: { ...e.details } } : {}));
        },
      });
      this.#carryOut(this.#machine.request(waiter, this.#now()));
    });
  }

  async resize(n: number): Promise<void> {
    checkSize(n);
    if (this.#closing) throw closedError();
    this.#carryOut(this.#machine.resize(n, this.#now()));
  }

  status(): PoolStatus {
    return {
      size: this.#machine.size,
      waiting: this.#machine.waiting,
      desktops: this.#machine.places.map((p) => this.#rowOf(p)),
    };
  }
  statusOf(desktop: DesktopId): PoolStatus['desktops'][number] | undefined {
    const place = this.#placeOf.get(desktop),
      p = place === undefined ? undefined : this.#machine.place(place);
    return p && this.#rowOf(p);
  }
  #rowOf(p: Place): PoolStatus['desktops'][number] {
    return {
      id: this.#idOf(p.id),
      state: p.state,
      since: p.since,
      resets: p.resets,
      replaced: p.replaced,
      ...(p.quarantined ? { quarantined: p.log } : {}),
    };
  }

  onEvent(l: (e: PoolEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }

  close(): Promise<void> {
    this.#closing ??= new Promise<void>((resolve) => {
      this.#emptied = resolve;
      this.#stopping.abort();
      for (const cancel of this.#retries.values()) cancel();
      this.#carryOut(this.#machine.close(toRunError(closedError()), this.#now()));
      if (this.#machine.isEmpty) resolve();
    });
    return this.#closing;
  }

  #leaseOf(place: number): Lease {
    const h = this.#held.get(place)!;
    let open = true;
    return {
      desktop: h.desktop,
      resetMs: h.resetMs,
      release: (r) => {
        if (!open) return;
        open = false;
        if (this.#held.get(place) !== h) return;
        this.#carryOut(this.#machine.released(place, r?.broken ?? false, this.#now(), r?.fault));
      },
    };
  }

  #carryOut(effects: readonly PoolEffect[]): void {
    for (const e of effects) {
      switch (e.do) {
        case 'create':
          void this.#create(e.place);
          break;
        case 'reset':
          void this.#reset(e.place);
          break;
        case 'destroy':
          void this.#destroy(e.place);
          break;
        case 'grant':
          this.#waiters.get(e.waiter)?.grant(e.place);
          break;
        case 'refuse':
          this.#waiters.get(e.waiter)?.refuse(e.error);
          break;
        case 'retryLater':
          this.#retryLater(e.place, e.delayMs);
          break;
        case 'replaced':
          this.#emit({ type: 'replaced', desktop: this.#idOf(e.place), error: e.error, at: this.#now() });
          break;
        case 'quarantined':
          this.#emit({ type: 'quarantined', desktop: this.#idOf(e.place), log: e.log, at: this.#now() });
          break;
        case 'state':
          this.#emit({ type: 'state', desktop: this.#idOf(e.place), state: e.state, at: this.#now() });
          break;
      }
    }
    if (this.#machine.isEmpty) this.#emptied?.();
  }

  async #create(place: number): Promise<void> {
    const began = performance.now();
    let desktop: Desktop | undefined;
    try {
      desktop = await this.#o.provider.create(this.#o.spec, this.#stopping.signal);
      await this.#verify(desktop);
    } catch (e) {
      if (desktop) await orUndefined(this.#o.provider.destroy(desktop), 'reap() finds what is left of it');
      this.#carryOut(this.#machine.createFailed(place, toRunError(e), this.#now()));
      return;
    }
    this.#hold(place, desktop, performance.now() - began);
    this.#carryOut(this.#machine.created(place, this.#now()));
  }

  #hold(place: number, desktop: Desktop, resetMs: number): void {
    this.#held.get(place)?.off();
    const off = desktop.onEvent((e) => {
      if (e.type === 'lost') this.#carryOut(this.#machine.lost(place, e.error, this.#now()));
    });
    const before = this.#held.get(place)?.desktop.id;
    if (before !== undefined && before !== desktop.id) this.#placeOf.delete(before);
    this.#placeOf.set(desktop.id, place);
    this.#held.set(place, { desktop, resetMs, off });
  }

  async #reset(place: number): Promise<void> {
    const h = this.#held.get(place)!;
    const began = performance.now();
    try {
      const d = await this.#o.provider.reset(h.desktop, this.#stopping.signal);
      await this.#verify(d);
      this.#hold(place, d, performance.now() - began);
    } catch (e) {
      this.#carryOut(this.#machine.resetFailed(place, toRunError(e), this.#now()));
      return;
    }
    this.#carryOut(this.#machine.resetDone(place, this.#now()));
  }

  async #destroy(place: number): Promise<void> {
    const h = this.#held.get(place);
    h?.off();
    // A desktop that cannot be destroyed any more counts as gone.
    if (h) await orUndefined(this.#o.provider.destroy(h.desktop), 'reap() finds what is left of it');
    if (h) this.#placeOf.delete(h.desktop.id);
    this.#held.delete(place);
    this.#carryOut(this.#machine.destroyed(place, this.#now()));
  }

  /** Throws when the first frame differs from the usual one. */
  async #verify(d: Desktop): Promise<void> {
    if (this.#o.provider.sameFirstFrame === false) return;
    const look = (): Promise<Screenshot> => (d.screenshot ? d.screenshot('cheapest') : d.observe());
    if (this.#reference.matches(await look())) return;
    // A machine short of CPU may draw late: look once more, with a longer horizon.
    await d.settle({ horizonMs: 250 });
    if (this.#reference.accept(await look())) return;
    throw new StudioError(
      'desktop.start',
      'The first frame after the reset differs from the usual one.',
      'The desktop is replaced automatically.',
      { details: { desktop: d.id } },
    );
  }

  #retryLater(place: number, delayMs: number): void {
    this.#retries.get(place)?.();
    const after = this.#o.after ?? timer;
    this.#retries.set(
      place,
      after(delayMs, () => {
        this.#retries.delete(place);
        this.#carryOut(this.#machine.retryDue(place, this.#now()));
      }),
    );
  }

  #idOf(place: number): DesktopId {
    return this.#held.get(place)?.desktop.id ?? brand<DesktopId>(`place-${place}`);
  }
  #emit(e: PoolEvent): void {
    for (const l of [...this.#listeners]) l(e);
  }
  #now(): number {
    return this.#o.now?.() ?? monotonicNow();
  }
}

function timer(ms: number, then: () => void): () => void {
  const t = setTimeout(then, ms);
  return () => {
    clearTimeout(t);
  };
}

function checkSize(n: number): number {
  if (!Number.isInteger(n) || n < 0 || n > MOST_DESKTOPS)
    throw new StudioError(
      'config.invalid',
      `A pool cannot have ${n} desktops.`,
      `Give a whole number from 0 to ${MOST_DESKTOPS}.`,
    );
  return n;
}
const waitCancelled = (): StudioError =>
  cancelled('The wait for a desktop', { remedy: 'Request a desktop again when you need one.' });
const closedError = (): StudioError =>
  new StudioError('cancelled', 'The pool of desktops was closed.', 'Open a new one.');
