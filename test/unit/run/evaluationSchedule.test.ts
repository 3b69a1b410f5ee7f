import { describe, expect, it } from 'vitest';
import type { EvalPoint } from '../../../runtime/run/evaluateEpisodes.js';
import { EvaluationSchedule } from '../../../runtime/run/evaluationSchedule.js';

const MINUTE = 60_000;
const point = (label: string, version = 0): EvalPoint => ({
  label,
  version,
  episodes: 4,
  successes: 1,
  errors: 0,
  low: 0,
  high: 1,
  perFamily: {},
  infeasible: { episodes: 0, successes: 0 },
});
const schedule = (
  o: Partial<{ episodes: number; everyMinutes: number; untrained: boolean }> = {},
  earlier: readonly EvalPoint[] = [],
): EvaluationSchedule => new EvaluationSchedule({ episodes: 4, everyMinutes: 2, untrained: true, ...o }, earlier);

describe('when a run evaluates', () => {
  it('measures each label once, earlier parts of the run included', () => {
    const s = schedule();
    expect(s.untrainedDue()).toBe(true);
    s.measured(point('untrained'));
    expect(s.untrainedDue()).toBe(false);
    expect(schedule({}, [point('untrained')]).untrainedDue()).toBe(false);
    expect(schedule({ untrained: false }).untrainedDue()).toBe(false);
    expect(s.points.map((p) => p.label)).toEqual(['untrained']);
  });

  it('measures the warm start as long as nothing was learned since, also after a resume', () => {
    const s = schedule({}, [point('untrained')]);
    expect(s.warmStartDue(0, undefined)).toBe(false);
    expect(s.warmStartDue(2, 2)).toBe(true);
    expect(s.warmStartDue(3, 2)).toBe(false);
    s.measured(point('warm start', 2));
    expect(s.warmStartDue(2, 2)).toBe(false);
  });

  it('ends with a final one when there is something that was not measured', () => {
    const untrained = [point('untrained')],
      warm = [...untrained, point('warm start', 2)];
    // The budget was spent before anything was learned; after the reading; after the warm start was measured.
    expect(schedule({}, untrained).finalDue(0, 0)).toBe(false);
    expect(schedule().finalDue(0, 0)).toBe(false);
    expect(schedule({}, untrained).finalDue(1, 0)).toBe(true);
    expect(schedule({}, warm).finalDue(2, 0)).toBe(false);
    // Reinforcement learning took place, with an update or (a remote model) without.
    expect(schedule({}, warm).finalDue(2, 7)).toBe(true);
    expect(schedule({}, untrained).finalDue(0, 7)).toBe(true);
    // Resumed without anything to do; resumed and trained on.
    expect(schedule({}, [...warm, point('final', 9)]).finalDue(9, 70)).toBe(false);
    expect(schedule({}, [...warm, point('final', 9)]).finalDue(11, 90)).toBe(true);
  });

  it('is off without episodes', () => {
    const s = schedule({ episodes: 0 });
    s.begin(0);
    expect([s.untrainedDue(), s.warmStartDue(1, 1), s.finalDue(5, 50), s.nextIn(0, Infinity), s.labelAt(1)]).toEqual([
      false,
      false,
      false,
      undefined,
      undefined,
    ]);
  });

  it('evaluates every so many minutes of reinforcement learning, counted from its beginning', () => {
    const s = schedule();
    s.begin(3 * MINUTE);
    expect(s.nextIn(3 * MINUTE, Infinity)).toBe(2 * MINUTE);
    expect(s.nextIn(4.5 * MINUTE, Infinity)).toBe(0.5 * MINUTE);
    // One that took longer than the interval leaves the next one where it was.
    expect(s.nextIn(7.25 * MINUTE, Infinity)).toBe(1.75 * MINUTE);
    expect(s.labelAt(5 * MINUTE)).toBe('after 5 min');
    s.measured(point('after 5 min', 4));
    expect(s.labelAt(5 * MINUTE)).toBeUndefined();
    expect(schedule({ everyMinutes: 0 }).nextIn(0, Infinity)).toBeUndefined();
  });

  it('begins none that the end of the budget would overtake', () => {
    const s = schedule();
    s.begin(0);
    expect(s.nextIn(0, 3 * MINUTE)).toBeUndefined();
    expect(s.nextIn(0, 3 * MINUTE + 1)).toBe(2 * MINUTE);
    expect(s.nextIn(2 * MINUTE, 2 * MINUTE)).toBeUndefined();
  });
});
