import { describe, expect, it } from 'vitest';
import type { Trajectory } from '../../../runtime/domain/index.js';
import { logicalTrajectory } from '../../../runtime/run/logicalTime.js';

const made = (ms: number): Trajectory =>
  ({
    id: 'r000007',
    provenance: { kind: 'rollout' },
    steps: [
      {
        index: 0,
        timings: { observe: ms, decide: ms, queue: ms, perform: ms, settle: ms },
        progress: { held: 0.5, ms },
      },
    ],
    outcome: {
      kind: 'failure',
      reward: 0,
      truncated: false,
      report: { checks: [{ what: 'w', expected: '', found: '', score: 0, judge: { name: 'n', version: '1', ms } }] },
    },
    startedAt: ms,
    endedAt: 2 * ms,
    resetMs: ms,
    verifyMs: ms,
  }) as unknown as Trajectory;

describe('the clock of a deterministic run', () => {
  it('tells a slow machine from a fast one in nothing, and rollouts apart', () => {
    expect(logicalTrajectory(made(1234))).toEqual(logicalTrajectory(made(5)));
    expect(logicalTrajectory(made(5))).toMatchObject({ startedAt: 7 * 3_600_000, endedAt: 7 * 3_600_000 + 1000 });
  });
});
