import { describe, expect, it } from 'vitest';
import { Refresh, type Beat } from '../../../webview/dashboard/refresh.js';

function rig(every: number) {
  const state = {
    now: 0,
    hidden: false,
    runs: [] as number[],
    timers: [] as { at: number; run: () => void }[],
    finish: [] as (() => void)[],
  };
  const beat: Beat = {
    now: () => state.now,
    after: (ms, run) => state.timers.push({ at: state.now + ms, run }),
    hidden: () => state.hidden,
  };
  const refresh = new Refresh(
    () => {
      state.runs.push(state.now);
      return new Promise<void>((r) => state.finish.push(r));
    },
    every,
    beat,
  );
  const goTo = (t: number): void => {
    state.now = t;
    for (const x of state.timers.splice(0))
      if (x.at <= t) x.run();
      else state.timers.push(x);
  };
  const answer = async (): Promise<void> => {
    state.finish.shift()?.();
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { state, refresh, goTo, answer };
}

describe('asking again', () => {
  it('happens at once, then at most every so often however often it is asked', async () => {
    const { state, refresh, goTo, answer } = rig(1000);
    refresh.ask();
    refresh.ask();
    await answer();
    expect(state.runs).toEqual([0]);
    for (const t of [100, 200, 900]) {
      goTo(t);
      refresh.ask();
    }
    goTo(1000);
    expect(state.runs).toEqual([0, 1000]);
    await answer();
    goTo(5000);
    expect(state.runs).toEqual([0, 1000]);
  });
  it('never runs twice at a time, and once more for what was asked meanwhile', async () => {
    const { state, refresh, goTo, answer } = rig(1000);
    refresh.ask();
    goTo(3000);
    refresh.ask();
    refresh.ask();
    expect(state.runs).toEqual([0]);
    await answer();
    expect(state.runs).toEqual([0, 3000]);
  });
  it('happens as long after somebody else ran it', async () => {
    const { state, refresh, goTo, answer } = rig(1000);
    goTo(500);
    refresh.ran();
    goTo(700);
    refresh.ask();
    expect(state.runs).toEqual([]);
    goTo(900);
    refresh.ran();
    // Its timer is of before.
    goTo(1500);
    expect(state.runs).toEqual([]);
    goTo(1900);
    expect(state.runs).toEqual([1900]);
    await answer();
  });
  it('waits while the page is hidden', async () => {
    const { state, refresh, goTo } = rig(1000);
    state.hidden = true;
    refresh.ask();
    goTo(9000);
    expect(state.runs).toEqual([]);
    state.hidden = false;
    refresh.wake();
    expect(state.runs).toEqual([9000]);
  });
  it('a failed answer does not end it', async () => {
    const beat: Beat = { now: () => 0, after: () => 0, hidden: () => false };
    let n = 0;
    const refresh = new Refresh(
      () => {
        n++;
        return Promise.reject(new Error('x'));
      },
      0,
      beat,
    );
    refresh.ask();
    for (let i = 0; i < 5; i++) await Promise.resolve();
    refresh.ask();
    expect(n).toBe(2);
  });
});
