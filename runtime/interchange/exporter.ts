import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { StudioError, type AnnotationFilter } from '../domain/index.js';
import type { Step } from '../domain/index.js';
import { heldOutTryPrefix } from '../domain/probeNames.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { RunReader } from '../data/store/runStore.js';
import { older } from '../data/store/totals.js';
import { readAnnotations } from '../annotations/read.js';
import { Counts } from './importReport.js';
import { chooseUnits, unitTrajectory, type Candidate, type Unit } from './revise.js';
import { trainTasks } from './split.js';
import { Unusable, problemOf } from './types.js';
import type { ExportFormat, Problem } from './types.js';
import { agentnetWriter } from './writers/agentnet.js';
import { dartWriter } from './writers/dart.js';
import { openaiWriter } from './writers/openai.js';
import { osworldWriter } from './writers/osworld.js';
import { trajWriter } from './writers/traj.js';
import type { DomainOf, ReadView, WriteContext, WriteOptions, Writer } from './writers/write.js';

export interface ExportRequest {
  /** Run folder; read beside its writer. */
  readonly run: string;
  /** Folder of the export; must not exist, or be empty. */
  readonly to: string;
  readonly format: ExportFormat;
  readonly outcome?: 'success' | 'failure';
  readonly family?: string;
  /** Trajectories, or parts of them, to export; default: all. */
  readonly rollouts?: readonly string[];
  /** Episodes of evaluations too, which are no training data; those named in `rollouts` are exported anyway. */
  readonly evaluations?: boolean;
  /** Conditions on annotations; outcomes are as corrected and edits applied unless `revised` is false. */
  readonly annotations?: AnnotationFilter;
  /** Process of the index; by default this one. */
  readonly index?: ProcessEntry | 'local';
  /** Share of trajectories in `train/`; the rest goes to `test/`. No task is in both. */
  readonly split?: { readonly share: number; readonly seed: number };
  readonly options: WriteOptions;
  /** Headings of tasks in OSWorld's layout; default: the suite of their family. */
  readonly domainOf?: DomainOf;
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
  /** What the format has no place for, in words, and of how many trajectories. */
  readonly notes: Readonly<Record<string, number>>;
  readonly problems: readonly Problem[];
}

const writers: Readonly<Record<ExportFormat, (c: WriteContext) => Writer>> = {
  osworld: osworldWriter,
  agentnet: agentnetWriter,
  dart: dartWriter,
  openai: openaiWriter,
  traj: trajWriter,
};

/**
 * Writes a run's finished trajectories in another format, one at a time. The folder appears when all of it is written:
 * stopping or a fault leaves nothing. Trajectories that ended in an error have no outcome and are never exported.
 * Rejects with `cancelled` when stopped.
 */
export async function exportRun(r: ExportRequest, view: ReadView): Promise<ExportReport> {
  const to = resolve(r.to);
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
  const run = await RunReader.open(r.run, { index: r.index ?? 'local' }),
    // A name of this call alone: another export to the same place has its own, in this process too.
    part = `${to}.partial-${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(part, { recursive: true });
    const report = await write(run, view, r, part);
    if (report.trajectories === 0)
      throw new StudioError(
        'config.invalid',
        `No trajectory of this run matches${report.problems.length > 0 ? `: ${report.problems.length} cannot be read` : (report.notes[MEASURED] ?? 0) > 0 ? ', apart from episodes of evaluations' : ''}.`,
        'Use fewer conditions (outcome, family, tags, reviewed), or --evaluations for episodes of evaluations; `dart-studio runs show` lists what the run holds.',
      );
    await place(part, to, r.to);
    return { ...report, to };
  } finally {
    await run.close();
    await rm(part, { recursive: true, force: true });
  }
}

/** Gives what was written its name; refused where something else came to have it meanwhile. */
async function place(part: string, to: string, asked: string): Promise<void> {
  const taken = (e: NodeJS.ErrnoException): never => {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(e.code ?? '')) throw e;
    throw new StudioError(
      'config.invalid',
      `${asked} came to exist while this export was written: another program or export made it.`,
      'Nothing of it was changed. Export to another folder.',
      { cause: e },
    );
  };
  await rmdir(to).catch((e: NodeJS.ErrnoException) => (e.code === 'ENOENT' ? undefined : taken(e)));
  await rename(part, to).catch(taken);
}

async function write(run: RunReader, view: ReadView, r: ExportRequest, dir: string): Promise<ExportReport> {
  const { units, withoutOutcome, measured } = await unitsOf(run, r),
    partOf = partsOf(units, r.split),
    writing = new Writing(run, view, r, dir),
    counted = (await older(run)).older ?? 0;
  if (measured > 0) writing.notes.by[MEASURED] = measured;
  if (counted > 0)
    writing.notes.by['left out: the run is too long, and its oldest trajectories are only counted'] = counted;
  try {
    for (const [i, u] of units.entries()) {
      if (r.signal?.aborted)
        throw new StudioError('cancelled', 'The export was stopped.', 'Nothing was written. You can start it again.');
      await writing.add(u, partOf(u));
      r.onProgress?.(i + 1, units.length);
    }
  } finally {
    await writing.close();
  }
  const { trajectories, steps, parts, problems, notes } = writing;
  return { to: dir, format: r.format, trajectories, steps, parts, withoutOutcome, problems, notes: notes.by };
}

const MEASURED = 'left out: episodes of evaluations, which are no training data';
/** Episodes of evaluations; what a person let a policy try, and kept, is none. */
const MEASURES = `provenance = 'probe' AND id NOT LIKE '${heldOutTryPrefix}%'`;

/** The trajectories, and parts of them, that were asked for; `measured`: episodes of evaluations that were not. */
async function unitsOf(
  run: RunReader,
  r: ExportRequest,
): Promise<ReturnType<typeof chooseUnits> & { readonly measured: number }> {
  const family = r.family === undefined ? '' : ' AND family = ?';
  const [rows, annotations] = await Promise.all([
    run.index.query(
      `SELECT id, task, outcome, ${MEASURES} AS measured FROM rollouts WHERE (started_at IS NOT NULL OR outcome IS NOT NULL)${family} ORDER BY born`,
      r.family === undefined ? [] : [r.family],
    ),
    readAnnotations(run.dir),
  ]);
  const all = r.evaluations === true || r.rollouts !== undefined,
    wanted = rows.filter((x) => all || x['measured'] !== 1);
  const candidates = wanted.map((x): Candidate => ({
    id: String(x['id']),
    task: String(x['task']),
    outcome: x['outcome'] === 'success' || x['outcome'] === 'failure' ? x['outcome'] : 'error',
  }));
  return {
    ...chooseUnits(candidates, annotations, { ...r.annotations, outcome: r.outcome, asked: r.rollouts }),
    measured: rows.length - wanted.length,
  };
}

/** The folder a unit goes into: `train` or `test` where the export is split, else the export's own. */
function partsOf(units: readonly Unit[], split: ExportRequest['split']): (u: Unit) => string {
  if (!split) return () => '';
  const perTask = new Map<string, number>();
  for (const u of units) perTask.set(u.task, (perTask.get(u.task) ?? 0) + 1);
  const train = trainTasks(perTask, split.share, split.seed);
  return (u) => (train.has(u.task) ? 'train' : 'test');
}

/** The parts of a model's records that a format has no place for, in words. */
function notCarried(format: ExportFormat, steps: readonly Step[]): string | undefined {
  if (format === 'traj' || !steps.some((s) => s.tokens ?? s.rejected)) return undefined;
  return format === 'dart'
    ? 'prompts, entropies, rejected answers and answers with unknown log-probs are left out: only traj has a place for them'
    : 'tokens, log-probs, prompts and rejected answers are left out: only traj has a place for them';
}

/** Writes units one at a time, and counts them. */
class Writing {
  trajectories = 0;
  steps = 0;
  /** Trajectories per part. */
  readonly parts: Record<string, number> = {};
  readonly problems: Problem[] = [];
  readonly notes = new Counts();
  readonly #run: RunReader;
  readonly #view: ReadView;
  readonly #request: ExportRequest;
  readonly #dir: string;
  /** Writers by part. */
  readonly #writers = new Map<string, Writer>();

  constructor(run: RunReader, view: ReadView, request: ExportRequest, dir: string) {
    this.#run = run;
    this.#view = view;
    this.#request = request;
    this.#dir = dir;
  }

  /** A trajectory that cannot be written is a problem, and not in the way of others. */
  async add(u: Unit, part: string): Promise<void> {
    try {
      await this.#write(u, part);
    } catch (e) {
      if (e instanceof Unusable) this.problems.push(problemOf(e, u.id));
      else if (e instanceof StudioError && e.kind === 'store.damaged')
        this.problems.push({ where: u.id, what: e.error.message, remedy: e.error.remedy });
      else throw e;
    }
  }
  async close(): Promise<void> {
    for (const w of this.#writers.values()) await w.close();
  }

  async #write(u: Unit, part: string): Promise<void> {
    const writer = this.#writer(part),
      recorded = await this.#run.readTrajectory(u.root, { times: true }),
      made = recorded && unitTrajectory(recorded, u, this.#request.annotations ?? {});
    if (!made) throw new Unusable(recorded && recorded.steps.length > 0 ? 'has no steps left' : 'has no steps');
    await mkdir(join(this.#dir, part), { recursive: true });
    await writer.add(made.trajectory, { root: u.root, places: made.places });
    const leftOut = notCarried(this.#request.format, made.trajectory.steps);
    if (leftOut !== undefined) this.notes.add(leftOut);
    this.trajectories++;
    this.steps += made.trajectory.steps.length;
    this.parts[part || 'all'] = (this.parts[part || 'all'] ?? 0) + 1;
  }
  #writer(part: string): Writer {
    let writer = this.#writers.get(part);
    if (!writer) {
      const { format, options, domainOf } = this.#request,
        dir = join(this.#dir, part);
      writer = writers[format]({ run: this.#run, view: this.#view, dir, options, ...(domainOf ? { domainOf } : {}) });
      this.#writers.set(part, writer);
    }
    return writer;
  }
}
