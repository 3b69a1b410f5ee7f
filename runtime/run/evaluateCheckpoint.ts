import { StudioError, id, type RunId, type ProviderChoice } from '../domain/index.js';
import { ignoreFailure } from '../concurrency/failures.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { traitsOf, parseStoredConfig, type RunConfig, type RunFile } from '../config/index.js';
import { DataManager } from '../data/dataManager.js';
import { readMeta, RunReader } from '../data/store/runStore.js';
import { systemClock } from '../rollout/clock.js';
import { probeSampling, trainingSampling } from '../rollout/sampling.js';
import { Scheduler } from '../rollout/scheduler.js';
import { blinded, randomly } from './blindPolicy.js';
import { episodeOf } from './episodeOf.js';
import { startEngine, type Engine } from './engine.js';
import { evaluateNow, type EvalPoint } from './evaluateEpisodes.js';
import { evaluationInterval } from '../domain/evaluationInterval.js';
import { dataConfig } from '../data/fromConfig.js';
import { desktopContents } from '../cluster/provide.js';
import {
  checkProbeSet,
  familiesIn,
  openTasks,
  type EvaluationSplit,
  type ProbeSet,
  type Tasks,
} from '../tasks/open.js';
import { lastCheckpoint } from './checkpoints.js';
import { openScratch } from '../data/store/scratch.js';
import { sayRoom } from './diskWords.js';

export { EVALUATION_SPLITS, type EvaluationSplit, type ProbeSet } from '../tasks/open.js';

export interface EvaluateRequest {
  readonly dir: string;
  /** Default: the newest checkpoint. */
  readonly version?: number | undefined;
  /** Default: as many as the run's own evaluations. */
  readonly episodes?: number | undefined;
  readonly split?: EvaluationSplit | undefined;
  /** Tasks for tuning (`dev`) or for reporting (`test`, the default). */
  readonly set?: ProbeSet | undefined;
  /** So many tasks of each family are left out, the first ones: those that an earlier evaluation asked. */
  readonly skip?: number | undefined;
  /** Only these families; default: those that the run trains. */
  readonly families?: readonly string[] | undefined;
  /** Sampled as in training, instead of the most probable choice always. */
  readonly sampled?: boolean | undefined;
  /** The same policy with its screen blanked: the control of what needs no eyes. */
  readonly blind?: boolean | undefined;
  /** Every choice as probable as any other: the control of what needs no policy. Embedded policies only. */
  readonly random?: boolean | undefined;
  readonly provider?: ProviderChoice | undefined;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  readonly onProgress?: (p: EvaluateProgress) => void;
  readonly onNote?: (text: string) => void;
}
export interface EvaluateProgress {
  readonly done: number;
  readonly episodes: number;
  readonly successes: number;
  /** Episodes wait for room on the disk. */
  readonly diskFull?: true;
}
/** One evaluation among several of one checkpoint. */
export interface Asked extends Pick<
  EvaluateRequest,
  'episodes' | 'split' | 'set' | 'skip' | 'sampled' | 'blind' | 'random'
> {
  /** Left out where nothing is held out that way, instead of refused. */
  readonly ifAny?: true;
  /** At least this many episodes of each family. */
  readonly each?: number;
}
export type Evaluated = EvalPoint & {
  readonly at: number;
  readonly split: EvaluationSplit;
  readonly set: ProbeSet;
  readonly sampled: boolean;
  readonly blind: boolean;
  /** A choice at random, which is sampled too. */
  readonly random?: true;
  /** Whatever the split: of tasks that are trained, since a folder has none held out. */
  readonly trained?: true;
};

/** Episodes of one checkpoint, in a scratch folder; the run itself is only read. */
export async function evaluateCheckpoint(r: EvaluateRequest): Promise<Evaluated> {
  const [point] = await evaluateAll(r, [r]);
  return point!;
}

/** Several evaluations of one checkpoint, one after another on the same desktops. */
export async function evaluateAll(
  r: Omit<EvaluateRequest, keyof Asked>,
  asked: readonly Asked[],
): Promise<readonly Evaluated[]> {
  const meta = await readRun(r.dir);
  const config = parseStoredConfig(meta.config, {
    ...(r.provider ? { desktops: { provider: r.provider } } : {}),
    ...(r.families ? { tasks: { families: [...r.families] } } : {}),
  });
  const tasks = await openTasks(config, await desktopContents(config.desktops), r.entry, {
      asked: r.families !== undefined,
    }),
    wanted = asked.flatMap((a) => {
      const split = a.split ?? 'heldout';
      if (a.ifAny && tasks.probesOf(split, 1).length === 0) return [];
      const least = a.episodes ?? Math.max(1, config.evaluation.episodes),
        episodes = a.each === undefined ? least : Math.max(least, a.each * familiesIn(tasks, split, a.set));
      return [{ ...a, episodes, tasks: ofSplit(tasks, split, a, r.families) }];
    }),
    checkpoint = await checkpointOf(r, meta.id, config);
  const scratch = await openScratch(r.dir, 'evaluation');
  let data: DataManager | undefined,
    engine: Engine | undefined,
    offRoom = (): void => undefined;
  try {
    data = await DataManager.open({
      dir: scratch.dir,
      config: dataConfig(config),
      families: tasks.families,
      taskOf: tasks.taskOf,
      store: { index: r.entry, create: { id: id<RunId>(`eval-${meta.id}`), createdAt: Date.now() } },
    });
    offRoom = sayRoom(data.room, r.dir, r.onNote);
    engine = await startEngine({
      temporary: true,
      config,
      dir: scratch.dir,
      run: meta.id,
      entry: r.entry,
      frames: data.frames,
      signal: r.signal,
      checkpoint,
    });
    const points: Evaluated[] = [];
    for (const a of wanted)
      points.push(await evaluateOne(r, a, { config, data, engine, version: checkpoint?.version ?? 0 }));
    return points;
  } finally {
    offRoom();
    await engine?.close();
    await data?.close('finished');
    await scratch.remove();
  }
}

interface Bench {
  readonly config: RunConfig;
  readonly data: DataManager;
  readonly engine: Engine;
  readonly version: number;
}
async function evaluateOne(
  r: Pick<EvaluateRequest, 'signal' | 'onProgress'>,
  a: Asked & { readonly episodes: number; readonly tasks: Tasks },
  { config, data, engine, version }: Bench,
): Promise<Evaluated> {
  const { episodes } = a,
    split = a.split ?? 'heldout',
    set = a.set ?? 'test',
    blind = a.blind === true,
    sampled = a.sampled === true || a.random === true,
    policy = a.random ? randomly(engine.policy) : blind ? blinded(engine.policy) : engine.policy,
    scheduler = probeScheduler(config, { ...engine, policy }, a.tasks);
  let done = 0,
    successes = 0;
  const tell = (): void =>
      r.onProgress?.({ done, episodes, successes, ...(data.room.full ? { diskFull: true as const } : {}) }),
    offRoom = data.room.onChange(tell);
  scheduler.onEvent((e) => {
    if (e.type !== 'ended') return;
    ignoreFailure(data.record(e.trajectory), 'what is measured is the verdict: the record is deleted at the end');
    if (e.trajectory.outcome.kind === 'success') successes++;
    done++;
    tell();
  });
  scheduler.start();
  try {
    const point = await evaluateNow({
      data,
      scheduler,
      tasks: a.tasks,
      episodes,
      label: [
        split,
        ...(set === 'dev' ? [set] : []),
        ...(a.random ? ['random'] : sampled ? ['sampled'] : []),
        ...(blind ? ['blind'] : []),
      ].join('-'),
      version,
      maxSteps: config.rollout.maxSteps,
      temperature: sampled ? config.policy.temperature : undefined,
      signal: r.signal,
    });
    return {
      ...point,
      ...evaluationInterval(split, point),
      at: Date.now(),
      split,
      set,
      sampled,
      blind,
      ...(a.random ? { random: true as const } : {}),
      ...(a.tasks.noneHeldOut ? { trained: true as const } : {}),
    };
  } finally {
    offRoom();
    // After a cancel nothing may wait for room on the disk.
    if (r.signal.aborted) await data.room.end();
    await scheduler.stop({ graceMs: 0 });
  }
}

async function readRun(dir: string): Promise<{ id: string; config: RunFile }> {
  const { id, config } = await readMeta(dir);
  return { id, config: config as RunFile };
}

/** The checkpoint to evaluate; a policy that is not trained has none, nor has one before it learned anything. */
async function checkpointOf(
  r: Pick<EvaluateRequest, 'dir' | 'entry' | 'version'>,
  run: string,
  config: RunConfig,
): Promise<Awaited<ReturnType<typeof lastCheckpoint>>> {
  const reader = await RunReader.open(r.dir, { index: r.entry });
  const checkpoint = await lastCheckpoint(reader, r.version).finally(() => reader.close());
  const untaught = r.version === 0 && config.warmStart.from === undefined;
  if (!checkpoint && !untaught && traitsOf(config.policy.kind).trained)
    throw new StudioError(
      'trainer.invalid',
      r.version === undefined ? `${run} has no checkpoint yet.` : `${run} has no checkpoint of version ${r.version}.`,
      'Choose one of the versions in the folder checkpoints/ of the run.',
    );
  return checkpoint;
}

/** A scheduler that runs probes and no training rollouts. */
const probeScheduler = (
  config: RunConfig,
  engine: Pick<Engine, 'pool' | 'policy' | 'frames'>,
  tasks: Tasks,
): Scheduler =>
  new Scheduler(
    {
      pool: engine.pool,
      clock: systemClock,
      next: () => undefined,
      admit: () => 0,
      episode: episodeOf(config, engine, tasks),
      taskOf: (order) => tasks.source.task(order.family, order.seed),
      sampling: trainingSampling(config.seed, 1),
      probeSampling: probeSampling(config.seed),
    },
    { slots: config.desktops.count },
  );

/** The tasks of a split in place of the run's own probes. */
function ofSplit(
  t: Tasks,
  split: EvaluationSplit,
  { set, skip }: Pick<Asked, 'set' | 'skip'>,
  families: readonly string[] | undefined,
): Tasks {
  if (t.probesOf(split, 1).length === 0)
    throw new StudioError(
      'config.invalid',
      `${families ? `The families ${families.join(', ')} have` : 'This task source has'} no tasks held out as ${split}.`,
      families ? 'Name other families, or use another --split.' : 'Use --split heldout or --split train.',
    );
  checkProbeSet(t, split, set);
  if (skip && t.noneHeldOut)
    throw new StudioError(
      'config.invalid',
      'A folder of tasks has each task once: none of them can be skipped.',
      'Leave out --skip, or name the tasks to be measured with --families.',
    );
  return { ...t, probes: (n) => t.probesOf(split, n, set, skip) };
}
