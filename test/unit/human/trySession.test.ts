import { describe, expect, it } from 'vitest';
import { StudioError, id, type Action, type GroupId, type RolloutId } from '../../../runtime/domain/index.js';
import type { Lease } from '../../../runtime/cluster/types.js';
import type { PoolWish } from '../../../runtime/data/types.js';
import { ABANDON_MS } from '../../../runtime/human/controlSession.js';
import { TryRollout } from '../../../runtime/human/tryRollout.js';
import { IDLE_MS, TrySession } from '../../../runtime/human/trySession.js';
import type { InputEvent, Trial } from '../../../runtime/protocol/types.js';
import { frames, hosted, Screen } from '../../helpers/human/screen.js';
import { fakeTasks, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const clicks: Action[] = [1, 2, 3].map((x) => ({ type: 'click', at: { x, y: 1 } }));
const script: (readonly Action[] | StudioError)[] = [...clicks.map((c) => [c]), [{ type: 'finished' }]];
const press = (at: number): InputEvent[] => [
  { type: 'button', at, x: 5, y: 5, button: 'left', down: true },
  { type: 'button', at: at + 50, x: 5, y: 5, button: 'left', down: false },
];

/** A policy that is tried on a fake desktop; `verified`: a verifier judges. */
function trying(
  o: {
    readonly verified?: boolean;
    readonly heldOut?: boolean;
    readonly mode?: 'policy' | 'step';
    readonly cap?: number;
    readonly plays?: readonly (readonly Action[] | StudioError)[];
    readonly verdict?: 'success' | 'failure';
    /** What keeping it meets, once each. */
    readonly fails?: StudioError[];
    readonly annotating?: StudioError;
  } = {},
) {
  const clock = new VirtualClock(),
    desktop = new Screen(clock),
    host = hosted(clock),
    kept: string[] = [],
    policy = scriptedPolicy(clock, o.plays ?? script),
    tasks = fakeTasks(clock, {
      verdict: () =>
        o.verdict === 'failure'
          ? { kind: 'failure', reward: 0, truncated: false }
          : { kind: 'success', reward: 1, truncated: false },
    });
  let closed = 0,
    forgotten = 0;
  const rollout = new TryRollout({
    episode: { policy, tasks, frames, clock, settle: {} },
    lease: { desktop, resetMs: 1, release: () => undefined } as unknown as Lease,
    settle: {},
    request: {
      task: task(),
      provenance: { kind: 'imported', from: 'a try' },
      order: {
        rollout: id<RolloutId>('try/t1/1'),
        group: id<GroupId>('try/1'),
        family: task().family,
        task: task().id,
        seed: 1,
        cap: o.cap ?? 6,
        groupSize: 1,
      },
      sampling: { greedy: true, temperature: 1, seed: 1 },
    },
    onPhase: () => undefined,
  });
  const trial: Omit<Trial, 'stopped'> = {
    policy: 'run v3',
    version: 3,
    image: 'desk',
    frames: '/f',
    verified: o.verified ?? true,
    heldOut: o.heldOut ?? false,
    cap: 6,
    notes: [],
  };
  const s = new TrySession(
    host,
    { run: '/r/tries', desktop: 'd', screen: desktop.screen, family: 'f1', task: 't1', seed: 1, instruction: 'do it' },
    rollout,
    {
      trial,
      segment: {},
      mode: o.mode ?? 'policy',
      keeping: {
        keep: (t, pool: PoolWish) => {
          const fault = o.fails?.shift();
          if (fault) return Promise.reject(fault);
          kept.push(
            `${t.outcome.kind} ${typeof pool === 'string' ? pool : pool.override} ${t.steps.map((x) => x.origin[0]).join('')}`,
          );
          return Promise.resolve({ pooled: pool !== 'never' });
        },
        pool: () => Promise.resolve({ pooled: true }),
        unpool: (_, why) => {
          kept.push(`out: ${why}`);
          return Promise.resolve();
        },
        annotate: (_, a) => {
          if (o.annotating) return Promise.reject(o.annotating);
          kept.push(`note ${a.note ?? ''} ${a.tags?.join() ?? ''}`);
          return Promise.resolve();
        },
      },
      onSteps: () => undefined,
      close: () => {
        closed++;
        desktop.lose(); // and whoever still looks at it finds it gone
        return Promise.resolve();
      },
      forget: () => {
        forgotten++;
      },
    },
  );
  const window = new AbortController();
  s.attach(window.signal);
  s.begin();
  return { clock, desktop, host, s, kept, policy, tasks, window, closed: () => closed, forgotten: () => forgotten };
}
type Trying = ReturnType<typeof trying>;
const over = (x: Trying): Promise<void> => x.clock.until(() => x.s.over);
const settled = async <T>(x: Trying, work: Promise<T>): Promise<T> => {
  await x.clock.advance(500);
  return work;
};

describe('a policy that is tried', () => {
  it('acts by itself, is judged by the verifier, and gives the desktop back; nothing is kept unasked', async () => {
    const x = trying();
    expect(x.s.state()).toMatchObject({
      purpose: 'try',
      mode: 'starting',
      trial: { policy: 'run v3', verified: true },
    });
    await x.clock.until(() => x.s.state().mode === 'policy');
    await over(x);
    await x.s.closed();
    expect(x.s.state()).toMatchObject({
      mode: 'ended',
      verdict: { outcome: 'success', reward: 1 },
      trial: { stopped: false },
    });
    expect(x.s.state().kept).toBeUndefined();
    expect(x.s.said(0).map((e) => [e.step.index, e.step.actions[0]!.type])).toEqual([
      [0, 'click'],
      [1, 'click'],
      [2, 'click'],
      [3, 'finished'],
    ]);
    expect(x.s.said(3)).toHaveLength(1);
    expect([x.kept, x.closed(), x.host.ends]).toEqual([[], 1, 1]);
    await x.s.keep({ pool: 'auto', note: 'good' });
    expect(x.kept).toEqual(['success auto pppp', 'note good ']);
    expect(x.s.state().kept).toEqual({ rollout: 'try/t1/1', pooled: true });
    await x.s.discard();
    expect(x.kept.slice(2)).toEqual(['out: discarded', 'note  discarded']);
    expect([x.host.forgotten, x.forgotten(), x.closed()]).toEqual([1, 1, 1]);
  });

  it('without a verifier the person says how it went, and only then it is kept', async () => {
    const x = trying({ verified: false });
    await over(x);
    expect(x.s.state().verdict).toBeUndefined();
    await expect(x.s.keep({ pool: 'auto' })).rejects.toMatchObject({
      kind: 'params.invalid',
      message: 'Nobody has said whether it succeeded.',
    });
    await x.s.keep({ pool: 'auto', verdict: 'success' });
    expect(x.kept).toEqual(['success auto pppp']);
    expect(x.s.state().verdict).toMatchObject({ outcome: 'success', reward: 1 });
    expect(x.s.state().verdict!.report!.checks[0]!.found).toBe('says so');
    const y = trying({ verified: false });
    await over(y);
    await y.s.keep({ pool: 'auto', verdict: 'failure' });
    // What failed never joins the pool by itself.
    expect(y.kept).toEqual(['failure never pppp']);
  });

  it('what the person says counts once it is recorded: after a keep that failed they may say otherwise', async () => {
    const full = new StudioError('store.io', 'The disk is full.', 'Free space.'),
      x = trying({ verified: false, fails: [full] });
    await over(x);
    await expect(x.s.keep({ pool: 'auto', verdict: 'success' })).rejects.toBe(full);
    expect([x.s.state().verdict, x.s.state().kept]).toEqual([undefined, undefined]);
    await expect(x.s.keep({ pool: 'never' })).rejects.toMatchObject({
      message: 'Nobody has said whether it succeeded.',
    });
    await x.s.keep({ pool: 'never', verdict: 'failure' });
    expect(x.kept).toEqual(['failure never pppp']);
    expect(x.s.state().verdict).toMatchObject({ outcome: 'failure', reward: 0 });
    // What is recorded stays, whatever became of its note.
    const y = trying({ verified: false, annotating: full });
    await over(y);
    await expect(y.s.keep({ pool: 'auto', verdict: 'success', note: 'good' })).rejects.toBe(full);
    await y.s.keep({ pool: 'never', verdict: 'failure' });
    expect(y.kept).toEqual(['success auto pppp', 'out: left out by the person who recorded it']);
    expect(y.s.state().verdict).toMatchObject({ outcome: 'success' });
  });

  it('a failure that the verifier saw joins the pool only with a reason; what a person says does not change it', async () => {
    const x = trying({ verdict: 'failure' });
    await over(x);
    await expect(x.s.keep({ pool: 'override', reason: ' ' })).rejects.toMatchObject({ kind: 'params.invalid' });
    await x.s.keep({ pool: 'override', reason: 'it did', verdict: 'success' });
    expect(x.kept).toEqual(['failure it did pppp']);
  });

  it('asks before each step, with what it considered; a person acts in between and lets it go on', async () => {
    const x = trying({ mode: 'step' });
    await x.clock.until(() => x.s.state().proposal !== undefined);
    expect(x.s.state()).toMatchObject({ mode: 'step', left: 6, proposal: { actions: [clicks[0]] } });
    expect(x.s.asked()).toMatchObject({ id: 1, decision: { version: 3, actions: [clicks[0]] } });
    await settled(x, x.s.accept(1));
    await x.clock.until(() => x.s.state().proposal?.id === 2);
    expect(x.s.state().steps).toHaveLength(1);
    await settled(x, x.s.input(press(0)));
    await x.clock.until(() => x.s.state().steps.length === 2);
    expect(x.s.said(1)[0]!.step.origin).toBe('human');
    await x.s.setMode('policy');
    await over(x);
    expect(x.s.asked()).toBeUndefined();
    await x.s.keep({ pool: 'auto' });
    expect(x.kept[0]).toMatch(/^success auto ph/);
  });

  it('is stopped while a screen is being looked at: no fault of a desktop that was given back', async () => {
    const x = trying({ mode: 'step' });
    await x.clock.until(() => x.s.state().proposal !== undefined);
    const pressed = x.s.input(press(0)).catch(() => undefined);
    await settled(x, Promise.resolve(x.s.stop()));
    await pressed;
    await x.clock.advance(5000);
    expect(x.closed()).toBe(1);
    expect([x.s.over, x.s.state().error, x.s.state().verdict]).toEqual([true, undefined, undefined]);
  });

  it('pauses at its next step, and goes on', async () => {
    const x = trying();
    await x.clock.until(() => x.s.state().steps.length === 1);
    await x.s.setMode('human');
    await x.clock.until(() => x.s.state().mode === 'human');
    const { length } = x.s.state().steps;
    await x.clock.advance(5000);
    expect(x.s.state().steps).toHaveLength(length);
    await x.s.setMode('policy');
    await over(x);
    expect(x.s.state().steps.length).toBe(4);
  });

  it('stops at once: no verifier looks, what was done can be kept with what the person says', async () => {
    const x = trying({ plays: [[clicks[0]!], [clicks[1]!]], cap: 50 });
    await x.clock.until(() => x.s.state().steps.length === 2);
    await expect(x.s.keep({ pool: 'never', verdict: 'failure' })).rejects.toMatchObject({
      message: 'The policy is still acting.',
    });
    await settled(x, x.s.stop());
    expect(x.s.state()).toMatchObject({ mode: 'ended', trial: { stopped: true } });
    expect([x.s.state().verdict, x.tasks.verified, x.closed()]).toEqual([undefined, [], 1]);
    await x.s.keep({ pool: 'never', verdict: 'failure' });
    expect(x.kept[0]).toMatch(/^failure never pp/);
  });

  it('a fault of the desktop or of the model is no failure: it says what to do, and nothing can be kept', async () => {
    const x = trying();
    await x.clock.until(() => x.s.state().steps.length === 1);
    x.desktop.lose();
    await over(x);
    expect(x.s.state()).toMatchObject({ verdict: { outcome: 'error', error: { kind: 'desktop.lost' } } });
    await expect(x.s.keep({ pool: 'never', verdict: 'failure' })).rejects.toMatchObject({
      kind: 'params.invalid',
    });
    await x.s.closed();
    expect(x.closed()).toBe(1);
    const away = new StudioError('policy.remote', 'http://gpu cannot be reached.', 'Start the server.'),
      y = trying({ plays: [away], verified: false });
    await over(y);
    expect(y.s.state().verdict).toMatchObject({
      outcome: 'error',
      error: { kind: 'policy.remote', remedy: 'Start the server.' },
    });
    await expect(y.s.keep({ pool: 'never', verdict: 'failure' })).rejects.toMatchObject({
      message: 'There is nothing to keep: no step was taken.',
    });
  });

  it('ends with its page, and when nobody does anything; no desktop stays behind', async () => {
    const closed = trying({ mode: 'step' });
    await closed.clock.until(() => closed.s.state().proposal !== undefined);
    closed.window.abort();
    await closed.clock.advance(ABANDON_MS - 1);
    expect(closed.closed()).toBe(0);
    await closed.clock.advance(1000);
    expect([closed.closed(), closed.host.forgotten, closed.forgotten()]).toEqual([1, 1, 1]);

    const idle = trying({ mode: 'step' });
    await idle.clock.until(() => idle.s.state().proposal !== undefined);
    await idle.clock.advance(IDLE_MS - 1000);
    // Somebody looks at it: the time counts again.
    idle.s.touch();
    await idle.clock.advance(IDLE_MS - 1000);
    expect(idle.closed()).toBe(0);
    await idle.clock.advance(2000);
    expect([idle.closed(), idle.s.over, idle.s.state().error?.kind]).toEqual([1, true, 'timeout']);

    const down = trying();
    await down.clock.until(() => down.s.state().steps.length === 1);
    await settled(down, down.s.shutdown());
    expect([down.closed(), down.host.forgotten]).toEqual([1, 1]);
  });
});
