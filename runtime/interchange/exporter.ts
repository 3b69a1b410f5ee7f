import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { StudioError, type AnnotationFilter } from '../domain/index.js';
import type { ProcessEntry } from '../domain/index.js';
import { RunReader } from '../data/store/runStore.js';
import { readAnnotations } from '../annotations/read.js';
import { chooseUnits, unitTrajectory, type Candidate } from './revise.js';
import { trainTasks } from './split.js';
import { Unusable, problemOf } from './types.js';
import type { ExportFormat, Problem } from './types.js';
import { agentnetWriter } from './writers/agentnet.js';
import { openaiWriter } from './writers/openai.js';
import { osworldWriter } from './writers/osworld.js';
import { trajWriter } from './writers/traj.js';
import type { ReadView, WriteContext, WriteOptions, Writer } from './writers/write.js';

export interface ExportRequest {
  /** Run folder; read beside its writer. */
  readonly run: string;
  /** Where to; must not exist, or be empty. */
  readonly to: string;
  readonly format: ExportFormat;
  readonly outcome?: 'success' | 'failure';
  readonly family?: string;
  /** Only these, or parts of them. */
  readonly rollouts?: readonly string[];
  /** By what people said of them; outcomes as corrected and edits applied unless `revised` is false. */
  readonly annotations?: AnnotationFilter;
  /** Where the index lives; by default in this process. */
  readonly index?: ProcessEntry | 'local';
  /** Share of trajectories in `train/`; the rest goes to `test/`. No task is in both. */
  readonly split?: { readonly share: number; readonly seed: number };
  readonly options: WriteOptions;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, of: number) => void;
}
export interface ExportReport {
  readonly to: string;
  readonly format: ExportFormat;
  readonly trajectories: number;
  readonly steps: number;
  readonly parts: Readonly<Record<string, number>>;
  /** Trajectories that were not asked about because they have no outcome. */
  readonly withoutOutcome: number;
  readonly problems: readonly Problem[];
}

const writers: Readonly<Record<ExportFormat, (c: WriteContext) => Writer>> = {
  osworld: osworldWriter,
  agentnet: agentnetWriter,
  openai: openaiWriter,
  traj: trajWriter,
};

/**
 * Writes a run's finished trajectories in another format, one at a time. The folder appears when all of it is written:
 * stopping or a fault leaves nothing. Trajectories that ended in an error have no outcome and are never exported.
 * Rejects with `cancelled` when stopped.
 */
export async function exportRun(r: ExportRequest, view: ReadView): Promise<ExportReport> {
  const to = resolve(r.to),
    part = `${to}.partial-${process.pid}`;
  const there = await readdir(to).catch((e: NodeJS.ErrnoException) => {
    if (e.code === 'ENOENT') return undefined;
    throw new StudioError(
      'config.invalid',
      `${r.to} cannot be written to: ${e.message}.`,
      'Name a folder that does not exist yet.',
      { cause: e },
    );
  });
  if (there && there.length > 0)
    throw new StudioError(
      'config.invalid',
      `${r.to} is not empty.`,
      'Name a folder that does not exist yet, or an empty one.',
    );
  const run = await RunReader.open(r.run, { index: r.index ?? 'local' });
  try {
    await mkdir(dirname(to), { recursive: true });
    await mkdir(part);
    const report = await write(run, view, r, part);
    if (report.trajectories === 0)
      throw new StudioError(
        'config.invalid',
        `No trajectory of this run fits${report.problems.length > 0 ? `: ${report.problems.length} cannot be read` : ''}.`,
        'Ask for fewer conditions: outcome, family, tags, reviewed; `dart-studio runs show` says what the run holds.',
      );
    if (there) await rmdir(to);
    await rename(part, to);
    return { ...report, to };
  } finally {
    await run.close();
    await rm(part, { recursive: true, force: true });
  }
}

async function write(run: RunReader, view: ReadView, r: ExportRequest, dir: string): Promise<ExportReport> {
  const family = r.family === undefined ? '' : ' AND family = ?',
    f = r.annotations ?? {};
  const [rows, annotations] = await Promise.all([
    run.index.query(
      `SELECT id, task, outcome FROM rollouts WHERE (started_at IS NOT NULL OR outcome IS NOT NULL)${family} ORDER BY born`,
      r.family === undefined ? [] : [r.family],
    ),
    readAnnotations(run.dir),
  ]);
  const candidates = rows.map((x): Candidate => ({
    id: String(x['id']),
    task: String(x['task']),
    outcome: x['outcome'] === 'success' || x['outcome'] === 'failure' ? x['outcome'] : 'error',
  }));
  const { units, withoutOutcome } = chooseUnits(candidates, annotations, {
    ...f,
    outcome: r.outcome,
    asked: r.rollouts,
  });
  const perTask = new Map<string, number>();
  for (const u of units) perTask.set(u.task, (perTask.get(u.task) ?? 0) + 1);
  const train = r.split && trainTasks(perTask, r.split.share, r.split.seed);
  const open = new Map<string, Writer>(),
    parts: Record<string, number> = {},
    problems: Problem[] = [];
  let trajectories = 0,
    steps = 0;
  try {
    for (const [i, u] of units.entries()) {
      if (r.signal?.aborted)
        throw new StudioError(
          'cancelled',
          'The export was stopped.',
          'Nothing was written. Start it again when you want it.',
        );
      const name = train ? (train.has(u.task) ? 'train' : 'test') : '';
      let writer = open.get(name);
      if (!writer)
        open.set(name, (writer = writers[r.format]({ run, view, dir: join(dir, name), options: r.options })));
      try {
        const recorded = await run.readTrajectory(u.root, { times: true }),
          made = recorded && unitTrajectory(recorded, u, f);
        if (!made) throw new Unusable(recorded && recorded.steps.length > 0 ? 'has no steps left' : 'has no steps');
        const t = made.trajectory;
        await mkdir(join(dir, name), { recursive: true });
        await writer.add(t, { root: u.root, places: made.places });
        trajectories++;
        steps += t.steps.length;
        parts[name || 'all'] = (parts[name || 'all'] ?? 0) + 1;
      } catch (e) {
        if (e instanceof Unusable) problems.push(problemOf(e, u.id));
        else if (e instanceof StudioError && e.kind === 'store.damaged')
          problems.push({ where: u.id, what: e.error.message, remedy: e.error.remedy });
        else throw e;
      }
      r.onProgress?.(i + 1, units.length);
    }
  } finally {
    for (const w of open.values()) await w.close();
  }
  return { to: dir, format: r.format, trajectories, steps, parts, withoutOutcome, problems };
}
