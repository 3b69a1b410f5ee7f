import { describe, expect, it } from 'vitest';
import { curateGroup } from '../../../runtime/data/curation/curateGroup.js';
import { headOf } from '../../../runtime/data/events.js';
import {
  StudioError,
  assisted,
  random,
  type Action,
  type FrameRef,
  type GroupId,
  type Step,
} from '../../../runtime/domain/index.js';
import type { EpisodeResult } from '../../../runtime/rollout/types.js';
import { runEpisode } from '../../../runtime/rollout/episode.js';
import { Steering, type HumanStep, type Person } from '../../../runtime/rollout/steering.js';
import { dataConfig, failure as lost } from '../../helpers/data/manager.js';
import { FakeDesktop, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const click: Action = { type: 'click', at: { x: 1, y: 2 } },
  other: Action = { type: 'click', at: { x: 9, y: 9 } },
  done: Action = { type: 'finished' };
const frame: FrameRef = { width: 640, height: 400, hash: 'seen' };
const step = (a: Action): HumanStep => ({
  frame,
  actions: [a],
  settled: true,
  timings: { observe: 0, decide: 0, queue: 0, perform: 7, settle: 0 },
});

/** Plays a rollout that `person` may steer; what the policy was told of others' actions and took back is noted. */
async function play(
  person: (clock: VirtualClock, steering: Steering) => Person,
  o: { cap?: number; timeoutMs?: number; abortAt?: number; script?: readonly (readonly Action[] | StudioError)[] } = {},
) {
  const clock = new VirtualClock(),
    desktop = new FakeDesktop('d', clock),
    tasks = fakeTasks(clock),
    steering = new Steering(),
    inner = scriptedPolicy(clock, o.script ?? [[click]]),
    told: string[] = [],
    steps: Step[] = [],
    abort = new AbortController();
  const policy = {
    open: (s: Parameters<typeof inner.open>[0]) => ({
      ...inner.open(s),
      acted: (a: readonly Action[]) => {
        told.push(`acted ${a[0]!.type}`);
      },
      retract: () => {
        told.push('retract');
      },
    }),
  };
  steering.person = person(clock, steering);
  let result: EpisodeResult | undefined;
  const run = runEpisode(
    { policy, tasks, frames: fakeFrames(clock), clock, ...(o.timeoutMs ? { timeoutMs: o.timeoutMs } : {}) },
    { desktop, resetMs: 0, release: () => undefined },
    {
      order: order(1, { cap: o.cap ?? 3 }),
      task: task(),
      provenance: { kind: 'rollout' },
      sampling: { greedy: false, temperature: 1, seed: 7 },
      signal: abort.signal,
      steering,
      onStep: (s) => steps.push(s),
      onPhase: () => undefined,
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
  return { t: result!.trajectory, broken: result!.broken, steps, told, tasks, desktop };
}
const origins = (t: { readonly steps: readonly Step[] }): string[] => t.steps.map((s) => `${s.index} ${s.origin}`);

describe('a rollout with a person at the wheel', () => {
  it('waits, takes their steps without using up its cap, and goes on by itself', async () => {
    const r = await play((_, s) => ({
      act: (t) => {
        expect(t).toMatchObject({ index: 0, left: 3 });
        t.record(step(other));
        t.record(step(other));
        s.person = undefined;
        return Promise.resolve({ next: 'policy' });
      },
      consent: () => Promise.reject(new Error('not asked')),
    }));
    expect(origins(r.t)).toEqual(['0 human', '1 human', '2 policy', '3 policy', '4 policy']);
    expect(r.steps).toEqual(r.t.steps);
    expect(r.t.steps[0]).not.toHaveProperty('version');
    expect(r.t.steps[0]).not.toHaveProperty('tokens');
    expect(r.told).toEqual(['acted click', 'acted click']);
    expect(r.t.outcome).toMatchObject({ kind: 'success', truncated: true });
  });

  it("proposes: an accepted decision is the policy's step with its tokens, a refused one leaves its history", async () => {
    let asked = 0;
    const r = await play(() => ({
      act: (t) => {
        if (asked === 2) t.record(step(other));
        return Promise.resolve(asked === 3 ? { next: 'end', last: done } : { next: 'propose' });
      },
      consent: (p) => {
        expect(p.decision.actions).toEqual([click]);
        return Promise.resolve(++asked !== 2);
      },
    }));
    expect(origins(r.t)).toEqual(['0 policy', '1 human', '2 policy']);
    expect(r.t.steps[0]!.tokens!.logprobs[0]).toBe(-1);
    expect(r.told).toEqual(['retract', 'acted click']);
    expect(r.desktop.performed).toEqual([click, click]);
    expect(r.tasks.verified).toEqual([done]);
    expect(r.t.outcome).toMatchObject({ kind: 'success', truncated: false });
  });

  it('a proposal that is accepted after others were declined on the same screen is no sample of the policy', async () => {
    let asked = 0;
    const r = await play(() => ({
      act: (t) => {
        if (asked === 4) t.record(step(other));
        return Promise.resolve(asked === 7 ? { next: 'end', last: done } : { next: 'propose' });
      },
      // Two declined before the first step; one before the person acts instead, which is another screen.
      // And one that was never shown.
      consent: () => Promise.resolve(++asked === 6 ? 'unseen' : [3, 5, 7].includes(asked)),
    }));
    expect(r.t.steps.map((s) => [s.origin, s.declined])).toEqual([
      ['policy', 2],
      ['human', undefined],
      ['policy', undefined],
      ['policy', undefined],
    ]);
    expect(assisted(r.t)).toBe(true);
    const alone = { ...r.t, steps: r.t.steps.slice(0, 1), group: 'g' as GroupId },
      { human } = headOf(alone),
      formed = curateGroup([alone, { ...alone, outcome: lost }], () => undefined, dataConfig(), random(1));
    expect(human).toBe(1);
    // Nothing of it is left to train.
    expect(formed).toMatchObject({ kind: 'dropped', reason: 'masked' });
  });

  it('its time limit stands still while a person holds it, and only then', async () => {
    const wait = (ms: number) =>
      play(
        (clock, s) => ({
          act: async () => {
            await clock.sleep(ms);
            s.person = undefined;
            return { next: 'policy' };
          },
          consent: () => Promise.resolve(true),
        }),
        { timeoutMs: 1000 },
      );
    expect((await wait(600_000)).t.outcome.kind).toBe('success');
    const late = await play(
      (_, s) => ({
        act: () => {
          s.person = undefined;
          return Promise.resolve({ next: 'policy' });
        },
        consent: () => Promise.resolve(true),
      }),
      { timeoutMs: 100 },
    );
    expect(late.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'timeout' } });
  });

  it("a stop ends it at once; a desktop that is lost in a person's hands is an error of the desktop", async () => {
    const stopped = await play(
      () => ({
        act: (t) =>
          new Promise((resolve) => {
            t.signal.addEventListener('abort', () => {
              resolve({ next: 'policy' });
            });
          }),
        consent: () => Promise.resolve(true),
      }),
      { abortAt: 500 },
    );
    expect(stopped.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'cancelled' } });
    expect(stopped.broken).toBe(false);
    const lost = await play(() => ({
      act: () => Promise.reject(new StudioError('desktop.lost', 'gone', 'wait')),
      consent: () => Promise.resolve(true),
    }));
    expect(lost.t.outcome).toMatchObject({ kind: 'error', error: { kind: 'desktop.lost' } });
    expect(lost.broken).toBe(true);
  });

  it('an answer that is no action is proposed without one; refused, the rollout goes on', async () => {
    const invalid = new StudioError('policy.invalid', 'not an action', 'x', { details: { text: 'Hmm', version: 3 } });
    let refused = false;
    const r = await play(
      () => ({
        act: () => Promise.resolve(refused ? { next: 'end', last: done } : { next: 'propose' }),
        consent: (p) => {
          expect(p.decision).toMatchObject({ actions: [], thought: 'Hmm' });
          refused = true;
          return Promise.resolve(false);
        },
      }),
      { script: [invalid] },
    );
    expect(r.t).toMatchObject({ steps: [], outcome: { kind: 'success' } });
    // Its prompt and tokens are not recorded, so the session forgets them.
    expect(r.told).toEqual(['retract']);
  });
});
