// What the page of benchmarks shows of their recorded reports.
import { code, table } from './markdown.mjs';

/** Tables of a report in Markdown: the names of the columns, and the rows. */
function tablesOf(report) {
  const tables = [];
  let open;
  for (const line of report.split('\n')) {
    if (!line.startsWith('|')) open = undefined;
    else {
      const cells = line
        .slice(1, -1)
        .split('|')
        .map((c) => c.trim());
      if (!open) tables.push((open = { head: cells, rows: [] }));
      else if (!cells.every((c) => /^-+$/.test(c))) open.rows.push(cells);
    }
  }
  return tables;
}

/** Some columns of the report's first table that has all of them, of the rows that `wants` takes. */
function select(report, names, wants = () => true) {
  const found = tablesOf(report).find((t) => names.every((n) => t.head.includes(n)));
  if (!found) throw new Error(`no table of the report has the columns ${names.join(', ')}`);
  const rows = found.rows.map((r) => names.map((n) => r[found.head.indexOf(n)])).filter(wants);
  if (rows.length === 0) throw new Error(`the table with the columns ${names.join(', ')} has none of the rows wanted`);
  return table(names, rows);
}

const LIVE = [
  'regime',
  'X/X*',
  'bound by',
  'rollouts/h',
  'possible: X*',
  'desktops loose %',
  'strict %',
  'trained actions/min',
  'possible trained actions/min',
];

/** What a report says in words. */
function said(report, pattern) {
  const found = pattern.exec(report);
  if (!found) throw new Error(`no line of the report is like ${pattern}`);
  return found[1];
}

/** The regimes and d over a, with what the report says of their order. */
const liveTables = (report) =>
  [
    select(report, LIVE),
    'd over a:',
    select(report, ['of', 'ratio']),
    ...(/^Regime [ad] came after .*$/m.exec(report) ?? []),
  ].join('\n\n');

/** Tables of the recorded benchmarks that a reader wants first; the reports beside them have everything. */
export function benchmarkTables({ schedule, live, slow, pool }) {
  const regime = [
    'workload',
    'regime',
    'X/X*',
    'desktops strict %',
    'of at most %',
    'loose %',
    'replicas busy %',
    'trained actions/min',
  ];
  return {
    schedule: [
      select(schedule, regime, (r) => r[0] === 'dart-like' && /^(a|a\+|b|c|d|a\*|d\*):/.test(r[1])),
      'The same list of rollouts in every regime, from a cold start until the last is trained: scheduling alone.',
      select(schedule, ['regime', 'the same rollouts', 'trained', 'hours', 'trained actions/min', 'X/X*']),
      'One thing changed in regime d on `dart-like`, one seed:',
      select(schedule, ['variant', 'what', 'carry gradient, whole run %', 'X/X*', 'trained actions/min', 'injections']),
      schedule.includes('A quick look') ? 'Its bars, of a quick look, which decides none of them:' : 'Its bars:',
      select(schedule, ['bar', 'value', 'goal', '']),
    ].join('\n\n'),
    live: liveTables(live),
    'live-vlm': liveTables(slow),
    pool: [
      `Before, the policy solved none of ${said(pool, /it solved 0 of (.*? tasks) per seed/)} a seed, asked greedily.`,
      select(pool, ['', 'seeds', 'success after', 'mean over seeds', 'injected']),
      said(pool, /^(Imitation of the same demonstrations alone.*)$/m),
    ].join('\n\n'),
  };
}

/** Columns of the benchmark's rows that a reader wants first. */
const SCALE = [
  'desktops',
  'screen',
  'utilisation',
  'steps/s',
  'daemon ms/step',
  'main thread',
  'loop p99 ms',
  'RSS MB',
];

/** What one daemon costs, and the bars, from the benchmark's JSON. */
export const scaleTables = ({ at, commit, machine, rows, bars }) =>
  [
    `Run of ${at.slice(0, 10)}, commit ${commit}: ${machine.cores} cores of an ${machine.cpu}, nothing else on the machine.`,
    table(
      SCALE,
      rows.map((r) => SCALE.map((k) => r[k] ?? '')),
    ),
    table(
      ['bar', 'value', 'goal', ''],
      bars.map((b) => [code(b.name), Number(b.value.toPrecision(3)), b.goal, b.holds ? 'holds' : '**missed**']),
    ),
  ].join('\n\n');

/** What imitation, RL and the controls came to. */
export const vlmTables = (page) =>
  [
    'Held out beyond tasks; [ ] are 95 % intervals over seeds, none narrower than one seed’s episodes, which all seeds share; ± is Student’s t over seeds:',
    select(page, ['', 'policy', 'seeds', 'success', 'mean over seeds']),
    select(page, ['new combinations near known places', 'seeds', 'success', 'mean over seeds']),
    page.split('\n').find((l) => l.startsWith('Failures removed by RL')),
  ].join('\n\n');
