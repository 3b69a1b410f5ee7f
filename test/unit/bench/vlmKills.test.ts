import { describe, expect, it } from 'vitest';
import { shares, together, type PartResult } from '../../bench/vlm/kills.js';

describe('kills of whoever holds a run, and of its engine', () => {
  it('are half under a daemon, half in the foreground', () => {
    expect(shares(20)).toEqual({ daemon: 10, foreground: 10 });
    expect(shares(3)).toEqual({ daemon: 2, foreground: 1 });
    expect(shares(1)).toEqual({ daemon: 1, foreground: 0 });
  });

  it('are told apart, and what they left is added up', () => {
    const part = (o: Partial<PartResult>): PartResult => ({
      ...{ part: 'daemon', holder: 6, engine: 4, resumed: { itself: 5, request: 1 } },
      ...{ batches: 30, batches_twice: 0, batches_skipped: 0, optimizer_steps: 30 },
      ...o,
    });
    const other = { part: 'runtime', holder: 7, engine: 3, resumed: { itself: 0, request: 7 } } as const;
    expect(together([part({}), part({ ...other, batches_twice: 1, batches_skipped: 2, optimizer_steps: 31 })])).toEqual(
      {
        ...{ kills: 20, runtime_kills: 7, daemon_kills: 6, engine_kills: 7, engine_kills_under_daemon: 4 },
        ...{ daemon_resumed: { by_itself: 5, on_request: 1 } },
        ...{ batches: 60, batches_twice: 1, batches_skipped: 2, optimizer_steps: 61 },
      },
    );
  });
});
