import { describe, expect, it } from 'vitest';
import { LoopWatch } from '../../helpers/machine/loopWatch.js';

const turn = (): Promise<void> => new Promise((next) => setTimeout(next, 20));

describe('what tests know of an event loop that is held up', () => {
  it('is the time that this thread works in one turn, and not the time that it waits for a processor', async () => {
    const loop = new LoopWatch(),
      used = (): number => process.cpuUsage().user / 1000;
    await turn();
    loop.since();
    for (const end = used() + 120; used() < end;);
    await turn();
    expect(loop.since().longestMs).toBeGreaterThan(50);
    // It stands still, as when others have all processors.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120);
    await turn();
    expect(loop.since().longestMs).toBeLessThan(50);
    loop.close();
  });
});
