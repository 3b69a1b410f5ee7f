import { activities } from '../../../runtime/domain/index.js';
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { type JournalEvent } from '../../../runtime/data/events.js';
import { RunMeter, mostAtOnce } from '../../bench/lib/runMeasure.js';

/**
 * A journal of one group of two rollouts on two desktops, 1 s each of which 0.4 s are decided, then one update of 0.5 s
 * and one sync.
 */
const events = (): (JournalEvent & { at: number })[] => {
  const e: unknown[] = [];
  const timings = { observe: 100, queue: 50, decide: 200, perform: 50, settle: 50 };
  for (const [i, r] of ['r1', 'r2'].entries()) {
    e.push({ type: 'rollout.queued', at: 1000 + i, order: { rollout: r, group: 'g1' } });
    for (const index of [0, 1])
      e.push({ type: 'rollout.step', at: 1500, rollout: r, step: { index, timings, version: index === 0 ? 1 : 2 } });
    e.push({
      type: 'trajectory.recorded',
      at: 2000 + i,
      head: {
        id: r,
        group: 'g1',
        steps: 2,
        provenance: { kind: 'rollout' },
        outcome: i === 0 ? { kind: 'success', reward: 1 } : { kind: 'failure', reward: 0 },
        resetMs: 100,
        verifyMs: 100,
        endedAt: 2000 + i,
      },
    });
  }
  e.push(
    {
      type: 'group.formed',
      at: 2001,
      group: 'g1',
      members: [
        { rollout: 'r1', injected: false, keep: [true, false] },
        { rollout: 'r2', injected: false, keep: [true, true] },
        { rollout: 'demo', injected: true, keep: [true] },
      ],
      retired: [],
      version: 2,
    },
    {
      type: 'batch.claimed',
      at: 2002,
      batch: 'b',
      version: 3,
      groups: [{ group: 'g1', rollouts: ['r1', 'r2'] }],
      lags: [2, 2],
      steps: 4,
    },
    { type: 'batch.trained', at: 2500, batch: 'b', rollouts: ['r1', 'r2'], version: 4 },
    { type: 'metrics', at: 2600, source: 'sync', values: { failed: 0, drainMs: 40, swapMs: 20, replicas: 2 } },
    {
      type: 'spans',
      at: 2600,
      lane: 'd1',
      kind: 'desktop',
      t0: 1000,
      what: Uint8Array.of(activities.indexOf('observe'), activities.indexOf('decide')),
      start: Float32Array.of(0, 600),
      ms: Float32Array.of(600, 400),
      of: Uint8Array.of(0, 0),
      rollouts: ['r1'],
    },
    {
      type: 'spans',
      at: 2600,
      lane: 'trainer',
      kind: 'trainer',
      t0: 2002,
      what: Uint8Array.of(activities.indexOf('update')),
      start: Float32Array.of(0),
      ms: Float32Array.of(500),
      of: Uint8Array.of(255),
      rollouts: [],
    },
    {
      type: 'spans',
      at: 2600,
      lane: 'replica-1',
      kind: 'replica',
      t0: 2500,
      what: Uint8Array.of(activities.indexOf('sync')),
      start: Float32Array.of(0),
      ms: Float32Array.of(60),
      of: Uint8Array.of(255),
      rollouts: [],
    },
    { type: 'eval', at: 2700, label: 'final', version: 4, episodes: 4, successes: 1, errors: 0, low: 0.05, high: 0.7 },
    { type: 'rollout.queued', at: 3000, order: { rollout: 'r3', group: 'g2' } },
  );
  return e as (JournalEvent & { at: number })[];
};
const measure = (warmupMs = 0): ReturnType<RunMeter['done']> => {
  const m = new RunMeter({ desktops: 2, replicas: 2, warmupMs });
  for (const e of events()) m.add(e);
  return m.done();
};

describe('a run read back from its journal', () => {
  it("counts rollouts, groups, steps and evaluations; injected demonstrations are nobody's own", () => {
    const m = measure();
    expect(m.rollouts).toMatchObject({ queued: 3, ended: 2, successes: 1, errors: 0, trained: 2 });
    expect(m.groups).toEqual({ formed: 1, dropped: 0, meanN: 2, injected: 1 });
    expect(m.steps).toEqual({ generated: 4, trained: 3, meanLength: 2 });
    expect(m).toMatchObject({
      updates: 1,
      gradientShare: 1,
      rlSeconds: 2,
      evals: [{ label: 'final', successes: 1, episodes: 4 }],
    });
  });

  it('tells branches that reached their step from those that were given up, and what acting out cost', () => {
    const m = new RunMeter({ desktops: 2, replicas: 2, warmupMs: 0 });
    const all = events().map((e) => {
      if (e.type !== 'trajectory.recorded') return e;
      const branch = { of: 'r0', step: 1 };
      return e.head.id === 'r1'
        ? { ...e, head: { ...e.head, branch } }
        : {
            ...e,
            head: { ...e.head, branch, outcome: { kind: 'error', error: { kind: 'rollout.diverged', message: '' } } },
          };
    });
    for (const e of all as typeof events extends () => infer E ? E : never) m.add(e);
    // Twice a reset of 0.1 s and one step of 0.2 s.
    expect(m.done().branches).toEqual({ begun: 2, diverged: 1, actedOut: 2, actedOutSeconds: 0.6 });
    expect(measure()).not.toHaveProperty('branches');
  });

  it('has the bound of runtime/rollout/README.md#throughput-bound and shares of the window', () => {
    const t = measure().throughput!;
    // T = 0.1 + 2 (0.2 + 0.2) + 0.1 s: N/T = 2 rollouts/s, the replicas could 5, the trainer 2 in 0.5 s.
    expect(t.rolloutSeconds).toBeCloseTo(1);
    expect(t).toMatchObject({ boundBy: 'desktops', meanLength: 2, alpha: 1 });
    expect(t.bound).toBeCloseTo(2);
    expect(t.rate).toBeCloseTo(1);
    expect(t.ratio).toBeCloseTo(0.5);
    expect(t.loose).toBeCloseTo(1000 / 4000);
    expect(t.strict).toBeCloseTo(600 / 4000);
    expect(t.strictCap).toBeCloseTo(0.6);
    expect(t.trainerIdle).toBeCloseTo(0.75);
    expect(t.updateSeconds).toBeCloseTo(0.5);
    expect(t.syncDown).toBeCloseTo(20 / 4000);
    expect(t.syncDrain).toBeCloseTo(40 / 4000);
    expect(t.outMax).toBe(1);
    expect(t.trainedActions).toBeCloseTo(90);
    expect(t.generatedActions).toBeCloseTo(120);
  });

  it('takes the lag of each trained step from the version that made it', () => {
    // r1 trains its first step (v1), r2 both (v1, v2); claimed at v3.
    expect(measure().throughput!.staleness).toEqual({ mean: 5 / 3, p95: 2, max: 2 });
  });

  it('leaves the warm-up out of rates, not out of counts', () => {
    const m = measure(1002);
    expect(m.rollouts.ended).toBe(2);
    expect(m.throughput).toBeUndefined();
    expect(measure(1000).throughput).toMatchObject({ seconds: 1, loose: 0 });
  });

  it('says nothing of a run that trained nothing', () => {
    const m = new RunMeter({ desktops: 1, replicas: 1, warmupMs: 0 }).done();
    expect(m).toMatchObject({ rlSeconds: 0, updates: 0, throughput: undefined, curve: [] });
    expect(JSON.stringify(m)).not.toContain('null');
  });
});

describe('spans at once', () => {
  it('are as many as a brute-force count finds', () => {
    const span = fc
      .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 10 }))
      .map(([start, ms]) => ({ start, end: start + ms }));
    fc.assert(
      fc.property(fc.array(span, { maxLength: 20 }), (spans) => {
        const most = Math.max(
          0,
          ...Array.from({ length: 41 }, (_, t) => spans.filter((s) => s.start <= t && t < s.end).length),
        );
        expect(mostAtOnce(spans)).toBe(most);
      }),
    );
  });
});
