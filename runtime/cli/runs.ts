import { basename } from 'node:path';
import { StudioError, toRunError, type RunError } from '../domain/index.js';
import { metricRecords, runReport, type RunReport } from '../queries/runReport.js';
import { exportTable } from '../service/exportTable.js';
import { RETIRE_WORDS } from '../share/retired.js';
import { EventFile, scalarsOf } from '../run/tensorBoard.js';
import { runFolder } from '../run/runFolders.js';
import { rateText, sparkline } from '../domain/stats.js';
import { asCalled } from './called.js';
import { listedRuns } from './listedRuns.js';
import type { Options } from './options.js';
import { print, printJson } from './output.js';

/** Words of a task as a cell of a table. */
const oneLine = (text: string): string => {
  const words = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return words.length > MOST_WORDS ? `${words.slice(0, MOST_WORDS - 1)}…` : words;
};
const MOST_WORDS = 60;

/** A run that cannot be read, and why. */
interface Unreadable {
  readonly id: string;
  readonly dir: string;
  readonly error: RunError;
}

export async function list(dir: string, o: Options): Promise<number> {
  const rows: (RunReport | Unreadable)[] = [];
  // One after another: each opens an index, and memory is for a few of them.
  for (const d of await listedRuns(dir, { damaged: true }))
    rows.push(await runReport(d).catch((e: unknown) => ({ id: basename(d), dir: d, error: toRunError(e) })));
  if (o['json']) printJson(rows);
  else if (rows.length === 0) print(asCalled(`No runs in ${dir}. Start one: dart-studio train --preset quickstart\n`));
  else for (const r of rows) print(`${r.id.padEnd(36)} ${'error' in r ? unreadable(r) : inNumbers(r)}\n`);
  return 0;
}
const unreadable = ({ error }: Unreadable): string => `cannot be read: ${error.message} ${error.remedy}`;
function inNumbers(r: RunReport): string {
  const last = r.evals.at(-1);
  return `${String(r.rollouts).padStart(6)} rollouts  ${last ? `${rateText(last.successes, last.episodes)} at v${last.version}` : 'not evaluated'}  ${sparkline(r.evals.map((e) => e.successes / Math.max(1, e.episodes)))}`;
}

/** Rows under their heading; nothing where there are none. */
const under = (heading: string, rows: readonly string[]): string[] => (rows.length > 0 ? ['', heading, ...rows] : []);

export async function show(dir: string, run: string, o: Options): Promise<number> {
  const s = await runReport(runFolder(dir, run));
  if (o['json']) {
    printJson(s);
    return 0;
  }
  const inFlight = Object.entries(s.states)
    .filter(([k]) => k !== 'trained' && k !== 'retired')
    .reduce((a, [, v]) => a + v, 0);
  const ledger = `rollouts  ${s.rollouts}; ${s.planned} planned = ${s.states['trained'] ?? 0} trained + ${inFlight} ${s.live ? 'in flight' : 'not trained when the run ended'} + ${s.states['retired'] ?? 0} retired${
    Object.keys(s.retired).length
      ? ` (${Object.entries(s.retired)
          .map(([k, v]) => `${v} ${RETIRE_WORDS[k] ?? k}`)
          .join(', ')})`
      : ''
  }`;
  const lines = [
    `${s.id}  ${s.dir}`,
    `started ${new Date(s.createdAt).toISOString()}`,
    '',
    ...(s.imported > 0 ? [`imports and demonstrations ${s.imported}, experience pool ${s.pooled}`] : []),
    // What holds imports alone has no rollouts to count.
    ...(s.planned > 0 || s.imported === 0 ? [ledger] : []),
    ...under(
      'evaluations (fixed tasks, greedy)',
      s.evals.map(
        (e) =>
          `  ${e.label.padEnd(18)} v${String(e.version).padEnd(5)} ${rateText(e.successes, e.episodes)} of ${e.episodes}${e.errors ? `, ${e.errors} errors` : ''}`,
      ),
    ),
    ...under(
      'training rollouts by family',
      s.families.map(
        (f) =>
          `  ${oneLine(f.title).padEnd(28)} ${String(f.rollouts).padStart(5)}  ${rateText(f.successes, f.rollouts).padEnd(18)} ${f.meanSteps.toFixed(1)} steps`,
      ),
    ),
  ];
  print(lines.join('\n') + '\n');
  return 0;
}

/**
 * All metrics of a run in long form (name, time, version, value), its rollouts in a row each, or event files of its
 * metrics for TensorBoard.
 */
export async function exportRun(dir: string, run: string, target: string, what: string): Promise<number> {
  const from = runFolder(dir, run);
  if (what === 'tensorboard') {
    const n = await writeEventFile(from, target);
    print(`${n} records written; look at them with: tensorboard --logdir ${target}\n`);
    return 0;
  }
  if (what !== 'metrics' && what !== 'rollouts')
    throw new StudioError('config.invalid', `--what ${what}: unknown`, 'It is metrics, rollouts or tensorboard.');
  const rows = await exportTable(from, target, what);
  print(`${rows} rows written to ${target}\n`);
  return 0;
}
async function writeEventFile(from: string, to: string): Promise<number> {
  const all = await metricRecords(from),
    file = new EventFile(to);
  let n = 0;
  for (const e of all.records) {
    const s = scalarsOf(e, e.at, all.createdAt);
    if (!s) continue;
    await file.write(s);
    n++;
  }
  await file.close();
  return n;
}
