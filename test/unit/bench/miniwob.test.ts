import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';
import { deskFirst, trainOn } from '../../bench/miniwob/plan.js';
import { meanSuccess, miniwobBars, pageResults } from '../../bench/miniwob/report.js';
import { resetBars, resetRows, spread, type Reset } from '../../bench/miniwob/resetsReport.js';

/** What commit aceb4142, of which the figures are, trained with; presets and defaults are not asked. */
const plan = { dir: '/pages', pages: ['miniwob/click-test'], seed: 1, minutes: 60, quick: false },
  learns = { lr: 5e-4, minibatchStates: 24, replay: 24, entropyBonus: 0.002, imitationCoef: 0.3 };

describe('the plan of bench:miniwob', () => {
  it('inherits nothing from a preset: these change', () => {
    for (const quick of [false, true])
      for (const e of [deskFirst({ ...plan, quick }), trainOn({ ...plan, quick })])
        expect(Object.keys(e.file)).not.toContain('preset');
  });

  it('teaches on desks with what was recorded', () => {
    const c = parseRunFile(deskFirst(plan).file);
    expect(c.warmStart).toMatchObject({ demonstrations: 6, steps: 900, lr: 2e-3, shift: 80, tones: 0.5 });
    expect(c.warmStart.reading).toMatchObject({ screens: 480, steps: 1600, lr: 4e-3 });
    expect(c.warmStart.reading.fonts).toHaveLength(12);
    expect(c.trainer).toMatchObject({ ...learns, lrDecay: 0.4, replayVaried: false });
    expect([c.policy.temperature, c.curation.planner, c.budget]).toEqual([0.6, 'variance', { minutes: 12 }]);
  });
  it('on the templates that there were, which there still are', () => {
    const named = deskFirst(plan).file.tasks!.families!,
      there = new Map(deskSuite().families.map((f) => [f.id as string, f]));
    expect(new Set(named).size).toBe(53);
    for (const name of named) expect(there.get(name), name).toMatchObject({ split: 'train', infeasible: false });
  });

  it('goes on on pages with what was recorded', () => {
    const c = parseRunFile(trainOn(plan).file);
    expect(c.warmStart).toMatchObject({ demonstrations: 0, steps: 0, shift: 16, tones: 0.5 });
    expect(c.warmStart.reading).toMatchObject({ screens: 480, steps: 1600, lr: 4e-3, fonts: [] });
    expect(c.trainer).toMatchObject({ ...learns, lrDecay: 0.7, replayVaried: true });
    expect([c.policy.temperature, c.curation.planner, c.curation.pilot]).toEqual([0.8, 'variance', 4]);
    expect([c.budget, c.rollout.maxSteps, c.desktops.count]).toEqual([{ minutes: 48 }, 8, 8]);
  });
});

describe('the report of bench:miniwob', () => {
  const count = (successes: number) => ({ episodes: 50, successes }),
    pages = pageResults({
      trained: { a: count(50), b: count(50), c: count(10) },
      blind: { a: count(0) },
      random: { a: count(0), b: count(0) },
    });
  it('counts a page only where both controls were measured and do not solve it', () => {
    expect(pages.map((p) => [p.page, p.at80])).toEqual([
      ['a', true],
      ['b', false],
      ['c', false],
    ]);
  });
  it('has no bar for the mean where nothing stands against it', () => {
    expect(miniwobBars(pages, 'solved').map((b) => b.name)).toEqual(['tasks_at_80']);
    expect(miniwobBars(pages, 'all').map((b) => b.name)).toEqual(['tasks_at_80', 'mean_success']);
    const { trained, low, high } = meanSuccess(pages);
    expect(trained).toBeCloseTo(110 / 150);
    expect([low < 0.5, high > 0.9]).toEqual([true, true]);
  });
});

describe('resets of bench:miniwob', () => {
  const reset = (page: string, begun: number): Reset => ({
      page,
      tidied: 8,
      begun,
      rested: 1,
      seen: 1,
      whole: begun + 10,
    }),
    found = {
      same: [20, 30, 300].map((begun) => reset('a', begun)),
      other: [100, 251, 900].map((begun, i) => reset(`p${i}`, begun)),
    };
  it('are judged by the median of the browser’s part, and say the whole', () => {
    expect(resetBars(found)).toMatchObject([
      { name: 'reset_same_page_ms', value: 30, goal: '<= 50', holds: true },
      { name: 'reset_other_page_ms', value: 251, goal: '<= 250', holds: false },
    ]);
    for (const [i, whole] of ['(95 %: 300); from episode to episode 40 (95 %: 310)', 'to episode 261 '].entries())
      expect(resetBars(found)[i]!.unit).toContain(whole);
  });
  it('are told part by part, with the slowest pages', () => {
    const rows = resetRows(found);
    expect(rows.map((r) => r['part'])).toEqual([
      'whole',
      'tidied',
      'begun',
      'rested',
      'seen',
      'whole',
      'tidied',
      'begun',
      'rested',
      'seen',
    ]);
    expect(rows[5]).toMatchObject({ on: 'another page', pages: 3, n: 3, 'p50 ms': 261, 'p95 ms': 910 });
    expect(rows[5]!['slowest']).toBe('p2 910, p1 261, p0 110');
    expect(rows[0]).toMatchObject({ on: 'the same page', pages: 1 });
  });
  it('have pages from the whole list, none twice', () => {
    const names = Array.from({ length: 130 }, (_, i) => `p${i}`),
      some = spread(names, 50);
    expect([new Set(some).size, some[0], some.at(-1)]).toEqual([50, 'p0', 'p127']);
    expect(spread(names.slice(0, 7), 50)).toEqual(names.slice(0, 7));
  });
});
