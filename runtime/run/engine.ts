import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunConfig } from '../config/index.js';
import {
  GLYPH_SPEC,
  StudioError,
  id,
  type EmbeddedPolicySpec,
  type ProcessEntry,
  type ReplicaId,
} from '../domain/index.js';
import { createPool } from '../cluster/pool.js';
import type { DesktopPool, DesktopProvider } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import { pngOf } from '../data/store/png.js';
import { embeddedPolicy } from '../policy/embedded/embeddedPolicy.js';
import { startReplica } from '../policy/embedded/replica.js';
import { createOpenAiPolicy } from '../policy/remote/openai.js';
import type { Policy, WeightsRef } from '../policy/types.js';
import { systemClock } from '../rollout/clock.js';
import { ModelPool } from '../rollout/modelPool.js';
import { writePolicyGraph } from '../trainer/native/model/policyGraph.js';
import { createTrainer } from '../trainer/native/engine.js';
import type { TrainerEngine } from '../trainer/types.js';
import { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { chooseProvider, specOf } from '../cluster/provide.js';
import { trainerOptions } from '../trainer/native/options.js';
import { Observations } from './samples.js';

/** The running parts of a run, without what decides what they do. Closed in the reverse order of starting. */
export interface Engine {
  readonly spec: EmbeddedPolicySpec;
  readonly provider: DesktopProvider;
  readonly pool: DesktopPool;
  readonly policy: Policy;
  /** Absent with a remote policy. */
  readonly models?: ModelPool;
  readonly trainer?: TrainerEngine;
  readonly observations: Observations;
  readonly desktops: DesktopRegistry;
  /** A second, smaller set of desktops with accessibility on, for scripted demonstrations. */
  openDemoPool(size: number): DesktopPool;
  close(): Promise<void>;
}

export interface EngineRequest {
  readonly config: RunConfig;
  readonly dir: string;
  readonly run: string;
  readonly entry: ProcessEntry;
  readonly frames: FrameStore;
  /** Told of every desktop; one of its own when absent. */
  readonly desktops?: DesktopRegistry;
  /** Continue from this checkpoint. */
  readonly checkpoint?: { readonly version: number; readonly dir: string };
  /**
   * Gives the start up: rejects with `cancelled`, whatever went wrong meanwhile (Ctrl-C in a terminal ends children
   * that have only just begun).
   */
  readonly signal: AbortSignal;
  /** Progress of reading lessons and imitation. */
  readonly onLesson?: (step: number, steps: number, loss: number) => void;
}

/** Starts provider, desktops, trainer and replicas; what was started is closed again when a later part cannot start. */
export async function startEngine(r: EngineRequest): Promise<Engine> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const c of closers.splice(0).reverse()) await c().catch(() => undefined);
  };
  const wanted = (): void => {
    if (r.signal.aborted) throw stopped();
  };
  const { config } = r,
    spec = GLYPH_SPEC,
    desktops = r.desktops ?? new DesktopRegistry();
  try {
    const provider = desktops.wrap(await chooseProvider(config.desktops));
    closers.push(() => provider.dispose());
    await provider.reap();
    wanted();
    const poolOptions = {
      provider,
      hardResetEvery: config.desktops.hardResetEvery === 0 ? Number.MAX_SAFE_INTEGER : config.desktops.hardResetEvery,
    };
    const pool = createPool({
      ...poolOptions,
      spec: specOf(config.desktops, { run: r.run, background: r.entry.background }),
      size: config.desktops.count,
    });
    closers.push(() => pool.close());
    desktops.attach(pool);
    const observations = new Observations(r.frames, spec);
    const openDemoPool = (size: number): DesktopPool => {
      const demo = createPool({
        ...poolOptions,
        spec: specOf(config.desktops, { run: r.run, a11y: true, background: r.entry.background }),
        size,
      });
      closers.push(() => demo.close());
      desktops.attach(demo);
      return demo;
    };
    if (config.policy.kind === 'openai') {
      const o = config.policy.openai!;
      const apiKey = o.apiKeyEnv ? process.env[o.apiKeyEnv] : undefined;
      if (o.apiKeyEnv && !apiKey)
        throw new StudioError(
          'config.invalid',
          `The environment variable ${o.apiKeyEnv} (policy.openai.apiKeyEnv) is not set.`,
          'Set it, or remove the key from the run file.',
        );
      const policy = createOpenAiPolicy({
        baseUrls: o.baseUrls,
        model: o.model,
        maxTokens: o.maxTokens,
        images: o.images,
        coordinates: o.coordinates,
        ...(apiKey ? { apiKey } : {}),
        encodePng: pngOf,
      });
      return { spec, provider, pool, policy, observations, desktops, openDemoPool, close };
    }
    const checkpoints = join(r.dir, 'checkpoints'),
      weightsDir = join(r.dir, '.weights');
    await mkdir(weightsDir, { recursive: true });
    closers.push(() => rm(weightsDir, { recursive: true, force: true }));
    const trainer = await createTrainer({
      entry: r.entry,
      spec,
      dir: checkpoints,
      seed: config.seed,
      options: trainerOptions(config, weightsDir),
      ...(r.onLesson
        ? {
            onProgress: (p) => {
              if (p.kind !== 'update') r.onLesson!(p.step, p.steps, p.loss);
            },
          }
        : {}),
    });
    closers.push(() => trainer.close());
    wanted();
    if (r.checkpoint) await trainer.restore(r.checkpoint);
    const graph = join(weightsDir, 'policy.graph.onnx');
    const [weights] = await Promise.all([trainer.exportWeights(), writePolicyGraph(spec, graph)]);
    const models = await ModelPool.start({
      replicas: Array.from({ length: config.policy.replicas }, (_, i) => id<ReplicaId>(`replica-${i + 1}`)),
      weights,
      clock: systemClock,
      publishMode: config.policy.sync === 'global' ? 'global' : 'per-replica',
      factory: (replica: ReplicaId, w: WeightsRef) =>
        startReplica({ id: replica, entry: r.entry, spec, graph, weights: w }),
    });
    closers.push(() => models.close());
    wanted();
    return {
      spec,
      provider,
      pool,
      policy: embeddedPolicy(spec, models),
      models,
      trainer,
      observations,
      desktops,
      openDemoPool,
      close,
    };
  } catch (e) {
    await close();
    throw r.signal.aborted ? stopped(e) : e;
  }
}

const stopped = (cause?: unknown): StudioError =>
  new StudioError(
    'cancelled',
    'The run was stopped while it started.',
    'Start it again when you want it.',
    cause === undefined ? {} : { cause },
  );
