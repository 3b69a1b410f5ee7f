import { describe, expect, it } from 'vitest';
import type { Action, Step } from '../../../runtime/domain/index.js';
import { MODEL_FAULTS, StudioError } from '../../../runtime/domain/index.js';
import type { ProgressChecks, EpisodePhase, EpisodeResult, StepAbout } from '../../../runtime/rollout/types.js';
import type { SettleOptions } from '../../../runtime/cluster/types.js';
import { AGAIN_MS } from '../../../runtime/rollout/rest.js';
import type { FrameStore } from '../../../runtime/data/types.js';
import { runEpisode } from '../../../runtime/rollout/episode.js';
import { FakeDesktop, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const click: Action = { type: 'click', at: { x: 1, y: 2 } };
const done: Action = { type: 'finished' };
const invalid = new StudioError('policy.invalid', 'not an action', 'x', {
  details: {
    text: 'Hmm',
    version: 3,
    tokens: { logprobs: new Float32Array([-2]), entropies: new Float32Array([0.5]) },
    labels: ['Hmm'],
  },
});

async function play(
  script: readonly (readonly Action[] | StudioError)[],
  o: {
    cap?: number;
    tasks?: Parameters<typeof fakeTasks>[1];
    desktop?: (d: FakeDesktop) => void;
    abortAt?: number;
    desktopTimeoutMs?: number;
    settle?: SettleOptions;
    timeoutMs?: number;
    storeMs?: number;
    /** What is held of its screens, and when. */
    held?: string[];
    probe?: boolean;
    progressChecks?: ProgressChecks;
  } = {},
) {
  const clock = new VirtualClock();
  const desktop = new FakeDesktop('d', clock);
  o.desktop?.(desktop);
  const tasks = fakeTasks(clock, o.tasks),
    frames = fakeFrames(clock, o.storeMs),
    policy = scriptedPolicy(clock, script);
  const steps: Step[] = [],
    abouts: (StepAbout | undefined)[] = [],
    phases: EpisodePhase[] = [];
  const abort = new AbortController();
  let result: EpisodeResult | undefined;
  const run = runEpisode(
    {
      policy,
      tasks,
      frames: o.held ? holding(frames, o.held) : frames,
      clock,
      ...(o.timeoutMs ? { timeoutMs: o.timeoutMs } : {}),
      ...(o.progressChecks ? { progressChecks: o.progressChecks } : {}),
      ...(o.desktopTimeoutMs ? { desktopTimeoutMs: o.desktopTimeoutMs } : {}),
      ...(o.settle ? { settle: o.settle } : {}),
    },
    { desktop, resetMs: 100, release: () => undefined },
    {
      order: order(1, { cap: o.cap ?? 5 }),
      task: task(),
      provenance: { kind: o.probe ? 'probe' : 'rollout' },
      sampling: { greedy: false, temperature: 1, seed: 7 },
      signal: abort.signal,
      onStep: (s, _alternatives, about) => {
        steps.push(s);
        abouts.push(about);
      },
      onPhase: (p) => phases.push(p),
    },
  ).then((r) => {
    result = r;
  });
  if (o.abortAt !== undefined) {
    await clock.advance(o.abortAt);
    abort.abort();
  }
  await clock.until(() => result !== undefined);
  await run;
  return { ...result!, t: result!.trajectory, steps, abouts, phases, desktop, tasks, frames, policy, clock };
}

const holding = (frames: FrameStore, said: string[]): FrameStore => ({
  put: () => Promise.reject(new Error('this one may be removed before its step is recorded')),
  get: (ref) => frames.get(ref),
  read: (ref) => frames.read(ref),
  hold: () => ({
    put: (frame) => {
      said.push('put');
      return frames.put(frame);
    },
    end: () => void said.push('end'),
  }),
});

describe('screens of an episode', () => {
  it.each([
    ['ends', [[click], [done]], ['put', 'put', 'end']],
    ['runs into its cap', [[click], [click], [click], [click], [click]], [...Array<string>(6).fill('put'), 'end']],
    ['fails', [new StudioError('policy.lost', 'gone', 'x')], ['put', 'end']],
  ] as const)('are held until it %s', async (_, script, expected) => {
    const held: string[] = [];
    await play(script, { held });
    expect(held).toEqual(expected);
  });
});

describe('a verifier that is asked mid-episode', () => {
  const said = (...answers: readonly (number | undefined)[]): (() => number | undefined) => {
    const left = [...answers];
    return () => left.shift();
  };
  it('is asked after each step that does not end the rollout; what it said is kept with the step', async () => {
    const { t, phases } = await play([[click], [click], [done]], {
      tasks: { progress: { held: said(0.5, 1) } },
      progressChecks: { withinMs: 100 },
    });
    expect(t.steps.map((s) => s.progress)).toEqual([{ held: 0.5, ms: 20 }, { held: 1, ms: 20 }, undefined]);
    expect(t.outcome.kind).toBe('success');
    expect(phases.filter((p) => p === 'verify')).toHaveLength(3);
  });
  it('is not asked again where it took too long or had no answer, nor of probes, nor where nobody wants to know', async () => {
    const steps = [[click], [click], [done]],
      progressChecks = { withinMs: 100 },
      progressOf = async (o: Parameters<typeof play>[1]): Promise<(number | undefined)[]> =>
        (await play(steps, o)).t.steps.map((s) => s.progress?.held);
    expect(await progressOf({ tasks: { progress: { held: said(0.5, 1), ms: 300 } }, progressChecks })).toEqual([
      0.5,
      undefined,
      undefined,
    ]);
    expect(await progressOf({ tasks: { progress: { held: said(undefined, 1) } }, progressChecks })).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const never = [undefined, undefined, undefined];
    expect(await progressOf({ tasks: { progress: { held: said(0.5, 1) } }, progressChecks, probe: true })).toEqual(
      never,
    );
    expect(await progressOf({ tasks: { progress: { held: said(0.5, 1) } } })).toEqual(never);
    expect(await progressOf({ progressChecks })).toEqual(never);
  });
});

describe('episode', () => {
  it("a desktop that the policy's programs broke is its failure; one that died by itself, or before it acted, an error", async () => {
    const dies = (call: string, why: string | undefined) => (d: FakeDesktop) => {
      d.fail = { call, error: new StudioError('desktop.lost', 'gone', 'x') };
      Object.assign(d, { blame: () => Promise.resolve(why) });
    };
    const broken = await play([[click]], { desktop: dies('settle', 'used up the memory') });
    // The settle after set-up came first: nothing of it is the policy's.
    expect(broken.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
    const policys = await play([[click]], { desktop: dies('perform', 'used up the memory') });
    expect(policys.t.outcome).toMatchObject({
      kind: 'failure',
      reward: 0,
      report: { checks: [{ found: 'used up the memory', score: 0 }] },
    });
    expect(policys.broken).toBe(true);
    const itself = await play([[click]], { desktop: dies('perform', undefined) });
    expect(itself.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
  });

  it('a desktop that its programs keep busy until the time is up is the failure of the policy; a slow one is not', async () => {
    const asked: unknown[] = [],
      slow = (call: string, why: string | undefined) => (d: FakeDesktop) => {
        d.hang = call;
        Object.assign(d, {
          blame: (how: unknown) => {
            asked.push(how);
            return Promise.resolve(why);
          },
        });
      };
    const limits = { timeoutMs: 4000, desktopTimeoutMs: 30_000 };
    const busy = await play([[click]], { ...limits, desktop: slow('perform', 'kept it busy') });
    expect(busy.t.outcome).toMatchObject({
      kind: 'failure',
      reward: 0,
      report: { checks: [{ found: 'kept it busy' }] },
    });
    expect(busy.broken).toBe(true);
    const machine = await play([[click]], { ...limits, desktop: slow('perform', undefined) });
    expect(machine.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'timeout' } });
    // Before the policy acted nothing is its doing; the error says what it was all the same.
    const before = await play([[click]], { ...limits, desktop: slow('observe', 'its programs kept it busy') });
    expect(before.t.outcome).toMatchObject({
      kind: 'error',
      error: { kind: 'timeout', message: expect.stringContaining('its programs kept it busy') as string },
    });
    expect(asked).toEqual(['late', 'late', 'late']);
  });

  it('acts until the policy says finished, then verifies with that action', async () => {
    const r = await play([[click], [click], [done]]);
    expect(r.t.outcome).toEqual({ kind: 'success', reward: 1, truncated: false });
    expect(r.t.steps.map((s) => s.actions)).toEqual([[click], [click], [done]]);
    expect(r.desktop.performed).toEqual([click, click]);
    expect(r.tasks.verified).toEqual([done]);
    expect(r.steps).toEqual(r.t.steps);
    expect(r.frames.stored).toBe(3);
    expect(r.policy.closed).toBe(1);
    expect(r.broken).toBe(false);
    expect(r.phases).toEqual([
      'setup',
      'observe',
      'decide',
      'perform',
      'settle',
      'observe',
      'decide',
      'perform',
      'settle',
      'observe',
      'decide',
      'verify',
    ]);
  });

  it('decides on the settled screen: setup, then the effect of every action, is waited for', async () => {
    const r = await play([[click], [done]]);
    expect(r.desktop.log).toEqual(['settle', 'observe', 'perform', 'settle', 'observe', 'settle']);
    expect(r.t.steps.map((s) => s.frame.hash)).toEqual(['frame0', 'frame1']);
  });

  it('before a task is judged, what a terminal may still pass on is waited for, longer than after an action', async () => {
    const asked: (SettleOptions | undefined)[] = [];
    await play([[click], [done]], {
      desktop: (d) => {
        const settle = d.settle.bind(d);
        d.settle = (o?: SettleOptions) => {
          asked.push(o);
          return settle();
        };
      },
    });
    expect(asked.map((o) => o?.terminalHoldMs)).toEqual([undefined, undefined, AGAIN_MS]);
  });

  it('measures each part of a step and carries version and tokens', async () => {
    const r = await play([[click], [done]]);
    expect(r.t.steps[0]!.timings).toEqual({ observe: 1, decide: 9, queue: 1, perform: 5, settle: 20 });
    expect(r.t.steps[0]).toMatchObject({ index: 0, version: 3, origin: 'policy', settled: true });
    expect(r.t.steps[0]!.tokens!.logprobs[0]).toBe(-1);
    expect(r.t).toMatchObject({
      resetMs: 100 + 70,
      verifyMs: 20 + 30,
      cap: 5,
      provenance: { kind: 'rollout' },
      group: 'g1',
    });
    expect(r.t.endedAt - r.t.startedAt).toBe(70 + (1 + 10 + 5 + 20) + (1 + 10) + (20 + 30));
  });

  it('a prompt that outgrows the context of its model ends it as its cap would; one that never had room is an error', async () => {
    const outgrown = new StudioError('policy.remote', 'the maximum context length is 900', 'x', {
        details: MODEL_FAULTS.outgrown,
      }),
      failure = { kind: 'failure', reward: 0.5, truncated: false, report: { checks: [] } } as const,
      r = await play([[click], [click], outgrown], { tasks: { verdict: () => failure } });
    expect(r.t.outcome).toMatchObject({
      kind: 'failure',
      reward: 0.5,
      truncated: true,
      report: { checks: [{ what: "the model's context", score: 0 }] },
    });
    expect([r.t.steps.length, r.t.last?.hash === undefined, r.tasks.verified]).toEqual([2, false, [click]]);
    expect((await play([[click], outgrown])).t.outcome).toEqual({ kind: 'success', reward: 1, truncated: true });
    const never = await play([outgrown]);
    expect(never.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'policy.remote' } });
  });

  it('records of an answer what was done: nothing behind an action that ends the episode', async () => {
    const { t } = await play([[click, done, click, done]]);
    expect(t.steps.map((s) => s.actions)).toEqual([[click, done]]);
  });

  it('a cap of n allows n model turns, then verifies and says truncated', async () => {
    const r = await play([[click]], {
      cap: 3,
      tasks: { verdict: () => ({ kind: 'failure', reward: 0, truncated: false }) },
    });
    expect(r.t.steps.length).toBe(3);
    expect(r.desktop.performed.length).toBe(3);
    expect(r.t.outcome).toEqual({ kind: 'failure', reward: 0, truncated: true });
    expect(r.tasks.verified).toEqual([click]);
  });

  it('finishing on the last allowed turn is not truncated', async () => {
    expect((await play([[click], [done]], { cap: 2 })).t.outcome).toMatchObject({ truncated: false });
  });

  it('performs several actions of one answer with a settle after each, and none after a terminal one', async () => {
    const r = await play([
      [click, { type: 'type', text: 'x' }],
      [done, click],
    ]);
    expect(r.desktop.log).toEqual([
      ...['settle', 'observe', 'perform', 'settle', 'perform', 'settle', 'observe'],
      'settle', // before it is judged
    ]);
    expect(r.t.steps[0]!.timings).toMatchObject({ perform: 10, settle: 40 });
    expect(r.desktop.performed.length).toBe(2);
  });

  it('fail ends the episode too and is shown to the verifier', async () => {
    const r = await play([[{ type: 'fail', reason: 'impossible' }]]);
    expect(r.tasks.verified).toEqual([{ type: 'fail', reason: 'impossible' }]);
  });

  it('asks again when one answer is not an action', async () => {
    const r = await play([[click], invalid, [done]]);
    expect(r.t.outcome.kind).toBe('success');
    expect(r.t.steps.length).toBe(2);
    expect(r.t.steps.map((s) => s.rejected?.map((a) => [a.text, a.reason, a.version]))).toEqual([
      undefined,
      [['Hmm', 'not an action', 3]],
    ]);
    expect(r.abouts.map((a) => a?.rejectedLabels)).toEqual([undefined, [['Hmm']]]);
  });

  it('a task that ends by itself ends the episode before the policy is asked again', async () => {
    let asked = 0;
    const r = await play([[click], [click, click], [click], [done]], { tasks: { over: () => ++asked === 2 } });
    expect(r.t.outcome).toMatchObject({ kind: 'success', truncated: false });
    // The second of two actions of a step is not performed either.
    expect([r.desktop.performed.length, r.t.steps.length, asked]).toEqual([2, 2, 2]);
    expect(r.tasks.verified).toEqual([click]);
  });

  it('an instruction that is known only once the task is set up is what the policy is told and what is recorded', async () => {
    const r = await play([[done]], { tasks: { instruction: 'Click on the "Yes" button.' } });
    expect(r.t.instruction).toBe('Click on the "Yes" button.');
    expect(r.policy.opened[0]).toMatchObject({ instruction: 'Click on the "Yes" button.' });
  });

  it("two answers in a row that are not actions are the policy's failure, with the answer kept for training", async () => {
    const r = await play([[click], invalid, invalid]);
    expect(r.t.outcome).toMatchObject({ kind: 'failure', reward: 0, truncated: false });
    expect(r.tasks.verified).toEqual([]);
    expect(r.t.steps.length).toBe(2);
    expect(r.t.steps[1]).toMatchObject({ actions: [], thought: 'Hmm', version: 3 });
    expect(r.t.steps[1]!.tokens!.logprobs[0]).toBe(-2);
    expect(r.t.steps[1]!.rejected).toHaveLength(1);
    expect(r.abouts[1]).toMatchObject({ labels: ['Hmm'], rejectedLabels: [['Hmm']] });
    expect(r.broken).toBe(false);
  });

  it("what no desktop can do is the policy's failure and no fault, with the step kept for training", async () => {
    const error = new StudioError('policy.invalid', 'There is no key called "t\')".', 'x'),
      r = await play([[click], [{ type: 'hotkey', keys: ["t')"] }, click], [done]], {
        desktop: (d: FakeDesktop) => {
          d.fail = { call: 'perform', error, after: 1 };
        },
      });
    expect(r.t.outcome).toMatchObject({ kind: 'failure', reward: 0, truncated: false });
    expect(r.tasks.verified).toEqual([]);
    expect(r.t.steps.map((x) => x.actions.length)).toEqual([1, 2]);
    expect(r.broken).toBe(false);
  });

  it.each([
    ['a setup fault', { tasks: { setup: new StudioError('task.setup', 'no', 'x') } }, 'task.setup', false],
    ['a verifier fault', { tasks: { verify: new StudioError('task.verify', 'no', 'x') } }, 'task.verify', false],
    [
      'a lost desktop',
      {
        desktop: (d: FakeDesktop) => {
          d.fail = { call: 'perform', error: new StudioError('desktop.lost', 'gone', 'x'), after: 1 };
        },
      },
      'desktop.lost',
      true,
    ],
    [
      'a desktop that hangs',
      {
        desktop: (d: FakeDesktop) => {
          d.hang = 'observe';
        },
        desktopTimeoutMs: 500,
      },
      'desktop.lost',
      true,
    ],
  ] as const)('%s is an error without a reward', async (_, o, kind, broken) => {
    const r = await play([[click], [click], [done]], o);
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind } });
    expect('reward' in r.t.outcome).toBe(false);
    expect(r.broken).toBe(broken);
  });

  it('a desktop that is told to wait, or may take long to come to rest, does so before it counts as silent', async () => {
    const wait = (ms: number): Action => ({ type: 'wait', ms });
    const slow = (late: number) => (d: FakeDesktop) => {
      d.perform = async (a) => {
        await d.sleep((a.type === 'wait' ? a.ms! : 0) + late);
        d.performed.push(a);
      };
      d.settle = async (o?: SettleOptions) => {
        await d.sleep((o?.maxMs ?? 0) + late);
        return { settled: false, ms: 0, detector: 'exact' };
      };
    };
    const o = { desktopTimeoutMs: 30_000, settle: { maxMs: 45_000 } };
    const waited = await play([[wait(60_000)], [done]], { ...o, desktop: slow(29_000) });
    expect(waited.t.outcome.kind).toBe('success');
    expect(waited.desktop.performed).toEqual([wait(60_000)]);
    const hung = await play([[wait(60_000)], [done]], {
      ...o,
      desktop: (d) => {
        d.hang = 'perform';
      },
    });
    expect(hung.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
    expect(hung.t.outcome).toMatchObject({ error: { message: expect.stringContaining('for 90000 ms') as string } });
  });

  it('a desktop that hangs while its task is set up is found long before the set-up gives up', async () => {
    const tasks = { setupMs: 120_000 },
      hung = await play([[done]], {
        tasks,
        desktop: (d) => {
          d.hang = 'answers';
        },
      });
    expect(hung.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
    expect(hung.broken).toBe(true);
    // Asked after 10 s, given up 30 s later; 5 s are for the calls that are still under way.
    expect(hung.t.endedAt - hung.t.startedAt).toBe(45_000);
    const slow = await play([[done]], { tasks });
    expect(slow.t.outcome.kind).toBe('success');
    expect(slow.clock.pending).toBe(0);
    const failed = await play([[done]], { tasks: { ...tasks, setup: new StudioError('task.setup', 'no', 'x') } });
    expect(failed.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'task.setup' } });
    expect(failed.clock.pending).toBe(0);
  });

  it('a lost policy is an error and leaves the desktop whole', async () => {
    const r = await play([[click], new StudioError('policy.lost', 'gone', 'x')]);
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'policy.lost' } });
    expect(r.t.steps.length).toBe(1);
    expect(r.broken).toBe(false);
  });

  it('stops at once when it is aborted, wherever it is, and waits for the desktop to be idle', async () => {
    for (let at = 0; at <= 140; at += 3) {
      const r = await play([[click], [click], [done]], { abortAt: at });
      expect(r.t.outcome, `aborted at ${at}`).toMatchObject({ kind: 'error', error: { kind: 'cancelled' } });
      expect(r.desktop.active, `aborted at ${at}`).toBe(0);
      expect(r.broken).toBe(false);
      expect(r.t.endedAt - r.t.startedAt).toBeLessThanOrEqual(at + 60);
    }
  });

  it('gives a desktop up that is still busy long after an abort', async () => {
    const r = await play([[click]], {
      desktop: (d) => {
        d.hang = 'perform';
      },
      abortAt: 100,
    });
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'cancelled' } });
    expect(r.broken).toBe(true);
  });

  it('takes no longer than its time limit', async () => {
    const r = await play([[click]], { cap: 1000, timeoutMs: 400 });
    expect(r.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'timeout' } });
    expect(r.t.endedAt - r.t.startedAt).toBeLessThanOrEqual(460);
    expect(r.broken).toBe(false);
    expect((await play([[done]], { timeoutMs: 400 })).clock.pending).toBe(0);
  });

  it('waits for room on the disk as long as it takes, of the steps and of the last screen', async () => {
    const r = await play([[click], [click]], { cap: 2, timeoutMs: 400, storeMs: 60_000 });
    expect(r.t.outcome).toMatchObject({ kind: 'success', truncated: true });
    expect([r.t.steps.length, r.frames.stored, r.t.last !== undefined]).toEqual([2, 3, true]);
    // It can be stopped meanwhile.
    const stopped = await play([[click]], { timeoutMs: 400, storeMs: 60_000, abortAt: 1000 });
    expect(stopped.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'cancelled' } });
    expect(stopped.t.endedAt - stopped.t.startedAt).toBeLessThan(60_000);
  });

  it('does not count the time in which the connection to its desktop was cut', async () => {
    let cut = 0;
    const r = await play([[click], [done]], {
      timeoutMs: 400,
      desktop: (d) => {
        const perform = d.perform.bind(d);
        d.perform = async (a) => {
          cut += 900;
          await d.sleep(900);
          return perform(a);
        };
        Object.assign(d, { stalledMs: () => cut });
      },
    });
    expect(r.t.outcome.kind).toBe('success');
    expect(r.t.endedAt - r.t.startedAt).toBeGreaterThan(900);
  });

  it('a probe belongs to no group', async () => {
    const r = await play([[done]], { probe: true });
    expect(r.t.provenance).toEqual({ kind: 'probe' });
    expect(r.t.group).toBeUndefined();
  });
});
