import { expect, it } from 'vitest';
import type { SettleReport } from '../../../runtime/cluster/types.js';
import { lastRest } from '../../../runtime/rollout/rest.js';

/** How often a desktop that answers like this is asked. */
async function asked(...reports: Partial<SettleReport>[]): Promise<number> {
  let n = 0;
  await lastRest({
    settle: () =>
      Promise.resolve({ settled: false, ms: 500, detector: 'exact', ...reports[Math.min(n++, reports.length - 1)] }),
  });
  return n;
}

it('before a task is judged, a desktop whose programs wait for a processor is given time, and no other one', async () => {
  expect(await asked({ settled: true })).toBe(1);
  // Programs that work, or an agent that cannot tell.
  expect(await asked({ starved: 0.1 })).toBe(1);
  expect(await asked({})).toBe(1);
  expect(await asked({ starved: 0.9 }, { starved: 0.5 }, { settled: true })).toBe(3);
  expect(await asked({ starved: 0.9 }, { starved: 0 })).toBe(2);
  // Not for ever.
  expect(await asked({ starved: 1 })).toBe(10);
});

it('a starved desktop is not waited for once the run stops', async () => {
  const stop = new AbortController();
  let n = 0;
  await lastRest(
    {
      settle: () => {
        if (++n === 2) stop.abort();
        return Promise.resolve({ settled: false, ms: 500, detector: 'exact', starved: 1 });
      },
    },
    stop.signal,
  );
  expect(n).toBe(2);
});
