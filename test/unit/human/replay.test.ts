import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import type { Action } from '../../../runtime/domain/index.js';
import { asksForTheSame, replayLimitMs } from '../../../runtime/human/replay.js';

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

describe('a task whose instruction its desktop says', () => {
  const success = { kind: 'success', reward: 1, truncated: false } as const,
    error = { kind: 'error', error: { kind: 'desktop.lost', message: '', remedy: '' } } as const,
    task = { instruction: '(click-button: its page says what to do)' };
  it.each([
    ['says the same', 'Click OK', { instruction: 'Click OK', outcome: success }, true],
    ['says something else', 'Click OK', { instruction: 'Click Cancel', outcome: success }, false],
    ['was recorded without it', task.instruction, { instruction: 'Click OK', outcome: success }, true],
    ['was recorded without any', '', { instruction: 'Click OK', outcome: success }, true],
    ['came to no desktop', 'Click OK', { instruction: task.instruction, outcome: error }, true],
  ])('is compared when it is known: it %s', (_what, recorded, played, same) => {
    expect(asksForTheSame(recorded, task, played)).toBe(same);
  });
});
