import { describe, expect, it } from 'vitest';
import type { Action, Outcome, RolloutId, Step, TaskId, Trajectory } from '../../../runtime/domain/index.js';
import { StudioError, id } from '../../../runtime/domain/index.js';
import { lookBack } from '../../../runtime/rollout/hindsight.js';
import type { EpisodeDeps, EpisodeResult } from '../../../runtime/rollout/types.js';
import type { Task, TaskEngine } from '../../../runtime/tasks/types.js';
import { FakeDesktop, fakeFrames, fakeTasks, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const finished: Action = { type: 'finished' },
  click: Action = { type: 'click', at: { x: 1, y: 2 } };
const failure: Outcome = {
    kind: 'failure',
    reward: 0,
    truncated: false,
    report: { checks: [{ what: 'a', expected: 'b', found: 'c', score: 0 }] },
  },
  success: Outcome = { kind: 'success', reward: 1, truncated: false };

const step = (index: number, action: Action, o: Partial<Step> = {}): Step => ({
  index,
  frame: { hash: `h${index}`, width: 64, height: 40 },
  thought: 'I was asked for an apple.',
  actions: [action],
  origin: 'policy',
  settled: true,
  timings: { observe: 1, decide: 1, queue: 0, perform: 1, settle: 1 },
  version: 3,
  tokens: { logprobs: new Float32Array([-1]), entropies: new Float32Array([1]), ids: new Int32Array([7]) },
  rejected: [{ text: '?', reason: 'no action' }],
  ...o,
});
const ended = (o: Partial<Trajectory> = {}): EpisodeResult => ({
  broken: false,
  trajectory: {
    id: id<RolloutId>('r1'),
    task: id<TaskId>('t#1'),
    family: task().family,
    instruction: 'Click Apple',
    provenance: { kind: 'rollout' },
    steps: [step(0, click), step(1, finished)],
    outcome: failure,
    cap: 5,
    startedAt: 1,
    endedAt: 2,
    resetMs: 3,
    verifyMs: 4,
    ...o,
  },
});
const sibling = (n: number): Task => task({ id: id<TaskId>(`t#1+${n}`), instruction: `Click ${n}` });

interface Asked {
  readonly result: EpisodeResult;
  readonly asked: readonly string[];
}
async function look(
  result: EpisodeResult,
  o: {
    siblings?: number;
    /** By number; default: none holds. */
    verdict?: (n: number) => Outcome | StudioError | 'hangs';
    withinMs?: number;
    signal?: AbortSignal;
    off?: true;
  } = {},
): Promise<Asked> {
  const clock = new VirtualClock(),
    asked: string[] = [],
    likely = Array.from({ length: o.siblings ?? 3 }, (_, k) => sibling(k + 1));
  const tasks: TaskEngine = {
    ...fakeTasks(clock),
    async verify(t, _desktop, last, signal) {
      asked.push(t.id);
      expect(last).toEqual(finished);
      const said = o.verdict?.(Number(/\d+$/.exec(t.id)![0])) ?? failure;
      await new Promise<void>((done, fail) => {
        signal.addEventListener('abort', () => fail(new StudioError('cancelled', 'stopped', '')));
        if (said !== 'hangs') clock.after(30, done);
      });
      if (said instanceof StudioError) throw said;
      return said as Extract<Outcome, { kind: 'success' | 'failure' }>;
    },
  };
  const deps: EpisodeDeps = {
    policy: scriptedPolicy(clock, [[finished]]),
    tasks,
    frames: fakeFrames(clock),
    clock,
    hindsight: o.off
      ? undefined
      : {
          siblings: (_t, report) => {
            expect(report).toEqual(failure.kind === 'failure' ? failure.report : undefined);
            return { all: likely.length + 2, likely };
          },
          withinMs: o.withinMs ?? 3000,
        },
  };
  const done = lookBack(deps, new FakeDesktop('d', clock), {
    task: task(),
    ended: result,
    signal: o.signal ?? new AbortController().signal,
  });
  let over = false;
  const settled = done.finally(() => {
    over = true;
  });
  while (!over) {
    await Promise.resolve();
    await clock.advance(10);
  }
  return { result: await settled, asked };
}
const second = (n: number): Outcome => (n === 2 ? success : failure);

describe('looking back on a failure', () => {
  it('the first sibling that holds is what was done: the same screens and actions, and nothing that was sampled', async () => {
    const { result, asked } = await look(ended(), { verdict: second });
    expect(asked).toEqual(['t#1+1', 't#1+2']);
    expect(result.broken).toBe(false);
    expect(result.trajectory).toEqual({
      ...ended().trajectory,
      hindsight: { siblings: 5, asked: 2, held: true, ms: expect.any(Number) as number },
    });
    expect(result.trajectory.hindsight!.ms).toBeGreaterThanOrEqual(60);
    expect(result.relabelled).toMatchObject({
      id: 'hindsight/r1',
      task: 't#1+2',
      instruction: 'Click 2',
      provenance: { kind: 'hindsight', of: 'r1', task: 't#1', instruction: 'Click Apple' },
      outcome: { kind: 'success', reward: 1, truncated: false },
    });
    expect(result.relabelled!.group).toBeUndefined();
    expect(result.relabelled!.hindsight).toBeUndefined();
    const kept = ended().trajectory.steps.map(
      ({ tokens: _t, rejected: _r, version: _v, thought: _w, ...rest }) => rest,
    );
    expect(result.relabelled!.steps).toEqual(kept);
  });

  it('what was acted out again in a branch is a whole of its own', async () => {
    const { result } = await look(ended({ branch: { of: id<RolloutId>('r0'), step: 1 } }), { verdict: second });
    expect(result.relabelled).toBeDefined();
    expect(result.relabelled!.branch).toBeUndefined();
  });

  it.each<[string, Partial<Trajectory>]>([
    ['a success', { outcome: success }],
    ['one that its cap ended', { outcome: { ...failure, truncated: true } as Outcome }],
    ['one whose last answer was no action', { steps: [step(0, click), step(1, finished, { actions: [] })] }],
    ['one that its programs ended', { steps: [step(0, click)] }],
    ['one that gave up', { steps: [step(0, { type: 'fail' })] }],
    ['one that a person helped', { steps: [step(0, click, { origin: 'human' }), step(1, finished)] }],
    ['an episode of an evaluation', { provenance: { kind: 'probe' } }],
    ['an error', { outcome: { kind: 'error', error: new StudioError('timeout', 'late', '').error } }],
  ])('%s is not looked back on', async (_, o) => {
    const { result, asked } = await look(ended(o), { verdict: () => success });
    expect(asked).toEqual([]);
    expect(result).toEqual(ended(o));
  });

  it('nor is anything where it is off, or on a broken desktop', async () => {
    expect((await look(ended(), { off: true, verdict: () => success })).asked).toEqual([]);
    expect((await look({ ...ended(), broken: true }, { verdict: () => success })).asked).toEqual([]);
  });

  it('an error of a verifier is no success and no error of the episode: the next one is asked', async () => {
    const { result, asked } = await look(ended(), {
      verdict: (n) => (n === 1 ? new StudioError('task.verify', 'a fault', '') : second(n)),
    });
    expect(asked.length).toBe(2);
    expect(result.trajectory.outcome).toEqual(failure);
    expect(result.relabelled?.instruction).toBe('Click 2');
    expect(result.broken).toBe(false);
  });

  it('a desktop that is lost meanwhile is replaced, and nothing more is asked of it', async () => {
    const { result, asked } = await look(ended(), { verdict: () => new StudioError('desktop.lost', 'it died', '') });
    expect(asked.length).toBe(1);
    expect(result).toMatchObject({ broken: true, trajectory: { outcome: failure } });
    expect(result.relabelled).toBeUndefined();
  });

  it('asks eight at most, and no longer than it may', async () => {
    expect((await look(ended(), { siblings: 20 })).asked.length).toBe(8);
    const late = await look(ended(), { siblings: 20, withinMs: 100 });
    expect(late.asked.length).toBe(4);
    expect(late.result.broken).toBe(false);
    const hung = await look(ended(), { verdict: () => 'hangs', withinMs: 100 });
    expect(hung.asked.length).toBe(1);
    expect(hung.result.trajectory.hindsight!.ms).toBeLessThan(1000);
    expect(hung.result.relabelled).toBeUndefined();
    expect(hung.result.trajectory.hindsight!.held).toBe(false);
    // A deterministic run has no clock.
    expect((await look(ended(), { siblings: 8, withinMs: Infinity })).asked.length).toBe(8);
  });

  it('a rollout that is stopped meanwhile stays the failure that it was', async () => {
    const stop = new AbortController();
    stop.abort();
    const { result, asked } = await look(ended(), { verdict: () => success, signal: stop.signal });
    expect(asked).toEqual([]);
    expect(result.trajectory.outcome).toEqual(failure);
  });
});
