import { describe, expect, it } from 'vitest';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import type { FamilyId, GroupId, RolloutId, TaskId } from '../../../runtime/domain/index.js';
import { id } from '../../../runtime/domain/index.js';
import { regimeGate } from '../../../runtime/rollout/regime.js';
import { OrderQueue } from '../../../runtime/run/orders.js';

const order = (n: number): RolloutOrder => ({
  rollout: id<RolloutId>(`r${n}`),
  group: id<GroupId>('g'),
  family: id<FamilyId>('f'),
  task: id<TaskId>('t'),
  seed: n,
  cap: 4,
  groupSize: 4,
});

/** A data manager that admits `room` orders at once; each is journalled when `write` is called. */
function manager(room: number) {
  const waiting: (() => void)[] = [],
    listeners = new Set<() => void>(),
    out = new Set<RolloutId>(),
    retired: RolloutId[] = [];
  let made = 0,
    broken: Error | undefined;
  return {
    retired,
    out,
    get made() {
      return made;
    },
    listeners,
    fail(e: Error) {
      broken = e;
    },
    async write() {
      for (const w of waiting.splice(0)) w();
      for (let i = 0; i < 5; i++) await Promise.resolve();
    },
    end(r: RolloutId) {
      out.delete(r);
      for (const l of listeners) l();
    },
    capacity: () => room - out.size,
    async nextOrder() {
      if (out.size >= room) return undefined;
      if (broken) throw broken;
      const o = order(made++);
      out.add(o.rollout);
      await new Promise<void>((r) => waiting.push(r));
      return o;
    },
    retire(r: RolloutId) {
      out.delete(r);
      retired.push(r);
      return Promise.resolve();
    },
    isOpen: () => false,
    onChange(f: () => void) {
      listeners.add(f);
      return () => {
        listeners.delete(f);
      };
    },
  };
}

describe('orders fetched ahead', () => {
  it('are as many as admission allows, and one more for each that ends', async () => {
    const m = manager(2);
    let told = 0;
    const q = new OrderQueue(m, {
      limit: 2,
      version: () => 0,
      onReady: () => {
        told++;
      },
    });
    q.fill();
    q.fill();
    expect(q.ready).toBe(0);
    await m.write();
    await m.write();
    expect([q.ready, told, m.made]).toEqual([2, 2, 2]);
    const first = q.take()!;
    expect(m.made).toBe(2);
    m.end(first.rollout);
    await m.write();
    await m.write();
    expect([q.ready, m.made]).toEqual([2, 3]);
  });
  it('a change while one is being made is not forgotten', async () => {
    const m = manager(1),
      q = new OrderQueue(m, { limit: 1, version: () => 0, onReady: () => undefined });
    q.fill();
    m.end(id<RolloutId>('r0')); // room again before the first is on disk
    await m.write();
    await m.write();
    expect(q.ready).toBe(2);
  });
  it('closing retires those never started, the one being made too, and no more are made', async () => {
    const m = manager(3),
      q = new OrderQueue(m, { limit: 3, version: () => 0, onReady: () => undefined });
    q.fill();
    await m.write();
    expect([q.ready, m.made]).toEqual([1, 2]);
    const closed = q.close();
    await m.write();
    await closed;
    expect(m.retired).toEqual(['r0', 'r1']);
    expect([m.made, m.listeners.size, q.ready]).toEqual([2, 0, 0]);
  });
  it('are no more than hide the delay, however many are admitted', async () => {
    const m = manager(100),
      q = new OrderQueue(m, { limit: 100, version: () => 0, onReady: () => undefined, ahead: 3 });
    q.fill();
    for (let i = 0; i < 10; i++) await m.write();
    expect([q.ready, m.made]).toEqual([3, 3]);
    q.take();
    for (let i = 0; i < 10; i++) await m.write();
    expect([q.ready, m.made]).toEqual([3, 4]);
  });
  it('wait for the barrier of the regime, and are told when it falls', async () => {
    const m = manager(100),
      gate = regimeGate({ regime: 'batch', slots: 10, groups: 1 }),
      open = new Set(['g']);
    let told = 0;
    const q = new OrderQueue(
      { ...m, isOpen: (g) => open.has(g) },
      {
        limit: 100,
        version: () => 0,
        onReady: () => {
          told++;
        },
        gate,
        ahead: 2,
      },
    );
    q.fill();
    for (let i = 0; i < 5; i++) await m.write();
    expect(q.take()?.group).toBe('g');
    open.clear();
    for (const l of m.listeners) l();
    expect([gate.training, q.ready, q.take()]).toEqual([true, 0, undefined]);
    gate.synced();
    told = 0;
    q.wake();
    expect(told).toBe(1);
    expect(q.ready).toBeGreaterThan(0);
  });
  it('a fault ends the queue and is reported', async () => {
    const m = manager(2),
      faults: unknown[] = [];
    const q = new OrderQueue(m, {
      limit: 2,
      version: () => 0,
      onReady: () => undefined,
      onFault: (e) => faults.push(e),
    });
    m.fail(new Error('disk full'));
    q.fill();
    await q.close();
    expect(faults).toEqual([new Error('disk full')]);
  });
});
