import { describe, expect, it } from 'vitest';
import type { Lease } from '../../../runtime/cluster/types.js';
import { StudioError, type ErrorKind } from '../../../runtime/domain/index.js';
import { PatientPool } from '../../../runtime/run/patientPool.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const fault = (kind: ErrorKind): StudioError => new StudioError(kind, `${kind}.`, 'Look.');
const lease = { resetMs: 1 } as Lease;

/** A pool that answers with these, one after another, and then with leases. */
function poolOf(answers: readonly (StudioError | undefined)[]) {
  const clock = new VirtualClock(),
    asked: number[] = [],
    waits: (string | undefined)[] = [],
    stop = new AbortController();
  const pool = new PatientPool({
    pool: {
      lease: ({ signal }) => {
        if (signal.aborted) return Promise.reject(fault('cancelled'));
        const e = answers[asked.length];
        asked.push(clock.now());
        return e ? Promise.reject(e) : Promise.resolve(lease);
      },
    },
    clock,
    onWait: (why) => waits.push(why?.kind),
  });
  return { clock, asked, waits, stop, take: () => pool.lease({ signal: stop.signal }) };
}

describe('desktops of a lesson', () => {
  it('are waited for where there were some, with growing pauses, and that is said once', async () => {
    const away = fault('desktop.unavailable'),
      p = poolOf([undefined, away, away, fault('desktop.start')]);
    await p.take();
    const second = p.take();
    await p.clock.advance(60_000);
    expect(await second).toBe(lease);
    expect(p.asked.slice(2).map((t, i) => t - p.asked[i + 1]!)).toEqual([1000, 2000, 4000]);
    expect(p.waits).toEqual(['desktop.unavailable', undefined]);
  });

  it('are not waited for where there never were any', async () => {
    await expect(poolOf([fault('desktop.unavailable')]).take()).rejects.toMatchObject({ kind: 'desktop.unavailable' });
  });

  it("are not waited for by a run that ends, nor for a fault that is no desktop's", async () => {
    const p = poolOf([undefined, fault('internal'), fault('desktop.unavailable')]);
    await p.take();
    await expect(p.take()).rejects.toMatchObject({ kind: 'internal' });
    const waiting = p.take(),
      ended = expect(waiting).rejects.toMatchObject({ kind: 'cancelled' });
    await p.clock.advance(10);
    p.stop.abort();
    await ended;
    expect(p.asked).toHaveLength(3);
  });
});
