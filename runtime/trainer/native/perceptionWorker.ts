import type { EmbeddedPolicySpec } from '../../domain/index.js';
import { loadOrt } from '../../domain/onnxRuntime.js';
import { oneByOne } from '../../domain/workerPort.js';
import { policyModel, type PolicyModel } from './model/policyGraph.js';
import type { Perceived } from './packing.js';
import { perceive, type Sight } from './perceive.js';
import { Sessions } from './sessions.js';

/** To the thread: a micro-batch to look at. */
export interface LookJob {
  readonly id: number;
  readonly spec: EmbeddedPolicySpec;
  readonly batch: number;
  readonly states: readonly Sight[];
  /** f32[P]; without it the weights are those of the job before. */
  readonly theta: Float32Array | undefined;
}
export interface Looked {
  readonly id: number;
  readonly seen: readonly Perceived[];
}

/** Body of the thread that looks ahead. An error ends it: whoever asked looks again. */
export function runPerceptionWorker(): void {
  let made: { readonly model: PolicyModel; readonly sessions: Sessions } | undefined,
    theta = new Float32Array(0);
  oneByOne('perception', async (job: LookJob, port) => {
    if (!made) {
      const model = policyModel(job.spec);
      made = { model, sessions: new Sessions(await loadOrt(), model, job.batch, 1, 1) };
    }
    theta = (job.theta ?? theta) as typeof theta;
    const seen = await perceive(made.model, made.sessions, job.states, theta);
    port.postMessage(
      { id: job.id, seen } satisfies Looked,
      seen.flatMap((s) => [s.features.buffer, s.found.buffer, s.facts.buffer] as ArrayBuffer[]),
    );
  });
}
