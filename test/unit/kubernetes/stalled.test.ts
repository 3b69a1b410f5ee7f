import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { activeTimeout } from '../../../runtime/cluster/drivers/activeTimeout.js';
import { DesktopGuard } from '../../../runtime/rollout/desktopGuard.js';
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
});
