import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { id, POLICY_SPECS, READER_SPEC, type EmbeddedPolicySpec, type ReplicaId } from '../../domain/index.js';
import { removeUnfinished } from '../../files/removeUnfinished.js';
import { folderInside } from '../../files/folderParts.js';
import { embeddedPolicy } from '../../policy/embedded/embeddedPolicy.js';
import { startReplica } from '../../policy/embedded/replica.js';
import type { WeightsRef } from '../../policy/types.js';
import { systemClock } from '../../rollout/clock.js';
import { ModelPool } from '../../rollout/modelPool.js';
import { policyOfCheckpoint } from '../../trainer/checkpoint.js';
import { createTrainer } from '../../trainer/native/engine.js';
import { lastingTrainer, lostCheckpoint, type OutlivingTrainer } from '../../trainer/native/lasting.js';
import { writePolicyGraph } from '../../trainer/native/model/policyGraph.js';
import { trainerOptions } from '../../trainer/native/options.js';
import { blinded } from '../blindPolicy.js';
import { EmbeddedSamples, Observations } from './embeddedSamples.js';
import { processWork } from '../processWork.js';
import { learnerOf } from './learner.js';
import { readingScreens, vocabulary } from './reading.js';
import { ScreenFile, screensKey } from './screenFile.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest, PolicyBackend } from './types.js';

/** Version of how lesson screens are drawn; screens of another version are drawn again. */
const SCREENS_VERSION = 2;

/** The network that a run trains: that of its checkpoint (older ones are supported), else the newest. */
export async function specFor(checkpoint: string | undefined): Promise<EmbeddedPolicySpec> {
  const policy = checkpoint === undefined ? undefined : await policyOfCheckpoint(checkpoint);
  return POLICY_SPECS.find((s) => s.id === policy) ?? READER_SPEC;
}

/** The small ONNX policy: trained in one process, acting in as many as the run file says. */
export async function startEmbedded(r: BackendRequest, parts: StartedParts): Promise<PolicyBackend> {
  const { config } = r,
    spec = await specFor(r.checkpoint?.dir),
    weightsDir = join(r.dir, '.weights');
  await folderInside(r.dir, weightsDir);
  parts.add(() => rm(weightsDir, { recursive: true, force: true }));
  const kept = new ScreenFile(join(r.dir, 'reading.screens'));
  const trainer = await startTrainer(r, spec, weightsDir, kept);
  parts.add(() => trainer.close());
  parts.throwIfCancelled();
  if (r.checkpoint) await trainer.restore(r.checkpoint);
  const graph = join(weightsDir, 'policy.graph.onnx');
  const [weights] = await Promise.all([trainer.exportWeights(), writePolicyGraph(spec, graph)]);
  const models = await startReplicas(r, spec, graph, weights);
  parts.add(() => models.close());
  parts.throwIfCancelled();
  const observations = new Observations(r.frames, spec, { blind: config.policy.blind }),
    sighted = embeddedPolicy(spec, models);
  return {
    policy: config.policy.blind ? blinded(sighted) : sighted,
    frames: observations,
    replicas: models,
    learner: {
      ...learnerOf({
        trainer,
        source: new EmbeddedSamples(spec, observations),
        publish: (w: WeightsRef) => models.publish(w),
      }),
      startOver: (version, from) => trainer.startOver(version, from),
      lostCheckpoint,
    },
    reading: readingLessons(spec, trainer, kept, (text) => r.onNote?.(text)),
  };
}

/** `weightsDir`: where weights are laid for the replicas. */
function startTrainer(
  r: BackendRequest,
  spec: EmbeddedPolicySpec,
  weightsDir: string,
  kept: ScreenFile,
): Promise<OutlivingTrainer> {
  const { config } = r,
    checkpoints = join(r.dir, 'checkpoints');
  return lastingTrainer({
    version: r.version,
    start: async (version) => {
      // Removes the unfinished files of a process that was killed.
      for (const dir of [checkpoints, weightsDir]) await removeUnfinished(dir, { inside: r.dir });
      return createTrainer({
        entry: r.entry,
        spec,
        dir: checkpoints,
        seed: config.seed,
        version,
        options: trainerOptions(config, weightsDir),
        workOf: processWork,
        onProgress: (p) => {
          if (p.kind !== 'update') r.onLesson?.(p.step, p.steps, p.loss);
        },
        onNote: (text) => r.onNote?.(text),
      });
    },
    screens: () => kept.load(),
    note: r.onNote,
  });
}
/** `graph`: the network's file, the same for every version of the weights. */
function startReplicas(
  { config, entry }: BackendRequest,
  spec: EmbeddedPolicySpec,
  graph: string,
  weights: WeightsRef,
): Promise<ModelPool> {
  return ModelPool.start({
    replicas: Array.from({ length: config.policy.replicas }, (_, i) => id<ReplicaId>(`replica-${i + 1}`)),
    weights,
    clock: systemClock,
    publishMode: config.policy.sync === 'global' ? 'global' : 'per-replica',
    factory: (replica: ReplicaId, w: WeightsRef) =>
      startReplica({ id: replica, entry, spec, graph, weights: w, workOf: processWork }),
  });
}
function readingLessons(
  spec: EmbeddedPolicySpec,
  trainer: OutlivingTrainer,
  kept: ScreenFile,
  note: (text: string) => void,
): PolicyBackend['reading'] {
  return {
    words: (tasks) => vocabulary(spec, tasks),
    screens: async (o) => {
      const key = screensKey([spec.id, SCREENS_VERSION, o.image, o.seed, o.count, o.words]),
        there = await kept.load(key);
      if (there) return there;
      const drawn = await readingScreens(spec, o);
      await kept.keep(key, drawn, note);
      return drawn;
    },
    read: (screens, o) => trainer.read(screens, o),
  };
}
