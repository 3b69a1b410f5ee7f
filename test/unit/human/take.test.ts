import { describe, expect, it } from 'vitest';
import { takeNext, type Taking } from '../../../runtime/human/take.js';
import type { SessionHost } from '../../../runtime/human/controlSession.js';
import type { TakeOverSession } from '../../../runtime/human/takeOver.js';
import type { HeldRollout } from '../../../runtime/run/runAccess.js';
import { VirtualClock, flush } from '../../helpers/rollout/virtualClock.js';

/** One desktop with rollouts on it, of which the test says when they begin, end, and come to a decision. */
function desktop() {
  const told: string[] = [],
    opened: {
      readonly rollout: string;
      readonly host: SessionHost;
      come(there: boolean): void;
      discarded: number;
      closed: number;
    }[] = [],
    listeners = new Set<() => void>(),
    stop = new AbortController();
  const d = { rollout: undefined as string | undefined, gone: false };
  const host: SessionHost = {
    clock: new VirtualClock(),
    log: () => undefined,
    broadcast: (s) => {
      told.push(`state ${s.session}`);
    },
    ended: () => {
      told.push('ended');
    },
    forget: () => {
      told.push('forget');
    },
  };
  const t: Taking = {
    host,
    signal: stop.signal,
    between: () => !d.gone && d.rollout === undefined,
    steer: () => {
      if (d.rollout === undefined) throw new Error('the desktop is gone');
      return { order: { rollout: d.rollout } } as HeldRollout;
    },
    onChange: (l) => {
      listeners.add(l);
      return () => {
        listeners.delete(l);
      };
    },
    open: (own, r) => {
      let come!: (there: boolean) => void;
      const comes = new Promise<boolean>((c) => {
          come = c;
        }),
        x = { rollout: r.order.rollout, host: own, come, discarded: 0, closed: 0 };
      opened.push(x);
      return {
        comes,
        discard: () => {
          x.discarded++;
          own.forget(undefined!);
          come(false);
          return Promise.resolve();
        },
        close: () => {
          x.closed++;
        },
        x,
      } as unknown as TakeOverSession;
    },
  };
  const put = (o: Partial<typeof d>): void => {
    Object.assign(d, o);
    for (const l of listeners) l();
  };
  return { t, put, told, opened, stop, listeners };
}

describe('taking a rollout over', () => {
  it('takes the next one when the rollout ends before it comes to a decision, and nobody hears of what did not come about', async () => {
    const { t, put, told, opened, listeners } = desktop();
    put({ rollout: 'r1' });
    const got = takeNext(t);
    await flush();
    expect(opened.map((x) => x.rollout)).toEqual(['r1']);
    opened[0]!.host.broadcast({ session: 'one' } as never);
    put({ rollout: undefined });
    opened[0]!.host.ended(undefined!);
    opened[0]!.come(false);
    await flush();
    expect([opened.length, opened[0]!.closed, told]).toEqual([1, 1, []]);
    put({ rollout: 'r2' });
    await flush();
    opened[1]!.come(true);
    expect(((await got) as unknown as { x: unknown }).x).toBe(opened[1]);
    opened[1]!.host.broadcast({ session: 'two' } as never);
    expect([opened.map((x) => x.rollout), told, listeners.size]).toEqual([['r1', 'r2'], ['state two'], 0]);
  });

  it('waits between two rollouts, and says why when there will be no other', async () => {
    const { t, put, opened, listeners } = desktop();
    const got = takeNext(t);
    await flush();
    expect(opened).toEqual([]);
    put({ gone: true });
    await expect(got).rejects.toThrow('the desktop is gone');
    expect(listeners.size).toBe(0);
  });

  it('is called off: the rollout goes on by itself, or is never waited for', async () => {
    const a = desktop();
    a.put({ rollout: 'r1' });
    const first = takeNext(a.t);
    await flush();
    a.stop.abort();
    await expect(first).rejects.toMatchObject({ kind: 'cancelled' });
    expect([a.opened[0]!.discarded, a.told, a.listeners.size]).toEqual([1, [], 0]);
    const b = desktop(),
      second = takeNext(b.t);
    await flush();
    b.stop.abort();
    await expect(second).rejects.toMatchObject({ kind: 'cancelled' });
    expect([b.opened, b.listeners.size]).toEqual([[], 0]);
  });
});
