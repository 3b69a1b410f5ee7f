import type { Bar } from '../lib/report.js';
import { bar, barOfMost } from '../lib/report.js';
import type { Lists } from './lists.js';
import type { Cell, Field, Ratio } from './report.js';
import { cellEstimate, ratioOf } from './report.js';
import { estimate } from './statistics.js';
import { loadWorkload } from './workload.js';

const UTILISATION = {
  'desktops, strict': ['strict', 'strictAtBound'],
  'desktops, loose': ['loose', 'loose'],
  replicas: ['replicaBusy', 'replicaAtBound'],
} as const satisfies Record<string, readonly [Field, Field]>;

/** Shares of resources, d over `under`; the most of the loose share is all of the desktops. */
export const utilisationRatios = (d: Cell, under: Cell): Ratio[] =>
  Object.entries(UTILISATION).map(([of, [field, atBound]]) => {
    const { mean, half } = ratioOf(d, under, field),
      most =
        field === 'loose'
          ? 1 / cellEstimate(under, field).mean
          : estimate(d.runs.map((_, i) => one(d, i, atBound) / one(under, i, field))).mean;
    return { of, value: mean, half, most };
  });
const one = (c: Cell, i: number, f: Field): number => cellEstimate({ ...c, runs: c.runs.slice(i, i + 1) }, f).mean;

/** The bars of the regimes; `cells` are all that were simulated. */
export function regimeBars(cells: readonly Cell[], ratios: readonly Ratio[], lists: Lists): Bar[] {
  const d = cells.filter((c) => c.arrangement.name === 'd'),
    steady = d.filter((c) => c.workload !== 'faults'),
    onDart = d.filter((c) => c.workload === 'dart-like'),
    faulty = d.find((c) => c.workload === 'faults'),
    worst = steady.reduce((p, c) => (cellEstimate(c, 'ratio').mean < cellEstimate(p, 'ratio').mean ? c : p)),
    every = (of: readonly Cell[], f: Field): number[] => of.flatMap((c) => c.runs.map((_, i) => one(c, i, f))),
    [strict, replicas] = ['desktops, strict', 'replicas'].map((of) => ratios.find((r) => r.of === of)!);
  return [
    barOfMost('strict_env_utilisation_ratio', strict!.value, 'x', strict!.most),
    barOfMost('trained_actions_ratio_equal_rollouts', lists.ratio.value, 'x', lists.ratio.most),
    // The three ratios hold where d comes near its bound, whatever a does: that d beats a is this one.
    ...(Number.isFinite(lists.ratio.half)
      ? [
          bar(
            'trained_actions_ratio_low',
            lists.ratio.value - lists.ratio.half,
            'x, lower end of d over a, the same rollouts',
            '> 1',
          ),
        ]
      : []),
    barOfMost('replica_utilisation_ratio', replicas!.value, 'x', replicas!.most),
    bar(
      'x_over_bound_min',
      cellEstimate(worst, 'ratio').mean,
      `X* (regime d, ${worst.workload}; faults have a bar of their own)`,
      '>= 0.97',
    ),
    bar('x_over_bound_max', Math.max(...every(cells, 'ratio')), 'X* (every regime, workload and seed)', '<= 1'),
    ...(faulty ? [bar('x_over_bound_faults', cellEstimate(faulty, 'ratio').mean, 'X*', '>= 0.88')] : []),
    bar(
      'pool_injections',
      Math.min(...every(onDart, 'injections')),
      'in the run with fewest (dart-like, regime d)',
      '>= 1',
    ),
    bar('sync_failed_requests', Math.max(...every(d, 'failed')), 'requests', '<= 0'),
    bar(
      'sync_capacity_missing',
      Math.max(...d.flatMap((c) => c.runs.map((m) => (1 - m.servingMin) * loadWorkload(c.workload).replicas))),
      'replicas at once',
      '<= 1',
    ),
    bar(
      'sync_downtime',
      100 * Math.max(...d.map((c) => cellEstimate(c, 'syncDown').mean)),
      '% of replica time',
      '<= 0.5',
    ),
    bar('stale_discards', Math.max(...every(d, 'stale')), 'rollouts', '<= 0'),
    bar(
      'staleness_over_eta',
      Math.max(...d.flatMap((c) => c.runs.map((m) => m.staleness.max - m.eta))),
      'updates',
      '<= 0',
    ),
  ];
}
