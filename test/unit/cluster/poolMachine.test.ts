import { describe, expect, it } from 'vitest';
import { PoolMachine } from '../../../runtime/cluster/poolMachine.js';

/** Ways over a list, a map or a set. */
const WAYS = [
  [Array.prototype, ['find', 'findIndex', 'filter', 'every', 'some', 'sort', 'map', 'indexOf', Symbol.iterator]],
  [Map.prototype, ['values', 'entries', 'keys', 'forEach', Symbol.iterator]],
  [Set.prototype, ['values', 'entries', 'keys', 'forEach', Symbol.iterator]],
] as const;

/** The ways that `work` begins over 100 things or more. */
function walks(work: () => void): string[] {
  const found: string[] = [],
    undo: (() => void)[] = [];
  for (const [of, names] of WAYS)
    for (const name of names) {
      const prototype = of as unknown as Record<string | symbol, (...args: unknown[]) => unknown>,
        real = prototype[name]!;
      undo.push(() => (prototype[name] = real));
      prototype[name] = function (this: { length?: number; size?: number }, ...args: unknown[]) {
        if ((this.length ?? this.size ?? 0) >= 100) found.push(String(name));
        return real.apply(this, args);
      };
    }
  try {
    work();
  } finally {
    for (let i = 0; i < undo.length; i++) undo[i]!();
  }
  return found;
}

describe('PoolMachine', () => {
  it('goes over no list of places when something happens to one of 1,000', () => {
    const machine = new PoolMachine({
      spares: 0,
      hardResetEvery: 500,
      startParallel: Infinity,
      maxFailures: 5,
      quarantineMs: 9,
      awayMs: 9,
      backoffMs: () => 1,
    });
    const places = machine.resize(1000, 0).flatMap((e) => (e.do === 'create' ? [e.place] : []));
    expect(places).toHaveLength(1000);
    const granted: number[] = [],
      last = places.length - 1;
    const begun = walks(() => {
      for (let i = 0; i <= last; i++) machine.created(places[i]!, 1);
      for (let waiter = 0; waiter <= last; waiter++) {
        const [grant] = machine.request(waiter, 2).slice(-1);
        if (grant?.do === 'grant') granted.push(grant.place);
      }
      machine.request(-1, 2);
      machine.cancel(-1, 3);
      for (let i = 0; i <= last; i++) {
        const p = granted[i]!;
        machine.released(p, false, 4);
        machine.resetDone(p, 5);
        machine.lost(p, { kind: 'desktop.lost', message: 'gone', remedy: '-' }, 6);
        machine.destroyed(p, 7);
        machine.retryDue(p, 8);
      }
    });
    expect(begun).toEqual([]);
    expect(granted).toEqual(places);
    expect(machine.places.map((p) => p.state)).toEqual(Array(1000).fill('starting'));
  });
});
