import { hierarchicalBootstrap, type BootstrapInterval } from '../../../runtime/domain/bootstrap.js';
import { dotChart } from '../lib/chart.js';
import type { Counts, SplitCount } from '../lib/evaluated.js';
import { atLeastOf, successInterval, widened } from '../lib/interval.js';
import { bar, type Bar } from '../lib/report.js';
import type { Branches, RunMeasure } from '../lib/runMeasure.js';
import type { Written } from '../lib/session.js';
import { markdown } from '../schedule/report.js';
import { additive, type Additive, type MainEffect } from './additive.js';
import { BLOCK_RUNS, areWhole, wholeRuns } from './design.js';
import { amongWhich, isNested, MECHANISMS, NOTHING, type LeftOut, type Mechanism } from './mechanisms.js';
import { movingTemplates, onTemplates, room } from './moving.js';
import {
  REFERENCES,
  RELEVANT,
  columnsOf,
  curationPlan,
  expectedScatter,
  levelBlock,
  minutesOf,
  resolution,
  seedsThatResolve,
  type CurationPlan,
} from './plan.js';
import type { Recorded } from './record.js';
import { EFFECT_COLUMNS, effectBar, effectRow, judged, written } from './verdict.js';

export interface ReportOf {
  readonly plan: CurationPlan;
  readonly leftOut: readonly LeftOut[];
  readonly failed: readonly string[];
}

const rate = (c: SplitCount | undefined): number => (c && c.episodes > 0 ? c.successes / c.episodes : NaN);
export const successOf = (r: Recorded, split = 'words'): number => rate(r.measured[split]);

const inDesign = (r: Recorded): boolean => r.part === 'design';

/** The additive model of one figure. Runs of other sources have a level of their own. */
export const modelOf = (
  recorded: readonly Recorded[],
  mechanisms: readonly Mechanism[],
  f: (r: Recorded) => number,
): Additive | undefined =>
  additive(
    recorded
      .filter((r) => r.part !== undefined)
      .map((r) => ({
        block: levelBlock(r.seed, r.part!, r.code),
        aside: r.part === 'pair',
        levels: r.levels!,
        value: f(r),
      })),
    mechanisms,
  );

/** Beside success: of a run, its unit, digits. */
const FIGURES: readonly (readonly [string, (m: RunMeasure) => number, number])[] = [
  ['rollouts', (m) => m.rollouts.ended, 0],
  ['rollouts with gradient, %', (m) => 100 * m.gradientShare, 1],
  ['mean N', (m) => m.groups.meanN, 2],
  ['steps per rollout', (m) => m.steps.meanLength, 2],
  ['steps trained', (m) => m.steps.trained, 0],
  ['updates', (m) => m.updates, 1],
];

/** Rows that stand beside the design: what they are, which runs, which of their measurements. */
const BESIDE: readonly {
  readonly name: string;
  readonly label: string;
  readonly of: (r: Recorded) => boolean;
  readonly words: string;
}[] = [
  { name: 'random', label: 'random choices', of: (r) => r.variant === 'start', words: 'words-random' },
  {
    name: 'blind',
    label: 'the policy of "pool alone", its screen blanked',
    of: (r) => r.variant === 'pool',
    words: 'words-blind',
  },
  { name: 'start', label: 'the starting policy', of: (r) => r.variant === 'start', words: 'words' },
  ...REFERENCES.map(({ name, label }) => ({
    name,
    label,
    of: (r: Recorded) => r.variant === name,
    words: 'words',
  })),
  { name: 'design', label: 'all runs of the design', of: inDesign, words: 'words' },
];

/** Over seeds and the episodes of each; of the design over seeds and the runs of each. All are of the same tasks. */
function over(runs: readonly Recorded[], split: string): BootstrapInterval | undefined {
  const counts = runs.flatMap((r) => (r.measured[split] ? [{ r, c: r.measured[split] }] : []));
  if (!counts.some(({ r }) => inDesign(r))) return successInterval(counts.map(({ c }) => c));
  const seeds = [...new Set(counts.map(({ r }) => r.seed))];
  const rates = seeds.map((s) => counts.flatMap(({ r, c }) => (r.seed === s ? [rate(c)] : [])));
  return atLeastOf(
    Math.max(...counts.map(({ c }) => c.episodes)),
    widened(
      hierarchicalBootstrap(rates),
      rates.map((of) => of.reduce((a, b) => a + b, 0) / of.length),
    ),
  );
}
const percent = (i: BootstrapInterval | undefined): string =>
  i ? `${(100 * i.mean).toFixed(1)} % [${(100 * i.low).toFixed(0)}, ${(100 * i.high).toFixed(0)}]` : '';

const plain = ({ mean, half }: Pick<MainEffect, 'mean' | 'half'>): string =>
  `${(100 * mean).toFixed(1)} % ± ${(100 * half).toFixed(1)}`;

function besideRows(recorded: readonly Recorded[], model: Additive | undefined): Record<string, unknown>[] {
  return BESIDE.flatMap(({ name, label, of, words }) => {
    const runs = recorded.filter(of),
      w = over(runs, words),
      levels = name === 'design' ? undefined : runs[0]?.levels;
    if (!w) return [];
    return [
      {
        section: 'beside',
        row: name,
        label,
        seeds: new Set(runs.map((r) => r.seed)).size,
        words: percent(w),
        heldout: words === 'words' ? percent(over(runs, 'heldout')) : '',
        model: model && levels && name !== 'blind' ? plain(model.predicted(levels)) : '',
        errors: runs.reduce((n, r) => n + (r.measured[words]?.errors ?? 0), 0),
      },
    ];
  });
}

/** Which templates leave room: success on unseen words by template. */
function templateTable(recorded: readonly Recorded[]): string {
  const columns: readonly [string, (r: Recorded) => boolean][] = [
      ['starting policy', (r) => r.variant === 'start'],
      ['imitation alone', (r) => r.variant === 'imitation'],
      ['without curation', (r) => r.variant === 'none'],
      ['pool alone', (r) => r.variant === 'pool'],
      ['all runs of the design', inDesign],
    ],
    of = (r: Recorded): Counts => r.measured['words']?.perFamily ?? {},
    families = [...new Set(recorded.flatMap((r) => Object.keys(of(r))))];
  return markdown(
    ['template', ...columns.map(([label]) => label)],
    families.map((f) => [
      `\`${f.replace('desk/', '')}\``,
      ...columns.map(([, which]) => {
        const counts = recorded.filter(which).flatMap((r) => of(r)[f] ?? []),
          n = counts.reduce((a, c) => a + c.episodes, 0);
        return n === 0 ? '' : `${((100 * counts.reduce((a, c) => a + c.successes, 0)) / n).toFixed(0)} %`;
      }),
    ]),
  );
}

/** Standard deviation of a run's success that comes from its number of episodes alone. */
const sampling = (runs: readonly Recorded[]): number =>
  Math.sqrt(
    runs.reduce((v, r) => v + (successOf(r) * (1 - successOf(r))) / r.measured['words']!.episodes, 0) / runs.length,
  );

interface State {
  readonly planned: number;
  readonly made: number;
  /** All runs of whole designs: main effects are clear of interactions. */
  readonly complete: boolean;
}
function stateOf(plan: CurationPlan, recorded: readonly Recorded[]): State {
  const wanted = curationPlan(plan).filter((x) => x.part === 'design'),
    names = new Set(recorded.map((r) => r.name)),
    made = wanted.filter((x) => names.has(x.experiment.name)).length;
  return {
    planned: wanted.length,
    made,
    complete: made === wanted.length && areWhole(plan.seeds) && !plan.quick,
  };
}

/** What the plan costs and can tell, before anything has run. */
interface Facts {
  readonly half: number;
  readonly within: number;
  readonly scatter: number;
  readonly seedsThatResolve: number;
  readonly minutesOfARun: number;
  readonly hours: number;
}
function factsOf(plan: CurationPlan): Facts {
  const planned = curationPlan(plan);
  return {
    ...resolution(plan, plan.seeds),
    scatter: expectedScatter(plan),
    seedsThatResolve: seedsThatResolve(plan),
    minutesOfARun: minutesOf(planned.find((x) => x.part === 'design')!),
    hours: planned.reduce((n, x) => n + minutesOf(x), 0) / 60,
  };
}

const planRow = (plan: CurationPlan, state: State, facts: Facts): Record<string, unknown> => ({
  section: 'plan',
  seeds: plan.seeds.join(' '),
  mechanisms: plan.mechanisms.length,
  runs: state.planned,
  design: wholeRuns(plan.seeds),
  made: state.made,
  complete: state.complete,
  ...facts,
});

const planBars = (plan: CurationPlan, { half }: Facts): Bar[] => [
  bar('mechanisms_known', plan.mechanisms.length, 'that a run file has', `>= ${MECHANISMS.length}`),
  ...(plan.quick
    ? []
    : [bar('planned_half_width', half, 'points, half an interval, as planned', `<= ${RELEVANT / 2}`)]),
];

export function curationReport(recorded: readonly Recorded[], { plan, leftOut, failed }: ReportOf): Written {
  const columns = columnsOf(plan),
    state = stateOf(plan, recorded),
    facts = factsOf(plan),
    of = (f: (r: Recorded) => number): Additive | undefined => (plan.quick ? undefined : modelOf(recorded, columns, f)),
    moving = movingTemplates(recorded),
    models: Models = {
      words: of(successOf),
      heldout: of((r) => successOf(r, 'heldout')),
      moved: of((r) => onTemplates(r, moving)),
    },
    effects = models.words?.effects ?? [],
    told = effects.filter((e) => e.mechanism !== NOTHING).map(effectBar),
    beside = besideRows(recorded, models.words);
  return {
    bars: [
      ...planBars(plan, facts),
      ...told,
      ...(told.length === 0
        ? []
        : [bar('effects_decided', told.filter((b) => b.holds).length, `of ${told.length}`, `>= ${told.length}`)]),
    ],
    rows: [
      planRow(plan, state, facts),
      ...recorded.map(runRow),
      ...effects.map((e, k) => effectRow(e, models.heldout?.effects[k], models.moved?.effects[k])),
      ...beside,
      ...leftOut.map(({ mechanism, why }) => ({ section: 'left out', mechanism: mechanism.name, why })),
    ],
    svg: chart(plan, effects),
    markdown: [
      '# What curation does: ablation on real desktops',
      '',
      method(plan, facts),
      '',
      madeBy(recorded),
      '## What helps here',
      '',
      ...helps(plan, state, models, recorded),
      '',
      ...(recorded.length === 0
        ? []
        : ['## Beside it', '', besideTable(beside), '', '## By template', '', templateTable(recorded), '']),
      ...(models.words
        ? ['## What each mechanism changes besides success', '', figuresTable(recorded, columns), '']
        : []),
      ...listed(
        'Left out',
        leftOut.map((x) => `${x.mechanism.label} (\`${x.mechanism.name}\`): ${x.why}`),
      ),
      ...listed('Failed', failed),
    ].join('\n'),
  };
}

interface Models {
  readonly words: Additive | undefined;
  readonly heldout: Additive | undefined;
  /** On unseen words of the templates that can move. */
  readonly moved: Additive | undefined;
}
const listed = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`## ${title}`, '', ...lines.map((l) => `- ${l}`), ''];

const chart = (plan: CurationPlan, effects: readonly MainEffect[]): string =>
  dotChart({
    title: `What each mechanism adds to success on unseen words in ${plan.minutes} minutes`,
    unit: 'points',
    from: -20,
    to: 20,
    mark: 0,
    format: (x) => x.toFixed(0),
    rows: effects.map((e) => ({
      label: e.mechanism.label,
      at: { ...e, mean: 100 * e.mean, half: 100 * e.half },
      colour: e.mechanism === NOTHING ? '#b35806' : e.mechanism.ours ? '#8073ac' : '#35618f',
    })),
  });

function helps(plan: CurationPlan, state: State, models: Models, recorded: readonly Recorded[]): string[] {
  const { words: model } = models;
  if (!model)
    return [`Nothing can be told yet: ${state.made} of the ${wholeRuns(plan.seeds)} runs of a whole design are made.`];
  const partly = `**${state.made} of the ${wholeRuns(plan.seeds)} runs of a whole design so far**: until a whole design is made, two mechanisms acting together may pass for a third. `,
    drawn = sampling(recorded.filter(inDesign));
  return [
    `${state.complete ? '' : partly}An additive model of ${model.runs} runs: a level for each seed, one effect for each mechanism. A run scatters about it by ${(100 * model.scatter).toFixed(1)} points (${expectedScatter(plan).toFixed(1)} expected), of which at most ${(100 * drawn).toFixed(1)} come from its number of episodes: every run is measured on the same tasks. ± are 95 % intervals with ${model.freedom} degrees of freedom; of ${model.effects.length} verdicts at 95 % one is wrong in ${(1 / (1 - 0.95 ** model.effects.length)).toFixed(1)} such reports.`,
    '',
    room(recorded),
    '',
    effectTable(model, models),
    ...branchLines(recorded),
  ];
}

const besideTable = (rows: readonly Record<string, unknown>[]): string =>
  [
    'On unseen words, and on other arrangements of known ones; [ ] are 95 % intervals over seeds and the episodes of each. All seeds are asked the same tasks, so that none is narrower than that of Wilson over the episodes of one seed; where all episodes ended alike it is that one. "By the model": what the effects above add up to, and how far that is certain; what was measured has an interval of its own beside it, so that one inside the other says nothing against mechanisms adding up.',
    '',
    markdown(
      ['', 'seeds', 'unseen words', 'other arrangements', 'by the model', 'errors'],
      rows.map((r) => ['label', 'seeds', 'words', 'heldout', 'model', 'errors'].map((k) => String(r[k]))),
    ),
  ].join('\n');

function effectTable(model: Additive, { heldout, moved }: Models): string {
  return markdown(
    EFFECT_COLUMNS,
    model.effects.map((e, k) => {
      const row = effectRow(e, undefined, undefined);
      return [
        `${e.mechanism.label}${e.mechanism.ours ? ' (ours)' : ''}${isNested(e.mechanism) ? `, ${amongWhich(e.mechanism)}` : ''}`,
        written(e, 1, 100),
        judged(e).verdict,
        moved ? written(moved.effects[k]!, 1, 100) : '',
        heldout ? written(heldout.effects[k]!, 1, 100) : '',
        ...['default', 'quickstart'].map((of) => (e.mechanism === NOTHING ? '' : String(row[of]))),
      ];
    }),
  );
}

/** What branches cost, of the runs that say so. */
function branchLines(recorded: readonly Recorded[]): string[] {
  const all = recorded.flatMap((r) => r.measure.branches ?? []),
    total = (of: (b: Branches) => number): number => all.reduce((n, b) => n + of(b), 0),
    begun = total((b) => b.begun),
    reached = begun - total((b) => b.diverged);
  if (begun === 0) return [];
  return [
    '',
    `Branches: ${reached} of ${begun} reached their step by screens that were all the recorded ones (${((100 * reached) / begun).toFixed(1)} %), in ${all.length} runs. Acting out took ${(total((b) => b.actedOut) / begun).toFixed(1)} steps and ${(total((b) => b.actedOutSeconds) / begun).toFixed(2)} s of a desktop each, its reset included.`,
  ];
}

function figuresTable(recorded: readonly Recorded[], columns: readonly Mechanism[]): string {
  const models = FIGURES.map(([, f, digits]) => ({ digits, model: modelOf(recorded, columns, (r) => f(r.measure)) }));
  return markdown(
    ['', ...FIGURES.map(([name]) => name)],
    columns.map((m, k) => [
      m.label,
      ...models.map(({ digits, model }) => (model ? written(model.effects[k]!, digits) : '')),
    ]),
  );
}

function runRow(r: Recorded): Record<string, unknown> {
  const { measure: m } = r;
  return {
    section: 'run',
    run: r.name,
    seed: r.seed,
    on: Object.entries(r.levels ?? {})
      .flatMap(([name, on]) => (on ? [name] : []))
      .join(' '),
    words: successOf(r),
    heldout: successOf(r, 'heldout'),
    rollouts: m.rollouts.ended,
    errors: m.rollouts.errors,
    meanN: m.groups.meanN,
    meanLength: m.steps.meanLength,
    stepsTrained: m.steps.trained,
    updates: m.updates,
    gradientShare: m.gradientShare,
    wallSeconds: r.wallSeconds,
    measuredSeconds: r.measuredSeconds,
  };
}

function method(plan: CurationPlan, facts: Facts): string {
  const run = curationPlan(plan).find((x) => x.part === 'design')!,
    templates = (run.experiment.file.tasks?.families ?? []).length;
  if (plan.quick)
    return 'A short look (`--quick`), no figures to quote: everything on, and everything off, from a policy that knows next to nothing.';
  return `Real training on real desktops with the embedded policy, ${templates} templates. Per seed one weak starting policy, and from it, in random order, ${BLOCK_RUNS} runs of ${plan.minutes} minutes each, in which every mechanism is on or off (Plackett-Burman, 24 runs in two blocks, turned over in two more: four seeds are one design, whose main effects are clear of interactions of two), and the rows beside it. Success is greedy, on ${plan.words} episodes with unseen words, the same in every run, and ${plan.heldout} with other arrangements. Group filter and staleness bound are always on. What acts only beside another mechanism is off without it, and told from those that have it, half or a quarter of all; for hindsight a pair of runs for each seed is added, which differ in nothing else.\n\n${expected(plan, facts)}`;
}

function expected(plan: CurationPlan, f: Facts): string {
  const told = Number.isFinite(f.half)
    ? `intervals of ± ${f.half.toFixed(1)} points (up to ± ${f.within.toFixed(1)} for what acts only beside another)`
    : 'nothing, for want of runs,';
  return `Planned: ${plan.seeds.length} seed${plan.seeds.length === 1 ? '' : 's'}, ${plan.seeds.length * BLOCK_RUNS} runs of the design, about ${f.minutesOfARun.toFixed(1)} minutes each with measuring, ${f.hours.toFixed(1)} hours in all. Expected: ${told} at a scatter of ${f.scatter.toFixed(1)} points a run, version 0.1's with today's number of episodes; ${f.seedsThatResolve} seeds tell an effect of ${RELEVANT} points from none whatever it comes to.`;
}

function madeBy(recorded: readonly Recorded[]): string {
  const [first] = recorded;
  if (!first) return '';
  const all = (f: (r: Recorded) => string): string => [...new Set(recorded.map(f))].join(', '),
    days = recorded.map((r) => r.startedAt.slice(0, 10)).sort(),
    load = recorded.flatMap((r) => r.load);
  return `Made from ${days[0]} to ${days.at(-1)} at commit ${all((r) => r.commit)} (sources ${all((r) => r.code)}, plan ${all((r) => r.plan)}) on ${String(first.machine['cpu'])}, ${String(first.machine['cores'])} cores, Node ${String(first.machine['node'])}, load ${Math.min(...load).toFixed(0)} to ${Math.max(...load).toFixed(0)}: the time of a run is fixed, so what else the machine does counts. Run files are in runs.jsonl.\n`;
}
