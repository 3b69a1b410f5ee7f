import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventClock } from '../../bench/schedule/eventClock.js';

describe('virtual time', () => {
  it('fires in order of time, then of setting, and skips what was cancelled', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ at: fc.nat(50), cancel: fc.boolean() }), { maxLength: 200 }),
        async (timers) => {
          const clock = new EventClock(),
            seen: number[] = [];
          timers.forEach(({ at, cancel }, i) => {
            const off = clock.after(at, () => {
              expect(clock.now()).toBe(at);
              seen.push(i);
            });
            if (cancel) off();
          });
          await clock.run(100);
          const want = timers
            .map((t, i) => ({ ...t, i }))
            .filter((t) => !t.cancel)
            .sort((a, b) => a.at - b.at || a.i - b.i)
            .map((t) => t.i);
          expect(seen).toEqual(want);
          expect([clock.now(), clock.pending]).toEqual([100, 0]);
        },
      ),
      { numRuns: 50 },
    );
  });
  it('lets every promise settle before the next timer, however long the chain', async () => {
    const clock = new EventClock(),
      log: string[] = [];
    clock.after(1, () => {
      void (async () => {
        for (let i = 0; i < 500; i++) await Promise.resolve();
        log.push(`chain at ${clock.now()}`);
      })();
    });
    clock.after(1, () => log.push('second'));
    clock.after(2, () => log.push('third'));
    await clock.run(10);
    expect(log).toEqual(['chain at 1', 'second', 'third']);
  });
  it('stops at the end and goes on from there; stops early when told', async () => {
    const clock = new EventClock();
    let n = 0;
    const again = (): void => {
      n++;
      clock.after(10, again);
    };
    clock.after(10, again);
    await clock.run(35);
    expect([n, clock.now()]).toEqual([3, 35]);
    await clock.run(40);
    expect(n).toBe(4);
    await clock.run(1e9, () => n === 50);
    expect([n, clock.now()]).toEqual([50, 500]);
  });
  it('forgets cancelled timers', async () => {
    const clock = new EventClock();
    for (let i = 0; i < 50_000; i++)
      clock.after(1e6, () => {
        throw new Error('cancelled');
      })();
    clock.after(5, () => undefined);
    expect(clock.pending).toBe(1);
    await clock.run(2e6);
    expect(clock.fired).toBe(1);
  });
  it('tells of a timer that throws', async () => {
    const clock = new EventClock();
    clock.after(1, () => {
      throw new Error('oh');
    });
    await expect(clock.run(10)).rejects.toThrow('oh');
  });
});
