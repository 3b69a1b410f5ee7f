import type { Bar, RunStamp } from '../lib/report.js';
import { stampLine } from '../lib/report.js';
import type { Lists } from './lists.js';
import type { Measured } from './measure.js';
import type { Arrangement } from './simulate.js';
import type { Estimate } from './statistics.js';
import { estimate } from './statistics.js';
import type { Workload } from './workload.js';

/** A ratio of d over another arrangement, and what it would be if d stood at its bound. */
export interface Ratio {
  readonly of: string;
  readonly value: number;
  readonly half: number;
  readonly most: number;
}

/** All seeds of one arrangement on one workload. */
export interface Cell {
  readonly workload: string;
  readonly arrangement: Arrangement;
  readonly runs: readonly Measured[];
}

const FIELDS = {
  rate: (m: Measured) => m.rate,
  ratio: (m: Measured) => m.ratio,
  loose: (m: Measured) => m.loose,
  strict: (m: Measured) => m.strict,
  strictCap: (m: Measured) => m.strictCap,
  replicaBusy: (m: Measured) => m.replicaBusy,
  /** What there would be of them at the bound X*. */
  strictAtBound: (m: Measured) => m.strict / m.ratio,
  replicaAtBound: (m: Measured) => m.replicaBusy / m.ratio,
  trainerIdle: (m: Measured) => m.trainerIdle,
  stalenessMean: (m: Measured) => m.staleness.mean,
  stalenessP95: (m: Measured) => m.staleness.p95,
  stalenessMax: (m: Measured) => m.staleness.max,
  unused: (m: Measured) => m.unused,
  gradientShare: (m: Measured) => m.gradientShare,
  poolLagMax: (m: Measured) => m.poolStaleness.max,
  injections: (m: Measured) => m.injections,
  stale: (m: Measured) => m.stale,
  syncDown: (m: Measured) => m.syncDown,
  syncDrain: (m: Measured) => m.syncDrain,
  servingMin: (m: Measured) => m.servingMin,
  failed: (m: Measured) => m.failed,
  errors: (m: Measured) => m.errors,
  generatedActions: (m: Measured) => m.generatedActions,
  trainedActions: (m: Measured) => m.trainedActions,
  length: (m: Measured) => m.length,
  alpha: (m: Measured) => m.alpha,
} as const;
export type Field = keyof typeof FIELDS;

export const cellEstimate = (c: Cell, f: Field): Estimate => estimate(c.runs.map(FIELDS[f]));
/** Paired over seeds: the same seed is the same trace. */
export const ratioOf = (over: Cell, under: Cell, f: Field): Estimate =>
  estimate(over.runs.map((m, i) => FIELDS[f](m) / FIELDS[f](under.runs[i]!)));

/** What a terminal is wide enough for. */
export function shortRow(c: Cell): Record<string, unknown> {
  const pct = (f: Field): number => Number((100 * cellEstimate(c, f).mean).toFixed(1));
  return {
    workload: c.workload,
    regime: c.arrangement.name,
    'X/X*': Number(cellEstimate(c, 'ratio').mean.toFixed(3)),
    'desktops strict %': pct('strict'),
    'replicas %': pct('replicaBusy'),
    'trainer idle %': pct('trainerIdle'),
    'unused %': pct('unused'),
    'trained actions/min': Number(cellEstimate(c, 'trainedActions').mean.toFixed(1)),
  };
}

/** One flat row for the JSON. */
export function rowOf(c: Cell): Record<string, unknown> {
  const row: Record<string, unknown> = {
    workload: c.workload,
    regime: c.arrangement.name,
    label: c.arrangement.label,
    seeds: c.runs.length,
  };
  for (const f of Object.keys(FIELDS) as Field[]) {
    const { mean, half } = cellEstimate(c, f);
    row[f] = round(mean);
    if (Number.isFinite(half)) row[`${f}±`] = round(half);
  }
  return row;
}

const round = (x: number): number => Number(x.toPrecision(4));
const num = (e: Estimate, digits: number, scale = 1): string =>
  Number.isFinite(e.half) && e.half * scale >= 0.5 * 10 ** -digits
    ? `${(e.mean * scale).toFixed(digits)} ± ${(e.half * scale).toFixed(digits)}`
    : (e.mean * scale).toFixed(digits);

export function table(cells: readonly Cell[]): string {
  const head = [
    'workload',
    'regime',
    'X/X*',
    'desktops strict %',
    'of at most %',
    'loose %',
    'replicas busy %',
    'trainer idle %',
    'staleness mean / p95 / max',
    'unused %',
    'sync down %',
    'draining %',
    'failed',
    'trained actions/min',
  ];
  const rows = cells.map((c) => {
    const f = (x: Field, digits = 1, scale = 100): string => num(cellEstimate(c, x), digits, scale);
    return [
      c.workload,
      `${c.arrangement.name}: ${c.arrangement.label}`,
      f('ratio', 3, 1),
      f('strict'),
      f('strictCap'),
      f('loose'),
      f('replicaBusy'),
      f('trainerIdle'),
      `${f('stalenessMean', 2, 1)} / ${f('stalenessP95', 1, 1)} / ${Math.max(...c.runs.map((m) => m.staleness.max))}`,
      f('unused'),
      f('syncDown', 2),
      f('syncDrain', 2),
      f('failed', 0, 1),
      f('trainedActions', 1, 1),
    ];
  });
  return markdown(head, rows);
}
export const markdown = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((r) => `| ${r.join(' | ')} |`).join('\n');

export const barLines = (bars: readonly Bar[]): string =>
  markdown(
    ['bar', 'value', 'goal', ''],
    bars.map((b) => [
      `\`${b.name}\``,
      `${Number(b.value.toPrecision(4))} ${b.unit}`,
      b.goal,
      b.holds ? 'holds' : 'missed',
    ]),
  );

/** The regimes on one list of rollouts. */
export const listTable = (l: Lists): string =>
  markdown(
    ['regime', 'the same rollouts', 'trained', 'hours', 'trained actions/min', 'X/X*'],
    l.rows.map((r) => [
      `${r.arrangement.name}: ${r.arrangement.label}`,
      String(r.rollouts),
      String(r.trainedRollouts),
      num(r.hours, 2),
      num(r.trainedActions, 1),
      num(r.ratio, 3),
    ]),
  );

/** How far the published figures (runtime/rollout/README.md#published-figures) come out of the simulator. */
export function publishedTable(cells: readonly Cell[]): string[] {
  const of = (name: string): Cell | undefined =>
      cells.find((c) => c.workload === 'dart-calibrated' && c.arrangement.name === name),
    coupled = of('a-'),
    decoupled = of('p');
  if (!coupled || !decoupled) return [];
  const row = (what: string, f: Field, scale: number, published: readonly [string, string]): string[] => [
    what,
    published[0],
    (cellEstimate(coupled, f).mean * scale).toFixed(1),
    published[1],
    (cellEstimate(decoupled, f).mean * scale).toFixed(1),
  ];
  return [
    `Published figures beside the published arrangements (a-, p) on dart-calibrated, which is fitted to the coupled loop alone:\n\n${markdown(
      ['', 'coupled, published', 'a-', 'decoupled, published', 'p'],
      [
        row('actions trained per minute', 'trainedActions', 1, ['22.6', '43.6']),
        row('desktops, loose %', 'loose', 100, ['12.2', '67.7']),
        row('replicas %', 'replicaBusy', 100, ['29.6', '46.7']),
        row('rollouts used %', 'gradientShare', 100, ['', '16']),
      ],
    )}`,
  ];
}

/** A ratio of d over another arrangement, and what it would be if d stood at its bound. */
export interface Ratio {
  readonly of: string;
  readonly value: number;
  readonly half: number;
  readonly most: number;
}

interface Page {
  readonly run: RunStamp;
  readonly quick: boolean;
  readonly seeds: number;
  readonly bars: readonly Bar[];
  readonly cells: readonly Cell[];
  readonly ratios: readonly { readonly under: string; readonly all: readonly Ratio[] }[];
  readonly lists: string;
  readonly notes: readonly string[];
  readonly workloads: readonly Workload[];
}
/** The page beside the JSON. */
export const page = (p: Page): string =>
  [
    '# Scheduling regimes against the bound',
    '',
    `${stampLine(p.run)}${p.quick ? ' A quick look, no figures to quote.' : ''}`,
    '',
    `The production scheduler, order queue, planner, curation, ledger, staleness rule, model pool and sync planner on virtual time, with the options that a run file has by default; desktops, replicas and trainer simulated. ${p.seeds} seeds, ± is a 95 % interval over them; the k-th rollout of a task is the same in every regime. X* is what each resource could serve if nothing ever waited, with what a trajectory of the run takes of it on average; X/X* is the share taken of the resource that runs out first. Strict: a desktop does work of its own; of at most: if the policy never kept it waiting; loose: it is leased to a rollout or being reset. Replicas busy: work done over capacity.`,
    '',
    barLines(p.bars),
    '',
    table(p.cells),
    '',
    '## The same rollouts',
    '',
    'One list of rollouts (shuffled passes, groups of one size, one cap, no pool), the same in every regime, from a cold start until the last is trained: what scheduling brings, and nothing else.',
    '',
    p.lists,
    '',
    '## Ratios on dart-like',
    '',
    'The most that is possible: d at its bound, and for the loose share all desktops.',
    '',
    markdown(
      ['', 'of', 'ratio', 'most that is possible'],
      p.ratios.flatMap(({ under, all }) =>
        all.map((r) => [`d / ${under}`, r.of, num({ mean: r.value, half: r.half, n: p.seeds }, 2), r.most.toFixed(2)]),
      ),
    ),
    '',
    ...p.notes.flatMap((n) => [n, '']),
    '## Workloads',
    '',
    ...p.workloads.map((w) => `- **${w.name}**: ${w.about}`),
    '',
  ].join('\n');

/** X/X* of every regime, workload by workload; whiskers are 95 % intervals. */
export function chart(cells: readonly Cell[]): string {
  const workloads = [...new Set(cells.map((c) => c.workload))],
    names = [...new Set(cells.map((c) => c.arrangement.name))];
  const colours = ['#b35806', '#e08214', '#fdb863', '#8073ac', '#35978f', '#01665e', '#543005'];
  const bar = 15,
    gap = 14,
    left = 130,
    width = 820,
    plot = width - left - 130;
  const out: string[] = [];
  let y = 54;
  for (const w of workloads) {
    const mine = cells.filter((c) => c.workload === w);
    out.push(`<text x="${left - 10}" y="${y + (mine.length * bar) / 2 + 4}" text-anchor="end">${w}</text>`);
    for (const c of mine) {
      const e = cellEstimate(c, 'ratio'),
        x = Math.min(1.05, e.mean) * plot,
        half = Number.isFinite(e.half) ? e.half * plot : 0;
      out.push(
        `<rect x="${left}" y="${y}" width="${x.toFixed(1)}" height="${bar - 3}" fill="${colours[names.indexOf(c.arrangement.name) % colours.length]}"/>`,
      );
      if (half > 0.5)
        out.push(
          `<path d="M${(left + x - half).toFixed(1)} ${y + 6}H${(left + x + half).toFixed(1)}" stroke="currentColor"/>`,
        );
      out.push(
        `<text x="${(left + x + Math.max(6, half + 4)).toFixed(1)}" y="${y + 10}" font-size="10">${c.arrangement.name} ${e.mean.toFixed(2)}</text>`,
      );
      y += bar;
    }
    y += gap;
  }
  const legend = names
    .map(
      (n, i) =>
        `<rect x="${left + i * 168}" y="30" width="10" height="10" fill="${colours[i % colours.length]}"/><text x="${left + 14 + i * 168}" y="39" font-size="10">${n}: ${cells.find((c) => c.arrangement.name === n)!.arrangement.label}</text>`,
    )
    .join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 10}" viewBox="0 0 ${width} ${y + 10}" font-family="sans-serif" font-size="12" fill="currentColor" color="#444">
<title>Throughput over its bound, X/X*</title><text x="${left}" y="18" font-size="14">Throughput over its bound, X/X*</text>${legend}
<path d="M${left + plot} 46V${y}" stroke="currentColor" stroke-dasharray="3 3"/>
${out.join('\n')}
</svg>
`;
}
