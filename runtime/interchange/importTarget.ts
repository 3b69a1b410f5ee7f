import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { id } from '../domain/index.js';
import type { FamilyId, FrameRef, Outcome, RolloutId, Step, TaskId, Trajectory } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { newRun, poolConfigOf } from '../data/collections.js';
import { ContentHash, Known } from '../data/content.js';
import { RunAppender } from '../data/runAppender.js';
import type { RunMeta } from '../data/store/runStore.js';
import type { FrameStore } from '../data/types.js';
import { Counts, type ImportReport } from './importReport.js';
import { JpegDecoder } from './jpegDecoder.js';
import { checkPicture, decodePicture } from './picture.js';
import { Unusable } from './types.js';
import type { Draft, Picture } from './types.js';

export interface ImportTarget {
  /** The run folder. With `create` it must not exist yet, and is made when there is something to put in it. */
  readonly dir: string;
  readonly create?: Omit<RunMeta, 'format'>;
  readonly index: ProcessEntry | 'local';
  /** The bundle whose threads decode JPEG pictures. */
  readonly entry: ProcessEntry;
}
/** A target that is made: a run of this name, which nothing was trained in. */
export const newTarget = (dir: string, name: string): Pick<ImportTarget, 'dir' | 'create'> => ({
  dir,
  create: newRun(name, Date.now()),
});

/** The run that is imported into; opened when the first trajectory is known to be whole. */
export class TargetRun {
  readonly known = new Known();
  /** Successes that did not join the pool, by reason. */
  readonly notPooled = new Counts();
  pooled = 0;
  readonly #target: ImportTarget;
  /** Successes may join the experience pool. */
  readonly #pool: boolean;
  readonly #jpeg: JpegDecoder;
  #recorded = 0;
  #run: RunAppender | undefined;

  constructor(target: ImportTarget, pool: boolean) {
    this.#target = target;
    this.#pool = pool;
    this.#jpeg = new JpegDecoder(target.entry);
  }

  async open(): Promise<RunAppender> {
    const { dir, create, index } = this.#target;
    return (this.#run ??= await RunAppender.open(dir, {
      index,
      create,
      pool: poolConfigOf,
      // Steps of many trajectories are hashed as they pass.
      each: (e) => {
        this.known.see(e);
      },
    }));
  }

  /** Throws Unusable when a picture cannot be used; then nothing of the trajectory is journalled. */
  async record(
    d: Draft,
    from: string,
    signal: AbortSignal | undefined,
    onFrame: () => void,
  ): Promise<'recorded' | 'stopped' | { duplicateOf: string }> {
    const pictures = [...d.steps.map((s) => s.frame), ...(d.last ? [d.last] : [])];
    for (const p of pictures) {
      if (signal?.aborted) return 'stopped';
      await checkPicture(p);
    }
    const run = await this.open(),
      frames: FrameRef[] = [];
    for (const p of pictures) {
      if (signal?.aborted) return 'stopped';
      frames.push(await stored(run.store.frames, p, this.#jpeg));
      onFrame();
    }
    const steps = stepsOf(d, frames),
      outcome = outcomeOf(d),
      content = contentOf(d, steps, outcome),
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
      last: d.last ? frames.at(-1) : undefined,
    };
    const success = this.#pool && t.outcome.kind === 'success',
      pool = success && !d.measured,
      { pooled, why } = await run.record(
        t,
        pool ? 'auto' : 'never',
        undefined,
        d.steps.map((s) => s.words),
      );
    if (pooled) this.pooled++;
    else if (success) this.notPooled.add(d.measured ? 'it is an episode of an evaluation' : (why ?? ''));
    this.known.content.set(content, t.id);
    this.known.sources.add(from);
    this.#recorded++;
    return 'recorded';
  }

  async close(report?: ImportReport): Promise<void> {
    await this.#jpeg.close();
    const run = this.#run;
    this.#run = undefined;
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
      if (this.#target.create) await store.append({ type: 'run.closed', reason: 'import' });
    } finally {
      await store.close();
    }
    // A run created for an import that recorded nothing would stay empty.
    if (this.#target.create && this.#recorded === 0) await rm(this.#target.dir, { recursive: true, force: true });
  }
}

const stepsOf = (d: Draft, frames: readonly FrameRef[]): Step[] =>
  d.steps.map((s, index) => ({
    index,
    frame: frames[index]!,
    actions: s.actions,
    origin: s.origin,
    settled: true,
    timings: s.timings ?? { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
    at: s.at,
    thought: s.thought,
    ...s.sampled,
  }));

function outcomeOf(d: Draft): Outcome {
  const { reward, truncated, report } = d.outcome;
  return { kind: reward >= 1 ? 'success' : 'failure', reward, truncated, report };
}

/** The content by which trajectories are told apart, wherever they came from. */
function contentOf(d: Draft, steps: readonly Step[], outcome: Outcome): string {
  const hash = new ContentHash();
  for (const s of steps) hash.step(s);
  return hash.end({ task: d.task, instruction: d.instruction, outcome });
}

async function stored(frames: FrameStore, p: Picture, jpeg: JpegDecoder): Promise<FrameRef> {
  const ref = await frames.put(await decodePicture(p, jpeg));
  if (p.hash !== undefined && p.hash !== ref.hash)
    throw new Unusable(`the picture ${p.name} does not hold the pixels its name says`);
  return ref;
}
