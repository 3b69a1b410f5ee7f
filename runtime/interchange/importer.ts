import { rm } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { StudioError, id } from '../domain/index.js';
import type {
  FamilyId,
  FrameRef,
  Outcome,
  ProcessEntry,
  RolloutId,
  Step,
  TaskId,
  Trajectory,
} from '../domain/index.js';
import type { StoredEvent } from '../data/events.js';
import { RunAppender } from '../data/runAppender.js';
import type { FrameStore } from '../data/types.js';
import { RunReader } from '../data/store/runStore.js';
import type { RunMeta } from '../data/store/runStore.js';
import { newRun, poolConfigOf } from '../data/collections.js';
import { ContentHash, Known, knownEvents } from '../data/content.js';
import { ImportFolder } from './folder.js';
import { JpegDecoder } from './jpegDecoder.js';
import { checkPicture, decodePicture } from './picture.js';
import { readAll } from './readers/index.js';
import type { ReadContext } from './readers/read.js';
import { TaskFiles } from './tasks.js';
import { Unusable, problemOf } from './types.js';
import type { Draft, Found, ImportFormat, Picture, Problem, ReadOptions } from './types.js';

export interface ImportSource {
  readonly path: string;
  readonly format: ImportFormat | 'auto';
  readonly options: ReadOptions;
}
export interface ImportTarget {
  /** The run folder. With `create` it must not exist yet, and is made when there is something to put in it. */
  readonly dir: string;
  readonly create?: Omit<RunMeta, 'format'>;
  readonly index: ProcessEntry | 'local';
  /** Where JPEG pictures are decoded. */
  readonly entry: ProcessEntry;
}
/** A target that is made: a run of this name, which nothing was trained in. */
export const newTarget = (dir: string, name: string): Pick<ImportTarget, 'dir' | 'create'> => ({
  dir,
  create: newRun(name, Date.now()),
});
export interface ImportProgress {
  readonly done: number;
  readonly of: number;
  readonly imported: number;
  readonly frames: number;
  readonly problems: number;
}

/** What is in a source, before anything is written. Pictures are found and measured, not decoded. */
export interface Preview {
  readonly path: string;
  readonly formats: Readonly<Partial<Record<ImportFormat, number>>>;
  readonly trajectories: number;
  readonly steps: number;
  readonly successes: number;
  readonly failures: number;
  readonly tasks: number;
  /** Of `trajectories`: imported into the run by an earlier import. */
  readonly already: number;
  /** The first ones; `problemCount` counts all. */
  readonly problems: readonly Problem[];
  readonly problemCount: number;
  readonly notes: Readonly<Record<string, number>>;
}
export interface ImportReport extends Omit<Preview, 'trajectories' | 'steps' | 'successes' | 'failures' | 'tasks'> {
  readonly run: string;
  readonly imported: number;
  readonly successes: number;
  readonly steps: number;
  readonly pooled: number;
  /** Successes that did not join the pool, by reason. */
  readonly notPooled: Readonly<Record<string, number>>;
  /** Left out because the run, or the source itself, holds the same: where, and which trajectory it is. */
  readonly duplicates: readonly { readonly where: string; readonly of: string }[];
  readonly duplicateCount: number;
  readonly stopped: boolean;
}

/** So many problems and duplicates are named one by one; further ones are counted. */
const named = 200;
class Bounded<T> {
  readonly list: T[] = [];
  count = 0;
  add(x: T): void {
    this.count++;
    if (this.list.length < named) this.list.push(x);
  }
}
class Counts {
  readonly by: Record<string, number> = {};
  add(k: string): void {
    this.by[k] = (this.by[k] ?? 0) + 1;
  }
}

async function contextOf(s: ImportSource): Promise<ReadContext> {
  return { folder: await ImportFolder.open(s.path), options: s.options, tasks: await TaskFiles.open(s.options.tasks) };
}
/** Names a source in provenance: what it is, where it lies, and which state of it. */
const sourceOf = (folder: ImportFolder, d: Draft): string =>
  `${d.format} ${resolve(folder.root, d.where)}#${d.fingerprint}`;

/** Reads the source through without writing anything. `dir`: the run it would go into, when there is one. */
export async function preview(s: ImportSource, dir?: string, signal?: AbortSignal): Promise<Preview> {
  const c = await contextOf(s),
    known = dir === undefined ? new Known() : await knownOf(dir);
  const problems = new Bounded<Problem>(),
    notes = new Counts(),
    formats: Partial<Record<ImportFormat, number>> = {},
    tasks = new Set<string>();
  let trajectories = 0,
    steps = 0,
    successes = 0,
    already = 0;
  for await (const f of readAll(c, s.format, signal)) {
    if ('problem' in f) {
      problems.add(f.problem);
      continue;
    }
    const d = f.draft;
    trajectories++;
    formats[d.format] = (formats[d.format] ?? 0) + 1;
    steps += d.steps.length;
    if (d.outcome.reward >= 1) successes++;
    if (known.sources.has(sourceOf(c.folder, d))) already++;
    tasks.add(d.task);
    for (const n of d.notes) notes.add(n);
  }
  if (trajectories === 0 && problems.count === 0 && !signal?.aborted) {
    throw new StudioError(
      'config.invalid',
      `${s.path} holds nothing that can be imported${s.format === 'auto' ? '' : ` as ${s.format}`}.`,
      'Known are OSWorld results (traj.jsonl), AgentNet (*.jsonl), DART rollouts (final_messages.json), UI-TARS recordings (*.json) and .traj.jsonl files.',
    );
  }
  return {
    path: s.path,
    formats,
    trajectories,
    steps,
    successes,
    failures: trajectories - successes,
    tasks: tasks.size,
    already,
    problems: problems.list,
    problemCount: problems.count,
    notes: notes.by,
  };
}

/** What the run holds, read beside its writer. */
async function knownOf(dir: string): Promise<Known> {
  const run = await RunReader.open(dir, { index: 'local' }),
    known = new Known();
  try {
    for await (const { entries } of run.follow(0))
      for (const e of entries)
        if ((knownEvents as readonly string[]).includes(e.type()))
          known.see({ ...(e.event() as StoredEvent), seq: e.seq });
    return known;
  } finally {
    await run.close();
  }
}

/**
 * Imports a source into a run. One trajectory is in memory at a time, without its pictures; of these one is. A
 * trajectory is journalled when all of it is there, so that stopping, a fault or a bad file never leaves a part of one;
 * the next import of the same source goes on behind what was imported. Rejects with `run.busy` when another process
 * writes the run.
 */
export async function importInto(
  s: ImportSource,
  t: ImportTarget,
  o: {
    readonly pool: boolean;
    readonly of?: number;
    readonly signal?: AbortSignal;
    readonly onProgress?: (p: ImportProgress) => void;
  },
): Promise<ImportReport> {
  const c = await contextOf(s),
    target = new Target(t, o.pool);
  const problems = new Bounded<Problem>(),
    duplicates = new Bounded<{ where: string; of: string }>(),
    notes = new Counts(),
    formats: Partial<Record<ImportFormat, number>> = {};
  let imported = 0,
    successes = 0,
    steps = 0,
    already = 0,
    done = 0,
    frames = 0;
  const tell = (): void => {
    o.onProgress?.({ done, of: o.of ?? 0, imported, frames, problems: problems.count });
  };
  try {
    if (!t.create) await target.open();
    for await (const f of readAll(c, s.format, o.signal)) {
      done++;
      try {
        if ('problem' in f) problems.add(f.problem);
        else if (target.known.sources.has(sourceOf(c.folder, f.draft))) already++;
        else {
          const got = await target.take(f.draft, sourceOf(c.folder, f.draft), o.signal, () => {
            frames++;
            tell();
          });
          if (got === 'stopped') break;
          if (typeof got === 'object') duplicates.add({ where: f.draft.where, of: got.duplicateOf });
          else {
            imported++;
            steps += f.draft.steps.length;
            if (f.draft.outcome.reward >= 1) successes++;
            formats[f.draft.format] = (formats[f.draft.format] ?? 0) + 1;
            for (const n of f.draft.notes) notes.add(n);
          }
        }
      } catch (e) {
        if (!(e instanceof Unusable)) throw e;
        problems.add(problemOf(e, whereOf(f)));
      }
      tell();
    }
    const report: ImportReport = {
      run: t.dir,
      path: s.path,
      formats,
      imported,
      successes,
      steps,
      already,
      pooled: target.pooled,
      notPooled: target.notPooled.by,
      stopped: o.signal?.aborted ?? false,
      duplicates: duplicates.list,
      duplicateCount: duplicates.count,
      problems: problems.list,
      problemCount: problems.count,
      notes: notes.by,
    };
    await target.close(report);
    return report;
  } catch (e) {
    await target.close();
    throw e;
  }
}
const whereOf = (f: Found): string => ('draft' in f ? f.draft.where : f.problem.where);

/** The run that is imported into; opened when the first trajectory is known to be whole. */
class Target {
  readonly known = new Known();
  readonly notPooled = new Counts();
  pooled = 0;
  private taken = 0;
  private run: RunAppender | undefined;
  private readonly t: ImportTarget;
  private readonly wanted: boolean;
  private readonly jpeg: JpegDecoder;
  constructor(t: ImportTarget, wanted: boolean) {
    this.t = t;
    this.wanted = wanted;
    this.jpeg = new JpegDecoder(t.entry);
  }

  async open(): Promise<RunAppender> {
    const { dir, create, index } = this.t;
    // Steps of many trajectories are hashed as they pass.
    return (this.run ??= await RunAppender.open(dir, {
      index,
      ...(create ? { create } : {}),
      pool: poolConfigOf,
      each: (e) => {
        this.known.see(e);
      },
    }));
  }

  /** Throws Unusable when a picture cannot be used; then nothing of the trajectory is journalled. */
  async take(
    d: Draft,
    from: string,
    signal: AbortSignal | undefined,
    onFrame: () => void,
  ): Promise<'taken' | 'stopped' | { duplicateOf: string }> {
    const all = [...d.steps.map((s) => s.frame), ...(d.last ? [d.last] : [])];
    for (const p of all) {
      if (signal?.aborted) return 'stopped';
      await checkPicture(p);
    }
    const run = await this.open(),
      refs: FrameRef[] = [];
    for (const p of all) {
      if (signal?.aborted) return 'stopped';
      refs.push(await stored(run.store.frames, p, this.jpeg));
      onFrame();
    }
    const steps = d.steps.map((s, index): Step => ({
      index,
      frame: refs[index]!,
      actions: s.actions,
      origin: s.origin,
      settled: true,
      timings: s.timings ?? { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
      ...(s.at === undefined ? {} : { at: s.at }),
      ...(s.thought === undefined ? {} : { thought: s.thought }),
    }));
    const { reward, truncated, report } = d.outcome,
      outcome: Outcome = {
        kind: reward >= 1 ? 'success' : 'failure',
        reward,
        truncated,
        ...(report ? { report } : {}),
      };
    const hash = new ContentHash();
    for (const s of steps) hash.step(s);
    const content = hash.end({ task: d.task, instruction: d.instruction, outcome }),
      twin = this.known.content.get(content);
    if (twin !== undefined) return { duplicateOf: twin };
    const t: Trajectory = {
      id: id<RolloutId>(`import/${content.slice(0, 20)}`),
      task: id<TaskId>(d.task),
      family: id<FamilyId>(d.family),
      instruction: d.instruction,
      provenance: { kind: 'imported', from },
      steps,
      outcome,
      cap: d.cap,
      startedAt: d.startedAt,
      endedAt: d.endedAt,
      resetMs: 0,
      verifyMs: 0,
      ...(d.last ? { last: refs.at(-1)! } : {}),
    };
    const pooled = await run.record(t, this.wanted && t.outcome.kind === 'success' ? 'auto' : 'never');
    if (pooled.pooled) this.pooled++;
    else if (this.wanted && t.outcome.kind === 'success') this.notPooled.add(pooled.why ?? '');
    this.known.content.set(content, t.id);
    this.known.sources.add(from);
    this.taken++;
    return 'taken';
  }

  async close(report?: ImportReport): Promise<void> {
    await this.jpeg.close();
    const { run } = this;
    this.run = undefined;
    if (!run) return;
    const { store } = run;
    try {
      if (report && report.imported > 0)
        await store.append({
          type: 'log',
          level: 'info',
          message: `Imported ${report.imported} trajectories (${report.successes} successes) from ${basename(report.path)}.`,
          details: {
            path: report.path,
            formats: report.formats,
            pooled: report.pooled,
            duplicates: report.duplicateCount,
            problems: report.problemCount,
            notes: report.notes,
          },
        });
      if (this.t.create) await store.append({ type: 'run.closed', reason: 'import' });
    } finally {
      await store.close();
    }
    // A run made for an import that brought nothing would be an empty one.
    if (this.t.create && this.taken === 0) await rm(this.t.dir, { recursive: true, force: true });
  }
}

async function stored(frames: FrameStore, p: Picture, jpeg: JpegDecoder): Promise<FrameRef> {
  const ref = await frames.put(await decodePicture(p, jpeg));
  if (p.hash !== undefined && p.hash !== ref.hash)
    throw new Unusable(`the picture ${p.name} does not hold the pixels its name says`);
  return ref;
}
