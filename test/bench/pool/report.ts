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
const evalOf = (r: RunResult, label: 'untrained' | 'final'): Counts =>
  r.measure.evals.find((e) => e.label === label)?.perFamily ?? {};

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
  readonly variant: (typeof POOL_VARIANTS)[number];
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
  return POOL_VARIANTS.flatMap((variant) => {
    const runs = results.filter((r) => r.variant === variant.name),
      rates: number[] = [],
      perSeed: SeedOutcomes[] = [],
      of: number[] = [],
      perFamily: Record<string, { episodes: number; successes: number }> = {};
    for (const r of runs) {
      const { families } = neverSolved(results, r.seed);
      let n = 0,
        k = 0;
      for (const [f, c] of Object.entries(evalOf(r, 'final'))) {
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
    return runs.length === 0
      ? []
      : [
          {
            variant,
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

export function poolReport(
  results: readonly RunResult[],
  failed: readonly string[],
  how: { readonly quick: boolean; readonly budget: number; readonly probe: number },
): Written {
  const cells = poolCells(results),
    seeds = [...new Set(cells.flatMap((c) => c.runs.map((r) => r.seed)))],
    cell = (n: string): PoolCell | undefined => cells.find((c) => c.variant.name === n);
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
        variant: c.variant.name,
        seeds: c.runs.length,
        successes: c.successes,
        episodes: c.episodes,
        success: rate(c),
        meanOverSeeds: c.success.mean,
        '±': c.success.half,
        injected: sum(c, (r) => r.measure.groups.injected),
        sampledSuccesses: sum(c, (r) => r.measure.rollouts.successes),
        sampled: sum(c, (r) => r.measure.rollouts.ended),
      })),
      ...cells.flatMap((c) =>
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
        label: c.variant.label,
        at: { ...c.success, mean: 100 * c.success.mean, half: 100 * c.success.half },
        ...(c.variant.name === 'without' ? { colour: '#b35806' } : {}),
      })),
    }),
    markdown: [
      '# Tasks never solved, with and without the experience pool',
      '',
      `${how.quick ? 'A short look (`--quick`) at one task template, no figures to quote. ' : ''}Real desktops, embedded policy and trainer. Per seed one policy is taught other tasks (dialogs: buttons and lists); of the tasks here it solved 0 of ${attempts.length > 0 ? `${Math.min(...attempts)}${Math.max(...attempts) > Math.min(...attempts) ? ` to ${Math.max(...attempts)}` : ''}` : '0'} greedy probe episodes per seed, asked before each variant. Every variant then has the same ${how.budget} training rollouts of these tasks, from that policy. Demonstrations are scripted solutions, run and verified on real desktops, six a task template, of training seeds; success is greedy on ${how.probe} held-out probe episodes a run. ${seeds.length} seed${seeds.length === 1 ? '' : 's'}; [ ] are 95 % intervals, the wider of a bootstrap over seeds and the episodes of each and of Student's t over seeds, which is ±.`,
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
          c.variant.label,
          c.runs.map((r) => r.seed).join(' '),
          `${c.successes} of ${c.episodes}: ${interval(c)}`,
          `${(100 * c.success.mean).toFixed(0)} %${Number.isFinite(c.success.half) ? ` ± ${(100 * c.success.half).toFixed(0)}` : ''}`,
          `${sum(c, (r) => r.measure.rollouts.successes)} of ${sum(c, (r) => r.measure.rollouts.ended)}`,
          ...[
            (r: RunResult) => r.measure.groups.injected,
            (r: RunResult) => r.measure.updates,
            (r: RunResult) => r.measure.steps.trained,
          ].map((f) => (sum(c, f) / c.runs.length).toFixed(0)),
        ]),
      ),
      '',
      '## By task template',
      '',
      markdown(
        ['template', ...cells.map((c) => c.variant.label)],
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
