import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { activeTimeout } from '../../../runtime/concurrency/activeTimeout.js';
import { DesktopGuard } from '../../../runtime/rollout/desktopGuard.js';
import { timeLimit } from '../../../runtime/rollout/timeLimit.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

describe('time limits while a connection is made again', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('count only time in which the desktop could be reached', async () => {
    let stalled = 500;
    const fn = vi.fn();
    activeTimeout(1000, () => stalled, fn);
    await vi.advanceTimersByTimeAsync(999);
    stalled += 600;
    await vi.advanceTimersByTimeAsync(600);
    expect(fn).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(fn).toHaveBeenCalledOnce();
    const never = vi.fn(),
      plain = vi.fn();
    activeTimeout(10, undefined, never)();
    activeTimeout(10, undefined, plain);
    await vi.advanceTimersByTimeAsync(10);
    expect([never.mock.calls.length, plain.mock.calls.length]).toEqual([0, 1]);
  });
});

describe('guard of a rollout', () => {
  it('does not take a cut connection for a silent desktop', async () => {
    const clock = new VirtualClock();
    let stalled = 0;
    const guard = new DesktopGuard({ clock, desktopTimeoutMs: 1000 }, new AbortController().signal, () => stalled);
    const call = guard.call(new Promise(() => undefined), 'a question').catch((e: unknown) => e);
    await clock.advance(500);
    stalled = 5000;
    await clock.advance(5499);
    expect(guard.timedOut).toBe(false);
    await clock.advance(1);
    expect(guard.timedOut).toBe(true);
    expect(await call).toMatchObject({ kind: 'desktop.lost' });
  });

  it('counts no cut as time in which the rollout waited for its desktop', async () => {
    const clock = new VirtualClock();
    let stalled = 0,
      answer = (): void => undefined;
    const guard = new DesktopGuard({ clock }, new AbortController().signal, () => stalled);
    const call = guard.call(new Promise<void>((done) => (answer = done)), 'a question');
    await clock.advance(500);
    stalled = 300;
    expect(guard.spentMs).toBe(200);
    answer();
    await call;
    stalled = 9000;
    expect(guard.spentMs).toBe(200);
  });
});

describe('time limit of a rollout', () => {
  it('does not count a cut connection, neither as it runs nor up to where it is suspended', async () => {
    const clock = new VirtualClock();
    let stalled = 0;
    const limit = timeLimit({ clock, timeoutMs: 1000 }, new AbortController().signal, () => stalled);
    await clock.advance(900);
    stalled = 600;
    // 300 ms of it have counted.
    await limit.suspendedDuring(clock.advance(5000));
    await clock.advance(600);
    stalled += 500;
    await clock.advance(599);
    expect([limit.signal.aborted, limit.expired()]).toEqual([false, undefined]);
    await clock.advance(1);
    expect([limit.signal.aborted, limit.expired()?.kind]).toEqual([true, 'timeout']);
    expect(clock.pending).toBe(0);
  });

  it('is suspended until the last of what suspends it is over', async () => {
    const clock = new VirtualClock(),
      limit = timeLimit({ clock, timeoutMs: 1000 }, new AbortController().signal);
    await clock.advance(900);
    const long = limit.suspendedDuring(new Promise<void>((done) => clock.after(5000, done))),
      short = limit.suspendedDuring(new Promise<void>((done) => clock.after(100, done)));
    await clock.advance(100);
    await short;
    await clock.advance(4900);
    await long;
    await clock.advance(99);
    expect(limit.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(limit.expired()?.kind).toBe('timeout');
  });
});
