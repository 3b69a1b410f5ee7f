import {
  outcomesOf,
  pairedBootstrap,
  type BootstrapInterval,
  type SeedOutcomes,
} from '../../../runtime/domain/bootstrap.js';
import { dotChart } from '../lib/chart.js';
import type { RunResult } from '../lib/experiments.js';
import { successInterval, widened } from '../lib/interval.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { Written } from '../lib/session.js';
import { barLines, markdown } from '../schedule/report.js';
import { estimate, type Estimate } from '../schedule/statistics.js';
import { POOL_VARIANTS } from './plan.js';

type Counts = Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;
type When = 'untrained' | 'warm start' | 'final';
const evalOf = (r: RunResult, label: When): Counts => r.measure.evals.find((e) => e.label === label)?.perFamily ?? {};

/** A row of the tables: the runs of a variant, and which of their evaluations. */
interface PoolRow {
  readonly name: string;
  readonly label: string;
  readonly variant: string;
  readonly when: When;
}
/** The control of the last row: the same runs before their reinforcement learning. */
const IMITATION_ALONE: PoolRow = {
  name: 'imitation-alone',
  label: 'imitation warm start alone',
  variant: 'imitation',
  when: 'warm start',
};
const ROWS: readonly PoolRow[] = POOL_VARIANTS.flatMap(({ name, label }) => [
  ...(name === IMITATION_ALONE.variant ? [IMITATION_ALONE] : []),
  { name, label, variant: name, when: 'final' },
]);

/**
 * Families of which the policy every variant of a seed starts from solved no probe episode, in any of its evaluations with
 * eyes. `attempts`: probe episodes of one of these evaluations.
 */
export function neverSolved(
  results: readonly RunResult[],
  seed: number,
): { readonly families: readonly string[]; readonly attempts: number; readonly solved: readonly string[] } {
  const attempts = new Map<string, { episodes: number; successes: number }>();
  for (const r of results) {
    if (r.seed !== seed || r.variant === 'base' || r.variant === 'blind') continue;
    for (const [f, c] of Object.entries(evalOf(r, 'untrained'))) {
      const a = attempts.get(f) ?? { episodes: 0, successes: 0 };
      // The same policy is asked about the same tasks before each variant: what counts is how many tasks these are.
      attempts.set(f, {
        episodes: Math.max(a.episodes, c.episodes),
        successes: Math.max(a.successes, c.successes),
      });
    }
  }
  const all = [...attempts],
    none = all.filter(([, a]) => a.successes === 0);
  return {
    families: none.map(([f]) => f),
    attempts: none.reduce((n, [, a]) => n + a.episodes, 0),
    solved: all.filter(([, a]) => a.successes > 0).map(([f]) => f),
  };
}

export interface PoolCell {
  readonly row: PoolRow;
  readonly runs: readonly RunResult[];
  readonly successes: number;
  readonly episodes: number;
  readonly success: Estimate;
  /** Outcomes of the episodes of each seed, and which seeds these are. */
  readonly seeds: readonly SeedOutcomes[];
  readonly of: readonly number[];
  readonly perFamily: Counts;
}

/** Success of every variant on the tasks never solved before it, over seeds. */
export function poolCells(results: readonly RunResult[]): PoolCell[] {
  return ROWS.flatMap((row) => {
    const runs = results.filter((r) => r.variant === row.variant),
      rates: number[] = [],
      perSeed: SeedOutcomes[] = [],
      of: number[] = [],
      perFamily: Record<string, { episodes: number; successes: number }> = {};
    for (const r of runs) {
      const { families } = neverSolved(results, r.seed);
      let n = 0,
        k = 0;
      for (const [f, c] of Object.entries(evalOf(r, row.when))) {
        if (!families.includes(f)) continue;
        n += c.episodes;
        k += c.successes;
        const a = (perFamily[f] ??= { episodes: 0, successes: 0 });
        a.episodes += c.episodes;
        a.successes += c.successes;
      }
      if (n === 0) continue;
      rates.push(k / n);
      perSeed.push(outcomesOf(k, n));
      of.push(r.seed);
    }
    const all = Object.values(perFamily);
    // Results of other plans may have no evaluation there.
    return runs.length === 0 || (row === IMITATION_ALONE && all.length === 0)
      ? []
      : [
          {
            row,
            runs,
            perFamily,
            success: estimate(rates),
            seeds: perSeed,
            of,
            successes: all.reduce((n, a) => n + a.successes, 0),
            episodes: all.reduce((n, a) => n + a.episodes, 0),
          },
        ];
  });
}

/** Success of one variant over that of another, on the seeds that both have; the interval has their variance in it. */
export function gainOver(cell: PoolCell, other: PoolCell): BootstrapInterval | undefined {
  const both = cell.of.flatMap((seed, i) => {
      const k = other.of.indexOf(seed);
      return k < 0 ? [] : [[cell.seeds[i]!, other.seeds[k]!]];
    }),
    mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
  if (both.length === 0) return undefined;
  const gain = ([a, b]: readonly SeedOutcomes[]): number => mean(a!) - mean(b!);
  return widened(
    pairedBootstrap(both, (sample) => mean(sample.map(gain))),
    both.map(gain),
  );
}

/** The goals are ours: something of what was never solved is, and the pool is what does it. */
function barsOf(pool: PoolCell | undefined, without: PoolCell | undefined): Bar[] {
  const gain = pool && without && gainOver(pool, without);
  return [
    ...(pool && pool.episodes > 0
      ? [bar('pool_success', pool.successes / pool.episodes, 'success on tasks never solved before', '> 0')]
      : []),
    ...(gain
      ? [
          bar('pool_gain', gain.mean, 'success over the same budget without the pool', '> 0'),
          bar('pool_gain_low', gain.low, 'lower end of its 95 % interval, over seeds and episodes', '> 0'),
        ]
      : []),
  ];
}

const trained = (c: PoolCell): boolean => c.row.when === 'final';

/** How many tasks of a seed the starting policy solved none of: "50 to 60 tasks". */
const neverOf = (attempts: readonly number[]): string =>
  `${[...new Set([Math.min(...attempts), Math.max(...attempts)])].filter(Number.isFinite).join(' to ') || '0'} tasks`;

const untold = ({ low, high }: BootstrapInterval): string =>
  low <= 0 && high >= 0 ? ', which cannot be told from none' : '';

/** What the pool is worth beside the imitation of the same demonstrations, which decides what it is good for. */
function decisive(cells: readonly PoolCell[]): string[] {
  const cell = (n: string): PoolCell | undefined => cells.find((c) => c.row.name === n),
    [pool, alone, both] = [cell('pool'), cell(IMITATION_ALONE.name), cell(IMITATION_ALONE.variant)],
    over = pool && alone && gainOver(alone, pool),
    added = both && alone && gainOver(both, alone);
  if (!over || !added) return [];
  const points = (i: BootstrapInterval): string =>
    `${(100 * i.mean).toFixed(0)} points [${(100 * i.low).toFixed(0)}, ${(100 * i.high).toFixed(0)}]`;
  return [
    `Imitation of the same demonstrations alone, without reinforcement learning, is ${points(over)} above the pool without it${untold(over)}; the pool after it adds ${points(added)}${untold(added)}.`,
    '',
  ];
}

export function poolReport(
  results: readonly RunResult[],
  failed: readonly string[],
  how: { readonly quick: boolean; readonly budget: number; readonly probe: number },
): Written {
  const cells = poolCells(results),
    seeds = [...new Set(cells.flatMap((c) => c.runs.map((r) => r.seed)))],
    cell = (n: string): PoolCell | undefined => cells.find((c) => c.row.name === n);
  const rate = (c: PoolCell): number => c.successes / c.episodes,
    bars = barsOf(cell('pool'), cell('without'));
  const interval = (c: PoolCell): string => {
    const of = successInterval(c.seeds.map((s) => ({ episodes: s.length, successes: s.reduce((a, b) => a + b, 0) })));
    return of
      ? `${((100 * c.successes) / c.episodes).toFixed(0)} % [${(100 * of.low).toFixed(0)}, ${(100 * of.high).toFixed(0)}]`
      : '';
  };
  const families = [...new Set(cells.flatMap((c) => Object.keys(c.perFamily)))],
    sum = (c: PoolCell, f: (r: RunResult) => number): number => c.runs.reduce((n, r) => n + f(r), 0);
  const solved = seeds.flatMap((s) => neverSolved(results, s).solved.map((f) => `${f} (seed ${s})`)),
    attempts = seeds.map((s) => neverSolved(results, s).attempts);
  return {
    bars,
    rows: [
      ...cells.map((c) => ({
        section: 'variant',
        variant: c.row.name,
        seeds: c.runs.length,
        successes: c.successes,
        episodes: c.episodes,
        success: rate(c),
        meanOverSeeds: c.success.mean,
        '±': c.success.half,
        ...(trained(c)
          ? {
              injected: sum(c, (r) => r.measure.groups.injected),
              sampledSuccesses: sum(c, (r) => r.measure.rollouts.successes),
              sampled: sum(c, (r) => r.measure.rollouts.ended),
            }
          : {}),
      })),
      ...cells.filter(trained).flatMap((c) =>
        c.runs.map((r) => {
          const f = r.measure.evals.find((e) => e.label === 'final');
          return {
            section: 'run',
            run: r.name,
            variant: r.variant,
            seed: r.seed,
            before: r.measure.evals.find((e) => e.label === 'untrained')?.successes,
            after: f?.successes,
            episodes: f?.episodes,
            rollouts: r.measure.rollouts.ended,
            updates: r.measure.updates,
            stepsTrained: r.measure.steps.trained,
            injected: r.measure.groups.injected,
            wallSeconds: r.wallSeconds,
          };
        }),
      ),
    ],
    svg: dotChart({
      title: 'Success on tasks never solved before',
      unit: '%',
      from: 0,
      to: 100,
      format: (x) => x.toFixed(0),
      rows: cells.map((c) => ({
        label: c.row.label,
        at: { ...c.success, mean: 100 * c.success.mean, half: 100 * c.success.half },
        ...(c.row.name === 'without' ? { colour: '#b35806' } : {}),
      })),
    }),
    markdown: [
      '# Tasks never solved, with and without the experience pool',
      '',
      `${how.quick ? 'A short look (`--quick`) at one task template, no figures to quote. ' : ''}Real desktops, embedded policy and trainer. Per seed one policy is taught other tasks (dialogs: buttons and lists); of the tasks here it solved 0 of ${neverOf(attempts)} per seed, greedily, asked before each variant. Every variant then has the same ${how.budget} training rollouts of these tasks, from that policy. Demonstrations are scripted solutions, run and verified on real desktops, six a task template, of training seeds; success is greedy on ${how.probe} held-out probe episodes a run. ${seeds.length} seed${seeds.length === 1 ? '' : 's'}; [ ] are 95 % intervals, the wider of a bootstrap over seeds and the episodes of each and of Student's t over seeds, which is ±; all seeds are asked the same tasks, so that no interval is narrower than one seed's.`,
      '',
      ...(results[0]
        ? [
            `Made at commit ${[...new Set(results.map((r) => r.commit))].join(', ')} on ${String(results[0].machine['cpu'])}, ${String(results[0].machine['cores'])} cores, Node ${String(results[0].machine['node'])}; load ${Math.min(...results.map((r) => r.load[0])).toFixed(0)} to ${Math.max(...results.map((r) => r.load[1])).toFixed(0)} (other work on the machine). Run files are in runs.jsonl.`,
            '',
          ]
        : []),
      barLines(bars),
      '',
      markdown(
        [
          '',
          'seeds',
          'success after',
          'mean over seeds',
          'successes while training',
          'injected',
          'updates',
          'steps trained',
        ],
        cells.map((c) => [
          c.row.label,
          c.runs.map((r) => r.seed).join(' '),
          `${c.successes} of ${c.episodes}: ${interval(c)}`,
          `${(100 * c.success.mean).toFixed(0)} %${Number.isFinite(c.success.half) ? ` ± ${(100 * c.success.half).toFixed(0)}` : ''}`,
          ...(trained(c)
            ? [
                `${sum(c, (r) => r.measure.rollouts.successes)} of ${sum(c, (r) => r.measure.rollouts.ended)}`,
                ...[
                  (r: RunResult) => r.measure.groups.injected,
                  (r: RunResult) => r.measure.updates,
                  (r: RunResult) => r.measure.steps.trained,
                ].map((f) => (sum(c, f) / c.runs.length).toFixed(0)),
              ]
            : ['', '', '', '']),
        ]),
      ),
      '',
      ...decisive(cells),
      '## By task template',
      '',
      markdown(
        ['template', ...cells.map((c) => c.row.label)],
        families.map((f) => [
          f,
          ...cells.map((c) => {
            const x = c.perFamily[f];
            return x ? `${x.successes} of ${x.episodes}` : '';
          }),
        ]),
      ),
      '',
      ...(solved.length > 0
        ? [`Left out, because the starting policy solved some of it: ${solved.join(', ')}.`, '']
        : []),
      ...(failed.length > 0 ? ['## Failed', '', ...failed.map((f) => `- ${f}`), ''] : []),
    ].join('\n'),
  };
}
