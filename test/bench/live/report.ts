import type { RunResult } from '../lib/experiments.js';
import { dotChart } from '../lib/chart.js';
import type { Bar } from '../lib/report.js';
import { bar } from '../lib/report.js';
import type { Throughput } from '../lib/runMeasure.js';
import type { Written } from '../lib/session.js';
import { REGIMES } from '../schedule/arrangements.js';
import { barLines, markdown } from '../schedule/report.js';
import { estimate, type Estimate } from '../schedule/statistics.js';
import { FAMILY } from '../vlm/plan.js';
import { BASE } from './plan.js';
import { DECODE_SECONDS, DESKTOPS, GROUPS, REPLICAS, UPDATE_SECONDS } from './vlmPlan.js';

interface Cell {
  readonly regime: (typeof REGIMES)[number];
  readonly runs: readonly Throughput[];
}
const of = (c: Cell, f: (t: Throughput) => number): Estimate => estimate(c.runs.map(f));
const num = (e: Estimate, digits: number, scale = 1): string =>
  `${(scale * e.mean).toFixed(digits)}${Number.isFinite(e.half) ? ` ± ${(scale * e.half).toFixed(digits)}` : ''}`;
/** X* in rollouts an hour: what these latencies and lengths allow where nothing ever waits. */
const possibleRollouts = (t: Throughput): number => 3600 * t.bound;
/** X* times the trained actions of a rollout, as the run had them, a minute. */
const possibleActions = (t: Throughput): number => (t.rate > 0 ? (t.trainedActions * t.bound) / t.rate : NaN);
const round = (x: number): number => Number(x.toPrecision(4));
/** What d has of it over what a has; the turn is the pair, as both ran one after the other. */
const RATIOS: readonly [string, string, (t: Throughput) => number][] = [
  ['desktop_utilisation_ratio_live', 'desktops, loose', (t) => t.loose],
  ['desktop_strict_ratio_live', 'desktops, strict', (t) => t.strict],
  ['trained_actions_ratio_live', 'trained actions/min', (t) => t.trainedActions],
  ['replica_utilisation_ratio_live', 'replicas busy', (t) => t.replicaBusy],
  ['rollouts_ratio_live', 'rollouts/min', (t) => t.rate],
];

/** Half of the 95 % interval of d over a in trained actions, as a share: what the turns are enough to tell apart. */
function resolved(a: Cell | undefined, d: Cell): Bar[] {
  if (!a) return [];
  const e = estimate(d.runs.flatMap((t, i) => (a.runs[i] ? [t.trainedActions / a.runs[i]!.trainedActions] : [])));
  return Number.isFinite(e.half)
    ? [bar('trained_actions_ratio_error_live', e.half / e.mean, 'half of the 95 % interval of d over a', '<= 0.2')]
    : [];
}

/** Where replicas load new weights in service none is ever out of it: there is nothing to hold a bar against. */
const syncBars = (d: Cell): Bar[] =>
  d.runs.every((t) => t.outMax === 0)
    ? []
    : [
        bar('sync_replicas_out_live', Math.max(...d.runs.map((t) => t.outMax)), 'replicas at once (regime d)', '<= 1'),
        bar('sync_downtime_live', 100 * of(d, (t) => t.syncDown).mean, '% of replica time (regime d)', '<= 0.5'),
      ];
/** Addresses are swapped one after another in every regime: sync is no difference between these. */
const labelOf = ({ regime: { name, label } }: Cell, { vlm }: LiveHow): string =>
  `${name}: ${vlm ? label.replace(/, [\w-]+ sync/, '') : label}`;

export interface LiveHow {
  readonly quick: boolean;
  readonly turns: number;
  readonly minutes: number;
  /** A vision-language model as slow as a large one. */
  readonly vlm?: boolean;
}

export function liveReport(results: readonly RunResult[], failed: readonly string[], how: LiveHow): Written {
  const measured = results.filter((r) => r.variant !== BASE && r.measure.throughput),
    // A record may be older than the plan of today, by which results are ordered.
    began = [...measured].sort((x, y) => Date.parse(x.startedAt) - Date.parse(y.startedAt)),
    turns = turnsOf(began),
    confounded = sameOrder(turns);
  const cells = REGIMES.flatMap((regime): Cell[] => {
    const runs = measured.filter((r) => r.variant === regime.name).map((r) => r.measure.throughput!);
    return runs.length === 0 ? [] : [{ regime, runs }];
  });
  const a = cells.find((c) => c.regime.name === 'a'),
    d = cells.find((c) => c.regime.name === 'd');
  const bars: Bar[] = d
    ? [
        bar(
          'x_over_bound_live',
          of(d, (t) => t.ratio).mean,
          `X* (regime d), which is ${of(d, possibleRollouts).mean.toFixed(0)} rollouts/h and, with the trained actions that a rollout had, ${of(d, possibleActions).mean.toFixed(0)} trained actions/min`,
          '>= 0.9',
        ),
        bar('desktop_utilisation_loose', of(d, (t) => t.loose).mean, 'of desktop time (regime d)', '>= 0.95'),
        bar(
          'sync_failed_requests_live',
          Math.max(...cells.flatMap((c) => c.runs.map((t) => t.failed))),
          'requests',
          '<= 0',
        ),
        ...syncBars(d),
        ...resolved(a, d),
      ]
    : [];
  const pairs = RATIOS.map(([name, what, f]) => ({
    name,
    what,
    e: a && d ? estimate(d.runs.flatMap((t, i) => (a.runs[i] ? [f(t) / f(a.runs[i]!)] : []))) : undefined,
  }));
  const head = [
    'regime',
    'X/X*',
    'bound by',
    'rollouts/h',
    'possible: X*',
    'desktops loose %',
    'strict %',
    'replicas busy %',
    'trainer idle %',
    'staleness mean / p95 / max',
    'sync down %',
    'draining %',
    'failed',
    'trained actions/min',
    'possible trained actions/min',
    'generated actions/min',
    'trained of resolved %',
    's per rollout',
    's per update',
  ];
  const table = markdown(
    head,
    cells.map((c) => {
      const f = (g: (t: Throughput) => number, digits = 1, scale = 100): string => num(of(c, g), digits, scale);
      return [
        labelOf(c, how),
        f((t) => t.ratio, 3, 1),
        [...new Set(c.runs.map((t) => t.boundBy))].join(', '),
        f((t) => t.rate, 0, 3600),
        f(possibleRollouts, 0, 1),
        f((t) => t.loose),
        `${f((t) => t.strict)} of ${f((t) => t.strictCap)}`,
        f((t) => t.replicaBusy),
        f((t) => t.trainerIdle),
        `${f((t) => t.staleness.mean, 2, 1)} / ${Math.max(...c.runs.map((t) => t.staleness.p95))} / ${Math.max(...c.runs.map((t) => t.staleness.max))}`,
        f((t) => t.syncDown, 2),
        f((t) => t.syncDrain, 2),
        String(c.runs.reduce((n, t) => n + t.failed, 0)),
        f((t) => t.trainedActions, 0, 1),
        f(possibleActions, 0, 1),
        f((t) => t.generatedActions, 0, 1),
        f((t) => t.alpha),
        f((t) => t.rolloutSeconds, 2, 1),
        f((t) => t.updateSeconds, 2, 1),
      ];
    }),
  );
  const each = markdown(
    ['run', 'X/X*', 'loose %', 'rollouts/h', 'trained actions/min', 'measured s', 'load before, after'],
    began.map((r) => {
      const t = r.measure.throughput!;
      return [
        r.name,
        t.ratio.toFixed(3),
        (100 * t.loose).toFixed(1),
        (3600 * t.rate).toFixed(0),
        t.trainedActions.toFixed(0),
        t.seconds.toFixed(0),
        r.load.map((x) => x.toFixed(1)).join(', '),
      ];
    }),
  );
  const first = results[0];
  return {
    bars,
    rows: [
      ...began.map((r) => ({
        section: 'run',
        run: r.name,
        regime: r.variant,
        ...flat(r.measure.throughput!),
        possibleRolloutsPerHour: round(possibleRollouts(r.measure.throughput!)),
        possibleTrainedActionsPerMinute: round(possibleActions(r.measure.throughput!)),
        load: r.load[1],
      })),
      ...pairs.flatMap((p) =>
        p.e ? [{ section: 'd over a', name: p.name, value: round(p.e.mean), half: round(p.e.half) }] : [],
      ),
    ],
    svg: dotChart({
      title: 'Throughput over its bound on real desktops, X/X*',
      unit: '',
      from: 0,
      to: 1,
      mark: 0.9,
      format: (x) => x.toFixed(2),
      rows: cells.map((c) => ({
        label: labelOf(c, how),
        at: of(c, (t) => t.ratio),
        ...(c.regime.name === 'd' ? {} : { colour: '#b35806' }),
      })),
    }),
    markdown: [
      '# Scheduling regimes on real desktops',
      '',
      aboutLive(
        {
          ...how,
          minutes: measured[0]?.file.budget?.minutes ?? how.minutes,
          turns: Math.max(...cells.map((c) => c.runs.length), 0) || how.turns,
        },
        orderOf(turns),
        confounded,
      ),
      '',
      ...(first
        ? [
            `Made at commit ${[...new Set(results.map((r) => r.commit))].join(', ')}; ${String(first.machine['cpu'])}, ${String(first.machine['cores'])} cores, Node ${String(first.machine['node'])}; provider: see each run in runs.jsonl.`,
            '',
          ]
        : []),
      barLines(bars),
      '',
      table,
      '',
      ...(a && d
        ? [
            '## d over a',
            '',
            markdown(
              ['of', 'ratio'],
              pairs.flatMap((p) => (p.e ? [[p.what, num(p.e, 2)]] : [])),
            ),
            '',
            ...(confounded ? [confounded, ''] : []),
          ]
        : []),
      '## Runs',
      '',
      each,
      '',
      ...(failed.length > 0 ? ['## Failed', '', ...failed.map((f) => `- ${f}`), ''] : []),
    ].join('\n'),
  };
}

/** The regimes of each turn in the order in which they ran. */
function turnsOf(began: readonly RunResult[]): string[][] {
  const turns = new Map<string, string[]>();
  for (const r of began) {
    const turn = r.name.split('-')[0]!;
    turns.set(turn, [...(turns.get(turn) ?? []), r.variant]);
  }
  return [...turns.values()];
}
function orderOf(turns: readonly (readonly string[])[]): string {
  const orders = turns.map((t) => t.join(' '));
  return turns.length > 1 && turns[0]!.length > 1 && new Set(orders).size === 1
    ? `in the order ${orders[0]!} each`
    : 'in random order each';
}
/** Says so where one of a and d always ran after the other. */
function sameOrder(turns: readonly (readonly string[])[]): string | undefined {
  const both = turns.filter((t) => t.includes('a') && t.includes('d')),
    after = both.filter((t) => t.indexOf('d') > t.indexOf('a')).length;
  if (both.length === 0 || (after > 0 && after < both.length)) return undefined;
  const [last, first] = after > 0 ? ['d', 'a'] : ['a', 'd'];
  const where = both.length === 1 ? 'the one recorded turn' : `each of the ${both.length} recorded turns`;
  return `Regime ${last} came after ${first} in ${where}, so order and regime cannot be told apart here.`;
}

function aboutLive({ quick, turns, minutes, vlm }: LiveHow, order: string, confounded: string | undefined): string {
  const what = vlm
      ? `${DESKTOPS} real desktops, ${REPLICAS} replicas of a tiny vision-language model and its trainer, on one engine, as slow as a model of 7 B: an answer takes ${DECODE_SECONDS.join(' to ')} s, a step of the optimizer ${UPDATE_SECONDS} s more than it needs (batches of ${GROUPS} groups of eight, one step each). Episodes of \`${FAMILY}\` with up to eight clicks`
      : "Six real desktops, two replicas of the embedded policy and the embedded trainer (batches of 6 groups, one pass), all on one machine, on the quick start's tasks",
    how = quick
      ? 'a short look (`--quick`), no figures to quote'
      : `${turns} turns of the regimes, ${order}, of ${minutes} min a run, from one warm start, same seed`,
    shares = vlm
      ? 'A replica takes as many calls at once as there are desktops, so that "replicas busy" counts calls under way; replicas load new weights in service, one after another in every regime, so that regimes differ in what they wait for alone, and "sync down" is loading, not being out of service; the load of the machine stands beside each run'
      : 'Desktops, replicas and trainer share the cores, so T is longer where more of them work at once: X/X* says how much of what the machine gave was used, rollouts/h and trained actions/min which regime got further';
  return `${what}; ${how}. ${confounded ? `${confounded} ` : ''}± is a 95 % interval over turns${turns < 3 ? ' (two turns make it wide)' : ''}. X* = min(N/T, G mu/L, B/(alpha T_tr)) with each run's own reset, step, decision and verify times (waiting for a replica not counted), lengths and surviving share; the column of it is in rollouts/h. Possible trained actions/min = X* / 60 x (trained actions / rollouts ended), both as the run measured them: so much could be trained at these latencies of what curation keeps, if nothing ever waited; what was trained is the same share of it as X/X*, and how many actions curation keeps is not in it. ${shares}. Loose: a desktop is leased to a rollout or being reset; strict: without waiting for the policy. The first ${vlm ? 30 : 10} s of a run are left out.`;
}

const flat = ({ staleness: s, ...t }: Throughput): Record<string, unknown> => ({
  ...t,
  stalenessMean: s.mean,
  stalenessP95: s.p95,
  stalenessMax: s.max,
});
