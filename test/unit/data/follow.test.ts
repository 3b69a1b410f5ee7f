import { afterEach, describe, expect, it, vi } from 'vitest';
import { follow, type FollowSource } from '../../../runtime/data/store/follow.js';

afterEach(() => {
  vi.useRealTimers();
});

/** A journal that has nothing to read, and counts who looks. */
function source(): FollowSource & { looks: number; over: boolean; grow: () => void } {
  let grown: () => void = () => undefined;
  const s = {
    looks: 0,
    over: false,
    grow: () => {
      grown();
    },
    read: () => {
      s.looks++;
      return (async function* () {})();
    },
    ended: () => s.over,
    onGrowth: (f: () => void) => {
      grown = f;
      return () => undefined;
    },
  };
  return s;
}

describe('following a journal', () => {
  it('growth after growth is one look, soon; its end is looked at at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const s = source(),
      caughtUp = follow(s, 0);
    await caughtUp.next();
    expect(s.looks).toBe(1);
    const next = caughtUp.next();
    for (let i = 0; i < 20; i++) {
      s.grow();
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(s.looks).toBe(1);
    await vi.advanceTimersByTimeAsync(40);
    await next;
    expect(s.looks).toBe(2);

    const last = caughtUp.next();
    s.grow();
    await vi.advanceTimersByTimeAsync(1);
    expect(s.looks).toBe(2);
    s.over = true;
    s.grow();
    await vi.advanceTimersByTimeAsync(0);
    await last;
    expect(s.looks).toBe(3);
    expect(await caughtUp.next()).toEqual({ done: true, value: undefined });
  });
});
