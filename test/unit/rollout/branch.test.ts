import { describe, expect, it } from 'vitest';
import { StudioError, type Action, type RolloutId, type Step } from '../../../runtime/domain/index.js';
import type { EpisodeResult } from '../../../runtime/rollout/types.js';
import { runEpisode } from '../../../runtime/rollout/episode.js';
import { Steering, type HumanStep } from '../../../runtime/rollout/steering.js';
import { FakeDesktop, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const at = (x: number): Action => ({ type: 'click', at: { x, y: 2 } }),
  done: Action = { type: 'finished' };

/** An episode on a desktop whose screen says how many actions were performed. */
async function play(o: {
  readonly script: readonly (readonly Action[])[];
  readonly before?: readonly Step[] | undefined;
  readonly instruction?: string;
  readonly desktop?: (d: FakeDesktop) => void;
  readonly steering?: Steering;
  readonly branch?: { readonly of: RolloutId; readonly step: number };
  readonly cap?: number;
  readonly tasks?: Parameters<typeof fakeTasks>[1];
}) {
  const clock = new VirtualClock(),
    desktop = new FakeDesktop('d', clock),
    tasks = fakeTasks(clock, o.tasks),
    policy = scriptedPolicy(clock, o.script),
    acted: Action[][] = [],
    seen: Step[] = [];
  o.desktop?.(desktop);
  const telling = {
    open: (x: Parameters<typeof policy.open>[0]) => ({
      ...policy.open(x),
      acted: (actions: readonly Action[]) => void acted.push([...actions]),
    }),
  };
  let result: EpisodeResult | undefined;
  const run = runEpisode(
    { policy: telling, tasks, frames: fakeFrames(clock), clock },
    { desktop, resetMs: 100, release: () => undefined },
    {
      order: order(2, { cap: o.cap ?? 5, ...(o.branch ? { branch: o.branch } : {}) }),
      task: task(),
      provenance: { kind: 'rollout' },
      sampling: { greedy: false, temperature: 1, seed: 7 },
      signal: new AbortController().signal,
      onStep: (s) => seen.push(s),
      onPhase: () => undefined,
      ...(o.before ? { before: { instruction: o.instruction ?? task().instruction, steps: o.before } } : {}),
      ...(o.steering ? { steering: o.steering } : {}),
    },
  ).then((r) => {
    result = r;
  });
  await clock.until(() => result !== undefined);
  await run;
  return { ...result!, t: result!.trajectory, desktop, tasks, acted, seen };
}

const personStep: HumanStep = {
  frame: { hash: 'theirs', width: 640, height: 400 },
  actions: [at(7)],
  settled: true,
  timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
};
const origin = await play({ script: [[at(1)], [at(2)], [at(3)], [done]] });
const branch = { of: 'r1' as RolloutId, step: 2 },
  before = origin.t.steps.slice(0, 3);

describe('a branch', () => {
  it('acts out what it shares, and goes on by itself', async () => {
    const r = await play({ script: [[at(9)], [done]], before, branch });
    expect(r.t.branch).toEqual(branch);
    expect(r.t.outcome.kind).toBe('success');
    expect(r.desktop.performed).toEqual([at(1), at(2), at(9)]);
    // The policy is told what it has to take for its own history, and nothing else.
    expect(r.acted).toEqual([[at(1)], [at(2)]]);
    expect(r.t.steps.map((s) => s.actions)).toEqual([[at(1)], [at(2)], [at(9)], [done]]);
    expect(r.t.steps.map((s) => s.frame.hash)).toEqual(['frame0', 'frame1', 'frame2', 'frame3']);
    expect(r.t.steps[1]!.tokens).toEqual(origin.t.steps[1]!.tokens);
    expect(r.seen).toEqual(r.t.steps);
  });
  it('has the turns that are left', async () => {
    const r = await play({ script: [[at(9)]], before, branch, cap: 3 });
    expect(r.t.steps).toHaveLength(3);
    expect(r.t.outcome).toMatchObject({ kind: 'success', truncated: true });
  });
  it.each([0, 1, 2])('is given up where screen %i differs, and nobody is asked for a verdict', async (i) => {
    const other = before.map((s, k) => (k === i ? { ...s, frame: { ...s.frame, hash: 'another' } } : s)),
      r = await play({ script: [[at(9)], [done]], before: other, branch });
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'rollout.diverged' } });
    expect(r.desktop.performed).toHaveLength(i);
    expect(r.tasks.verified).toEqual([]);
    expect(r.broken).toBe(false);
  });
  it('is given up where the task asks for something else', async () => {
    const r = await play({ script: [[done]], before, branch, instruction: 'do something else' });
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'rollout.diverged' } });
  });
  it('is no failure of the policy where its desktop breaks before it acts', async () => {
    const breaks = (after: number) => (d: FakeDesktop) => {
      Object.assign(d, { blame: () => Promise.resolve('its memory was used up') });
      d.fail = { call: 'settle', error: new StudioError('desktop.lost', 'gone', 'x'), after };
    };
    const early = await play({ script: [[at(9)], [done]], before, branch, desktop: breaks(2) }),
      late = await play({ script: [[at(9)], [done]], before, branch, desktop: breaks(3) });
    expect(early.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
    expect(late.t.outcome).toMatchObject({ kind: 'failure' });
  });
  it('goes on where a person left it', async () => {
    const steering = new Steering();
    // Where it began, and what the policy then sees, is another matter: somebody acted.
    steering.person = {
      act: ({ record }) => {
        record(personStep);
        steering.person = undefined;
        return Promise.resolve({ next: 'policy' as const });
      },
      consent: () => Promise.resolve(true),
    };
    const r = await play({ script: [[at(9)], [done]], before, branch, steering });
    expect(r.t.outcome.kind).toBe('success');
    expect(r.t.steps.map((s) => s.origin)).toEqual(['policy', 'policy', 'human', 'policy', 'policy']);
  });
  it('is given up where its beginning cannot be read, or the task ends on the way', async () => {
    const error = { kind: 'error', error: { kind: 'rollout.diverged' } };
    expect((await play({ script: [[done]], branch })).t.outcome).toMatchObject(error);
    const over = await play({ script: [[done]], before, branch, tasks: { over: () => true } });
    expect(over.t.outcome).toMatchObject(error);
  });
});
