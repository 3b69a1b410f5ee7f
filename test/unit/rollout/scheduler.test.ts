import { describe, expect, it } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { nextMove } from '../../../runtime/rollout/admission.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';
import type { SchedulerDeps, SchedulerEvent } from '../../../runtime/rollout/types.js';
import { probeSampling, trainingSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { FakePool, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock, flush } from '../../helpers/rollout/virtualClock.js';

const click: Action = { type: 'click', at: { x: 1, y: 2 } };
const done: Action = { type: 'finished' };

function setUp(
  n: number,
  o: {
    orders?: number;
    admit?: (running: number) => number;
    script?: readonly (readonly Action[])[];
    ms?: () => number;
  } = {},
) {
  const clock = new VirtualClock();
  const pool = new FakePool(n, clock);
  const policy = scriptedPolicy(clock, o.script ?? [[click], [done]], o.ms);
  const events: SchedulerEvent[] = [];
  let made = 0;
  const s: Scheduler = new Scheduler(
    {
      pool,
      clock,
      episode: { policy, tasks: fakeTasks(clock), frames: fakeFrames(clock), clock },
      next: () => (made < (o.orders ?? Infinity) ? order(made++) : undefined),
      admit: () => (o.admit ? o.admit(s.status().running.length) : Infinity),
      taskOf: () => task(),
      sampling: trainingSampling(1, 1),
      probeSampling: probeSampling(1),
    },
    { slots: n },
  );
  s.onEvent((e) => events.push(e));
  const of = <T extends SchedulerEvent['type']>(type: T) =>
    events.filter((e): e is Extract<SchedulerEvent, { type: T }> => e.type === type);
  return {
    clock,
    pool,
    policy,
    events,
    of,
    s,
    made: () => made,
    more: (k: number) => {
      o.orders = made + k;
    },
  };
}

/** Stop now; what is being aborted still needs a little virtual time. */
async function halt(s: Scheduler, clock: VirtualClock): Promise<void> {
  let stopped = false;
  void s.stop({ graceMs: 0 }).then(() => {
    stopped = true;
  });
  await clock.until(() => stopped);
}

/** A scheduler of policies that finish at once, whose tasks are made by `taskOf`. */
const withTasks = (
  pool: FakePool,
  clock: VirtualClock,
  slots: number,
  next: () => RolloutOrder | undefined,
  taskOf: SchedulerDeps['taskOf'],
): Scheduler =>
  new Scheduler(
    {
      pool,
      clock,
      episode: { policy: scriptedPolicy(clock, [[done]]), tasks: fakeTasks(clock), frames: fakeFrames(clock), clock },
      next,
      admit: () => 9,
      taskOf,
      sampling: trainingSampling(1, 1),
      probeSampling: probeSampling(1),
    },
    { slots },
  );

describe('scheduler', () => {
  it('gives a freed desktop the next rollout at once, without a barrier', async () => {
    let k = 0;
    // the first rollout is slow
    const { clock, pool, of, s } = setUp(2, { orders: 6, ms: () => (k++ === 0 ? 2000 : 10) });
    s.start();
    await clock.until(() => of('ended').length === 6);
    expect(of('ended').map((e) => e.order.rollout)).toEqual(['r1', 'r2', 'r3', 'r4', 'r5', 'r0']);
    expect(
      of('started')
        .slice(2)
        .every((e) => e.leaseWaitMs <= 100),
    ).toBe(true); // only the reset
    expect(pool.violations).toEqual([]);
    await halt(s, clock);
    expect(pool.leased).toBe(0);
  });

  it('starts no more than admission allows, and goes on when woken', async () => {
    let allowed = 3;
    const { clock, of, s, made } = setUp(4, { admit: () => allowed - made() });
    s.start();
    await clock.advance(5000);
    expect(of('ended').length).toBe(3);
    expect(s.status().running.length).toBe(0);
    allowed = 5;
    await clock.advance(1000);
    expect(made()).toBe(3);
    s.wake();
    await clock.advance(5000);
    expect(of('ended').length).toBe(5);
    await halt(s, clock);
  });

  it('keeps a desktop without work leased, so that the next rollout starts without a reset', async () => {
    const { clock, of, s, more } = setUp(1, { orders: 0 });
    s.start();
    await clock.advance(100);
    expect(s.status().idle).toBe(1);
    more(1);
    s.wake();
    expect(s.status().running.length).toBe(1);
    expect(
      of('lane')
        .map((e) => e.phase)
        .slice(0, 2),
    ).toEqual(['idle', 'setup']);
    await halt(s, clock);
  });

  it('replaces a desktop that dies without work at once, and no rollout meets it', async () => {
    const { clock, pool, of, s, more } = setUp(2, { orders: 0, admit: () => 1 }),
      [first, second] = [...pool.free],
      { error } = new StudioError('desktop.lost', 'Its X server ended.', 'x');
    s.start();
    await clock.advance(100);
    expect(s.status()).toMatchObject({ idle: 1, leasing: 0 });
    first!.lose(error);
    expect([pool.broken, pool.faults]).toEqual([[first!.id], [error]]);
    expect(of('lane').map((e) => e.phase)).toEqual(['idle', 'released']);
    more(1);
    s.wake();
    await flush();
    expect(s.status().running.map((r) => r.desktop)).toEqual([second!.id]);
    // The death of one that works is its rollout's error, and one that was replaced is the pool's.
    expect([first!.listeners, second!.listeners]).toEqual([0, 0]);
    await clock.until(() => of('ended').length === 1);
    expect(of('ended')[0]!.trajectory.outcome.kind).toBe('success');
    await halt(s, clock);
    expect([first!.listeners, second!.listeners, pool.leased, pool.broken.length]).toEqual([0, 0, 0, 1]);
    expect(pool.violations).toEqual([]);
  });

  it('does not ask for another desktop in place of one that dies while nothing is to be done', async () => {
    const { clock, pool, s } = setUp(1, { orders: 0 }),
      [only] = [...pool.free];
    s.start();
    await clock.advance(100);
    s.pause();
    expect(s.status().idle).toBe(1);
    only!.lose(new StudioError('desktop.lost', 'It was restarted by hand.', 'x').error);
    await clock.advance(1000);
    expect([pool.broken, s.status().idle, s.status().leasing, pool.leased]).toEqual([[only!.id], 0, 0, 0]);
    await halt(s, clock);
  });

  it('tells that a desktop is released before its reset begins', async () => {
    const { clock, pool, of, s } = setUp(2, { orders: 3 }),
      leased: number[] = [];
    s.onEvent((e) => {
      if (e.type === 'lane' && e.phase === 'released')
        leased.push(pool.leased - s.status().running.length - s.status().idle);
    });
    s.start();
    await clock.until(() => of('ended').length === 3);
    // The rollout is over, and its desktop is the pool's only afterwards.
    expect(leased).toEqual([1, 1, 1]);
    await halt(s, clock);
  });

  it('asks the planner again after a rollout ended', async () => {
    const { clock, of, s, more } = setUp(2, { orders: 1 });
    s.onEvent((e) => {
      if (e.type === 'ended' && of('ended').length === 1) more(2);
    });
    s.start();
    await clock.until(() => of('ended').length === 3);
    await halt(s, clock);
  });

  it('reports steps as they happen and the versions of a trajectory', async () => {
    const { clock, of, s } = setUp(1, { orders: 1 });
    s.start();
    await clock.until(() => of('step').length === 1);
    expect(of('ended').length).toBe(0);
    expect(s.status().running[0]).toMatchObject({ rollout: 'r0', steps: 1, kind: 'rollout' });
    await clock.until(() => of('ended').length === 1);
    expect(of('ended')[0]).toMatchObject({ versions: [3], trajectory: { id: 'r0', provenance: { kind: 'rollout' } } });
    await halt(s, clock);
  });

  it('pauses and resumes', async () => {
    const { clock, of, s, made } = setUp(2);
    s.start();
    await clock.advance(60);
    s.pause();
    const before = made();
    await clock.advance(2000);
    expect(made()).toBe(before);
    expect(of('ended').length).toBe(before);
    s.resume();
    await clock.advance(100);
    expect(made()).toBeGreaterThan(before);
    await halt(s, clock);
  });

  it('grows at once and shrinks as rollouts end', async () => {
    const { clock, pool, s } = setUp(4);
    s.resize(1);
    s.start();
    await clock.advance(50);
    expect(pool.leased).toBe(1);
    s.resize(4);
    await clock.advance(1);
    expect(pool.leased).toBe(4);
    s.resize(2);
    await clock.advance(1);
    expect(pool.leased).toBe(4);
    await clock.advance(600);
    expect(pool.leased).toBeLessThanOrEqual(2);
    await halt(s, clock);
    expect(pool.leased).toBe(0);
  });

  it('runs probes before training rollouts, also while paused, and answers in the order asked', async () => {
    const { clock, of, s, policy, made } = setUp(2);
    const orders = ['p0', 'p1', 'p2'].map((n) => order(n));
    const probe = s.runProbe(orders);
    await clock.advance(2000);
    const ts = await probe;
    expect(ts.map((t) => t.id)).toEqual(orders.map((o) => o.rollout));
    expect(ts.every((t) => t.provenance.kind === 'probe' && t.outcome.kind === 'success')).toBe(true);
    expect(policy.opened.every((o) => o.sampling.greedy)).toBe(true);
    expect(made()).toBe(0);
    s.start();
    await clock.advance(1);
    const second = s.runProbe(['q0', 'q1'].map((n) => order(n)));
    await clock.until(() => of('ended').filter((e) => e.kind === 'probe').length === 5);
    await second;
    // Two training rollouts were running; the next two desktops went to the probes.
    expect(
      of('started')
        .slice(3, 7)
        .map((e) => e.kind),
    ).toEqual(['rollout', 'rollout', 'probe', 'probe']);
    await halt(s, clock);
  });

  it('starts no probe while they are held: nothing can be stored', async () => {
    const { clock, of, s } = setUp(2);
    s.holdProbes(true);
    const probe = s.runProbe([order('p0')]);
    await clock.advance(2000);
    expect([of('started').length, s.status().probesWaiting]).toEqual([0, 1]);
    s.holdProbes(false);
    await clock.advance(2000);
    expect((await probe).map((t) => t.outcome.kind)).toEqual(['success']);
    await halt(s, clock);
  });

  it('samples a probe at the temperature asked for', async () => {
    const { clock, s, policy } = setUp(1);
    const probe = s.runProbe([order('p0')], { temperature: 0.6 });
    await clock.advance(2000);
    await probe;
    expect(policy.opened.map((o) => o.sampling)).toMatchObject([{ greedy: false, temperature: 0.6 }]);
    await halt(s, clock);
  });

  it('cancels a probe', async () => {
    const { clock, s, pool } = setUp(1);
    const a = new AbortController();
    const probe = expect(s.runProbe([order('p0'), order('p1')], { signal: a.signal })).rejects.toMatchObject({
      kind: 'cancelled',
    });
    await clock.advance(60);
    a.abort();
    await probe;
    await clock.advance(1000);
    expect(s.status()).toMatchObject({ probesWaiting: 0, running: [] });
    await halt(s, clock);
    expect(pool.leased).toBe(0);
  });

  it('an evaluation whose last episodes are cut off is cancelled, not measured', async () => {
    for (const how of ['signal', 'stop'] as const) {
      const { clock, s, pool } = setUp(2);
      const a = new AbortController();
      const probe = expect(s.runProbe([order('p0'), order('p1')], { signal: a.signal })).rejects.toMatchObject({
        kind: 'cancelled',
      });
      await clock.advance(60);
      expect(s.status()).toMatchObject({ probesWaiting: 0, running: [{}, {}] });
      if (how === 'signal') a.abort();
      else void s.stop({ graceMs: 0 });
      await clock.advance(1000);
      await probe;
      await halt(s, clock);
      expect(pool.leased).toBe(0);
    }
  });

  it('stops: what runs may end within the grace', async () => {
    const { clock, of, s, pool } = setUp(2);
    s.start();
    await clock.advance(60);
    let stopped = false;
    const stop = s.stop({ graceMs: 10_000 }).then(() => {
      stopped = true;
    });
    await clock.until(() => stopped);
    await stop;
    expect(of('ended').map((e) => e.trajectory.outcome.kind)).toEqual(['success', 'success']);
    expect(pool.leased).toBe(0);
    expect(clock.pending).toBeLessThanOrEqual(2); // only the fake pool's resets
  });

  it('stops: what does not end in time is recorded as cancelled', async () => {
    const { clock, of, s, pool } = setUp(2, { ms: () => 100_000 });
    s.start();
    await clock.advance(200);
    let stopped = false;
    void s.stop({ graceMs: 500 }).then(() => {
      stopped = true;
    });
    await clock.until(() => stopped);
    expect(of('ended').map((e) => e.trajectory.outcome)).toMatchObject([
      { kind: 'error', error: { kind: 'cancelled' } },
      { kind: 'error', error: { kind: 'cancelled' } },
    ]);
    expect(pool.leased).toBe(0);
    expect(pool.broken).toEqual([]);
  });

  it('gives a lease back that comes after it was given up', async () => {
    const { clock, s, pool } = setUp(1);
    s.start();
    await s.stop({ graceMs: 0 });
    await flush();
    await clock.advance(200);
    expect(pool.leased).toBe(0);
  });

  it('waits longer and longer when the pool refuses leases, and recovers', async () => {
    const { clock, s, pool, of } = setUp(2, { orders: 2 });
    pool.refuse = new StudioError('desktop.unavailable', 'no docker', 'x');
    s.start();
    await clock.advance(9000);
    const failures = of('leaseFailed').length;
    expect(failures).toBeGreaterThanOrEqual(2);
    expect(failures).toBeLessThanOrEqual(8);
    pool.refuse = undefined;
    await clock.until(() => of('ended').length === 2);
    await halt(s, clock);
  });

  it('waits longer and longer while every rollout ends in an error, and no more once one does not', async () => {
    const clock = new VirtualClock(),
      pool = new FakePool(2, clock),
      failing: Extract<SchedulerEvent, { type: 'failing' }>[] = [];
    let made = 0,
      broken = true;
    const s = withTasks(
      pool,
      clock,
      2,
      () => order(made++),
      () => {
        if (broken) throw new StudioError('policy.remote', 'It refuses everything.', 'Look at its log.');
        return task();
      },
    );
    s.onEvent((e) => {
      if (e.type === 'failing') failing.push(e);
    });
    s.start();
    await clock.advance(50_000);
    expect(failing.map((e) => e.pauseMs)).toEqual([1000, 2000, 5000, 15_000, 30_000]);
    expect(failing[0]).toMatchObject({ inARow: 8, error: { kind: 'policy.remote' } });
    // Two desktops: two attempts a pause, beside what a reset lets through.
    expect(made).toBeLessThan(25);
    broken = false;
    const before = made;
    await clock.advance(60_000);
    expect(failing).toHaveLength(5);
    expect(made - before).toBeGreaterThan(25);
    broken = true;
    await clock.advance(10_000);
    // Shortest again.
    expect(failing[5]).toMatchObject({ pauseMs: 1000 });
    await halt(s, clock);
  });

  it('errors of the tasks themselves hold up nobody', async () => {
    const clock = new VirtualClock(),
      pool = new FakePool(2, clock),
      events: SchedulerEvent[] = [];
    let made = 0;
    const s = withTasks(
      pool,
      clock,
      2,
      () => (made < 40 ? order(made++) : undefined),
      () => {
        throw new StudioError('task.setup', 'A file of it is not there.', 'x');
      },
    );
    s.onEvent((e) => events.push(e));
    s.start();
    await clock.until(() => events.filter((e) => e.type === 'ended').length === 40);
    expect(events.filter((e) => e.type === 'failing')).toEqual([]);
    await halt(s, clock);
  });

  it('a task that cannot be made is an error of that rollout, the desktop is whole', async () => {
    const clock = new VirtualClock(),
      pool = new FakePool(1, clock),
      events: SchedulerEvent[] = [];
    let made = 0;
    const s = withTasks(
      pool,
      clock,
      1,
      () => (made < 2 ? order(made++) : undefined),
      (o) => {
        if (o.rollout === 'r0') throw new StudioError('task.invalid', 'no such task', 'x');
        return task();
      },
    );
    s.onEvent((e) => events.push(e));
    s.start();
    await clock.until(() => events.filter((e) => e.type === 'ended').length === 2);
    expect(events.flatMap((e) => (e.type === 'ended' ? [e.trajectory.outcome.kind] : []))).toEqual([
      'error',
      'success',
    ]);
    expect(pool.broken).toEqual([]);
    await halt(s, clock);
  });

  it('gives the rollouts of a group different random streams, the same ones in every run', () => {
    const of = trainingSampling(5, 1);
    expect(of(order(1)).seed).not.toBe(of(order(2)).seed);
    expect(of(order(1))).toEqual(trainingSampling(5, 1)(order(1)));
    expect(trainingSampling(6, 1)(order(1)).seed).not.toBe(of(order(1)).seed);
  });
});

describe('admission', () => {
  const v = { slots: 4, leasing: 0, idle: 0, running: 0, probesWaiting: 0, admit: 0, paused: false, stopping: false };
  it('asks for as many desktops as there is work and room for', () => {
    expect(nextMove({ ...v, admit: 10 }).requestLeases).toBe(4);
    expect(nextMove({ ...v, admit: 2, running: 1 }).requestLeases).toBe(2);
    expect(nextMove({ ...v, admit: 10, running: 2, leasing: 1 }).requestLeases).toBe(1);
    expect(nextMove({ ...v, admit: -3 }).requestLeases).toBe(0);
    expect(nextMove({ ...v, admit: 5, paused: true, probesWaiting: 1 }).requestLeases).toBe(1);
  });
  it('uses leased desktops for probes first', () => {
    expect(nextMove({ ...v, idle: 3, probesWaiting: 1, admit: 1 })).toMatchObject({
      startProbes: 1,
      startRollouts: 1,
      releaseIdle: 0,
    });
  });
  it('gives up asked leases before leased desktops when it shrinks, all when it stops', () => {
    expect(nextMove({ ...v, slots: 2, leasing: 1, idle: 2, running: 1, paused: true })).toMatchObject({
      cancelLeases: 1,
      releaseIdle: 1,
    });
    expect(nextMove({ ...v, stopping: true, leasing: 2, idle: 1, admit: 5, probesWaiting: 5 })).toEqual({
      startProbes: 0,
      startRollouts: 0,
      requestLeases: 0,
      cancelLeases: 2,
      releaseIdle: 1,
    });
  });
});
