import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GroupId } from '../../../runtime/domain/index.js';
import { id } from '../../../runtime/domain/index.js';
import type { GatedOrder, Regime, RegimeGate } from '../../../runtime/rollout/regime.js';
import { regimeGate } from '../../../runtime/rollout/regime.js';

const g = (n: number | string): GroupId => id<GroupId>(`g${n}`);
const order = (group: number | string, groupSize = 4): GatedOrder => ({ group: g(group), groupSize });
const orders = (group: number | string, n: number, size = n): GatedOrder[] =>
  Array.from({ length: n }, () => order(group, size));
/** Starts everything the gate lets through; returns what went. */
function drain(gate: RegimeGate, waiting: GatedOrder[]): GatedOrder[] {
  const went: GatedOrder[] = [];
  for (let i = gate.next(waiting); i >= 0; i = gate.next(waiting)) {
    const o = waiting.splice(i, 1)[0]!;
    gate.started(o);
    went.push(o);
  }
  return went;
}

describe('rollout-wise', () => {
  it('lets everything through, in order, and never waits', () => {
    const gate = regimeGate({ regime: 'rollout', slots: 2, groups: 1 }),
      waiting = [...orders(1, 4), ...orders(2, 4)];
    expect([gate.next(waiting), gate.admissible(waiting), gate.mayOpen(waiting), gate.training]).toEqual([
      0,
      8,
      true,
      false,
    ]);
    drain(gate, waiting);
    expect([gate.open.size, gate.closed(g(1)), gate.next([])]).toEqual([0, false, -1]);
  });
});

describe('task-wise', () => {
  it('starts a group when all its rollouts have a desktop, and frees them together', () => {
    const gate = regimeGate({ regime: 'task', slots: 10, groups: 1 }),
      waiting = [...orders(1, 4), ...orders(2, 4), ...orders(3, 4)];
    expect(gate.admissible(waiting)).toBe(8);
    expect(drain(gate, waiting).map((o) => o.group)).toEqual([
      ...Array<GroupId>(4).fill(g(1)),
      ...Array<GroupId>(4).fill(g(2)),
    ]);
    // Two desktops are left: not enough for the third group, however many of the others' rollouts have ended.
    expect([gate.admissible(waiting), gate.mayOpen(waiting)]).toEqual([0, false]);
    expect(gate.closed(g(1))).toBe(true);
    expect(gate.admissible(waiting)).toBe(4);
  });
  it('lets a rollout that is tried again past a group that waits', () => {
    const gate = regimeGate({ regime: 'task', slots: 4, groups: 1 }),
      waiting = [...orders(1, 4), ...orders(2, 4)];
    drain(gate, waiting);
    waiting.push(order(1));
    expect(gate.next(waiting)).toBe(4);
  });
  it('does not let a small group overtake one that waits', () => {
    const gate = regimeGate({ regime: 'task', slots: 6, groups: 1 }),
      waiting = [...orders(1, 4), ...orders(2, 4), ...orders(3, 2)];
    drain(gate, waiting);
    expect(gate.next(waiting)).toBe(-1);
  });
  it('starts a group larger than all desktops alone', () => {
    const gate = regimeGate({ regime: 'task', slots: 3, groups: 1 }),
      waiting = [...orders(1, 8), ...orders(2, 2)];
    expect(drain(gate, waiting)).toHaveLength(8);
    expect(gate.next(waiting)).toBe(-1);
    gate.closed(g(1));
    expect(drain(gate, waiting)).toHaveLength(2);
  });
});

describe('batch-wise', () => {
  it('rolls out so many groups, trains when the last has ended, goes on when the weights are out', () => {
    const gate = regimeGate({ regime: 'batch', slots: 100, groups: 2 }),
      waiting = [...orders(1, 2), ...orders(2, 2), ...orders(3, 2)];
    expect([gate.admissible(waiting), gate.mayOpen(waiting), gate.mayOpen([])]).toEqual([4, false, true]);
    drain(gate, waiting);
    expect(waiting).toHaveLength(2);
    expect(gate.closed(g(1))).toBe(false);
    expect(gate.training).toBe(false);
    waiting.push(order(2, 2)); // tried again
    expect(gate.next(waiting)).toBe(2);
    gate.started(waiting.pop()!);
    expect(gate.closed(g(2))).toBe(true);
    expect([gate.training, gate.next(waiting), gate.mayOpen(waiting)]).toEqual([true, -1, false]);
    gate.synced();
    expect([gate.training, gate.admissible(waiting)]).toEqual([false, 2]);
  });
  it('does not train a batch that is not full', () => {
    const gate = regimeGate({ regime: 'batch', slots: 100, groups: 2 }),
      waiting = orders(1, 2);
    drain(gate, waiting);
    gate.closed(g(1));
    gate.synced();
    expect([gate.training, gate.admissible(orders(2, 2)), gate.admissible([...orders(2, 2), ...orders(3, 2)])]).toEqual(
      [false, 2, 2],
    );
  });
});

describe('every regime', () => {
  it('admits what it says, keeps its barrier, and everything gets its turn', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Regime>('rollout', 'task', 'batch'),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 20 }),
        fc.infiniteStream(fc.nat(1000)),
        (regime, slots, groups, sizes, draws) => {
          const gate = regimeGate({ regime, slots, groups });
          const waiting = sizes.flatMap((n, i) => orders(i, n)),
            running = new Map<GroupId, number>(),
            size = new Map(sizes.map((n, i) => [g(i), n])),
            draw = (n: number): number => draws.next().value! % n;
          let started = 0,
            batch = 0;
          while (waiting.length > 0 || running.size > 0) {
            const can = gate.admissible(waiting),
              at = gate.next(waiting);
            expect(can > 0).toBe(at >= 0);
            if (at >= 0 && (running.size === 0 || draw(3) > 0)) {
              const o = waiting.splice(at, 1)[0]!;
              if (!running.has(o.group)) {
                running.set(o.group, size.get(o.group)!);
                batch++;
              }
              gate.started(o);
              started++;
              expect(gate.admissible(waiting)).toBe(can - 1);
              if (regime === 'task' && running.size > 1)
                expect([...running.keys()].reduce((a, k) => a + size.get(k)!, 0)).toBeLessThanOrEqual(slots);
              if (regime === 'batch') expect(batch).toBeLessThanOrEqual(groups);
            } else {
              // A group whose orders have all started ends.
              const ready = [...running.keys()].filter((k) => !waiting.some((o) => o.group === k));
              if (ready.length > 0) {
                const k = ready[draw(ready.length)]!;
                running.delete(k);
                gate.closed(k);
              }
              if (gate.training) {
                gate.synced();
                batch = 0;
              }
              if (ready.length === 0 && at < 0) throw new Error('nothing can go on');
            }
          }
          expect(started).toBe(sizes.reduce((a, b) => a + b, 0));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('regime batch, resumed in the middle of a batch,', () => {
  const gate = (opened: number, open: readonly number[]): RegimeGate =>
    regimeGate({ regime: 'batch', slots: 1, groups: 3 }, { opened, open: open.map(g) });

  it('opens no more groups than the batch lacks, and trains when they have ended', () => {
    const b = gate(5, [5]);
    // Of the second batch, 4 has ended, 5 is open, and 6 is missing.
    expect(b.training).toBe(false);
    expect(b.admissible([order(5), order(6), order(7)])).toBe(2);
    b.started(order(6));
    expect(b.mayOpen([])).toBe(false);
    expect(b.closed(g(5))).toBe(false);
    expect(b.closed(g(6))).toBe(true);
    expect(b.training).toBe(true);
    b.synced();
    expect(b.mayOpen([])).toBe(true);
  });
  it('trains first where all of its groups have ended', () => {
    expect([6, 4, 0].map((opened) => gate(opened, []).training)).toEqual([true, false, false]);
  });
});
