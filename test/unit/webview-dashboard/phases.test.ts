import { describe, expect, it } from 'vitest';
import type { RunPhase } from '../../../runtime/protocol/types.js';
import { emptyModel, reduce, type Model } from '../../../webview/dashboard/model.js';
import { leftMs, learningRate, stepsOf } from '../../../webview/dashboard/phases.js';
import { bytes, factsOf } from '../../../webview/dashboard/facts.js';
import { rowsFor } from '../../../webview/ui/chartMath.js';
import type { MakeOptions } from '../../helpers/pages/dashboard/course.js';
import { makeRun } from '../../helpers/pages/dashboard/run.js';

type Change = (r: ReturnType<typeof makeRun>) => ReturnType<typeof makeRun>;
function model(o: MakeOptions = {}, phase?: RunPhase, change: Change = (r) => r): Model {
  const r = change(makeRun(o)),
    d = reduce(emptyModel(r.run, 'ready'), { type: 'detail', detail: r.detail }),
    m = reduce(d, { type: 'series', series: r.series });
  return phase === undefined ? m : reduce(m, { type: 'status', status: { ...r.status, phase }, ledger: r.ledger });
}
const states = (m: Model): Record<string, string> => Object.fromEntries(stepsOf(m).map((s) => [s.name, s.state]));

describe('steps of a run', () => {
  it('are those that its run file asks for, with what is done, what is now, and what is to come', () => {
    expect(states(model({}, 'training'))).toEqual({
      untrained: 'done',
      reading: 'done',
      demonstrations: 'done',
      'warm start': 'done',
      training: 'now',
      evaluation: 'next',
    });
    expect(states(model({}, 'reading'))['reading']).toBe('now');
    expect(stepsOf(model({}, 'training')).find((s) => s.name === 'reading')!.took).toBeGreaterThan(0);
    const bare = model({}, 'training', (r) => ({
      ...r,
      detail: {
        ...r.detail,
        evals: [],
        config: { evaluation: { episodes: 0 } },
        timeline: { phases: [{ phase: 'training', from: r.createdAt }], outages: [] },
      },
    }));
    expect(states(bare)).toEqual({ training: 'now' });
  });
  it('of a run that ended early say what it never reached; an evaluation in between is no step of its own', () => {
    expect(states(model({ state: 'stopped' }))['evaluation']).toBe('skipped');
    expect(states(model({ state: 'stopped' }))['training']).toBe('done');
    expect(states(model({}, 'evaluating'))['training']).toBe('now');
    const spent = model({ minutes: 20, budgetMinutes: 20 }, 'evaluating');
    expect(states(spent)['evaluation']).toBe('now');
    expect(stepsOf(emptyModel('/r', 'ready'))).toEqual([]);
  });
  it('are the same while the runtime is away; what is left is not known then', () => {
    const away = (m: Model): Model => reduce(m, { type: 'daemon', state: 'reconnecting' });
    expect(states(away(model({}, 'training')))).toEqual(states(model({}, 'training')));
    const spent = away(model({ minutes: 20, budgetMinutes: 20 }, 'evaluating'));
    expect(states(spent)['evaluation']).toBe('now');
    expect(leftMs(spent)).toBeUndefined();
  });
});

describe('what is left', () => {
  it('is what the first budget leaves, at the pace of now', () => {
    const m = model({ minutes: 13, budgetMinutes: 20 }, 'training');
    expect(leftMs(m)).toBe(7 * 60_000);
    const few = model({ minutes: 13, budgetMinutes: 20 }, 'training', (r) => ({
      ...r,
      detail: {
        ...r.detail,
        config: { budget: { rollouts: r.status.rollouts + Math.round(r.status.rolloutsPerHour / 60) } },
      },
    }));
    expect(leftMs(few)! / 60_000).toBeCloseTo(1, 1);
    // More minutes than its run file says, and no other limit: the run says which hold.
    const more = model({ minutes: 13, budgetMinutes: 20 }, 'training', (r) => ({
      ...r,
      status: { ...r.status, limits: {} },
      detail: { ...r.detail, config: { budget: { rollouts: r.status.rollouts } } },
    }));
    expect(leftMs(more)).toBe(7 * 60_000);
    expect(leftMs(model({ state: 'finished' }))).toBeUndefined();
  });
});

describe('facts of a run', () => {
  it('name policy, tasks, learning rate, disk and machine; what is not known is left out', () => {
    const m = model({}, 'training'),
      known = reduce(m, {
        type: 'footprint',
        footprint: { bytes: 1.234e9, atLeast: true, machine: { processor: '', cores: 1, memoryBytes: 16e9 } },
      });
    expect(factsOf(m).map((f) => f.label)).toEqual(['Seed', 'Policy', 'Tasks', 'Learning rate']);
    expect(factsOf(known).map((f) => f.value)).toEqual([
      '1',
      'embedded',
      'desk, 13 families',
      '0.00012',
      'over 1.2 GB',
      '1 core, 16.0 GB memory',
    ]);
    const vlm = model({}, 'training', (r) => ({
      ...r,
      detail: {
        ...r.detail,
        config: {
          policy: { kind: 'vlm', vlm: { model: 'ByteDance-Seed/UI-TARS-1.5-7B' } },
          trainer: { remote: { rank: 16 } },
        },
      },
    }));
    expect(factsOf(vlm).find((f) => f.label === 'Policy')!.value).toBe('UI-TARS-1.5-7B, LoRA of rank 16');
    expect(learningRate(emptyModel('/r', 'ready'))).toBeUndefined();
    expect([0, 999, 1000, 274_516, 1e12].map(bytes)).toEqual(['0 B', '999 B', '1.0 kB', '275 kB', '1.0 TB']);
  });
});

describe('names along a chart', () => {
  it('never run into one another, whatever places they begin at', () => {
    const names = [0, 12, 14, 15, 16, 90].map((at) => ({ at, width: 40 })),
      rows = rowsFor(names, { start: 0, end: 130, rows: 4, gap: 4 });
    expect(rows).toEqual([0, 1, 2, 3, undefined, 0]);
    names.forEach((a, i) =>
      names.forEach((b, j) => {
        if (i < j && rows[i] !== undefined && rows[i] === rows[j]) expect(b.at).toBeGreaterThanOrEqual(a.at + a.width);
      }),
    );
    // Outside of what is shown, and where it would be cut off at the end.
    expect(
      rowsFor(
        [
          { at: -5, width: 10 },
          { at: 95, width: 10 },
        ],
        { start: 0, end: 100, rows: 1, gap: 0 },
      ),
    ).toEqual([undefined, undefined]);
  });
  it('of places that look like one the last alone has its name', () => {
    const names = [0, 2, 3, 5, 60, 65].map((at) => ({ at, width: 30 }));
    expect(rowsFor(names, { start: 0, end: 200, rows: 4, gap: 4, near: 4 })).toEqual([
      undefined,
      undefined,
      undefined,
      0,
      0,
      1,
    ]);
  });
});
