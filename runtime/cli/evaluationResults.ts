import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, messageOf, type EvaluationSplit } from '../domain/index.js';
import { removeUnfinished } from '../files/removeUnfinished.js';
import { replaceFile } from '../files/replaceFile.js';
import { exportRun } from '../interchange/exporter.js';
import type { AttemptRow } from '../run/collect/attempts.js';
import type { CollectReport } from '../run/collect/collect.js';
import { judgedEpisodes, resultsOf, type Results } from '../run/collect/results.js';
import { thisBundle } from '../service/engines.js';
import { recordedView } from '../service/recordedView.js';

/** The episodes as a run folder, in the folder of results. */
export const EPISODES = 'episodes';
/** OSWorld's layout: folders of models lie here side by side, those of others as well. */
const LAYOUT = join('pyautogui', 'screenshot');
/** A file in each task's folder that we have written. */
const OURS = 'dart-studio.json';
/** Folders beside the layout: one that is being written, and those that are being replaced, in the same layout. */
const WRITING = '.writing',
  REPLACED = '.replaced';

export interface Report extends Results {
  readonly policy: string;
  readonly out: string;
  /** Folder of OSWorld's layout, which its tools read; undefined while there is no verdict. */
  readonly results: string | undefined;
  /** Task files that cannot run here. */
  readonly leftOut: number;
  readonly stopped: boolean;
  readonly tasks: readonly (AttemptRow & { readonly scores: readonly number[] })[];
  /** Why something could not be written, in words. */
  readonly notes: readonly string[];
}

const RESULTS = 'results.json';
/** Writes sums, and then episodes in OSWorld's layout; what stood there of an earlier part is replaced. */
export async function writeResults(
  out: string,
  made: CollectReport,
  attempts: number,
  policy: string,
  split: EvaluationSplit | undefined,
): Promise<Report> {
  const judged = await judgedEpisodes(made.dir, thisBundle()),
    report: Report = {
      policy,
      out,
      results: undefined,
      ...resultsOf(made.tasks, judged, attempts, split),
      leftOut: made.leftOut,
      stopped: made.stopped,
      tasks: made.tasks.map((t) => ({
        ...t,
        scores: judged.filter((j) => j.task === t.task).map((j) => j.score),
      })),
      notes: [],
    };
  await removeUnfinished(out, { of: RESULTS });
  await replace(out, report);
  if (judged.length === 0) return report;
  const { results, notes } = await layout(out, made),
    whole = { ...report, results, notes };
  await replace(out, whole);
  return whole;
}
const replace = (out: string, report: Report): Promise<void> =>
  replaceFile(join(out, RESULTS), `${JSON.stringify(report, null, 2)}\n`);

async function layout(out: string, made: CollectReport): Promise<Pick<Report, 'results' | 'notes'>> {
  const domains = new Map(made.tasks.map((t) => [t.task, t.domain])),
    part = join(out, WRITING);
  try {
    await finishReplacing(out);
    const { problems } = await exportRun(
      {
        run: made.dir,
        to: part,
        format: 'osworld',
        index: thisBundle(),
        evaluations: true,
        options: { coordinates: 'qwen25' },
        // The verifier's verdicts are kept, whatever people have said since.
        annotations: { revised: false },
        domainOf: ({ task }) => domains.get(task),
      },
      recordedView,
    );
    const notes = problems.map((p) => `${p.where} is not in OSWorld's layout: ${p.what}.`);
    for (const model of await readdir(join(part, LAYOUT))) notes.push(...(await putModel(out, model)));
    await finishReplacing(out);
    return { results: join(out, LAYOUT), notes };
  } catch (e) {
    // The sums are there already.
    return { results: undefined, notes: [`OSWorld's layout is not written: ${messageOf(e)}`] };
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
/**
 * A model's folder in its place, unless what is there is somebody else's. One of ours is set aside until the new one is
 * there: half of it would be nobody's, and never be replaced again.
 */
export async function putModel(out: string, model: string): Promise<string[]> {
  const to = join(out, LAYOUT, model),
    aside = join(out, REPLACED, LAYOUT, model),
    there = existsSync(to);
  if (there && !(await isOurs(to)))
    return [`${to} holds results of another program and is left as it is; these are in ${EPISODES}.`];
  await mkdir(dirname(to), { recursive: true });
  if (there) {
    await mkdir(dirname(aside), { recursive: true });
    await rename(to, aside);
  }
  try {
    await rename(join(out, WRITING, LAYOUT, model), to);
  } finally {
    await finishReplacing(out, model);
  }
  return [];
}
/** Gives what was set aside its place back, or removes it where the new one is there: also what a kill has left. */
export async function finishReplacing(out: string, only?: string): Promise<void> {
  const aside = join(out, REPLACED, LAYOUT),
    models = await readdir(aside).catch((e: unknown): string[] => {
      if (errorCode(e) === 'ENOENT') return [];
      throw e;
    });
  for (const model of models) {
    if (only !== undefined && model !== only) continue;
    const to = join(out, LAYOUT, model);
    if (!existsSync(to)) await rename(join(aside, model), to);
    else await rm(join(aside, model), { recursive: true, force: true });
  }
  if (only !== undefined) return;
  for (const left of [REPLACED, WRITING]) await rm(join(out, left), { recursive: true, force: true });
}
/** Every task of it was written by us. */
async function isOurs(model: string): Promise<boolean> {
  for (const domain of await readdir(model, { withFileTypes: true })) {
    if (!domain.isDirectory()) continue;
    for (const task of await readdir(join(model, domain.name)))
      if (!existsSync(join(model, domain.name, task, OURS))) return false;
  }
  return true;
}
