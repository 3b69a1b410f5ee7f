import type { RunFile } from '../../../runtime/config/index.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { dotChart } from '../lib/chart.js';
import type { RunResult } from '../lib/experiments.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { Written } from '../lib/session.js';
import { barLines, markdown } from '../schedule/report.js';
import { estimate, type Estimate } from '../schedule/statistics.js';
import { FAMILY } from './plan.js';
import { lacking, ofSeed, splitCells, SPLIT_NAMES, SPLIT_ROWS, type SplitCell } from './splitRows.js';
import { better, seedFailuresRemoved, pooled, rate, type Pooled, type Tally } from './tally.js';

/** What the two figures are of: the first is not of places and looks that never occurred, which have a figure of their own. */
const OF = 'of the failures that imitation alone leaves, on',
  HEADLINE = `${OF} new combinations near known places`,
  UNSEEN = `${OF} places and looks that never occurred in training`;
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
  ...interval(c.all),
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
    removed = seeds.flatMap((s) => seedFailuresRemoved(reached(results, s, 'longer'), reached(results, s, 'rl')) ?? []);
  const unseen = seeds.flatMap(
      (s) => seedFailuresRemoved(ofSeed(results, s, 'looks', 'longer'), ofSeed(results, s, 'looks', 'rl')) ?? [],
    ),
    over = estimate(removed),
    overUnseen = estimate(unseen),
    bars: Bar[] = [
      ...(removed.length > 0 ? [bar('failures_removed_by_rl', over.mean, HEADLINE, '>= 0.4')] : []),
      ...(unseen.length > 0 ? [bar('failures_removed_by_rl_unseen', overUnseen.mean, UNSEEN, '>= 0.4')] : []),
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
      ...splitCells(results).map((c) => ({
        section: 'split',
        split: c.split,
        policy: c.policy,
        seeds: c.seeds,
        ...figuresOf(c),
      })),
      ...seeds.map((seed) => ({
        section: 'seed',
        seed,
        ...Object.fromEntries(ROWS.map((row) => [row, reached(results, seed, row)?.successes])),
        episodes: how.probe,
        failures_removed_by_rl: seedFailuresRemoved(reached(results, seed, 'longer'), reached(results, seed, 'rl')),
        failures_removed_by_rl_unseen: seedFailuresRemoved(
          ofSeed(results, seed, 'looks', 'longer'),
          ofSeed(results, seed, 'looks', 'rl'),
        ),
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
      title: 'A tiny vision-language model: success on held-out tasks',
      unit: '%',
      from: 0,
      to: 100,
      format: (x) => x.toFixed(0),
      rows: cells.map((c) => ({
        label: LABELS[c.row],
        at: { ...c.success, mean: 100 * c.success.mean, half: 100 * c.success.half },
        ...(c.row === 'rl' ? {} : { colour: '#b35806' }),
      })),
    }),
    markdown: page(results, cells, bars, { over, overUnseen }, how, failed),
  };
}

const interval = (t: Tally): { readonly low: number; readonly high: number } => {
  const { low, high } = wilson(t.successes, t.episodes);
  return { low, high };
};
const percent = (x: number): string => (100 * x).toFixed(0);

function page(
  results: readonly RunResult[],
  cells: readonly Cell[],
  bars: readonly Bar[],
  { over, overUnseen }: { readonly over: Estimate; readonly overUnseen: Estimate },
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
    markdown(
      ['', 'seeds', 'success', 'mean over seeds'],
      cells.map((c) => [LABELS[c.row], c.seeds.join(' '), counted(c.all), withError(c.success)]),
    ),
    '',
    ...splitTable(splitCells(results), lacking(results)),
    ...(over.n > 0
      ? [
          `Failures removed by RL: ${withError(over)}, over ${over.n} of the seeds, on new combinations near known places${overUnseen.n > 0 ? `; ${withError(overUnseen)}, over ${overUnseen.n}, on places and looks that never occurred in training` : ''}.`,
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
    varied = recorded('base').tasks?.looks === 'varied';
  return [
    `${how.quick ? 'A short look (`--quick`): it shows that all parts work together, too short for RL to train a batch, and has no figures to quote. ' : ''}A Qwen3-VL of 0.7 million random parameters, real desktops of 640x400 (the model gets 320x192), the engine over HTTP, all weights trained (rank 0). The task is \`${FAMILY}\`: a list dialog somewhere on the screen has to be closed with its Cancel button, by the one click that an episode allows. ${varied ? 'Training tasks have colours and letters of their own, light or dark, one in four the plain look (\`tasks.looks: varied\`). ' : 'All training tasks have one look. '}Per seed one policy imitates ${demonstrations} scripted demonstrations; from it, ${minutes} minutes of RL, and beside that as many of further imitation of the same demonstrations (and what making them anew takes), measured twice, of which the best checkpoint counts, chosen on the very probes that are reported; RL counts with its last.`,
    '',
    `Success is greedy on ${how.probe} held-out probes. Held out are new *combinations*: no place of the dialog together with its four rows and its title occurs in training. The words, the dialog's size and the look, the plain one, do occur, and the place of a probe's dialog is drawn from the same distribution, so that places a few pixels away were seen. So the first table, and \`failures_removed_by_rl\`, are of new combinations near known places, and say nothing of places and looks that never occurred in training; \`failures_removed_by_rl_unseen\` is of those. Rows of the second table are of them, too: squares of the screen, a font and a dark grey theme that are held out together, and each part alone where it is recorded. Nothing here tests reading: every task has the same target, and the title in its instruction does not matter. [ ] are Wilson 95 % intervals over episodes, ± Student's t over seeds.`,
  ];
}
function splitTable(cells: readonly SplitCell[], missing: readonly string[]): string[] {
  if (cells.length === 0) return [];
  return [
    'Held out beyond tasks, measured once at the end of an arm (imitation alone with its last checkpoint, or with the one it began with where that is recorded and better):',
    '',
    markdown(
      ['', 'policy', 'seeds', 'success', 'mean over seeds'],
      cells.map((c) => [
        SPLIT_NAMES[c.split],
        SPLIT_ROWS[c.policy],
        String(c.seeds),
        counted(c.all),
        withError(c.success),
      ]),
    ),
    '',
    ...(missing.length > 0 ? [`Measured by a new recording, and not by this one: ${missing.join('; ')}.`, ''] : []),
  ];
}
const counted = (t: Tally): string =>
  `${t.successes} of ${t.episodes}: ${percent(rate(t))} % [${percent(interval(t).low)}, ${percent(interval(t).high)}]`;
const withError = (e: Estimate): string =>
  `${percent(e.mean)} %${Number.isFinite(e.half) ? ` ± ${percent(e.half)}` : ''}`;
