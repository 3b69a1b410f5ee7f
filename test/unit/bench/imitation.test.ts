import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { imitationPlan } from '../../bench/imitation/plan.js';
import { imitationReport, pairs, type Imitated, type QuickstartFile } from '../../bench/imitation/report.js';

const of = (successes: number): { episodes: number; successes: number } => ({ episodes: 100, successes });
const imitated = (seed: number, tuned: number): Imitated => ({
  seed,
  steps: 3000,
  seconds: 900,
  tuned: of(tuned),
  reported: { heldout: of(70), words: of(80) },
});
const quickstart = (seed: number, short: number, rl: number): QuickstartFile => ({
  seed,
  rows: [{ label: 'heldout', ...of(90) }],
  points: [
    { label: 'untrained', ...of(0) },
    { label: 'warm start', ...of(short) },
    { label: 'final', ...of(rl) },
  ],
});

describe('imitation alone beside the quick start', () => {
  it('is the quick start with another number of updates and no reinforcement learning', () => {
    const [a, b] = imitationPlan({ seeds: [1, 2], steps: 3000, quick: false }),
      c = parseRunFile(a!.file),
      q = parseRunFile({ preset: 'quickstart' });
    expect(c.warmStart).toEqual({ ...q.warmStart, steps: 3000 });
    expect(c.tasks).toEqual(q.tasks);
    expect(c.budget.rollouts).toBe(1);
    expect([a!.seed, b!.seed]).toEqual([1, 2]);
  });

  it('takes of both lengths of imitation the one that is better on the probe for tuning', () => {
    const both = pairs(
      [imitated(1, 80), imitated(2, 60), imitated(3, 60)],
      [quickstart(1, 70, 95), quickstart(2, 70, 90)],
    );
    expect(both).toEqual([
      { seed: 1, rl: of(95), best: of(80) },
      { seed: 2, rl: of(90), best: of(70) },
    ]);
  });

  it('reports the share of its failures that RL removes, seed by seed', () => {
    const { bars, markdown } = imitationReport(
      [imitated(1, 80), imitated(2, 60)],
      [quickstart(1, 70, 95), quickstart(2, 70, 90)],
    );
    const [removed, low] = bars;
    // 20 and 30 failures, of which 5 and 10 are left.
    expect(removed!.value).toBeCloseTo(0.7, 2);
    expect(low!.value).toBeLessThan(removed!.value);
    expect(low!.value).toBeGreaterThan(0.4);
    expect(markdown).toContain('| words | 80 %');
    expect(markdown).not.toMatch(/NaN|undefined/);
    expect(imitationReport([imitated(1, 80)], []).bars).toEqual([]);
  });
});
