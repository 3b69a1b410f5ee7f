import type { RunFile } from '../../../runtime/config/index.js';
import { dotChart } from '../lib/chart.js';
import type { RunResult } from '../lib/experiments.js';
import { successInterval } from '../lib/interval.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { Written } from '../lib/session.js';
import { barLines, markdown } from '../schedule/report.js';
import { estimate, type Estimate } from '../schedule/statistics.js';
import { FAMILY } from './plan.js';
import { lacking, ofSeed, splitCells, SPLIT_NAMES, SPLIT_ROWS, type SplitCell } from './splitRows.js';
import { better, seedFailuresRemoved, pooled, rate, type Pooled, type Tally } from './tally.js';

const HEADLINE = 'of the failures that imitation alone leaves, on places and looks that never occurred in training';
type Row = 'untrained' | 'random' | 'imitation' | 'longer' | 'rl' | 'blind';
const LABELS: Readonly<Record<Row, string>> = {
  untrained: 'untrained',
  random: 'a click on a random cell',
  imitation: 'after imitation',
  longer: 'imitation alone, for as long as RL, best checkpoint',
  rl: 'after RL',
  blind: 'blind: every screen one grey picture, imitation and RL',
};
const ROWS = Object.keys(LABELS) as readonly Row[];

/** What a seed reached; the imitation arm counts with its best checkpoint, the one it started from included. */
export function reached(results: readonly RunResult[], seed: number, row: Row): Tally | undefined {
  const evaluated = (variant: string, label: string): Tally | undefined => {
    const evals = results
      .filter((r) => r.seed === seed && r.variant === variant)
      .flatMap((r) => r.measure.evals.filter((e) => e.label === label && e.episodes > 0));
    return evals.reduce<Tally | undefined>((best, e) => better(best, e), undefined);
  };
  switch (row) {
    case 'untrained':
      return evaluated('base', 'untrained');
    case 'random':
      return evaluated('random', 'untrained');
    case 'imitation':
      return evaluated('base', 'warm start');
    case 'longer': {
      const later = evaluated('imitation', 'final');
      return later && better(evaluated('base', 'warm start'), later);
    }
    case 'rl':
      return evaluated('rl', 'final');
    case 'blind':
      return evaluated('blind', 'final');
  }
}

/** The same as columns of the JSON. */
const figuresOf = (c: Pooled): Readonly<Record<string, number>> => ({
  ...c.all,
  success: rate(c.all),
  ...interval(c),
  meanOverSeeds: c.success.mean,
  '±': c.success.half,
});
interface Cell extends Pooled {
  readonly row: Row;
  readonly seeds: readonly number[];
}
function cellOf(results: readonly RunResult[], seeds: readonly number[], row: Row): Cell | undefined {
  const there = seeds.flatMap((seed) => {
    const tally = reached(results, seed, row);
    return tally ? [{ seed, tally }] : [];
  });
  if (there.length === 0) return undefined;
  return {
    row,
    seeds: there.map((x) => x.seed),
    ...pooled(there.map((x) => x.tally)),
  };
}

export function vlmReport(
  results: readonly RunResult[],
  failed: readonly string[],
  how: {
    readonly quick: boolean;
    readonly minutes: number;
    readonly demonstrations: number;
    readonly probe: number;
    /** Figures that are no learning (figures.ts). */
    readonly bars?: readonly Bar[];
    /** Planted faults that the probe did not see. */
    readonly missed?: readonly string[];
  },
): Written {
  const seeds = [...new Set(results.map((r) => r.seed))],
    cells = ROWS.flatMap((row) => cellOf(results, seeds, row) ?? []),
    splits = splitCells(results),
    removed = (seed: number): number | undefined =>
      seedFailuresRemoved(ofSeed(results, seed, 'looks', 'longer'), ofSeed(results, seed, 'looks', 'rl')),
    removedNear = (seed: number): number | undefined =>
      seedFailuresRemoved(reached(results, seed, 'longer'), reached(results, seed, 'rl')),
    over = estimate(seeds.flatMap((s) => removed(s) ?? [])),
    overNear = estimate(seeds.flatMap((s) => removedNear(s) ?? [])),
    bars: Bar[] = [
      // A mean of those seeds alone that came through would be another figure.
      ...(over.n > 0 && over.n === seeds.length
        ? [
            bar(
              'failures_removed_by_rl',
              over.mean,
              `${HEADLINE}${Number.isFinite(over.half) ? ` (± ${over.half.toFixed(2)} over seeds)` : ''}`,
              '>= 0.4',
            ),
          ]
        : []),
      ...(how.bars ?? []),
    ];
  return {
    bars,
    rows: [
      ...cells.map((c) => ({
        section: 'policy',
        policy: c.row,
        seeds: c.seeds.length,
        ...figuresOf(c),
      })),
      ...splits.map((c) => ({
        section: 'split',
        split: c.split,
        policy: c.policy,
        ...(c.atEnd ? { atEnd: true } : {}),
        seeds: c.seeds,
        ...figuresOf(c),
      })),
      ...seeds.map((seed) => ({
        section: 'seed',
        seed,
        ...Object.fromEntries(ROWS.map((row) => [row, reached(results, seed, row)?.successes])),
        episodes: how.probe,
        failures_removed_by_rl: removed(seed),
        failures_removed_by_rl_near: removedNear(seed),
      })),
      ...results.map((r) => ({
        section: 'run',
        run: r.name,
        rollouts: r.measure.rollouts.ended,
        errors: r.measure.rollouts.errors,
        updates: r.measure.updates,
        updateSeconds: r.measure.throughput?.updateSeconds,
        wallSeconds: r.wallSeconds,
        load: r.load[1],
      })),
    ],
    svg: dotChart({
      title: 'A tiny vision-language model: success at places and in looks never seen',
      unit: '%',
      from: 0,
      to: 100,
      format: (x) => x.toFixed(0),
      rows: splits
        .filter((c) => c.split === 'looks')
        .map((c) => ({
          label: LABELS[c.policy],
          at: { ...c.success, mean: 100 * c.success.mean, half: 100 * c.success.half },
          ...(c.policy === 'rl' ? {} : { colour: '#b35806' }),
        })),
    }),
    markdown: page(results, cells, bars, { splits, over, overNear }, how, failed),
  };
}

const interval = ({ each }: Pooled): { readonly low: number; readonly high: number } => {
  const { low, high } = successInterval(each) ?? { low: 0, high: 1 };
  return { low, high };
};
const percent = (x: number): string => (100 * x).toFixed(0);

function page(
  results: readonly RunResult[],
  cells: readonly Cell[],
  bars: readonly Bar[],
  {
    splits,
    over,
    overNear,
  }: { readonly splits: readonly SplitCell[]; readonly over: Estimate; readonly overNear: Estimate },
  how: Parameters<typeof vlmReport>[2],
  failed: readonly string[],
): string {
  const first = results[0],
    loads = results.flatMap((r) => r.load);
  return [
    '# A tiny vision-language model, by imitation and then by RL',
    '',
    ...about(results, how),
    '',
    ...(first
      ? [
          `Made at commit ${[...new Set(results.flatMap((r) => [r.commit, ...Object.values(r.later ?? {})]))].join(', ')} on ${String(first.machine['cpu'])}, ${String(first.machine['cores'])} cores, Node ${String(first.machine['node'])}; load ${Math.min(...loads).toFixed(0)} to ${Math.max(...loads).toFixed(0)} (the bench itself and other work on the machine). Run files are in runs.jsonl.`,
          '',
        ]
      : []),
    ...(bars.length > 0 ? [barLines(bars), ''] : []),
    ...splitTable(splits, lacking(results)),
    markdown(
      ['new combinations near known places', 'seeds', 'success', 'mean over seeds'],
      cells.map((c) => [LABELS[c.row], c.seeds.join(' '), counted(c), withError(c.success)]),
    ),
    '',
    ...(overNear.n > 0
      ? [
          `Failures removed by RL: ${over.n > 0 ? `${withError(over)}, over ${over.n} of the seeds, on places and looks that never occurred in training; ` : ''}${withError(overNear)}, over ${overNear.n}, on new combinations near known places.`,
          '',
        ]
      : []),
    ...(how.missed?.length ? [`The probe did not see: ${how.missed.join(', ')}.`, ''] : []),
    ...(failed.length > 0 ? ['## Failed', '', ...failed.map((f) => `- ${f}`), ''] : []),
  ].join('\n');
}
/** What was done, as the recorded run files have it: how it is done today may differ. */
function about(results: readonly RunResult[], how: Parameters<typeof vlmReport>[2]): string[] {
  const recorded = (variant: string): RunFile => results.find((r) => r.variant === variant)?.file ?? {},
    demonstrations = recorded('base').warmStart?.demonstrations ?? how.demonstrations,
    minutes = recorded('rl').budget?.minutes ?? how.minutes,
    replay = recorded('rl').trainer?.replay ?? 0,
    varied = recorded('base').tasks?.looks === 'varied';
  return [
    `${how.quick ? 'A short look (`--quick`): it shows that all parts work together, too short for RL to train a batch, and has no figures to quote. ' : ''}A Qwen3-VL of 0.7 million random parameters, real desktops of 640x400 (the model gets 320x192), the engine over HTTP, all weights trained (rank 0). The task is \`${FAMILY}\`: a list dialog somewhere on the screen has to be closed with its Cancel button, by the one click that an episode allows. ${varied ? 'Training tasks have colours and letters of their own, light or dark, one in four the plain look (\`tasks.looks: varied\`). ' : 'All training tasks have one look. '}Per seed one policy imitates ${demonstrations} scripted demonstrations; from it, ${minutes} minutes of RL${replay > 0 ? ` (beside each batch it imitates ${replay} of its own latest successes)` : ''}, and beside that as many of further imitation of the same demonstrations (and what making them anew takes), measured twice, of which the best checkpoint counts, chosen on the very probes that are reported; RL counts with its last.`,
    '',
    `Success is greedy on ${how.probe} probes of each kind. At *places and looks never seen* (\`failures_removed_by_rl\`) dialogs stand in squares of the screen, and are drawn in a font and a dark grey theme, that occur in no training task; each part has rows of its own. *New combinations* come last: no place of the dialog together with its four rows and its title occurs in training, but words, sizes and the plain look do, and places a few pixels away. Nothing here tests reading: every task has the same target, and the title in its instruction does not matter. [ ] are 95 % intervals over seeds, the wider of a bootstrap over seeds and the episodes of each and of Student's t over seeds, which is ±; all seeds are asked the same tasks, so that no interval is narrower than one seed's.`,
  ];
}
function splitTable(cells: readonly SplitCell[], missing: readonly string[]): string[] {
  if (cells.length === 0) return [];
  return [
    'Held out beyond tasks, at the end of an arm (imitation alone with the best of its checkpoints that were measured so, of which the start of this arm is one; "at its end": the last was measured alone):',
    '',
    markdown(
      ['', 'policy', 'seeds', 'success', 'mean over seeds'],
      cells.map((c) => [
        SPLIT_NAMES[c.split],
        c.atEnd ? `${SPLIT_ROWS[c.policy]}, at its end` : SPLIT_ROWS[c.policy],
        String(c.seeds),
        counted(c),
        withError(c.success),
      ]),
    ),
    '',
    ...(missing.length > 0 ? [`Measured by a new recording, and not by this one: ${missing.join('; ')}.`, ''] : []),
  ];
}
const counted = (c: Pooled): string =>
  `${c.all.successes} of ${c.all.episodes}: ${percent(rate(c.all))} % [${percent(interval(c).low)}, ${percent(interval(c).high)}]`;
const withError = (e: Estimate): string =>
  `${percent(e.mean)} %${Number.isFinite(e.half) ? ` ± ${percent(e.half)}` : ''}`;
