import type { PolicyVersion, StepSample } from '../../domain/index.js';
import type { Chunk } from './wire/index.js';

/** One answer that a model sampled, or would have to give: its prompt, and its tokens. */
export interface TokenSequence {
  /** Text and images in order, exactly as they were sent. */
  readonly prompt: readonly Chunk[];
  /** Token ids of the answer, its end of sequence included where it was sampled; at least one. */
  readonly answer: Int32Array;
  /** log pi_rollout of each token of the answer; NaN where the server did not say it. Absent: nobody sampled it. */
  readonly logprobs?: Float32Array | undefined;
}

/**
 * A step of a vision-language model. Its sequences are one step of the loss: T counts the tokens of all of them. All
 * but the last are answers that were no actions.
 */
export interface TokenSample extends StepSample {
  readonly sequences: readonly TokenSequence[];
}

/** An adapter, or whole weights, of one version as a training server saved them for sampling. */
export interface RemoteWeights {
  readonly version: PolicyVersion;
  /** The server's path of them: `tinker://model/sampler_weights/name`, or a folder. */
  readonly path: string;
}
