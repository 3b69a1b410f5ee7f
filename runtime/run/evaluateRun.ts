import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StudioError, id, type FamilyId, type ProcessEntry, type RunId, type ProviderChoice } from '../domain/index.js';
import { parseRunFile, type RunConfig, type RunFile } from '../config/index.js';
import { DataManager } from '../data/dataManager.js';
import { readMeta, RunReader } from '../data/store/runStore.js';
import { systemClock } from '../rollout/clock.js';
import { Scheduler, trainingSampling } from '../rollout/scheduler.js';
import { heldoutSeed, trainSeed } from '../tasks/suites/desk/index.js';
import { settleOf } from '../cluster/provide.js';
import { startEngine, type Engine } from './engine.js';
import { evaluateNow, type EvalPoint } from './evaluation.js';
import { dataConfig } from '../data/fromConfig.js';
import { imageContents } from '../cluster/images.js';
import { openTasks, type Tasks } from '../tasks/open.js';
import { lastCheckpoint } from './resume.js';

export type Split = 'train' | 'heldout' | 'templates';
export interface EvaluateRequest {
  readonly dir: string;
  /** Default: the newest checkpoint. */
  readonly version?: number | undefined;
  /** Default: as many as the run's own evaluations. */
  readonly episodes?: number | undefined;
  readonly split?: Split | undefined;
  readonly provider?: ProviderChoice | undefined;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  readonly onProgress?: (p: { readonly done: number; readonly episodes: number; readonly successes: number }) => void;
}

/** Greedy episodes of one checkpoint, in a scratch folder; the run itself is only read. */
export async function evaluateRun(r: EvaluateRequest): Promise<EvalPoint & { readonly at: number }> {
  const meta = await readRun(r.dir);
  const config = parseRunFile(meta.config, r.provider ? { desktops: { provider: r.provider } } : {});
  const episodes = r.episodes ?? Math.max(1, config.evaluation.episodes),
    split = r.split ?? 'heldout',
    tasks = ofSplit(await openTasks(config, await imageContents(config.desktops.image), r.entry), split);
  const checkpoint = await checkpointOf(r, meta.id, config);
  const scratch = await mkdtemp(join(tmpdir(), 'dart-studio-eval-'));
  let data: DataManager | undefined, engine: Engine | undefined;
  try {
    data = await DataManager.open({
      dir: scratch,
      config: dataConfig(config),
      families: tasks.families,
      taskOf: tasks.taskOf,
      store: { index: r.entry, create: { id: id<RunId>(`eval-${meta.id}`), createdAt: Date.now() } },
    });
    engine = await startEngine({
      config,
      dir: scratch,
      run: meta.id,
      entry: r.entry,
      frames: data.frames,
      signal: r.signal,
      checkpoint,
    });
    const scheduler = probeScheduler(config, engine, tasks);
    const store = data;
    let done = 0,
      successes = 0;
    scheduler.onEvent((e) => {
      if (e.type !== 'ended') return;
      void store.record(e.trajectory);
      if (e.trajectory.outcome.kind === 'success') successes++;
      r.onProgress?.({ done: ++done, episodes, successes });
    });
    scheduler.start();
    try {
      const point = await evaluateNow({
        data,
        scheduler,
        tasks,
        episodes,
        label: split,
        version: checkpoint?.version ?? 0,
        maxSteps: config.rollout.maxSteps,
        signal: r.signal,
      });
      return { ...point, at: Date.now() };
    } finally {
      await scheduler.stop({ graceMs: 0 });
    }
  } finally {
    await engine?.close();
    await data?.close('finished');
    await rm(scratch, { recursive: true, force: true });
  }
}

async function readRun(dir: string): Promise<{ id: string; config: RunFile }> {
  const { id, config } = await readMeta(dir);
  return { id, config: config as RunFile };
}

/** The checkpoint to evaluate; a remote policy has none. */
async function checkpointOf(
  r: EvaluateRequest,
  run: string,
  config: RunConfig,
): Promise<Awaited<ReturnType<typeof lastCheckpoint>>> {
  const reader = await RunReader.open(r.dir, { index: r.entry });
  const checkpoint = await lastCheckpoint(reader, r.version).finally(() => reader.close());
  if (!checkpoint && config.policy.kind === 'embedded')
    throw new StudioError(
      'trainer.invalid',
      r.version === undefined ? `${run} has no checkpoint yet.` : `${run} has no checkpoint of version ${r.version}.`,
      'Choose one of the versions in the folder checkpoints/ of the run.',
    );
  return checkpoint;
}

/** A scheduler that runs probes and no training rollouts. */
const probeScheduler = (config: RunConfig, engine: Engine, tasks: Tasks): Scheduler =>
  new Scheduler(
    {
      pool: engine.pool,
      clock: systemClock,
      next: () => undefined,
      admit: () => 0,
      episode: {
        policy: engine.policy,
        tasks: tasks.engine,
        frames: engine.frames,
        clock: systemClock,
        settle: settleOf(config.desktops),
        timeoutMs: config.rollout.taskTimeoutS * 1000,
      },
      taskOf: (order) => tasks.source.task(order.family, order.seed),
      sampling: trainingSampling(config.seed, 1),
    },
    { slots: config.desktops.count },
  );

/** Which tasks: training seeds, held-out seeds of the same templates, or templates never trained on. */
function ofSplit(t: Tasks, split: Split): Tasks {
  if (split === 'heldout') return t;
  const cycle =
    (families: readonly FamilyId[], seed: (i: number) => number) =>
    (n: number): { family: FamilyId; seed: number }[] =>
      Array.from({ length: n }, (_, i) => ({
        family: families[i % families.length]!,
        seed: seed(Math.floor(i / families.length)),
      }));
  if (split === 'train')
    return {
      ...t,
      probes: cycle(
        t.families.map((f) => f.id),
        trainSeed,
      ),
    };
  const held = t.source.families.filter((f) => f.split === 'heldout').map((f) => f.id);
  if (held.length === 0)
    throw new StudioError(
      'config.invalid',
      'This task source has no held-out templates.',
      'Use --split heldout (held-out seeds) or --split train.',
    );
  return { ...t, probes: cycle(held, heldoutSeed) };
}
