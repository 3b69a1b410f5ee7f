import { markdown } from '../schedule/report.js';
import { estimate } from '../schedule/statistics.js';
import { LATER } from './plan.js';
import type { Recorded } from './record.js';

/** What a row that was thought of later is compared with: runs of the same seeds. */
const AGAINST = ['none', 'pool'] as const;
const LABELS: Readonly<Record<(typeof AGAINST)[number], string>> = {
  none: 'reinforcement learning without curation',
  pool: 'the pool alone',
};

const wordsOf = (recorded: readonly Recorded[], variant: string, seed: number): number | undefined => {
  const c = recorded.find((r) => r.variant === variant && r.seed === seed)?.measured['words'];
  return c && c.successes / c.episodes;
};

/** Differences seed by seed, in points of success on unseen words, and their mean over seeds. */
export function laterRows(recorded: readonly Recorded[]): Record<string, unknown>[] {
  return LATER.flatMap(({ name, label }) =>
    AGAINST.flatMap((other) => {
      const seeds = [...new Set(recorded.filter((r) => r.variant === name).map((r) => r.seed))].sort((a, b) => a - b),
        each = seeds.flatMap((seed) => {
          const a = wordsOf(recorded, name, seed),
            b = wordsOf(recorded, other, seed);
          return a === undefined || b === undefined ? [] : [100 * (a - b)];
        });
      if (each.length === 0) return [];
      const { mean, half } = estimate(each),
        points = (x: number): string => `${x < 0 ? '' : '+'}${x.toFixed(1)}`;
      return [
        {
          section: 'later',
          row: name,
          label,
          against: LABELS[other],
          each: each.map(points).join(', '),
          points: Number.isNaN(half) ? points(mean) : `${points(mean)} ± ${half.toFixed(1)}`,
          mean,
          half,
        },
      ];
    }),
  );
}

export const laterTable = (rows: readonly Record<string, unknown>[]): string =>
  [
    'Thought of when the rows above had been seen, and made afterwards (`--later`) from starting policies made anew by the same plan: differences in points of success on unseen words, seed by seed, and their mean ± Student’s t over seeds.',
    '',
    markdown(
      ['', 'against', 'seed by seed', 'points'],
      rows.map((r) => ['label', 'against', 'each', 'points'].map((k) => String(r[k]))),
    ),
  ].join('\n');
