import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Action } from '../../../runtime/domain/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import type { SchedulerView } from '../../../runtime/rollout/admission.js';
import { nextMove } from '../../../runtime/rollout/admission.js';
import type { SchedulerEvent } from '../../../runtime/rollout/types.js';
import { probeSampling, trainingSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { FakePool, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const click: Action = { type: 'click', at: { x: 1, y: 2 } };
const done: Action = { type: 'finished' };

const script = fc.array(
  fc.record({
    do: fc.constantFrom('pause', 'resume', 'wake', 'grow', 'shrink', 'probe', 'version', 'fault'),
    wait: fc.nat(400),
  }),
  { maxLength: 25 },
);

describe('scheduler under random schedules', () => {
  it('every order ends once, limits hold, no desktop is lost or given back while it works', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        script,
        fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 }),
        fc.nat(3000),
        async (desktops, moves, decideMs, graceMs) => {
          const clock = new VirtualClock(),
            pool = new FakePool(desktops, clock);
          let k = 0,
            made = 0,
            ended = 0,
            budget = 4,
            slots = desktops,
            training = 0;
          const events: SchedulerEvent[] = [],
            trouble: string[] = [];
          const s = new Scheduler(
            {
              pool,
              clock,
              next: () => order(made++),
              admit: () => budget - made,
              taskOf: () => task(),
              sampling: trainingSampling(1, 1),
              probeSampling: probeSampling(1),
              episode: {
                policy: scriptedPolicy(clock, [[click], [click], [done]], () => decideMs[k++ % decideMs.length]!),
                tasks: fakeTasks(clock),
                frames: fakeFrames(clock),
                clock,
              },
            },
            { slots },
          );
          s.onEvent((e) => {
            events.push(e);
            if (e.type === 'started' && e.kind === 'rollout') {
              training++;
              if (made > budget) trouble.push('admitted too many');
            }
            if (e.type === 'ended') ended++;
            if (pool.leased > Math.max(slots, desktops)) trouble.push('too many leases');
          });
          s.start();
          const probes: Promise<string>[] = [];
          let probed = 0;
          for (const m of moves) {
            if (m.do === 'pause') s.pause();
            if (m.do === 'resume') s.resume();
            if (m.do === 'wake') s.wake();
            if (m.do === 'grow') s.resize(++slots);
            if (m.do === 'shrink') s.resize((slots = Math.max(1, slots - 1)));
            if (m.do === 'version') {
              budget += 3;
              s.wake();
            }
            if (m.do === 'fault') {
              const d = pool.free[0];
              if (d) d.fail = { call: 'perform', error: new StudioError('desktop.lost', 'gone', 'x') };
            }
            if (m.do === 'probe') {
              probed += 2;
              probes.push(
                s.runProbe([order(`p${probed}`), order(`p${probed + 1}`)]).then(
                  () => 'ok',
                  (e: StudioError) => e.kind,
                ),
              );
            }
            await clock.advance(m.wait);
          }
          let stopped = false;
          void s.stop({ graceMs }).then(() => {
            stopped = true;
          });
          await clock.until(() => stopped);
          await clock.advance(1000);
          const started = events.filter((e) => e.type === 'started');
          expect(trouble).toEqual([]);
          expect(ended).toBe(started.length);
          expect(training).toBe(made);
          expect(new Set(started.map((e) => (e.type === 'started' ? e.order.rollout : ''))).size).toBe(started.length);
          expect(pool.leased).toBe(0);
          expect(pool.violations).toEqual([]);
          for (const p of await Promise.all(probes)) expect(['ok', 'cancelled']).toContain(p);
          for (const e of events)
            if (e.type === 'ended' && e.trajectory.outcome.kind === 'error')
              expect(['cancelled', 'desktop.lost']).toContain(e.trajectory.outcome.error.kind);
        },
      ),
      { numRuns: 100 },
    );
  });

  it("starts orders in the planner's order and wastes no desktop while there is admitted work", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 7 }),
        async (desktops, decideMs) => {
          const clock = new VirtualClock(),
            pool = new FakePool(desktops, clock, 0);
          let k = 0,
            made = 0;
          const started: string[] = [],
            total = 12;
          let wasted = 0,
            since = clock.now(),
            busy = desktops,
            ended = 0;
          const s = new Scheduler(
            {
              pool,
              clock,
              next: () => (made < total ? order(made++) : undefined),
              admit: () => Infinity,
              taskOf: () => task(),
              sampling: trainingSampling(1, 1),
              probeSampling: probeSampling(1),
              episode: {
                policy: scriptedPolicy(clock, [[click], [done]], () => decideMs[k++ % decideMs.length]!),
                tasks: fakeTasks(clock),
                frames: fakeFrames(clock),
                clock,
              },
            },
            { slots: desktops },
          );
          s.onEvent((e) => {
            if (e.type === 'started') started.push(e.order.rollout);
            if (e.type === 'ended') ended++;
            // Desktop time without a rollout while orders were left.
            wasted += (desktops - busy) * (clock.now() - since);
            since = clock.now();
            busy = made < total ? s.status().running.length : desktops;
          });
          s.start();
          await clock.until(() => ended === total);
          expect(started).toEqual(Array.from({ length: total }, (_, i) => `r${i}`));
          expect(wasted).toBe(0);
          void s.stop({ graceMs: 0 });
          await clock.advance(10);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('admission', () => {
  const view: fc.Arbitrary<SchedulerView> = fc.record({
    slots: fc.nat(8),
    leasing: fc.nat(4),
    idle: fc.nat(4),
    running: fc.nat(8),
    probesWaiting: fc.nat(4),
    admit: fc.integer({ min: -3, max: 10 }),
    paused: fc.boolean(),
    stopping: fc.boolean(),
  });
  it('never exceeds slots, admission or what it holds, and settles: applied, it asks for nothing more', () => {
    fc.assert(
      fc.property(view, (v) => {
        const m = nextMove(v);
        expect(m.startProbes + m.startRollouts + m.releaseIdle).toBeLessThanOrEqual(v.idle);
        expect(m.startRollouts).toBeLessThanOrEqual(Math.max(0, v.admit));
        expect(m.cancelLeases).toBeLessThanOrEqual(v.leasing);
        if (v.paused || v.stopping) expect(m.startRollouts).toBe(0);
        const held = v.leasing + m.requestLeases - m.cancelLeases + v.idle - m.releaseIdle + v.running;
        if (m.requestLeases > 0) expect(held).toBeLessThanOrEqual(v.slots);
        const started = m.startProbes + m.startRollouts;
        const next = nextMove({
          ...v,
          leasing: v.leasing + m.requestLeases - m.cancelLeases,
          idle: v.idle - started - m.releaseIdle,
          running: v.running + started,
          probesWaiting: v.probesWaiting - m.startProbes,
          admit: v.admit - m.startRollouts,
        });
        expect(next).toEqual({ startProbes: 0, startRollouts: 0, requestLeases: 0, cancelLeases: 0, releaseIdle: 0 });
      }),
      { numRuns: 1000 },
    );
  });
});
