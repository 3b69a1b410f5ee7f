import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { DataManager } from '../../../runtime/data/dataManager.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { budgetCounts, RunBudget } from '../../../runtime/run/budget.js';
import { group, n3, order } from '../../helpers/data/groups.js';
import { dataConfig, failure, openManager, success, withDir } from '../../helpers/data/manager.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const MINUTE = 60_000;

function budget(
  limits: { minutes?: number; rollouts?: number; updates?: number },
  o: { elapsedMs?: number; clock?: VirtualClock } = {},
) {
  const clock = o.clock ?? new VirtualClock(),
    counts = { rollouts: 0, errors: 0, updates: 0, updating: 0 },
    b = new RunBudget({ limits, clock, elapsedMs: o.elapsedMs ?? 0, counts: () => counts });
  let ended: number | undefined;
  b.signal.addEventListener('abort', () => {
    ended = clock.now();
  });
  const t0 = clock.now();
  return { b, clock, counts, endedAfter: () => (ended === undefined ? undefined : ended - t0) };
}

describe('the budget of a run', () => {
  it('is spent when its minutes are up, to the millisecond, and says so once', async () => {
    const { b, clock, endedAfter } = budget({ minutes: 4 });
    b.watch();
    await clock.advance(4 * MINUTE - 1);
    expect([b.spent, b.signal.aborted, b.leftMs]).toEqual([false, false, 1]);
    await clock.advance(10 * MINUTE);
    expect(endedAfter()).toBe(4 * MINUTE);
    expect([b.spent, b.used]).toEqual([true, 3.5 - 1 / MINUTE / 4]);
    expect(clock.pending).toBe(0);
  });

  it('goes on, when resumed, with what earlier parts of the run left', async () => {
    const { b, clock, endedAfter } = budget({ minutes: 10 }, { elapsedMs: 7 * MINUTE });
    b.watch();
    expect(b.used).toBe(0.7);
    await clock.advance(5 * MINUTE);
    expect(endedAfter()).toBe(3 * MINUTE);

    const over = budget({ minutes: 10 }, { elapsedMs: 11 * MINUTE });
    expect(over.b.signal.aborted).toBe(false);
    over.b.watch();
    expect(over.endedAfter()).toBe(0);
    expect(over.b.used).toBeCloseTo(1.1);
  });

  it('stands still in a pause, also one that began before it was watched', async () => {
    const { b, clock, endedAfter } = budget({ minutes: 2 });
    b.pause();
    b.pause();
    b.watch();
    await clock.advance(60 * MINUTE);
    expect([b.paused, b.elapsedMs, b.spent]).toEqual([true, 0, false]);
    b.resume();
    b.resume();
    await clock.advance(MINUTE);
    b.pause();
    await clock.advance(60 * MINUTE);
    expect([b.elapsedMs, b.leftMs]).toEqual([MINUTE, MINUTE]);
    b.resume();
    await clock.advance(2 * MINUTE);
    expect(endedAfter()).toBe(122 * MINUTE);
  });

  it('is spent by rollouts or updates too, whichever limit is reached first', async () => {
    const { b, clock, counts, endedAfter } = budget({ minutes: 60, rollouts: 16, updates: 4 });
    b.watch();
    await clock.advance(6 * MINUTE);
    expect(b.used).toBe(0.1);
    Object.assign(counts, { rollouts: 8, updates: 3 });
    b.check();
    expect([b.used, b.signal.aborted]).toEqual([0.75, false]);
    counts.rollouts = 16;
    b.check();
    expect([b.used, endedAfter(), clock.pending]).toEqual([1, 6 * MINUTE, 0]);
  });

  it('is not spent by an update under way, which may be cut off; its learning rate is the one of its place', () => {
    const { b, counts } = budget({ updates: 4 });
    b.watch();
    Object.assign(counts, { updates: 3, updating: 1 });
    b.check();
    expect([b.used, b.spent, b.signal.aborted]).toEqual([1, false, false]);
    Object.assign(counts, { updates: 4, updating: 0 });
    b.check();
    expect([b.used, b.spent, b.signal.aborted]).toEqual([1, true, true]);
  });

  it('loses nothing by what a kill cuts off: rollouts, and the last update, which is made again', () =>
    withDir(async (dir) => {
      const limits = { updates: 2, rollouts: 7 },
        used = (m: DataManager) => {
          const b = new RunBudget({
            limits,
            clock: new VirtualClock(),
            elapsedMs: 0,
            counts: () => budgetCounts(m.counts()),
          });
          return [b.used, b.spent];
        },
        m = await openManager(join(dir, 'a'), dataConfig(n3));
      await group(m, [success, failure, failure]);
      await m.trained((await m.claimBatch({ version: 0 }))!.id, 1);
      // One that was given back is made again, too.
      await group(m, [success, failure, failure]);
      await m.release((await m.claimBatch({ version: 1 }))!.id, 'a screen cannot be read');
      await m.claimBatch({ version: 1 });
      await m.started((await order(m)).rollout, 1);
      expect(used(m)).toEqual([1, false]);
      await cp(join(dir, 'a'), join(dir, 'b'), { recursive: true });
      await m.close();
      const r = await openManager(join(dir, 'b'), dataConfig(n3));
      expect(r.stats().ledger.retired).toEqual({ lost: 1 });
      expect(used(r)).toEqual([6 / 7, false]);
      await r.trained((await r.claimBatch({ version: 1 }))!.id, 2);
      expect(used(r)).toEqual([1, true]);
      await r.close();
    }));

  it('loses nothing by errors, and ends a run in which everything is one', () => {
    const { b, counts } = budget({ rollouts: 16 });
    b.watch();
    Object.assign(counts, { rollouts: 8, errors: 16 });
    b.check();
    expect([b.used, b.signal.aborted]).toEqual([0.5, false]);
    Object.assign(counts, { rollouts: 8, errors: 20 });
    b.check();
    expect([b.used, b.signal.aborted]).toEqual([0.75, false]);
    Object.assign(counts, { rollouts: 0, errors: 32 });
    b.check();
    expect([b.used, b.signal.aborted]).toEqual([1, true]);
  });

  it('without a limit is never spent and holds no timer', async () => {
    const { b, clock } = budget({});
    b.watch();
    b.check();
    await clock.advance(1000 * MINUTE);
    expect([b.used, b.spent, b.leftMs, b.limitMs, clock.pending]).toEqual([0, false, Infinity, undefined, 0]);
  });

  it('lets go of its timer when closed, and fires no more', async () => {
    const { b, clock, counts } = budget({ minutes: 1, rollouts: 1 });
    b.watch();
    b.close();
    expect(clock.pending).toBe(0);
    counts.rollouts = 5;
    b.check();
    await clock.advance(2 * MINUTE);
    expect(b.signal.aborted).toBe(false);
  });

  it('waits again for the rest when a timer fires early, as those of Node.js may', () => {
    const timers: { ms: number; fn: () => void }[] = [];
    let now = 0;
    const clock = {
      now: () => now,
      after: (ms: number, fn: () => void) => {
        timers.push({ ms, fn });
        return () => undefined;
      },
    };
    const b = new RunBudget({
      limits: { minutes: 1 },
      clock,
      elapsedMs: 0,
      counts: () => ({ rollouts: 0, errors: 0, updates: 0, updating: 0 }),
    });
    b.watch();
    now = MINUTE - 0.4;
    timers[0]!.fn();
    expect([b.signal.aborted, timers.length]).toEqual([false, 2]);
    expect(timers[1]!.ms).toBeCloseTo(0.4);
    now = MINUTE;
    timers[1]!.fn();
    expect(b.signal.aborted).toBe(true);
  });
});

describe('the system clock', () => {
  it('keeps a delay longer than setTimeout can: 36,000 minutes do not end at once', async () => {
    vi.useFakeTimers();
    try {
      const fired: string[] = [];
      systemClock.after(36_000 * MINUTE, () => fired.push('long'));
      const cancel = systemClock.after(36_000 * MINUTE, () => fired.push('cancelled'));
      await vi.advanceTimersByTimeAsync(2 ** 31);
      expect(fired).toEqual([]);
      cancel();
      await vi.advanceTimersByTimeAsync(36_000 * MINUTE - 2 ** 31 - 1);
      expect(fired).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect(fired).toEqual(['long']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});
