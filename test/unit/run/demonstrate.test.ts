import { describe, expect, it } from 'vitest';
import type { SettleOptions } from '../../../runtime/cluster/types.js';
import { id, type FamilyId, type Outcome, type TaskId, type Trajectory } from '../../../runtime/domain/index.js';
import { demonstrate, whyLeftOut, type DemonstrateDeps } from '../../../runtime/run/demonstrate.js';
import { FakeDesktop, fakeFrames, fakeTasks, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

type Judged = Exclude<Outcome, { kind: 'error' }>;
const FAILURE: Judged = {
  kind: 'failure',
  reward: 0,
  truncated: false,
  report: { checks: [{ what: 'a file', expected: 'there', found: 'nothing', score: 0 }] },
};

/** Scripted solutions of two actions, one desktop; the verdict by the seed of the task. */
async function made(seeds: readonly number[], count: number, verdict: (seed: number) => Judged | undefined) {
  const clock = new VirtualClock(),
    desktop = new FakeDesktop('d', clock),
    settles: (SettleOptions | undefined)[] = [];
  const settle = desktop.settle.bind(desktop);
  desktop.settle = (o?: SettleOptions) => {
    settles.push(o);
    return settle();
  };
  let seed = -1;
  const success: Judged = { kind: 'success', reward: 1, truncated: false },
    kept: Trajectory[] = [],
    left: Trajectory[] = [];
  const source = {
    task: (_: FamilyId, s: number) => {
      seed = s;
      return { ...task(), id: id<TaskId>(`t${s}`) };
    },
    oracle: () => {
      const moves = [{ type: 'click', at: { x: 1, y: 1 } }, { type: 'finished' }] as const;
      let next = 0;
      return { next: () => Promise.resolve(moves[next++]!) };
    },
  } as unknown as DemonstrateDeps['source'];
  let result: { made: number; failed: number } | undefined;
  const run = demonstrate(
    {
      pool: {
        lease: () => Promise.resolve({ desktop, resetMs: 1, release: () => undefined }),
      } as unknown as DemonstrateDeps['pool'],
      source,
      tasks: fakeTasks(clock, { verdict: () => verdict(seed) ?? success }),
      frames: fakeFrames(clock),
      settle: { horizonMs: 20, maxMs: 2000 },
      now: () => clock.now(),
    },
    {
      families: [id<FamilyId>('f')],
      seeds,
      count,
      parallel: 1,
      maxSteps: 4,
      signal: new AbortController().signal,
      onTrajectory: (t) => {
        kept.push(t);
        return Promise.resolve();
      },
      onFailure: (t) => left.push(t),
      onProgress: () => undefined,
    },
  ).then((r) => {
    result = r;
  });
  await clock.until(() => result !== undefined);
  await run;
  return { ...result!, kept, left, settles };
}

describe('demonstrations', () => {
  it('one that its verifier refuses is handed over with its report, and replaced by the next seed', async () => {
    const r = await made([1, 2, 3, 4], 2, (seed) => (seed === 1 ? FAILURE : undefined));
    expect(r).toMatchObject({ made: 2, failed: 1 });
    expect(r.kept.map((t) => t.task)).toEqual(['t2', 't3']);
    expect(r.left.map((t) => [t.task, t.outcome])).toEqual([['t1', FAILURE]]);
    expect(whyLeftOut(r.left[0]!)).toBe(
      'after 2 steps, at last [{"type":"click","at":{"x":1,"y":1}}], then [{"type":"finished"}]: a file is nothing, not there.',
    );
  });

  it('a busy machine is waited for longer than in a rollout, and what a terminal passes on before the verdict', async () => {
    const { settles } = await made([1], 1, () => undefined);
    expect(settles).toHaveLength(3);
    for (const s of settles.slice(0, 2)) expect(s).toMatchObject({ horizonMs: 20, maxMs: 10_000 });
    expect(settles[2]!.terminalHoldMs).toBeGreaterThan(100);
  });
});
