import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RATES, SPLITS, STEPS, imitationPlan } from '../../bench/imitation/plan.js';
import {
  imitationReport,
  needNoEyes,
  pairs,
  recordedIn,
  type Imitated,
  type QuickstartFile,
} from '../../bench/imitation/report.js';
import type { SplitCount } from '../../bench/lib/evaluated.js';

const of = (successes: number): { episodes: number; successes: number } => ({ episodes: 100, successes });
/** Half of the episodes are of a template that needs no eyes, and that is always solved. */
const seen = (successes: number): SplitCount => ({
  ...of(successes),
  perFamily: {
    'desk/keys': { episodes: 50, successes: 50 },
    'desk/eyes': { episodes: 50, successes: successes - 50 },
  },
});
const imitated = (seed: number, steps: number, tuned: number, test: number): Imitated => ({
  seed,
  steps,
  lr: 2e-3,
  seconds: 900,
  tuned: of(tuned),
  reported: { heldout: seen(test), words: of(80), 'heldout-blind': of(50) },
  commit: 'c0ffee',
  cpu: 'EPYC',
});
const quickstart = (seed: number, test: number): QuickstartFile => ({
  seed,
  rows: [
    { label: 'heldout', ...seen(test) },
    { label: 'words', ...of(97) },
  ],
});

describe('imitation alone beside the quick start', () => {
  it('is the quick start with other numbers of updates and no reinforcement learning', () => {
    const plan = imitationPlan({ seeds: [1, 2], steps: STEPS, rates: RATES, quick: false }),
      q = parseRunFile({ preset: 'quickstart' });
    expect(STEPS).toEqual(expect.arrayContaining([600, 3000, 8000]));
    expect(plan.map((e) => [e.seed, e.file.warmStart!.steps])).toEqual([1, 2].flatMap((s) => STEPS.map((n) => [s, n])));
    expect(new Set(plan.map((e) => e.name)).size).toBe(plan.length);
    for (const e of plan) {
      const c = parseRunFile(e.file);
      expect(c.warmStart).toEqual({ ...q.warmStart, steps: e.file.warmStart!.steps });
      expect(c.tasks).toEqual(q.tasks);
      expect(c.budget.rollouts).toBe(1);
      // The preset's 20 minutes would end the longest imitation halfway.
      expect(c.budget.minutes).toBeGreaterThan(120);
      expect(e.splits).toEqual(SPLITS);
    }
    expect(SPLITS).toEqual(expect.arrayContaining(['heldout-blind', 'words-blind']));
  });
  it('goes on beside the seeds of an earlier session, each with what made it', () => {
    const made = [imitated(1, 600, 90, 88)],
      report = { ...imitationReport(made, [], []), commit: 'beef', machine: { cpu: 'Xeon' } };
    expect(recordedIn(report)).toEqual(made);
    const { commit: _, cpu: __, ...before } = made[0]!;
    expect(recordedIn({ ...report, rows: [{ section: 'imitation', ...before }] })).toEqual([
      { ...before, commit: 'beef', cpu: 'Xeon' },
    ]);
  });
  it('tries other rates where it is asked to, under names of their own', () => {
    const plan = imitationPlan({ seeds: [1], steps: [600], rates: [...RATES, 1e-3], quick: false });
    expect(plan.map((e) => [e.name, e.file.warmStart!.lr])).toEqual([
      ['imitation-600-s1', RATES[0]],
      ['imitation-600-lr0.001-s1', 1e-3],
    ]);
  });

  it('chooses a length on the set for tuning, and counts on that for reporting', () => {
    // What is best for reporting, 90, is not what is best for tuning.
    const both = pairs(
      [imitated(1, 600, 70, 90), imitated(1, 3000, 80, 60), imitated(1, 8000, 80, 75), imitated(3, 600, 70, 70)],
      [quickstart(1, 95), quickstart(2, 95)],
    );
    expect(both).toEqual([{ seed: 1, chosen: { steps: 3000, lr: 2e-3 }, best: seen(60), rl: seen(95) }]);
  });

  it('reports the share of its failures that RL removes, seed by seed, and on templates that need to see', () => {
    const { bars, markdown, rows } = imitationReport(
      [imitated(1, 600, 60, 60), imitated(1, 3000, 70, 80), imitated(2, 600, 80, 70)],
      [quickstart(1, 95), quickstart(2, 90)],
      needNoEyes({
        rows: [
          { section: 'template', family: 'desk/keys', blind: true },
          { section: 'template', family: 'desk/eyes', blind: false },
        ],
      }),
    );
    const [removed, low] = bars;
    expect(bars.map((b) => b.name)).toEqual(['failures_removed_by_rl_at_best', 'failures_removed_by_rl_at_best_low']);
    // 20 and 30 failures, of which 5 and 10 are left; all are of the template that needs to see.
    expect(removed!.value).toBeCloseTo(0.7, 2);
    // Student's t of two seeds that differ by a twelfth: 12.7 x 0.059 / sqrt(2) on each side.
    expect(low!.value).toBeCloseTo(0.7 - 0.53, 2);
    expect(rows.find((r) => r['section'] === 'removed')).toMatchObject({ on: 'heldout' });
    expect(rows.find((r) => r['section'] === 'removed, sighted')!['mean']).toBeCloseTo(0.7, 2);
    expect(rows.find((r) => r['section'] === 'imitation')).toMatchObject({ reported: { heldout: seen(60) } });
    expect(markdown).toContain('| heldout-blind | 50 %');
    expect(markdown).toContain('seed 1 3000 updates at 0.002, seed 2 600 updates at 0.002');
    expect(markdown).not.toMatch(/NaN|undefined/);
    expect(imitationReport([imitated(1, 600, 80, 80)], [], []).bars).toEqual([]);
  });
});
