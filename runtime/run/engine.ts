import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunConfig } from '../config/index.js';
import {
  GLYPH_SPEC,
  StudioError,
  id,
  orUndefined,
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

/** The running parts of a run, without the logic that drives them. Closed in the reverse order of starting. */
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
  /** Follows every desktop; a new registry when absent. */
  readonly desktops?: DesktopRegistry;
  /** Continue from this checkpoint. */
  readonly checkpoint?: { readonly version: number; readonly dir: string };
  /**
   * Cancels the start: it rejects with `cancelled`, whatever else went wrong (Ctrl-C in a terminal also ends child
   * processes that have only just started).
   */
  readonly signal: AbortSignal;
  /** Progress of reading lessons and imitation. */
  readonly onLesson?: (step: number, steps: number, loss: number) => void;
}

/** Starts provider, desktops, trainer and replicas; when one cannot start, those already started are closed. */
export async function startEngine(r: EngineRequest): Promise<Engine> {
  const parts = new StartedParts(r.signal);
  try {
    const cluster = await startCluster(r, parts);
    const observations = new Observations(r.frames, GLYPH_SPEC);
    const close = (): Promise<void> => parts.close();
    const base = { ...cluster, spec: GLYPH_SPEC, observations, close };
    if (r.config.policy.kind === 'openai') return { ...base, policy: remotePolicy(r.config) };
    return { ...base, ...(await startLearning(r, parts)) };
  } catch (e) {
    await parts.close();
    throw r.signal.aborted ? stopped(e) : e;
  }
}

/** What has been started, to be closed in the reverse order. */
class StartedParts {
  readonly #signal: AbortSignal;
  readonly #closers: (() => Promise<unknown>)[] = [];

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(close: () => Promise<unknown>): void {
    this.#closers.push(close);
  }

  /** Throws `cancelled` when the start has been cancelled. */
  throwIfCancelled(): void {
    if (this.#signal.aborted) throw stopped();
  }

  async close(): Promise<void> {
    for (const c of this.#closers.splice(0).reverse())
      await orUndefined(c(), 'the others are closed all the same, and the run has ended');
  }
}

type Cluster = Pick<Engine, 'provider' | 'pool' | 'desktops' | 'openDemoPool'>;

async function startCluster(r: EngineRequest, parts: StartedParts): Promise<Cluster> {
  const { desktops: config } = r.config,
    { background } = r.entry,
    desktops = r.desktops ?? new DesktopRegistry();
  const provider = desktops.wrap(await chooseProvider(config));
  parts.add(() => provider.dispose());
  await provider.reap();
  parts.throwIfCancelled();
  const open = (size: number, a11y: boolean): DesktopPool => {
    const pool = createPool({
      provider,
      hardResetEvery: config.hardResetEvery === 0 ? Number.MAX_SAFE_INTEGER : config.hardResetEvery,
      spec: specOf(config, { run: r.run, a11y, background }),
      size,
    });
    parts.add(() => pool.close());
    desktops.attach(pool);
    return pool;
  };
  return { provider, pool: open(config.count, false), desktops, openDemoPool: (size) => open(size, true) };
}

function remotePolicy(config: RunConfig): Policy {
  const o = config.policy.openai!;
  const apiKey = o.apiKeyEnv ? process.env[o.apiKeyEnv] : undefined;
  if (o.apiKeyEnv && !apiKey)
    throw new StudioError(
      'config.invalid',
      `The environment variable ${o.apiKeyEnv} (policy.openai.apiKeyEnv) is not set.`,
      'Set it, or remove the key from the run file.',
    );
  return createOpenAiPolicy({
    baseUrls: o.baseUrls,
    model: o.model,
    maxTokens: o.maxTokens,
    images: o.images,
    coordinates: o.coordinates,
    apiKey,
    encodePng: pngOf,
  });
}

/** The trainer, and replicas that act with its weights. */
async function startLearning(
  r: EngineRequest,
  parts: StartedParts,
): Promise<Required<Pick<Engine, 'policy' | 'models' | 'trainer'>>> {
  const { config } = r,
    spec = GLYPH_SPEC,
    weightsDir = join(r.dir, '.weights');
  await mkdir(weightsDir, { recursive: true });
  parts.add(() => rm(weightsDir, { recursive: true, force: true }));
  const trainer = await createTrainer({
    entry: r.entry,
    spec,
    dir: join(r.dir, 'checkpoints'),
    seed: config.seed,
    options: trainerOptions(config, weightsDir),
    onProgress: (p) => {
      if (p.kind !== 'update') r.onLesson?.(p.step, p.steps, p.loss);
    },
  });
  parts.add(() => trainer.close());
  parts.throwIfCancelled();
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
  parts.add(() => models.close());
  parts.throwIfCancelled();
  return { policy: embeddedPolicy(spec, models), models, trainer };
}

const stopped = (cause?: unknown): StudioError =>
  new StudioError(
    'cancelled',
    'The run was stopped while it was starting.',
    'Start it again when you are ready.',
    cause === undefined ? {} : { cause },
  );
