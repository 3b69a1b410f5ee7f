import { describe, expect, it } from 'vitest';
import { laterRows } from '../../bench/curation/laterRows.js';
import { MECHANISMS } from '../../bench/curation/mechanisms.js';
import { curationPlan, laterRuns, planId, type CurationPlan } from '../../bench/curation/plan.js';
import type { Recorded } from '../../bench/curation/record.js';

const plan: CurationPlan = { seeds: [2], mechanisms: MECHANISMS, minutes: 5, words: 144, heldout: 48, quick: false };

describe('rows that were thought of after the plan', () => {
  it('differ from those that they are compared with in what they are about, and leave the plan what it was', () => {
    const planned = curationPlan(plan),
      [again, success] = laterRuns(plan),
      start = planned.find((x) => x.experiment.variant === 'start')!,
      pool = planned.find((x) => x.experiment.variant === 'pool')!;
    expect(again!.experiment).toEqual({ ...start.experiment, name: 's2-start-again', variant: 'start-again' });
    expect(success!.experiment.from).toBe('s2-start-again');
    const { curation, name: _, ...rest } = success!.experiment.file,
      { curation: before, name: _n, ...others } = pool.experiment.file;
    expect(rest).toEqual(others);
    expect(curation).toEqual({ ...before, pool: { ...before!.pool, learn: 'success' } });
    expect(planned.map((x) => x.experiment.name)).not.toContain(success!.experiment.name);
    expect(planId(plan)).toBe(planId({ ...plan, seeds: [1, 2, 3, 4] }));
  });

  it('are told seed by seed against those of the same seed', () => {
    const run = (variant: string, seed: number, successes: number): Recorded =>
      ({ variant, seed, measured: { words: { successes, episodes: 100 } } }) as unknown as Recorded;
    const rows = laterRows([
      ...[1, 2, 3].flatMap((seed) => [run('none', seed, 50), run('pool', seed, 40 + seed)]),
      run('pool-success', 1, 52),
      run('pool-success', 2, 54),
    ]);
    expect(rows.map((r) => [r['against'], r['each'], r['points']])).toEqual([
      ['reinforcement learning without curation', '+2.0, +4.0', '+3.0 ± 12.7'],
      ['the pool alone', '+11.0, +12.0', '+11.5 ± 6.4'],
    ]);
    expect(laterRows([run('none', 1, 50)])).toEqual([]);
  });
});
