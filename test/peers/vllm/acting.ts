import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseRunFile, type RunConfig } from '../../../runtime/config/index.js';
import { id, type BatchId, type LearnStep, type Trajectory } from '../../../runtime/domain/index.js';
import { StartedParts } from '../../../runtime/run/backends/startedParts.js';
import type { Learner, PolicyBackend, Replicas, Snapshot } from '../../../runtime/run/backends/types.js';
import { startVlm } from '../../../runtime/run/backends/vlm.js';
import type { Frames } from './episodes.js';

/** The production backend of a run that acts on vLLM and trains with an engine of its own. */

export interface Acting {
  readonly config: RunConfig;
  readonly backend: PolicyBackend;
  readonly learner: Learner;
  readonly replicas: Replicas;
  /** Trains on these steps and saves a checkpoint; the new version is not published. */
  train(trajectories: readonly Trajectory[]): Promise<Snapshot>;
  /** Calls `hear` with what the run tells people; the function that is returned ends that. */
  onNote(hear: (text: string) => void): () => void;
  /** The folder of an adapter that was saved for sampling. */
  adapterFolder(version: number): Promise<string>;
  close(): Promise<void>;
}
export interface ActingOptions {
  /** Its name is the beginning of adapters' names. */
  readonly dir: string;
  readonly model: string;
  readonly imageToken: number;
  readonly endpoints: readonly string[];
  readonly rank: number;
  readonly frames: Frames;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}
/** So large that one update moves log-probs by far more than the difference between two programs. */
const LEARNING_RATE = 2e-3;
const LESSON = { steps: 60, lr: 1e-2, shift: 0 };

export async function startActing(o: ActingOptions, demonstrations: readonly Trajectory[]): Promise<Acting> {
  const { dir, model, imageToken, endpoints, rank, frames, signal, say } = o,
    parts = new StartedParts(signal),
    hears = new Set([say]),
    onNote = (text: string): void => hears.forEach((hear) => hear(text)),
    chat = { coordinates: 'relative1000', maxTokens: 12, images: 3, prompt: '{instruction}' },
    config = parseRunFile({
      policy: { kind: 'vlm', vlm: { model, endpoints: [...endpoints], imageToken, ...chat } },
      trainer: { epochs: 1, minibatchStates: 0, replay: 0, lr: LEARNING_RATE, weightDecay: 0, remote: { rank } },
    });
  try {
    // The bundle: its thread asks the model servers.
    const entry = { file: resolve('dist/runtime.js') },
      backend = await startVlm({ config, dir, run: 'vllm', entry, frames, signal, onNote }, parts),
      learner = backend.learner!;
    let batches = 0;
    const lesson = await learner.imitate!(batchOf('lesson', demonstrations, 'imitation'), LESSON);
    say(`Taught: loss ${lesson.loss.toFixed(2)} in ${Math.round(lesson.ms / 1000)} s.`);
    await learner.checkpoint();
    await (await learner.snapshot()).publish();
    return {
      config,
      backend,
      learner,
      replicas: backend.replicas!,
      async train(trajectories) {
        const { optimizerSteps } = await learner.update(batchOf(`batch-${++batches}`, trajectories, 'policy'));
        if (optimizerSteps === 0) throw new Error('an update trained nothing');
        await learner.checkpoint();
        return learner.snapshot();
      },
      onNote(hear) {
        hears.add(hear);
        return () => void hears.delete(hear);
      },
      adapterFolder: (version) => folderOf(join(dir, 'engine', 'models'), version),
      close: () => parts.close(),
    };
  } catch (e) {
    await parts.close();
    throw e;
  }
}

function batchOf(
  name: string,
  of: readonly Trajectory[],
  kind: LearnStep['kind'],
): { id: BatchId; epochs: number; steps: LearnStep[] } {
  const steps = of.flatMap((trajectory) =>
    trajectory.steps.flatMap(({ prompt }, step): LearnStep[] => {
      if (kind === 'policy' && !prompt) return [];
      // Small for failures: pushed away from all that it says, a model ends up saying nothing.
      const advantage = trajectory.outcome.kind === 'success' ? 1 : -0.1;
      return [{ trajectory, step, kind, advantage, weight: 1 }];
    }),
  );
  return { id: id<BatchId>(name), epochs: 1, steps };
}

async function folderOf(models: string, version: number): Promise<string> {
  const begin = `v${String(version).padStart(6, '0')}-`;
  for (const model of await readdir(models)) {
    const saved = join(models, model, 'sampler_weights'),
      found = (await readdir(saved).catch(() => [])).find((name) => name.startsWith(begin));
    if (found !== undefined) return join(saved, found);
  }
  throw new Error(`no adapter of version ${version} was saved`);
}
