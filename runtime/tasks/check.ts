import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { ImageContents, TaskId } from '../domain/index.js';
import { StudioError, toRunError } from '../domain/index.js';
import { printableLine } from '../foreign/terminalText.js';
import type { AssetStore } from './assets.js';
import { noAssets } from './assets.js';
import type { Evaluators } from './bridge/evaluators.js';
import { engineNeeds, needsOf, type Offers } from './needs.js';
import { adviceFor, type OtherImages } from './remedies.js';
import { parseTask, readJson } from './taskFile.js';
import type { CheckRow, Task } from './types.js';

export interface CheckOptions {
  /** The desktop image the tasks are to run in. */
  readonly image: ImageContents;
  readonly assets?: AssetStore | undefined;
  /** OSWorld's own evaluators, where they are installed. */
  readonly evaluators?: (Offers & { readonly place?: Evaluators['place'] }) | undefined;
  /** Other desktop images, for advice. */
  readonly images?: OtherImages | undefined;
}
export interface CheckedTask {
  readonly row: CheckRow;
  readonly file: string;
  readonly task?: Task;
}

/**
 * Reads and checks every task file under a folder, in path order. Lists of ids (OSWorld's test_*.json) are skipped.
 * Rejects with `task.invalid` when the folder cannot be read.
 */
export async function readFolder(dir: string, o: CheckOptions): Promise<CheckedTask[]> {
  const out: CheckedTask[] = [];
  const files = await taskFiles(dir);
  const seen = new Map<TaskId, string>();
  for (const file of files) {
    const name = relative(dir, file);
    try {
      const json = await readJson(file);
      if (isIndex(json)) continue;
      const task = parseTask(json, file);
      const twin = seen.get(task.id);
      if (twin !== undefined)
        throw new StudioError(
          'task.invalid',
          `${file}: id: ${task.id} is the id of ${twin} too.`,
          'Give each task its own id.',
          { details: { file, field: 'id' } },
        );
      seen.set(task.id, name);
      const needs = needsOf(task, o.assets ?? noAssets, o.image, o.evaluators);
      out.push({ row: rowOf(task, needs, o), file, task });
    } catch (e) {
      const error = toRunError(e);
      out.push({
        row: { id: name, status: 'unsupported', needs: [], runs: 'not', with: [], why: [error.message], error },
        file,
      });
    }
  }
  return out;
}

/** The row of one task: what it needs, and what can be done about it. */
function rowOf(task: Task, needs: readonly string[], o: CheckOptions): CheckRow {
  if (needs.length === 0)
    return { id: task.id, status: 'runnable', needs, runs: 'here', with: judgesOf(task, o), why: [] };
  const advice = needs.map((n) => adviceFor(n, o.images ?? {})),
    why = unique(advice.flatMap((a) => (a.kind === 'not' ? [a.why] : []))),
    what = unique(advice.flatMap((a) => (a.kind === 'with' ? [a.what] : [])));
  return {
    id: task.id,
    status: 'unsupported',
    needs,
    runs: why.length > 0 ? 'not' : 'with',
    with: why.length > 0 ? [] : what,
    why,
  };
}
const unique = (words: readonly string[]): string[] => [...new Set(words)].sort();

/** The judges of a task that can run. */
function judgesOf(task: Task, o: CheckOptions): string[] {
  const bridged = engineNeeds(task).some((n) => !n.startsWith('setup:')),
    place = o.evaluators?.place;
  return [bridged ? (place ? `${place.name} ${place.version}` : "OSWorld's evaluators") : 'our own evaluator'];
}

/** One row per task file under the folder. */
export const checkFolder = async (dir: string, o: CheckOptions): Promise<CheckRow[]> =>
  (await readFolder(dir, o)).map((t) => t.row);

async function taskFiles(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { recursive: true, withFileTypes: true }))
      .filter((e) => e.isFile() && e.name.endsWith('.json'))
      .map((e) => join(e.parentPath, e.name))
      .sort();
  } catch (cause) {
    throw new StudioError(
      'task.invalid',
      `The task folder ${dir} cannot be read.`,
      'Give an existing folder of task files.',
      { details: { file: dir }, cause },
    );
  }
}

/** {domain: [id, ...]}. */
const isIndex = (j: unknown): boolean =>
  typeof j === 'object' &&
  j !== null &&
  !Array.isArray(j) &&
  Object.values(j).length > 0 &&
  Object.values(j).every((v) => Array.isArray(v) && v.every((x) => typeof x === 'string'));

/** Rows for people: one line each, then the number of tasks that lack each need. */
export function formatCheck(rows: readonly CheckRow[]): string {
  const count = (runs: CheckRow['runs']): number => rows.filter((r) => r.runs === runs && !r.error).length,
    broken = rows.filter((r) => r.error).length;
  const width = Math.min(60, Math.max(4, ...rows.map((r) => r.id.length)));
  const lines = rows.map((r) => printableLine(`${r.id.padEnd(width)}  ${wordsOf(r)}`));
  const totals = new Map<string, { tasks: number; alone: number }>();
  for (const r of rows) {
    const groups = new Set(r.needs.map(group));
    for (const g of groups) {
      const t = totals.get(g) ?? { tasks: 0, alone: 0 };
      totals.set(g, { tasks: t.tasks + 1, alone: t.alone + Number(groups.size === 1) });
    }
  }
  const sorted = [...totals].sort((a, b) => b[1].tasks - a[1].tasks || (a[0] < b[0] ? -1 : 1));
  return [
    ...lines,
    '',
    `${rows.length} tasks: ${count('here')} runnable, ${count('with')} runnable with what they name, ${count('not')} not${broken > 0 ? `, ${broken} invalid` : ''}`,
    ...(sorted.length > 0
      ? [
          '',
          'tasks  only this  need',
          ...sorted.map(
            ([g, t]) => `${String(t.tasks).padStart(5)}  ${String(t.alone).padStart(9)}  ${printableLine(g)}`,
          ),
        ]
      : []),
  ].join('\n');
}

function wordsOf(r: CheckRow): string {
  if (r.error) return `invalid: ${r.error.message}`;
  if (r.runs === 'here') return `runnable, judged by ${r.with.join(', ')}`;
  const needs = `needs ${shorten(r.needs)}`;
  return r.runs === 'with' ? `${needs}: runs with ${r.with.join(', ')}` : `${needs}: not, ${r.why.join('; ')}`;
}

/** Assets are one need in the totals. */
const group = (need: string): string =>
  need.startsWith('asset:') ? 'asset (a file to download; give a folder with --assets DIR)' : need;
function shorten(needs: readonly string[]): string {
  const assets = needs.filter((n) => n.startsWith('asset:')).length;
  return [
    ...needs.filter((n) => !n.startsWith('asset:')),
    ...(assets > 0 ? [`${assets} ${assets === 1 ? 'asset' : 'assets'}`] : []),
  ].join(', ');
}
