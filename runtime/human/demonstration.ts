import type { ProviderChoice } from '../domain/index.js';
import { resolve } from 'node:path';
import { StudioError, type FamilyId, type RunPath, ServiceError } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { desktopContents } from '../cluster/provide.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import { openPersonalDesktop, type PersonalDesktops } from './personalDesktops.js';
import type { RunWriter, RunWriters } from './runWriter.js';
import { RecordSession } from './record.js';
import { segmentOptions, type SessionHost } from './controlSession.js';

/** A person's wish to demonstrate a task, and where the demonstration is kept. */
export interface DemonstrationRequest {
  /** The run that has the task and keeps the demonstration: a run folder, active or not. */
  readonly run?: RunPath | undefined;
  /** Without a run: the folder of runs in which the collection of demonstrations is made or used. */
  readonly base?: string | undefined;
  readonly family: string;
  /** Default: a training seed that has no demonstration yet. */
  readonly seed?: number | undefined;
  readonly provider?: ProviderChoice | undefined;
}
/** The process in which it is recorded. */
export interface DemonstrationHost {
  readonly writers: RunWriters;
  readonly own: PersonalDesktops;
  /** The bundle whose workers judge. */
  readonly entry: ProcessEntry;
  /** Rejects with `not.found` for a folder that is no run. */
  mustExist(run: RunPath): Promise<void>;
  /** Tasks of the family that somebody or something demonstrated with success; at most `limit` trajectories count. */
  demonstrated(run: RunPath, family: FamilyId, limit: number): Promise<ReadonlySet<string>>;
}

/** The collection for demonstrations without a run. */
const COLLECTION = 'demonstrations';
/** Demonstrations of one family that are looked through for a seed that has none. */
const LOOKED_AT = 1000;

/** Annotates a recording through whoever writes annotations. */
export type Annotate = (
  run: string,
  rollout: string,
  a: { readonly note?: string | undefined; readonly tags?: readonly string[] | undefined },
) => Promise<void>;

/**
 * Prepares a recording: a run folder that can be written to, a task with a training seed, a fresh desktop. The folder
 * does not stay open: it is opened again only to write, so that the run can be resumed meanwhile.
 */
export async function prepareDemonstration(
  s: DemonstrationHost,
  host: SessionHost,
  p: DemonstrationRequest,
  o: { readonly signal: AbortSignal; readonly annotate: Annotate },
): Promise<RecordSession> {
  const opened = await open(s, p),
    { run, config, frames } = opened;
  await opened.close();
  o.signal.throwIfAborted();
  const tasks = await openTasks(config, await desktopContents(config.desktops), s.entry),
    family = familyOf(tasks, p.family),
    seed = p.seed ?? (await freshSeed(s, run, tasks, family));
  checkSeed(tasks, seed);
  const task = tasks.source.task(family, seed);
  const own = await openPersonalDesktop(s.own, {
    config,
    run,
    provider: p.provider,
    label: 'demonstration',
    signal: o.signal,
  });
  const writing = async <T>(f: (w: RunWriter) => Promise<T>): Promise<T> => {
    const w = await s.writers.open(run);
    try {
      return await f(w);
    } finally {
      await w.close();
    }
  };
  return new RecordSession(
    host,
    {
      run,
      desktop: own.desktop.id,
      screen: own.desktop.screen,
      family,
      task: task.id,
      seed,
      instruction: task.instruction,
    },
    {
      task,
      seed,
      tasks: tasks.engine,
      own: { ...own, resetMs: own.lease.resetMs },
      frames,
      segment: segmentOptions(config.policy.kind),
      keeping: {
        keep: (t, pool) => writing((w) => w.record(t, pool)),
        pool: (rollout, wish) => writing((w) => w.pool(rollout, wish)),
        unpool: (rollout, reason) => writing((w) => w.unpool([rollout], reason)),
        annotate: (rollout, a) => o.annotate(run, rollout, a),
      },
    },
  );
}

async function open(s: DemonstrationHost, p: DemonstrationRequest): Promise<RunWriter> {
  if (p.run === undefined) {
    if (p.base === undefined)
      throw new ServiceError(
        'params.invalid',
        'A recording needs a run, or a folder of runs.',
        'Choose where to keep it.',
      );
    return s.writers.openCollection(p.base, COLLECTION);
  }
  const run = resolve(p.run);
  await s.mustExist(run);
  return s.writers.open(run);
}

function familyOf(tasks: Tasks, name: string): FamilyId {
  const f =
    tasks.source.families.find((x) => x.id === name) ?? tasks.source.families.find((x) => x.id === `desk/${name}`);
  if (!f)
    throw new ServiceError(
      'not.found',
      `There is no task family ${name} in this run.`,
      'Choose one from the list of tasks.',
    );
  if (f.split === 'heldout')
    throw new StudioError(
      'config.invalid',
      `${f.id} is held out: it is for evaluation only.`,
      'Record another task; a demonstration of this one would make its evaluation worthless.',
    );
  return f.id;
}
/** Seeds that may be demonstrated; a folder of tasks has none but 0. */
const seedsOf = (tasks: Tasks): readonly number[] => (tasks.demoSeeds.length > 0 ? tasks.demoSeeds : [0]);
function checkSeed(tasks: Tasks, seed: number): void {
  if (!seedsOf(tasks).includes(seed))
    throw new StudioError(
      'config.invalid',
      `Seed ${seed} is not one of this run's training seeds.`,
      'Leave the seed out, or choose a training seed: the others are for evaluation only.',
    );
}
/** The first training seed that nobody has demonstrated; the first one when all have been. */
async function freshSeed(s: DemonstrationHost, run: RunPath, tasks: Tasks, family: FamilyId): Promise<number> {
  const done = await s.demonstrated(run, family, LOOKED_AT),
    seeds = seedsOf(tasks);
  return seeds.find((seed) => !done.has(tasks.source.task(family, seed).id)) ?? seeds[0]!;
}
