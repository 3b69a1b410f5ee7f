import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PoolMachine, type PoolEffect } from '../../../runtime/cluster/poolMachine.js';
import type { RunError } from '../../../runtime/domain/index.js';

const oops: RunError = { kind: 'desktop.start', message: 'oops', remedy: '-' },
  away: RunError = { kind: 'desktop.unavailable', message: 'nobody answers', remedy: '-' };
const QUARANTINE_MS = 9,
  AWAY_MS = 4;

/** Plays provider and users at random, and checks the promises of the pool after every step. */
class World {
  readonly machine: PoolMachine;
  now = 0;
  /** Places where a desktop exists. */
  readonly alive = new Set<number>();
  readonly creating = new Set<number>();
  readonly resetting = new Set<number>();
  readonly destroying = new Set<number>();
  readonly retrying = new Set<number>();
  readonly leases = new Map<number, number>();
  /** Waiters in the order they asked. */
  waiting: number[] = [];
  asked = 0;
  granted = 0;
  refused = 0;
  cancelled = 0;
  size: number;

  readonly #startParallel: number;

  constructor(size: number, startParallel: number, spares: number) {
    this.#startParallel = startParallel;
    this.machine = new PoolMachine({
      spares,
      hardResetEvery: 3,
      startParallel,
      maxFailures: 3,
      quarantineMs: QUARANTINE_MS,
      awayMs: AWAY_MS,
      backoffMs: () => 1,
    });
    this.size = size;
    this.take(this.machine.resize(size, 0));
  }

  take(effects: readonly PoolEffect[]): void {
    /** Pauses of the places that these effects put into quarantine. */
    const pauses = new Map<number, number>();
    for (const e of effects) {
      switch (e.do) {
        case 'create':
          expect(this.alive.has(e.place) || this.creating.has(e.place)).toBe(false);
          this.creating.add(e.place);
          break;
        case 'reset':
          expect(this.alive.has(e.place) && !this.leases.has(e.place) && !this.destroying.has(e.place)).toBe(true);
          this.resetting.add(e.place);
          break;
        case 'destroy':
          expect(this.alive.has(e.place) && !this.destroying.has(e.place) && !this.resetting.has(e.place)).toBe(true);
          this.leases.delete(e.place);
          this.destroying.add(e.place);
          break;
        case 'retryLater':
          expect(this.alive.has(e.place)).toBe(false);
          expect(e.delayMs).toBe(pauses.get(e.place) ?? 1);
          this.retrying.add(e.place);
          break;
        case 'refuse':
          expect(this.waiting.shift()).toBe(e.waiter);
          this.refused++;
          break;
        case 'grant':
          expect(this.waiting.shift()).toBe(e.waiter); // first come, first served
          expect(
            this.alive.has(e.place) &&
              !this.leases.has(e.place) &&
              !this.resetting.has(e.place) &&
              !this.destroying.has(e.place),
          ).toBe(true);
          this.leases.set(e.place, e.waiter);
          this.granted++;
          break;
        case 'quarantined':
          expect(this.alive.has(e.place)).toBe(false);
          expect(e.log.length).toBeGreaterThanOrEqual(3);
          pauses.set(e.place, e.log.at(-1)!.error === away ? AWAY_MS : QUARANTINE_MS);
          break;
        case 'state':
        case 'replaced':
          break;
      }
    }
    expect(this.creating.size).toBeLessThanOrEqual(this.#startParallel);
    expect(this.machine.waiting).toBe(this.waiting.length);
    for (const p of this.machine.places) expect(this.machine.place(p.id)).toBe(p);
    expect(this.asked).toBe(this.granted + this.refused + this.cancelled + this.waiting.length);
  }

  /** One random step: `what` picks the kind, `which` the subject. */
  step(what: number, which: number, good: boolean): void {
    this.now++;
    const pick = (s: Iterable<number>): number | undefined => {
      const a = [...s];
      return a.length === 0 ? undefined : a[which % a.length];
    };
    const m = this.machine,
      fault = which % 3 === 0 ? away : oops;
    const before = this.leases.size;
    switch (what) {
      case 0: {
        const w = this.asked++;
        this.waiting.push(w);
        this.take(m.request(w, this.now));
        break;
      }
      case 1: {
        const w = pick(this.waiting);
        if (w !== undefined) {
          this.waiting = this.waiting.filter((x) => x !== w);
          this.cancelled++;
          this.take(m.cancel(w, this.now));
        }
        break;
      }
      case 2: {
        const p = pick(this.creating);
        if (p !== undefined) {
          this.creating.delete(p);
          if (good) {
            this.alive.add(p);
            this.take(m.created(p, this.now));
          } else this.take(m.createFailed(p, fault, this.now));
        }
        break;
      }
      case 3: {
        const p = pick(this.resetting);
        if (p !== undefined) {
          this.resetting.delete(p);
          this.take(good ? m.resetDone(p, this.now) : m.resetFailed(p, fault, this.now));
        }
        break;
      }
      case 4: {
        const p = pick(this.destroying);
        if (p !== undefined) {
          this.destroying.delete(p);
          this.alive.delete(p);
          this.take(m.destroyed(p, this.now));
        }
        break;
      }
      case 5: {
        const p = pick(this.leases.keys());
        if (p !== undefined) {
          this.leases.delete(p);
          this.take(m.released(p, !good, this.now, good || which % 2 === 0 ? undefined : fault));
        }
        break;
      }
      case 6: {
        const p = pick(this.alive);
        if (p !== undefined) this.take(m.lost(p, fault, this.now));
        break;
      }
      case 7: {
        const p = pick(this.retrying);
        if (p !== undefined) {
          this.retrying.delete(p);
          this.take(m.retryDue(p, this.now));
        }
        break;
      }
      case 8:
        this.size = which % 5;
        this.take(m.resize(this.size, this.now));
        break;
    }
    if (this.leases.size > before) expect(this.leases.size).toBeLessThanOrEqual(this.size);
  }

  /** Let everything under way end well, and give every lease back, until nothing happens any more. */
  drain(): void {
    for (let i = 0; i < 2000; i++) {
      const kinds: [Iterable<number> & { size: number }, number][] = [
        [this.creating, 2],
        [this.resetting, 3],
        [this.destroying, 4],
        [this.retrying, 7],
      ];
      const next = kinds.find(([s]) => s.size > 0);
      if (next) this.step(next[1], 0, true);
      else if (this.leases.size > 0) this.step(5, 0, true);
      else return;
    }
    throw new Error('the pool never comes to rest');
  }
}

const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), fc.nat(20), fc.boolean()), { maxLength: 120 });
const worlds = fc.record({
  size: fc.integer({ min: 0, max: 4 }),
  parallel: fc.integer({ min: 1, max: 3 }),
  spares: fc.integer({ min: 0, max: 2 }),
});

describe('PoolMachine', () => {
  it('keeps its promises whatever happens, and serves everyone in the end', () => {
    fc.assert(
      fc.property(worlds, steps, (o, list) => {
        const w = new World(o.size, o.parallel, o.spares);
        for (const s of list) w.step(...s);
        w.size = 2;
        w.take(w.machine.resize(2, w.now));
        w.drain();
        w.step(0, 0, true); // a request wakes places that were given up
        w.drain();
        expect(w.waiting).toEqual([]);
        expect(w.alive.size).toBe(2 + o.spares);
        expect(w.machine.places.map((p) => p.state)).toEqual(Array(2 + o.spares).fill('ready'));
      }),
      { numRuns: 500 },
    );
  });

  it('closing ends with nothing left, from any state', () => {
    fc.assert(
      fc.property(worlds, steps, (o, list) => {
        const w = new World(o.size, o.parallel, o.spares);
        for (const s of list) w.step(...s);
        w.take(w.machine.close({ kind: 'cancelled', message: 'closed', remedy: '-' }, w.now));
        expect(w.waiting).toEqual([]);
        w.leases.clear();
        w.drain();
        expect(w.machine.isEmpty).toBe(true);
        expect(w.alive.size).toBe(0);
      }),
      { numRuns: 500 },
    );
  });
});
