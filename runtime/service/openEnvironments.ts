import { randomInt } from 'node:crypto';
import { chooseProvider, desktopContents, settleOf, specOf } from '../cluster/provide.js';
import { createPool } from '../cluster/pool.js';
import type { RunConfig } from '../config/index.js';
import { pngOf } from '../data/store/png.js';
import { StudioError, isEncoded } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { ACTION_SCHEMA, OBSERVATION_SCHEMA, STATE_SCHEMA } from '../gateway/openenv/schema.js';
import type { Environments } from '../gateway/openenv/types.js';
import { systemClock } from '../rollout/clock.js';
import { openTasks, type EvaluationSplit, type Probe, type Tasks } from '../tasks/open.js';
import { EpisodeEnvironment, type ChosenTask, type ResetRequest } from './episodeEnvironment.js';

export interface EnvironmentsRequest {
  /** Tasks, desktops and step cap. */
  readonly config: RunConfig;
  readonly split: EvaluationSplit;
  /** Whether observations have a picture where a reset does not say. */
  readonly picture: boolean;
  readonly version: string;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  /** Desktops that were lost and replaced, in words. */
  readonly onLine: (line: string) => void;
}
/** Seeds of a suite that resets draw from. */
const MOST_TASKS = 10_000;

/**
 * Desktops for OpenEnv's clients, warm before it resolves. Rejects with `desktop.*`, `config.invalid`,
 * `task.unsupported` or `cancelled`, with nothing left behind.
 */
export async function openEnvironments(r: EnvironmentsRequest): Promise<Environments & { close(): Promise<void> }> {
  const { config } = r,
    { desktops } = config,
    tasks = await openTasks(config, await desktopContents(desktops), r.entry, {
      asked: config.tasks.families !== undefined,
    }),
    choose = chooser(tasks, r.split),
    provider = await chooseProvider(desktops);
  const pool = createPool({
      provider,
      spec: specOf(desktops),
      size: desktops.count,
      hardResetEvery: desktops.hardResetEvery === 0 ? Number.MAX_SAFE_INTEGER : desktops.hardResetEvery,
      ...(provider.startsAtOnce === undefined ? {} : { startParallel: provider.startsAtOnce }),
    }),
    close = async (): Promise<void> => {
      await pool.close();
      await provider.dispose();
    };
  pool.onEvent((e) => {
    if (e.type === 'replaced') r.onLine(`A desktop was lost (${e.error.message}) and is being replaced.`);
  });
  try {
    await provider.reap();
    const warm = await Promise.all(Array.from({ length: desktops.count }, () => pool.lease({ signal: r.signal })));
    for (const l of warm) l.release();
  } catch (e) {
    await close();
    throw e;
  }
  return {
    name: 'dart-studio',
    description: `Desktops with ${config.tasks.suite === 'folder' ? 'task files' : `the ${config.tasks.suite} suite`}: an instruction, the screen as a picture, actions by mouse and keys, a verdict at the end.`,
    version: r.version,
    schema: { action: ACTION_SCHEMA, observation: OBSERVATION_SCHEMA, state: STATE_SCHEMA },
    capacity: desktops.count,
    open: () =>
      new EpisodeEnvironment({
        pool,
        choose,
        episode: { tasks: tasks.engine, clock: systemClock, settle: settleOf(desktops) },
        maxSteps: config.rollout.maxSteps,
        picture: r.picture,
        encode: async (screen) => (isEncoded(screen) ? Buffer.from(screen.png) : pngOf(screen)),
      }),
    close,
  };
}

/** The task that a reset asks for: by its id, or by seed among those of the split, or any. */
export function chooser(tasks: Tasks, split: EvaluationSplit): (wish: ResetRequest) => ChosenTask {
  const all = tasks.probesOf(split, MOST_TASKS);
  if (all.length === 0)
    throw new StudioError(
      'config.invalid',
      `This task source has no tasks held out as ${split}.`,
      'Use --split train or --split heldout.',
    );
  const served = new Map(all.map((p) => [tasks.taskOf(p.family, p.seed) as string, p]));
  return ({ task, family, seed }) => {
    if (typeof task === 'string') return named(tasks, served, task);
    const among = typeof family === 'string' ? ofFamily(all, family) : all,
      { family: f, seed: s } = among[(seed ?? randomInt(among.length)) % among.length]!;
    return { task: tasks.source.task(f, s), seed: s };
  };
}
/** The task of this name. Only tasks of the served split and families have one, so that nobody trains on others. */
function named(tasks: Tasks, served: ReadonlyMap<string, Probe>, task: string): ChosenTask {
  const p = served.get(task);
  if (p) return { task: tasks.source.task(p.family, p.seed), seed: p.seed };
  throw new StudioError(
    'config.invalid',
    `The task ${task} is not served here.`,
    'Take an id from an observation, or serve its family and split (--families, --split).',
  );
}
function ofFamily(all: readonly Probe[], family: string): readonly Probe[] {
  const its = all.filter((p) => p.family === family || p.family.split('/').at(-1) === family);
  if (its.length > 0) return its;
  throw new StudioError(
    'config.invalid',
    `There is no task family ${family} here.`,
    '`dart-studio tasks list` shows all families.',
  );
}
