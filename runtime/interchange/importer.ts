import { resolve } from 'node:path';
import { StudioError } from '../domain/index.js';
import type { StoredEvent } from '../data/events.js';
import { RunReader } from '../data/store/runStore.js';
import { Known, knownEvents } from '../data/content.js';
import { ImportFolder } from './folder.js';
import { Bounded, Tally, whereOf, type ImportProgress, type ImportReport, type Preview } from './importReport.js';
import { TargetRun, type ImportTarget } from './importTarget.js';
import { readAll } from './readers/index.js';
import type { ReadContext } from './readers/read.js';
import { TaskFiles } from './tasks.js';
import { Unusable, problemOf } from './types.js';
import type { Draft, Found, ImportFormat, ReadOptions } from './types.js';

export interface ImportSource {
  readonly path: string;
  readonly format: ImportFormat | 'auto';
  readonly options: ReadOptions;
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
    known = dir === undefined ? new Known() : await knownOf(dir),
    tally = new Tally(),
    tasks = new Set<string>();
  for await (const f of readAll(c, s.format, signal)) {
    if ('problem' in f) {
      tally.problems.add(f.problem);
      continue;
    }
    tally.add(f.draft);
    if (known.sources.has(sourceOf(c.folder, f.draft))) tally.already++;
    tasks.add(f.draft.task);
  }
  const { trajectories, steps, successes, already, formats, problems, notes } = tally;
  if (trajectories === 0 && problems.count === 0 && !signal?.aborted)
    throw new StudioError(
      'config.invalid',
      `${s.path} holds nothing that can be imported${s.format === 'auto' ? '' : ` as ${s.format}`}.`,
      'Known are OSWorld results (traj.jsonl), AgentNet (*.jsonl), DART rollouts (final_messages.json), UI-TARS recordings (*.json) and .traj.jsonl files.',
    );
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

/** The trajectories that the run holds, read beside its writer. */
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
    target = new TargetRun(t, o.pool),
    tally = new Tally(),
    duplicates = new Bounded<{ where: string; of: string }>();
  let done = 0,
    frames = 0;
  const tell = (): void => {
    o.onProgress?.({ done, of: o.of ?? 0, imported: tally.trajectories, frames, problems: tally.problems.count });
  };
  /** True when it was stopped on the way. */
  const put = async (f: Found): Promise<boolean> => {
    if ('problem' in f) {
      tally.problems.add(f.problem);
      return false;
    }
    const from = sourceOf(c.folder, f.draft);
    if (target.known.sources.has(from)) {
      tally.already++;
      return false;
    }
    const went = await target.record(f.draft, from, o.signal, () => {
      frames++;
      tell();
    });
    if (went === 'recorded') tally.add(f.draft);
    else if (went !== 'stopped') duplicates.add({ where: f.draft.where, of: went.duplicateOf });
    return went === 'stopped';
  };
  try {
    if (!t.create) await target.open();
    for await (const f of readAll(c, s.format, o.signal)) {
      done++;
      try {
        if (await put(f)) break;
      } catch (e) {
        if (!(e instanceof Unusable)) throw e;
        tally.problems.add(problemOf(e, whereOf(f)));
      }
      tell();
    }
    const report = reportOf(s, t, { target, tally, duplicates, stopped: o.signal?.aborted ?? false });
    await target.close(report);
    return report;
  } catch (e) {
    await target.close();
    throw e;
  }
}

function reportOf(
  s: ImportSource,
  t: ImportTarget,
  o: {
    readonly target: TargetRun;
    readonly tally: Tally;
    readonly duplicates: Bounded<{ where: string; of: string }>;
    readonly stopped: boolean;
  },
): ImportReport {
  const { target, tally, duplicates } = o;
  return {
    run: t.dir,
    path: s.path,
    formats: tally.formats,
    imported: tally.trajectories,
    successes: tally.successes,
    steps: tally.steps,
    already: tally.already,
    pooled: target.pooled,
    notPooled: target.notPooled.by,
    stopped: o.stopped,
    duplicates: duplicates.list,
    duplicateCount: duplicates.count,
    problems: tally.problems.list,
    problemCount: tally.problems.count,
    notes: tally.notes.by,
  };
}
