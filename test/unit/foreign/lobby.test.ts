import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Lobby } from '../../../runtime/foreign/lobby.js';

class Door extends EventEmitter {
  destroyed = false;
  destroy(): this {
    this.destroyed = true;
    this.emit('close');
    return this;
  }
}
const socket = (): Socket & Door => new Door() as unknown as Socket & Door;

describe('connections that have not shown the token', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('when there are too many, the oldest goes, and no one who has shown it', () => {
    const lobby = new Lobby({ most: 3 }),
      [known, ...others] = Array.from({ length: 6 }, socket);
    lobby.enter(known!);
    lobby.leave(known!);
    for (const s of others) lobby.enter(s);
    expect(others.map((s) => s.destroyed)).toEqual([true, true, false, false, false]);
    expect([known!.destroyed, lobby.size]).toEqual([false, 3]);
  });
  it('have their time, and one that is gone takes nobody’s place', () => {
    const lobby = new Lobby({ most: 2, ms: 5000 }),
      [gone, slow, quick] = Array.from({ length: 3 }, socket);
    lobby.enter(gone!);
    lobby.enter(slow!);
    gone!.destroy();
    lobby.enter(quick!);
    expect([slow!.destroyed, lobby.size]).toEqual([false, 2]);
    lobby.leave(quick!);
    vi.advanceTimersByTime(5000);
    expect([slow!.destroyed, quick!.destroyed, lobby.size]).toEqual([true, false, 0]);
  });
});
