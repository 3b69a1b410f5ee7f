import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { EventOf } from '../../../runtime/data/events.js';
import { id, type DesktopId } from '../../../runtime/domain/index.js';
import type { EpisodePhase, ModelPoolStatus, SchedulerEvent } from '../../../runtime/rollout/types.js';
import { bounds } from '../../../runtime/run/bounds.js';
import { Meters } from '../../../runtime/run/meters.js';
import { SpanRecorder } from '../../../runtime/run/spanRecorder.js';

it('a desktop is busy from its reset to the end of its rollout; the policy’s time is not its work', () => {
  const m = new Meters(0),
    desktop = id<DesktopId>('d1'),
    none = { replicas: [], concurrency: 1, waiting: 0, version: 0, publishing: false };
  const lane = (phase: 'setup' | 'decide' | 'idle' | 'released', at: number): void => {
    m.onScheduler({ type: 'lane', desktop, phase, at });
  };
  m.onPool({ type: 'state', desktop, state: 'leased', at: 0 });
  lane('idle', 0);
  lane('setup', 100);
  lane('decide', 300);
  lane('released', 400);
  m.onPool({ type: 'state', desktop, state: 'resetting', at: 400 });
  m.onPool({ type: 'state', desktop, state: 'ready', at: 700 });
  const u = m.utilisation(1000, 1, none);
  expect([u.desktops, u.desktopsStrict]).toEqual([0.6, 0.5]);
});

it('a pause is no time: shares and rates per minute go on from where they were, and what runs on in it adds nothing', () => {
  const m = new Meters(1000),
    desktop = id<DesktopId>('d1'),
    models = (busyMs: number) => ({
      replicas: [{ id: 'a', busyMs }] as unknown as ModelPoolStatus['replicas'],
      concurrency: 1,
      waiting: 0,
      version: 0,
      publishing: false,
    });
  const lane = (phase: 'setup' | 'released', at: number): void => {
    m.onScheduler({ type: 'lane', desktop, phase, at });
  };
  lane('setup', 1500);
  m.trainer(true, 1800);
  m.pause(2000);
  lane('released', 3000);
  m.trainer(false, 4000);
  expect(m.utilisation(9000, 1, models(0))).toMatchObject({ desktops: 0.5, desktopsStrict: 0.5, trainer: 0.2 });
  expect(m.minutesRun(9000) * 60).toBeCloseTo(1);
  m.resume(11_000);
  lane('setup', 11_000);
  expect(m.minutesRun(12_000) * 60).toBeCloseTo(2);
  // What replicas computed in the pause cannot make them busier than all the time.
  expect(m.utilisation(12_000, 1, models(60_000))).toEqual({
    desktops: 0.75,
    desktopsStrict: 0.75,
    replicas: 1,
    trainer: 0.1,
  });
});

it('replicas are busy with what they decide from its start on, not with evaluations before it', () => {
  const worked = (busyMs: number, concurrency = 1): ModelPoolStatus => ({
    replicas: [
      { id: 'a', busyMs },
      { id: 'b', busyMs },
    ] as unknown as ModelPoolStatus['replicas'],
    concurrency,
    waiting: 0,
    version: 0,
    publishing: false,
  });
  const m = new Meters(5000, worked(4000));
  expect(m.utilisation(6000, 1, worked(4250)).replicas).toBe(0.25);
  expect(m.utilisation(6000, 1, worked(10)).replicas).toBe(0);
  // A model server works at many calls at the same time: busy is one that has as many as it takes.
  expect(m.utilisation(6000, 1, worked(4000 + 16_000, 16)).replicas).toBe(1);
});

it('the bound beside a rate is of the same two minutes: rollouts that get shorter do not run past it', () => {
  const m = new Meters(0),
    o = { desktops: 1, replicas: 0, share: undefined };
  const rollouts = (n: number, from: number, ms: number): void => {
    const timings = { observe: 0, queue: 0, decide: 0, perform: ms, settle: 0 },
      own = { steps: [{ timings, actions: [] }], provenance: { kind: 'rollout' }, resetMs: 0, verifyMs: 0 },
      trajectory = { ...own, outcome: { kind: 'success' } };
    for (let k = 1; k <= n; k++)
      m.onScheduler({ type: 'ended', kind: 'rollout', trajectory, at: from + k * ms } as never as SchedulerEvent);
  };
  rollouts(7, 0, 4000);
  expect(m.measured(o, 28_000).newest).toBeUndefined();
  rollouts(53, 28_000, 4000);
  rollouts(120, 240_000, 1000);
  const { newest, ...whole } = m.measured(o, 360_000);
  expect([newest, whole.rolloutSeconds]).toEqual([{ rolloutSeconds: expect.closeTo(1, 1), steps: 1 }, 2]);
  const rate = m.rates(360_000).rolloutsPerHour;
  expect(rate).toBeGreaterThan(bounds(whole)!.rolloutsPerHour);
  // The rollout that ended as the two minutes began is in the rate.
  expect(rate).toBeLessThanOrEqual(bounds({ ...whole, newest })!.rolloutsPerHour * 1.05);
});

it('lanes and figures never tell two stories: the same events are the same share of time', () => {
  const ms = fc.integer({ min: 0, max: 400 }),
    rollout = fc.record({
      wait: ms,
      phases: fc.array(fc.tuple(fc.constantFrom('setup', 'observe', 'decide', 'perform', 'settle', 'verify'), ms), {
        minLength: 1,
        maxLength: 8,
      }),
      reset: ms,
    });
  fc.assert(
    fc.property(
      fc.array(fc.array(rollout, { maxLength: 6 }), { minLength: 1, maxLength: 3 }),
      fc.nat(300),
      (desktops, more) => {
        const meters = new Meters(0),
          spans: EventOf<'spans'>[] = [],
          recorder = new SpanRecorder((e) => spans.push(e));
        let end = 0;
        for (const [i, rollouts] of desktops.entries()) {
          const desktop = id<DesktopId>(`d${i}`);
          let at = 0;
          const lane = (phase: EpisodePhase | 'idle' | 'released'): void => {
              for (const to of [meters, recorder]) to.onScheduler({ type: 'lane', desktop, phase, at });
            },
            pool = (state: 'leased' | 'resetting' | 'ready'): void => {
              for (const to of [meters, recorder]) to.onPool({ type: 'state', desktop, state, at });
            };
          for (const r of rollouts) {
            pool('leased');
            lane('idle');
            at += r.wait;
            for (const [phase, takes] of r.phases) {
              lane(phase as EpisodePhase);
              at += takes;
            }
            lane('released');
            pool('resetting');
            at += r.reset;
            pool('ready');
          }
          end = Math.max(end, at);
        }
        const now = end + more + 1;
        recorder.flush(now, true);
        const drawn = spans.reduce((n, e) => n + e.ms.reduce((a, b) => a + b, 0), 0),
          told = meters.utilisation(now, desktops.length, {
            replicas: [],
            concurrency: 1,
            waiting: 0,
            version: 0,
            publishing: false,
          });
        expect(drawn / (now * desktops.length)).toBeCloseTo(told.desktops, 6);
      },
    ),
  );
});
