import {
  failuresRemoved,
  hierarchicalBootstrap,
  outcomesOf,
  pairedBootstrap,
} from '../../../runtime/domain/bootstrap.js';
import type { BootstrapInterval } from '../../../runtime/domain/bootstrap.js';
import type { Count } from '../lib/evaluated.js';
import { bar, type Bar } from '../lib/report.js';
import { markdown } from '../schedule/report.js';
import { SPLITS, type Split } from './plan.js';

/** A quick start's file, as `npm run quickstart -- --json FILE` writes it. */
export interface QuickstartFile {
  readonly seed: number;
  readonly rows: readonly (Count & { readonly label: string })[];
  readonly points: readonly (Count & { readonly label: string })[];
}
/** One seed that imitated for longer. */
export interface Imitated {
  readonly seed: number;
  readonly steps: number;
  /** Of the whole run: demonstrations, reading lessons, imitation. */
  readonly seconds: number;
  /** On the probe for tuning, after its last update. */
  readonly tuned: Count;
  /** On the sets for reporting. */
  readonly reported: Readonly<Record<string, Count>>;
}
interface Pair {
  readonly seed: number;
  /** Of both lengths of imitation, the one that does better on the probe for tuning. */
  readonly best: Count;
  readonly rl: Count;
}

/** Imitation at its best beside the same seed's quick start. Seeds that only one of both has are left out. */
export function pairs(imitated: readonly Imitated[], quickstart: readonly QuickstartFile[]): Pair[] {
  return imitated.flatMap((i) => {
    const q = quickstart.find((x) => x.seed === i.seed),
      point = (label: string): Count | undefined => countOf(q?.points.findLast((p) => p.label === label)),
      short = point('warm start'),
      rl = point('final');
    if (!short || !rl) return [];
    return [{ seed: i.seed, rl, best: rate(i.tuned) >= rate(short) ? i.tuned : short }];
  });
}

export function imitationReport(
  imitated: readonly Imitated[],
  quickstart: readonly QuickstartFile[],
): { readonly bars: readonly Bar[]; readonly rows: readonly Record<string, unknown>[]; readonly markdown: string } {
  const both = pairs(imitated, quickstart),
    removed = pairedBootstrap(
      both.map((p) => [outcomes(p.best), outcomes(p.rl)]),
      failuresRemoved,
    ),
    of = (label: Split): BootstrapInterval[] => [
      over(imitated.flatMap((i) => i.reported[label] ?? [])),
      over(quickstart.flatMap((q) => q.rows.filter((r) => r.label === label))),
    ];
  return {
    bars:
      both.length === 0
        ? []
        : [
            bar(
              'failures_removed_by_rl_at_best',
              removed.mean,
              `of what imitation at its best leaves, ${both.length} seeds`,
              '>= 0.5',
            ),
            bar('failures_removed_by_rl_at_best_low', removed.low, 'lower end of its interval', '>= 0'),
          ],
    rows: [
      ...imitated.map((i) => ({ section: 'imitation', ...i })),
      ...both.map((p) => ({ section: 'pair', ...p })),
      ...(both.length === 0 ? [] : [{ section: 'removed', ...removed }]),
    ],
    markdown: [
      markdown(
        ['the policy on', 'imitation alone, longer', 'quick start'],
        [
          ['probe for tuning', written(over(imitated.map((i) => i.tuned))), written(over(both.map((p) => p.rl)))],
          ...SPLITS.map((s) => [s, ...of(s).map(written)]),
        ],
      ),
      '',
      `Reinforcement learning removes ${written(removed)} of the failures that imitation leaves at its best.`,
      '',
    ].join('\n'),
  };
}

const countOf = (c: Count | undefined): Count | undefined => c && { episodes: c.episodes, successes: c.successes };
const rate = (c: Count): number => c.successes / Math.max(1, c.episodes);
const outcomes = (c: Count): readonly number[] => outcomesOf(c.successes, c.episodes);
const over = (counts: readonly Count[]): BootstrapInterval => hierarchicalBootstrap(counts.map(outcomes));
const percent = (x: number): string => (100 * x).toFixed(0);
const written = (i: BootstrapInterval): string =>
  Number.isFinite(i.mean) ? `${percent(i.mean)} % [${percent(i.low)}, ${percent(i.high)}]` : '–';
