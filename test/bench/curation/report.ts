import { hierarchicalBootstrap, outcomesOf } from '../../../runtime/domain/bootstrap.js';
import { dotChart } from '../lib/chart.js';
import type { RunResult } from '../lib/experiments.js';
import type { RunMeasure } from '../lib/runMeasure.js';
import type { Written } from '../lib/session.js';
import { markdown } from '../schedule/report.js';
import { estimate, type Estimate } from '../schedule/statistics.js';
import { additive, type Additive, type MainEffect } from './additive.js';
import { MEASURED, OURS, VARIANTS, type Mechanism } from './mechanisms.js';

/** Success on the probe set of the policy a run ended with; NaN without an evaluation. */
export const successOf = (m: RunMeasure): number => {
  const e = m.evals.find((x) => x.label === 'final');
  return e && e.episodes > 0 ? e.successes / e.episodes : NaN;
};
/** Of the policy that a seed's runs start from: the mean of its evaluations, and by how much they differ. */
export function startOf(
  results: readonly RunResult[],
  seed: number,
): { readonly mean: number; readonly spread: number } {
  const xs = results
    .filter((r) => r.variant === 'base' && r.seed === seed)
    .flatMap((r) => r.measure.evals)
    .filter((e) => e.episodes > 0)
    .map((e) => e.successes / e.episodes);
  return { mean: xs.reduce((a, b) => a + b, 0) / xs.length, spread: Math.max(...xs) - Math.min(...xs) };
}

/** What one mechanism does to one figure, paired over seeds. */
export interface Effect {
  readonly mechanism: Mechanism;
  /** only m - none. */
  readonly alone: Estimate;
  /** all - (all but m). */
  readonly among: Estimate;
  /** Both kinds of difference together: they share no run. */
  readonly both: Estimate;
}

export function effects(results: readonly RunResult[], f: (m: RunMeasure) => number): Effect[] {
  const at = (variant: string, seed: number): number => {
    const r = results.find((x) => x.variant === variant && x.seed === seed);
    return r ? f(r.measure) : NaN;
  };
  const seeds = [...new Set(results.map((r) => r.seed))];
  return MEASURED.map((mechanism): Effect => {
    const differences = (plus: string, minus: string): number[] =>
      seeds.map((s) => at(plus, s) - at(minus, s)).filter(Number.isFinite);
    const alone = differences(`only-${mechanism.name}`, 'none'),
      among = differences(...(mechanism.among ?? (['all', `without-${mechanism.name}`] as const)));
    return { mechanism, alone: estimate(alone), among: estimate(among), both: estimate([...alone, ...among]) };
  });
}

const points = (e: Estimate, digits = 1): string =>
  e.n === 0
    ? ''
    : `${signed(100 * e.mean, digits)}${Number.isFinite(e.half) ? ` ± ${(100 * e.half).toFixed(digits)}` : ' (one pair)'}`;
const signed = (x: number, digits: number): string => `${x >= 0 ? '+' : ''}${x.toFixed(digits)}`;

/**
 * One sentence a person can act on; `main`: the effect in the model over all runs, which decides where there is one.
 */
export function verdict(e: Effect, main?: MainEffect): string {
  const { mean, half, n } = main ?? e.both,
    name = `**${e.mechanism.label}**${e.mechanism.ours ? ' (ours)' : ''}`;
  if (e.both.n === 0) return `${name}: not measured.`;
  if (!Number.isFinite(half))
    return `${name}: ${signed(100 * mean, 1)} points in one pair of runs, which says nothing yet.`;
  const pairs = `alone ${points(e.alone) || 'not measured'}, added to all others ${points(e.among) || 'not measured'}`,
    how = main
      ? `${points(main)} points (in pairs of runs: ${pairs})`
      : `${points(e.both)} points over ${n} pairs (${pairs})`;
  if (mean - half > 0) return `${name} helps here: ${how}.`;
  if (mean + half < 0) return `${name} hurts here: ${how}.`;
  return `${name}: no effect can be told here: ${how}; a gain of more than ${Math.max(0, 100 * (mean + half)).toFixed(0)} points or a loss of more than ${Math.max(0, 100 * (half - mean)).toFixed(0)} is unlikely.`;
}

/** Standard deviation of a run's success that comes from its number of episodes alone. */
const sampling = (
  rows: readonly { readonly successes: number; readonly episodes: number; readonly mine: readonly unknown[] }[],
): number =>
  Math.sqrt(
    rows.reduce((v, { successes: k, episodes: n, mine }) => v + ((k / n) * (1 - k / n)) / (n / mine.length), 0) /
      rows.length,
  );

const COLUMNS: readonly [string, (m: RunMeasure) => number, number][] = [
  ['mean N', (m) => m.groups.meanN, 2],
  ['mean length', (m) => m.steps.meanLength, 2],
  ['steps trained', (m) => m.steps.trained, 0],
  ['of generated %', (m) => (100 * m.steps.trained) / Math.max(1, m.steps.generated), 1],
  ['updates', (m) => m.updates, 1],
  ['rollouts with gradient %', (m) => 100 * m.gradientShare, 1],
  ['injected', (m) => m.groups.injected, 1],
  ['rollout time s', (m) => m.rlSeconds, 0],
];

export function curationReport(
  results: readonly RunResult[],
  failed: readonly string[],
  how: { readonly quick: boolean; readonly budget: number; readonly probe: number },
): Written {
  const runs = results.filter((r) => r.variant !== 'base'),
    seeds = [...new Set(runs.map((r) => r.seed))];
  const rows = VARIANTS.flatMap((v) => {
    const mine = runs.filter((r) => r.variant === v.name);
    if (mine.length === 0) return [];
    const final = mine.flatMap((r) => r.measure.evals.filter((e) => e.label === 'final')),
      episodes = final.reduce((n, e) => n + e.episodes, 0),
      successes = final.reduce((n, e) => n + e.successes, 0);
    return [
      {
        variant: v,
        mine,
        success: estimate(mine.map((r) => successOf(r.measure))),
        gain: estimate(mine.map((r) => successOf(r.measure) - startOf(results, r.seed).mean).filter(Number.isFinite)),
        pooled: hierarchicalBootstrap(final.map((e) => outcomesOf(e.successes, e.episodes))),
        episodes,
        successes,
      },
    ];
  });
  const modelOf = (f: (m: RunMeasure) => number): Additive | undefined =>
    additive(runs.map((r) => ({ variant: r.variant, seed: r.seed, value: f(r.measure) })));
  const fx = effects(runs, successOf),
    model = modelOf(successOf);
  const main = (m: Mechanism, of = model): MainEffect | undefined =>
    of?.effects.find((x) => (m === OURS ? x.label === OURS.label : x.mechanisms.length === 1 && x.mechanisms[0] === m));
  const table = markdown(
    ['variant', 'seeds', 'success %', 'of all episodes [95 %]', 'gained', ...COLUMNS.map((c) => c[0])],
    rows.map((r) => [
      r.variant.label,
      r.mine.map((x) => x.seed).join(' '),
      `${(100 * r.success.mean).toFixed(1)}${Number.isFinite(r.success.half) ? ` ± ${(100 * r.success.half).toFixed(1)}` : ''}`,
      `${r.successes} of ${r.episodes} [${(100 * r.pooled.low).toFixed(0)}, ${(100 * r.pooled.high).toFixed(0)}]`,
      points(r.gain),
      ...COLUMNS.map(([, f, digits]) => (r.mine.reduce((n, x) => n + f(x.measure), 0) / r.mine.length).toFixed(digits)),
    ]),
  );
  const side = (what: string, f: (m: RunMeasure) => number, digits: number, scale = 1): string[] => {
    const of = modelOf(f);
    return [
      what,
      ...effects(runs, f).map((e) => {
        const x = main(e.mechanism, of) ?? e.both;
        return e.both.n === 0
          ? ''
          : `${signed(scale * x.mean, digits)}${Number.isFinite(x.half) ? ` ± ${(scale * x.half).toFixed(digits)}` : ''}`;
      }),
    ];
  };
  const starts = seeds.map((s) => startOf(results, s)).filter((x) => Number.isFinite(x.mean)),
    start = estimate(starts.map((x) => x.mean)),
    spread = starts.map((x) => x.spread);
  return {
    bars: [],
    rows: [
      ...runs.map((r) => {
        const { throughput: _t, curve, evals, ...m } = r.measure;
        return {
          section: 'run',
          run: r.name,
          variant: r.variant,
          seed: r.seed,
          before: startOf(results, r.seed).mean,
          success: successOf(r.measure),
          meanN: m.groups.meanN,
          meanLength: m.steps.meanLength,
          stepsTrained: m.steps.trained,
          updates: m.updates,
          gradientShare: m.gradientShare,
          rlSeconds: m.rlSeconds,
          wallSeconds: r.wallSeconds,
          lastBlock: (curve.at(-1)?.successes ?? NaN) / 64,
          evaluations: evals.length,
        };
      }),
      ...(model?.effects ?? []).map((e) => ({
        section: 'main',
        mechanism: e.mechanisms.map((m) => m.name).join('+'),
        effect: e.mean,
        'effect±': e.half,
        runs: e.n,
        freedom: model!.freedom,
        scatter: model!.scatter,
      })),
      ...fx
        .filter((e) => e.both.n > 0)
        .map((e) => ({
          section: 'effect',
          mechanism: e.mechanism.name,
          alone: e.alone.mean,
          'alone±': e.alone.half,
          among: e.among.mean,
          'among±': e.among.half,
          effect: e.both.mean,
          'effect±': e.both.half,
          pairs: e.both.n,
        })),
    ],
    svg: model
      ? dotChart({
          title: `What each mechanism adds to success on the probe set after ${how.budget} rollouts`,
          unit: 'points',
          from: -20,
          to: 30,
          mark: 0,
          format: (x) => x.toFixed(0),
          rows: model.effects.map((e) => ({
            label: `${e.label}${e.mechanisms.every((m) => m.ours) ? ' (ours)' : ''}`,
            at: { ...e, mean: 100 * e.mean, half: 100 * e.half },
            colour: e.mechanisms.every((m) => m.ours) ? '#8073ac' : '#35618f',
          })),
        })
      : dotChart({
          title: `Success on the probe set after ${how.budget} rollouts`,
          unit: '%',
          from: 0,
          to: 100,
          format: (x) => x.toFixed(0),
          ...(Number.isFinite(start.mean) ? { mark: 100 * start.mean } : {}),
          rows: rows.map((r) => ({
            label: r.variant.label,
            at: { ...r.success, mean: 100 * r.success.mean, half: 100 * r.success.half },
            colour:
              r.variant.name === 'all' || r.variant.name === 'none'
                ? '#b35806'
                : r.variant.name.startsWith('only')
                  ? '#8073ac'
                  : '#35618f',
          })),
        }),
    markdown: [
      '# What curation does: ablation on real desktops',
      '',
      `${how.quick ? 'A short look (`--quick`), no figures to quote. ' : ''}Real training on real desktops with the embedded policy. Per seed one weak warm start, and every variant from it with the same ${how.budget} training rollouts; success is greedy on ${how.probe} held-out probe episodes, the same in every run. The base's reading lessons (words on drawn screens, no task) are mixed into every update; successes are imitated only where the experience pool is on. A mechanism that is off is off in the run file; group filter and staleness bound are always on. ${seeds.length} seed${seeds.length === 1 ? '' : 's'}; ± are 95 % intervals (Student's t over seeds, differences paired by seed); [ ] are 95 % intervals by bootstrap over seeds and the episodes of each.`,
      '',
      ...(results[0]
        ? [
            `Made at commit ${[...new Set(results.map((r) => r.commit))].join(', ')} on ${String(results[0].machine['cpu'])}, ${String(results[0].machine['cores'])} cores, Node ${String(results[0].machine['node'])}, with other work on the machine (load ${Math.min(...results.map((r) => r.load[0])).toFixed(0)} to ${Math.max(...results.map((r) => r.load[1])).toFixed(0)}): times are not comparable between runs, rollouts are what is fixed. Commands and run files are in runs.jsonl.`,
            '',
          ]
        : []),
      '## What helps here',
      '',
      ...(model
        ? [
            `Judged by an additive model over all ${model.runs} runs (a level per seed, one effect per mechanism; a run scatters about it by ${(100 * model.scatter).toFixed(1)} points, of which ${(100 * sampling(rows)).toFixed(1)} come from the number of probe episodes); in brackets what pairs of runs say by themselves, all of which share the few runs of "all" and "none". Of ${model.effects.length} verdicts at 95 %, one is wrong in ${(1 / (1 - 0.95 ** model.effects.length)).toFixed(1)} such reports.`,
            '',
          ]
        : []),
      ...fx.map((e) => `- ${verdict(e, main(e.mechanism))}`),
      '',
      Number.isFinite(start.mean)
        ? `Before: ${(100 * start.mean).toFixed(1)} % (mean over the ${start.n} starting polic${start.n === 1 ? 'y' : 'ies'}, ${starts.map((x) => (100 * x.mean).toFixed(0)).join(', ')} %; two evaluations of one and the same policy differ by up to ${(100 * Math.max(...spread)).toFixed(0)} points).`
        : '',
      '',
      '## Variants',
      '',
      table,
      '',
      '## What each mechanism changes besides success',
      '',
      `${model ? 'By the same model; where a mechanism has no effect of its own in it, the mean difference of pairs.' : 'Mean difference with and without it, alone and among all others.'}`,
      '',
      markdown(
        ['', ...MEASURED.map((m) => m.label)],
        [
          side('rollouts with gradient, points', (m) => m.gradientShare, 1, 100),
          side('mean N', (m) => m.groups.meanN, 2),
          side('steps per rollout', (m) => m.steps.meanLength, 2),
          side('steps trained', (m) => m.steps.trained, 0),
          side('updates', (m) => m.updates, 1),
          side('rollout time, s', (m) => m.rlSeconds, 0),
        ],
      ),
      '',
      ...(failed.length > 0 ? ['## Failed', '', ...failed.map((f) => `- ${f}`), ''] : []),
    ].join('\n'),
  };
}
