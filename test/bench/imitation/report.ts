import { hierarchicalBootstrap, outcomesOf } from '../../../runtime/domain/bootstrap.js';
import type { BootstrapInterval } from '../../../runtime/domain/bootstrap.js';
import type { Count, SplitCount } from '../lib/evaluated.js';
import { removedInterval } from '../lib/interval.js';
import { bar, type Bar } from '../lib/report.js';
import { markdown } from '../schedule/report.js';
import { SPLITS, type Split } from './plan.js';

/** A quick start's file, as `npm run quickstart -- --json FILE` writes it. */
export interface QuickstartFile {
  readonly seed: number;
  /** On the sets for reporting. */
  readonly rows: readonly (SplitCount & { readonly label: string })[];
}
/** One seed that imitated for so many updates at such a rate. */
export interface Imitated {
  readonly seed: number;
  readonly steps: number;
  readonly lr: number;
  /** Of the whole run: demonstrations, reading lessons, imitation. */
  readonly seconds: number;
  /** On the set for tuning, after its last update: what chooses among the candidates of a seed. */
  readonly tuned: Count;
  /** On the sets for reporting, which choose nothing. */
  readonly reported: Readonly<Record<string, SplitCount>>;
  /** What made it: seeds of one table may be of several sessions. */
  readonly commit: string;
  readonly cpu: string;
}
/** The seeds of a report that was written before, each with what made it. */
export function recordedIn(report: unknown): Imitated[] {
  const { rows, commit, machine } = report as {
    readonly rows: readonly (Omit<Imitated, 'commit' | 'cpu'> &
      Partial<Pick<Imitated, 'commit' | 'cpu'>> & { readonly section?: string })[];
    readonly commit: string;
    readonly machine: { readonly cpu: string };
  };
  return rows.flatMap(({ section, ...i }) => (section === 'imitation' ? [{ commit, cpu: machine.cpu, ...i }] : []));
}
interface Pair {
  readonly seed: number;
  /** The candidate that is best on the set for tuning; of those that are alike, the one with the fewest updates. */
  readonly chosen: Pick<Imitated, 'steps' | 'lr'>;
  /** It and the quick start's policy on the set for reporting. */
  readonly best: SplitCount;
  readonly rl: SplitCount;
}
/** The split on which failures are counted. */
const ON: Split = 'heldout';

/** Imitation at its best beside the same seed's quick start. Seeds that only one of both has are left out. */
export function pairs(imitated: readonly Imitated[], quickstart: readonly QuickstartFile[]): Pair[] {
  return [...new Set(imitated.map((i) => i.seed))].flatMap((seed) => {
    const [first] = imitated
        .filter((i) => i.seed === seed)
        .sort((a, b) => rate(b.tuned) - rate(a.tuned) || a.steps - b.steps),
      best = first?.reported[ON],
      rl = quickstart.find((q) => q.seed === seed)?.rows.find((r) => r.label === ON);
    if (!first || !best || !rl) return [];
    return [{ seed, chosen: { steps: first.steps, lr: first.lr }, best: countOf(best), rl: countOf(rl) }];
  });
}

/** Templates that a policy trained on blank screens solves, of the recorded bench:blind. */
export function needNoEyes(report: unknown): string[] {
  const { rows } = report as { rows: readonly { section?: string; blind?: boolean; family?: string }[] };
  return rows.flatMap((r) => (r.section === 'template' && r.blind && r.family !== undefined ? [r.family] : []));
}

export function imitationReport(
  imitated: readonly Imitated[],
  quickstart: readonly QuickstartFile[],
  blind: readonly string[],
): { readonly bars: readonly Bar[]; readonly rows: readonly Record<string, unknown>[]; readonly markdown: string } {
  const both = pairs(imitated, quickstart),
    sighted = both.filter((p) => p.best.perFamily && p.rl.perFamily),
    removed = removedOf(both),
    removedSighted = removedOf(sighted.map((p) => ({ best: without(p.best, blind), rl: without(p.rl, blind) })));
  return {
    bars: barsOf(removed, both.length),
    rows: [
      ...imitated.map((i) => ({ section: 'imitation', ...i })),
      ...both.map((p) => ({ section: 'pair', ...p })),
      ...(both.length === 0 ? [] : [{ section: 'removed', on: ON, ...removed }]),
      ...(sighted.length === 0 ? [] : [{ section: 'removed, sighted', on: ON, ...removedSighted }]),
    ],
    markdown: [
      candidates(imitated, quickstart),
      '',
      `Chosen on the set for tuning: ${both.map((p) => `seed ${p.seed} ${p.chosen.steps} updates at ${p.chosen.lr}`).join(', ') || 'nothing yet'}.`,
      `Of the failures that imitation leaves at its best, on the set for reporting, reinforcement learning removes ${written(removed)}; on templates that need to see ${written(removedSighted)}.`,
      '',
    ].join('\n'),
  };
}

const barsOf = (removed: BootstrapInterval, seeds: number): Bar[] =>
  seeds === 0
    ? []
    : [
        bar(
          'failures_removed_by_rl_at_best',
          removed.mean,
          `of what imitation at its best leaves, ${seeds} seeds; chosen on the set for tuning, counted on that for reporting`,
          '>= 0.5',
        ),
        bar('failures_removed_by_rl_at_best_low', removed.low, 'lower end of its interval, seeds included', '> 0'),
      ];

/** Every candidate with what it comes to on each set, the quick start beside them. */
function candidates(imitated: readonly Imitated[], quickstart: readonly QuickstartFile[]): string {
  const key = (i: Imitated): string => `${i.steps} at ${i.lr}`,
    all = [...new Set(imitated.map(key))].map((k) => ({ k, of: imitated.filter((i) => key(i) === k) }));
  return markdown(
    ['the policy on', ...all.map((c) => c.k), 'quick start'],
    [
      ['set for tuning', ...all.map((c) => written(over(c.of.map((i) => i.tuned)))), ''],
      ...SPLITS.map((s) => [
        s,
        ...all.map((c) => written(over(c.of.flatMap((i) => i.reported[s] ?? [])))),
        written(over(quickstart.flatMap((q) => q.rows.filter((r) => r.label === s)))),
      ]),
    ],
  );
}

const removedOf = (both: readonly { readonly best: Count; readonly rl: Count }[]): BootstrapInterval =>
  removedInterval(both.map((p) => [p.best, p.rl]));
function without(c: SplitCount, families: readonly string[]): Count {
  const left = Object.entries(c.perFamily ?? {}).filter(([name]) => !families.includes(name)),
    sum = (of: keyof Count): number => left.reduce((n, [, f]) => n + f[of], 0);
  return { episodes: sum('episodes'), successes: sum('successes') };
}
const countOf = ({ episodes, successes, perFamily }: SplitCount): SplitCount => ({
  episodes,
  successes,
  ...(perFamily ? { perFamily } : {}),
});
const rate = (c: Count): number => c.successes / Math.max(1, c.episodes);
const outcomes = (c: Count): readonly number[] => outcomesOf(c.successes, c.episodes);
const over = (counts: readonly Count[]): BootstrapInterval => hierarchicalBootstrap(counts.map(outcomes));
const percent = (x: number): string => (100 * x).toFixed(0);
const written = (i: BootstrapInterval): string =>
  Number.isFinite(i.mean) ? `${percent(i.mean)} % [${percent(i.low)}, ${percent(i.high)}]` : '–';
