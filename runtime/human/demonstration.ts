import { resolve } from 'node:path';
import { id, StudioError, type FamilyId } from '../domain/index.js';
import type { RecordParams } from '../protocol/types.js';
import { openTasks, type Tasks } from '../run/mapping.js';
import { openOwnDesktop } from './personalDesktops.js';
import { listTrajectories } from '../queries/rows.js';
import { openCollection, openRunWriter, type RunWriter } from './runWriter.js';
import type { Studio } from '../service/studio.js';
import { ServiceError } from '../service/types.js';
import { RecordSession } from './record.js';
import { segmentOptions, type SessionHost } from './controlSession.js';

/** As it comes from a client: what is absent may be undefined. */
type Loose<T> = { readonly [K in keyof T]: T[K] | undefined } & { readonly family: string };

/** Where demonstrations go that belong to no run. */
const COLLECTION = 'demonstrations';
/** Demonstrations of one family that are looked through for a seed that has none. */
const LOOKED_AT = 1000;

/** What was recorded is annotated through whoever writes annotations. */
export type Annotate = (
  run: string,
  rollout: string,
  a: { readonly note?: string | undefined; readonly tags?: readonly string[] | undefined },
) => Promise<void>;

/**
 * Prepares a recording: a run folder that can be written to, a task with a training seed, a fresh desktop. Nothing
 * stays open that must be kept: the folder is opened again for as long as it takes to write, so a run can be resumed
 * meanwhile.
 */
export async function prepareDemonstration(
  s: Studio,
  host: SessionHost,
  p: Loose<RecordParams>,
  o: { readonly signal: AbortSignal; readonly annotate: Annotate },
): Promise<RecordSession> {
  const opened = await open(s, p),
    { run, config, frames } = opened;
  await opened.close();
  o.signal.throwIfAborted();
  const tasks = await openTasks(config, s.entry),
    family = familyOf(tasks, p.family),
    seed = p.seed ?? (await freshSeed(s, run, tasks, family));
  checkSeed(tasks, seed);
  const task = tasks.source.task(family, seed);
  const own = await openOwnDesktop(s, { config, run, provider: p.provider, label: 'demonstration', signal: o.signal });
  const writing = async <T>(f: (w: RunWriter) => Promise<T>): Promise<T> => {
    const w = await openRunWriter(s, run);
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
      keep: (t, pool) => writing((w) => w.record(t, pool)),
      pool: (rollout, wish) => writing((w) => w.pool(rollout, wish)),
      unpool: (rollout, reason) => writing((w) => w.unpool([rollout], reason)),
      annotate: (rollout, a) => o.annotate(run, rollout, a),
    },
  );
}

async function open(s: Studio, p: Loose<RecordParams>): Promise<RunWriter> {
  if (p.run === undefined) {
    if (p.base === undefined)
      throw new ServiceError(
        'params.invalid',
        'A recording needs a run, or a folder of runs.',
        'Choose where to keep it.',
      );
    return openCollection(s, p.base, COLLECTION);
  }
  const run = resolve(p.run);
  await s.read(run, () => Promise.resolve()); // what is no run is `not.found`
  return openRunWriter(s, run);
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
      `${f.id} is held out: it is for evaluation alone.`,
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
      'Leave the seed out, or choose a training seed: the others are for evaluation alone.',
    );
}
/** The first training seed that nobody has demonstrated; the first one when all have been. */
async function freshSeed(s: Studio, run: string, tasks: Tasks, family: FamilyId): Promise<number> {
  const done = await s.read(
    run,
    async (r) =>
      new Set(
        (
          await listTrajectories(
            r.reader,
            { limit: LOOKED_AT, filter: { family, outcome: ['success'], provenance: ['human', 'oracle', 'imported'] } },
            r.alive,
          )
        ).rows.map((t) => t.task),
      ),
  );
  const seeds = seedsOf(tasks);
  return seeds.find((seed) => !done.has(id(tasks.source.task(family, seed).id))) ?? seeds[0]!;
}
