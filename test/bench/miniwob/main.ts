// npm run bench:miniwob -- --dir DIR [--quick] [--json FILE] [--minutes 60] [--episodes 50] [--seed 1] [--pages a,b]
// [--controls solved] [--skip N] [--policy CHECKPOINT] [--provider docker] [--out DIR] [--work DIR]: trains one policy on all pages of a copy of MiniWoB++ that can be acted
// on here, and measures it on each beside its blind self and chance. Goes on where it was stopped. --quick has a few resets, too.
// --policy: measures this checkpoint and trains nothing. --skip: leaves out the first N seeds of each page, which were reported before.
// npm run bench:miniwob -- --dir DIR --resets [--json FILE] [--pages a,b,c] [--provider docker] [--beside WORDS]: how long a desktop needs
// from one episode to the next, 50 times on one page and 50 times on another; --beside says in the JSON what else the machine did.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { startingPoint } from '../../../runtime/run/checkpoints.js';
import { cliJson, type Counts, type EvaluatedRow } from '../lib/evaluated.js';
import { Interrupted, Lab, StatusLine, interruptSignal, writeAtomic } from '../lib/experiments.js';
import { finish, madeOf } from '../lib/report.js';
import { sessionArgs } from '../lib/session.js';
import { wholeCheckpoint } from './kept.js';
import { ROWS, asItIs, deskFirst, trainOn, type RowName } from './plan.js';
import { meanSuccess, miniwobBars, miniwobPage, pageResults, solvedPages } from './report.js';
import { measureResets } from './resets.js';
import { resetBars, resetRows, type Resets } from './resetsReport.js';

const args = sessionArgs(),
  { quick, json } = args,
  dir = args.option('--dir');
if (dir === undefined) {
  console.error('--dir DIR: a checkout of Farama-Foundation/miniwob-plusplus, its unpacked wheel, or its folder html');
  process.exit(2);
}
const [seed] = args.numbers('--seed', [1]),
  minutes = Number(args.option('--minutes') ?? (quick ? 0.2 : 60)),
  episodes = Number(args.option('--episodes') ?? (quick ? 1 : 50)),
  controls = args.option('--controls') === 'solved' ? 'solved' : 'all',
  kept = args.option('--policy'),
  [skip] = args.numbers('--skip', [0]),
  provider = (args.option('--provider') ?? 'local') as 'docker' | 'local',
  name = quick ? 'miniwob-quick' : 'miniwob',
  work = resolve(args.option('--work') ?? join('.cache/bench', name)),
  out = resolve(args.option('--out') ?? join('dist/bench', name)),
  runtime = resolve('dist/runtime.js'),
  log = new StatusLine(),
  signal = interruptSignal();

/** So many resets to the same page and so many to another, on one desktop. */
const resets = (count: number, pages?: readonly string[]): Promise<Resets> =>
  measureResets({ dir, provider, resets: count, same: 'click-button', pages }, signal);

async function onlyResets(): Promise<void> {
  const before = load(),
    found = await resets(quick ? 10 : 50, args.list('--pages')),
    beside = args.option('--beside') ?? 'not said';
  finish(
    'miniwob',
    [...resetRows(found), { section: 'machine', 'load before': before, 'load after': load(), beside }],
    resetBars(found),
    json,
  );
}
const load = (): string =>
  loadavg()
    .map((x) => x.toFixed(1))
    .join(' ');

/** Pages that begin in the browser here; a short look takes the first few that ask for one click. */
async function usable(): Promise<{ readonly pages: string[]; readonly left: readonly { id: string; why: string }[] }> {
  const named = args.list('--pages') ?? (quick ? ['click-button', 'click-test-2', 'click-dialog'] : undefined);
  if (named) return { pages: named.map((n) => (n.startsWith('miniwob/') ? n : `miniwob/${n}`)), left: [] };
  log.note(`opening every page under ${dir!}`);
  const { tasks } = await cliJson<{ tasks: { id: string; status: string; error?: { message: string } }[] }>(
    runtime,
    ['tasks', 'check', dir!, '--provider', provider],
    signal,
  );
  return {
    pages: tasks.filter((t) => t.status === 'runnable').map((t) => t.id),
    left: tasks.filter((t) => t.status !== 'runnable').map((t) => ({ id: t.id, why: t.error?.message ?? '' })),
  };
}

async function trainAndMeasure(): Promise<void> {
  mkdirSync(work, { recursive: true });
  mkdirSync(out, { recursive: true });
  const lab = new Lab({ bench: 'miniwob', dir: work, runtime, provider, signal, log });
  const { pages, left } = await usable(),
    plan = { dir: resolve(dir!), pages, seed: seed!, minutes, quick },
    from = kept === undefined ? undefined : await startingPoint(kept),
    experiment = from === undefined ? trainOn(plan) : asItIs(plan, await wholeCheckpoint(from.dir, work));
  if (from === undefined) await lab.run(deskFirst(plan), 'the desk suite first,');
  const trained = await lab.run(experiment, `${pages.length} pages,`),
    asked = [
      ...(skip ? ['--skip', String(skip)] : []),
      ...(from === undefined ? [] : ['--checkpoint', String(from.version)]),
    ],
    errors: Partial<Record<RowName, number>> = {};
  const counts: Record<RowName, Counts> = { trained: {}, blind: {}, random: {} };
  for (const { row, args: how } of ROWS) {
    // What it does not solve counts nowhere, whatever chance does there.
    const some = controls === 'solved' && row !== 'trained',
      on = some ? solvedPages(counts.trained) : pages,
      file = join(
        work,
        `${row}-${trained.fingerprint}-${episodes}${skip ? `-from-${skip}` : ''}${some ? '-solved' : ''}.json`,
      );
    if (on.length > 0 && !existsSync(file)) {
      log.note(`${row}: ${episodes} episodes of each of ${on.length} pages`);
      const of = some ? ['--families', on.join(',')] : [],
        many = ['--episodes', String(episodes * on.length)];
      writeAtomic(file, JSON.stringify(await lab.evaluate(experiment.name, [...many, ...of, ...asked, ...how])));
    }
    if (on.length === 0) continue;
    const point = JSON.parse(readFileSync(file, 'utf8')) as EvaluatedRow;
    counts[row] = point.perFamily;
    errors[row] = point.errors;
  }
  const results = pageResults(counts),
    found = quick ? await resets(10) : undefined,
    bars = [...miniwobBars(results, controls), ...(found ? resetBars(found) : [])],
    rows = [
      ...results.map((p) => ({ section: 'page', ...p })),
      ...left.map((l) => ({ section: 'left out', ...l })),
      { section: 'mean', ...meanSuccess(results), pages: results.length },
      { section: 'errors', ...errors },
      ...(kept === undefined ? [{ section: 'training', minutes, seed, measure: trained.measure }] : []),
      ...(found ? resetRows(found) : []),
    ];
  const of = madeOf([trained]),
    stamp = {
      bench: 'miniwob',
      commit: of.commit,
      at: of.at,
      machine: of.machine,
      seed,
      minutes,
      episodes,
      skip,
      controls,
    };
  writeAtomic(join(out, 'miniwob.json'), JSON.stringify({ ...stamp, rows, bars }, null, 1) + '\n');
  writeAtomic(
    join(out, 'miniwob.md'),
    miniwobPage(results, { minutes, seed: seed!, quick, controls, skip: skip!, made: of }),
  );
  finish('miniwob', rows, bars, json, undefined, of);
  console.log(out);
}

try {
  await (args.flag('--resets') ? onlyResets() : trainAndMeasure());
} catch (e) {
  if (!(e instanceof Interrupted) && !signal.aborted) throw e;
  process.exitCode = 130;
}
