import { messageOf, type EmbeddedPolicySpec } from '../../domain/index.js';
import { loadOrt } from '../../domain/onnxRuntime.js';
import { oneByOne } from '../../concurrency/workerPort.js';
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
  readonly seen?: readonly Perceived[];
  /** Why nothing was seen; whoever asked looks again. */
  readonly failed?: string;
}

/** Body of the thread that looks ahead. */
export function runPerceptionWorker(): void {
  let made: { readonly model: PolicyModel; readonly sessions: Sessions } | undefined,
    theta: Float32Array = new Float32Array(0);
  oneByOne('perception', async (job: LookJob, port) => {
    theta = job.theta ?? theta;
    try {
      if (!made) {
        const model = policyModel(job.spec);
        made = { model, sessions: new Sessions(await loadOrt(), model, job.batch, 1, 1) };
      }
      const seen = await perceive(made.model, made.sessions, job.states, theta);
      port.postMessage(
        { id: job.id, seen } satisfies Looked,
        seen.flatMap((s) => [s.features.buffer, s.found.buffer, s.facts.buffer] as ArrayBuffer[]),
      );
    } catch (e) {
      port.postMessage({ id: job.id, failed: messageOf(e) } satisfies Looked);
    }
  });
}
