import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import type { Action } from '../../../runtime/domain/index.js';
import { replayLimitMs } from '../../../runtime/human/replay.js';

describe('the time limit of a replay', () => {
  it('grows with what was recorded: a long demonstration is no slow desktop', () => {
    const config = parseRunFile({ rollout: { taskTimeoutS: 120 }, desktops: { settleMaxMs: 3000 } }),
      of = (...steps: readonly (readonly Action[])[]): number =>
        replayLimitMs(
          steps.map((actions) => ({ actions })),
          config,
        ),
      wait = (ms: number): Action => ({ type: 'wait', ms }),
      click: Action = { type: 'click', at: { x: 1, y: 1 } };
    // Each may take long to come to rest.
    const one = of([click]);
    expect(one).toBeGreaterThan(123_000);
    expect(of(Array.from({ length: 100 }, () => click)) - one).toBe(99 * (one - 120_000));
    expect(of([wait(60_000)], [wait(45_000), click], [wait(60_000)])).toBe(
      of([click], [click, click], [click]) + 165_000,
    );
  });
});
