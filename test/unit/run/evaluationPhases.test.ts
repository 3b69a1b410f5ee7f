import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RunBudget } from '../../../runtime/run/budget.js';
import { EvaluationPhases } from '../../../runtime/run/evaluationPhases.js';
import { EvaluationSchedule } from '../../../runtime/run/evaluationSchedule.js';
import type { RunParts } from '../../../runtime/run/parts.js';
import { flush, VirtualClock } from '../../helpers/rollout/virtualClock.js';

const MINUTE = 60_000;

/** Evaluations every ten minutes, of a run that only has what they need. */
function setUp() {
  const clock = new VirtualClock(),
    config = parseRunFile({ evaluation: { everyMinutes: 10, episodes: 1 }, budget: { minutes: 100 } }),
    counts = { rollouts: 0, errors: 0, updates: 0, updating: 0 },
    budget = new RunBudget({ limits: config.budget, clock, elapsedMs: 0, counts: () => counts }),
    state = { version: 1, phase: 'training' },
    begun: string[] = [],
    ends: (() => void)[] = [],
    schedule = new EvaluationSchedule(config.evaluation, []);
  const parts = {
    clock,
    config,
    budget,
    state,
    ending: new AbortController().signal,
    tasks: { probes: () => [], source: { families: [] } },
    data: { note: () => Promise.resolve() },
    log: { note: () => undefined, fault: (e: unknown) => expect.unreachable(String(e)) },
    scheduler: {
      runProbe: () => {
        begun.push(`v${state.version}`);
        return new Promise((r) => ends.push(() => r([])));
      },
    },
  } as unknown as RunParts;
  const evaluations = new EvaluationPhases(parts, schedule);
  return {
    clock,
    budget,
    state,
    begun,
    schedule,
    evaluations,
    async ended() {
      ends.shift()!();
      await flush();
    },
  };
}

describe('evaluations between updates', () => {
  it('begin when whoever updates lets them, with all weights published, and hold up the next update', async () => {
    const s = setUp();
    let rung = 0,
      published: (all: boolean) => void = () => undefined,
      held = true;
    const off = s.evaluations.onDue(() => rung++);
    s.evaluations.repeat();
    await s.clock.advance(10 * MINUTE);
    expect([rung, s.begun]).toEqual([1, []]);
    void s.evaluations.hold(new Promise((r) => (published = r))).then(() => (held = false));
    await flush();
    expect(s.begun).toEqual([]);
    s.state.version = 2;
    published(true);
    await flush();
    expect([s.begun, held]).toEqual([['v2'], true]);
    // What would be due meanwhile is left out.
    await s.clock.advance(10 * MINUTE);
    await s.ended();
    expect([s.begun, held, s.schedule.points.map((p) => p.version)]).toEqual([['v2'], false, [2]]);
    await s.evaluations.hold(Promise.resolve(true));
    expect(s.begun).toEqual(['v2']);
    off();
    await s.evaluations.endRepeat();
  });

  it('wait in a pause, and begin at once where nothing is updated', async () => {
    const s = setUp(),
      off = s.evaluations.onDue(() => undefined);
    s.evaluations.repeat();
    await s.clock.advance(10 * MINUTE);
    s.budget.pause();
    s.evaluations.pause();
    await s.evaluations.hold(Promise.resolve(true));
    expect(s.begun).toEqual([]);
    off();
    s.budget.resume();
    s.evaluations.resume();
    await flush();
    expect(s.begun).toEqual(['v1']);
    await s.ended();
    await s.clock.advance(10 * MINUTE);
    expect(s.begun).toEqual(['v1', 'v1']);
    await s.ended();
    await s.evaluations.endRepeat();
    expect(s.clock.pending).toBe(0);
  });
});
