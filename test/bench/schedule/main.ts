// npm run bench:schedule [-- --quick] [-- --json FILE] [-- --out DIR] [-- --only dart-like,faults,...]: four scheduling
// regimes on the same traces in virtual time, against the bound X*. One run writes the JSON, its page and its picture;
// with --out test/bench/results/schedule also what README says of it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { benchArgs, finish, stamp } from '../lib/report.js';
import { DISPATCHED, FILLED, PUBLISHED, REGIMES, RELAUNCHED } from './arrangements.js';
import { regimeBars, utilisationRatios } from './bars.js';
import { runLists } from './lists.js';
import { assertClosed, etaTable, manyDesktops, variants, wholeRuns, type Section } from './sections.js';
import type { Cell } from './report.js';
import { cellEstimate, chart, listTable, page, publishedTable, rowOf, shortRow } from './report.js';
import type { Arrangement } from './simulate.js';
import { simulate } from './simulate.js';
import { loadWorkload, shorter, type Workload } from './workload.js';

const SYNTHETIC = ['env-bound', 'rollout-bound', 'trainer-bound', 'tails-0.4', 'tails-0.7', 'tails-1.0', 'faults'];
const [A, B, C, D] = REGIMES as readonly [Arrangement, Arrangement, Arrangement, Arrangement];
/** Groups of the list that every regime works through: a multiple of what each takes at once (8, and 22 in `a+`). */
const LIST_GROUPS = 352;

const args = benchArgs(),
  { quick } = args;
const seeds = quick ? [1, 2] : [1, 2, 3, 4, 5];
const option = (name: string): string | undefined =>
  args.rest.includes(name) ? args.rest[args.rest.indexOf(name) + 1] : undefined;
/**
 * Workloads and sections (`whole run`, `variants`, `eta`, `thousand`) to run; dart-like always runs, the ratios need
 * it. A quick look leaves out the sections that need long runs, unless they are named.
 */
const only = option('--only')?.split(','),
  LONG = ['whole run', 'variants', 'eta'],
  wanted = (what: string): boolean => only?.includes(what) ?? !(quick && LONG.includes(what));
const cells: Cell[] = [],
  sections: Section[] = [];
const began = performance.now();

function progress(what: string): void {
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${what}\n`);
}
async function cell(w: Workload, a: Arrangement): Promise<Cell> {
  const runs = [];
  for (const seed of seeds) {
    const s = await simulate(w, a, seed);
    assertClosed(s);
    runs.push(s.measured);
  }
  const c: Cell = { workload: w.name, arrangement: a, runs };
  cells.push(c);
  progress(`${w.name} ${a.name}: X/X* ${cellEstimate(c, 'ratio').mean.toFixed(3)}`);
  return c;
}

const dartWorkload = loadWorkload('dart-like'),
  dart = quick ? shorter(dartWorkload, 1, 3) : shorter(dartWorkload, 4, 4);
const onDart = new Map<string, Cell>();
for (const a of quick ? [A, D] : [A, FILLED, RELAUNCHED, B, C, D, ...DISPATCHED, PUBLISHED])
  onDart.set(a.name, await cell(dart, a));
if (!quick && wanted('dart-calibrated'))
  for (const a of [RELAUNCHED, A, PUBLISHED, D]) await cell(shorter(loadWorkload('dart-calibrated'), 2, 1), a);
for (const name of (quick ? SYNTHETIC.filter((n) => n !== 'tails-0.7') : SYNTHETIC).filter(wanted)) {
  const w = loadWorkload(name);
  for (const a of quick ? [A, D] : REGIMES)
    await cell(quick ? shorter(w, 0.7, 0.3) : shorter(w, w.hours / 2, w.warmup), a);
}

const lists = await runLists(dartWorkload, quick ? [A, D] : [A, FILLED, B, C, D], seeds, LIST_GROUPS, (a, s) => {
  assertClosed(s);
  progress(`the same ${s.stats.ledger.generated} rollouts, ${a.name}: ${s.hours.toFixed(2)} h`);
});
const d = onDart.get('d')!,
  ratios = ['a', 'a+', 'a-'].flatMap((name) => {
    const under = onDart.get(name);
    return under ? [{ under: name, all: utilisationRatios(d, under) }] : [];
  });
const bars = regimeBars(cells, ratios.find((r) => r.under === 'a')!.all, lists);

if (wanted('whole run'))
  sections.push(
    await wholeRuns(
      { w: dartWorkload, rate: cellEstimate(d, 'rate').mean, d: D, p: PUBLISHED, d2: DISPATCHED[1]!, seeds, quick },
      progress,
    ),
  );
if (wanted('variants'))
  sections.push(await variants(quick ? shorter(dartWorkload, 1, 1) : shorter(dartWorkload, 3, 3), progress));
if (wanted('eta'))
  sections.push(
    await etaTable(
      quick ? shorter(dartWorkload, 1, 0.5) : shorter(dartWorkload, 2, 1),
      D,
      { etas: [1, 2, 3, 4, 6], seeds: [1] },
      progress,
    ),
  );
// There trainer and replicas are almost equally loaded: the bound decides whether the next batch is ready in time.
if (!quick && wanted('eta'))
  sections.push(
    await etaTable(shorter(loadWorkload('dart-calibrated'), 2, 1), D, { etas: [2, 3, 4], seeds }, progress),
  );
if (wanted('thousand')) sections.push(await manyDesktops(dartWorkload, D, quick));
bars.push(...sections.flatMap((s) => s.bars));

const run = stamp(),
  dir = option('--out') ?? 'dist/bench/schedule',
  rows = [
    ...cells.map((c) => ({ section: 'regime', ...rowOf(c) })),
    ...ratios.flatMap(({ under, all }) => all.map((r) => ({ section: 'ratio', over: 'd', under, ...r }))),
    ...lists.rows.map((r) => ({ section: 'the same rollouts', ...r, arrangement: r.arrangement.name })),
    { section: 'the same rollouts', over: 'd', under: 'a', of: 'trained actions', ...lists.ratio },
    ...sections.flatMap((s) => s.rows),
  ];
mkdirSync(dir, { recursive: true });
finish('schedule', rows, bars, join(dir, 'schedule.json'), [cells.map(shortRow)], run);
if (args.json) finish('schedule', rows, bars, args.json, [], run);
writeFileSync(
  join(dir, 'schedule.md'),
  page({
    run,
    quick,
    seeds: seeds.length,
    bars,
    cells,
    ratios,
    lists: listTable(lists),
    notes: [...publishedTable(cells), ...sections.flatMap((s) => s.notes)],
    workloads: [...new Set(cells.map((c) => c.workload))].map(loadWorkload),
  }),
);
writeFileSync(join(dir, 'schedule.svg'), chart(cells.filter((c) => 'abcd'.includes(c.arrangement.name))));
// What README says of it is of this run from now on.
if (resolve(dir) === resolve('test/bench/results/schedule'))
  execFileSync(process.execPath, ['scripts/readme.mjs'], { stdio: 'inherit' });
console.log(`${dir}/schedule.json, schedule.md, schedule.svg; ${((performance.now() - began) / 1000).toFixed(0)} s`);
