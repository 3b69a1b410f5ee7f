import type { PolicyVersion } from '../../domain/index.js';
import type { ObjectiveOptions } from '../objective/objective.js';
import type { TrainerEngine } from '../types.js';
import type { ClientOptions, ModelOptions } from './client.js';
import type { Carriage } from './gradient.js';
import type { AdamOptions, Progress } from './passes.js';
import type { RemoteWeights, TokenSample, TokenSequence } from './sample.js';

/** A trainer that lives on a server, as a run sets it up and uses it. */

export interface RemoteTrainerOptions {
  readonly server: ClientOptions;
  readonly model: ModelOptions;
  /** Checkpoints are folders in here, `v000012` and so on. */
  readonly dir: string;
  /** How the server takes a gradient, as the probe found it. */
  readonly carriage: Carriage;
  /** The probe found that saved weights are lost when the model that saved them is unloaded; default false. */
  readonly leaveModels?: boolean;
  /** `server`: its own ppo or cispo where that is the objective; only where the probe found `serverLoss`. */
  readonly loss: 'client' | 'server';
  readonly objective: ObjectiveOptions;
  readonly adam: AdamOptions;
  /** Samples per optimizer step of an update; 0 = the whole batch in one. */
  readonly minibatch: number;
  /** KL per token beyond which, times 1.5, an update is stopped; default 0 = never. Not with `loss: server`. */
  readonly targetKl?: number;
  /** Samples per optimizer step of a lesson. */
  readonly imitateSamples?: number;
  readonly seed: number;
  /** Version of the untaught weights; default 0. */
  readonly version?: PolicyVersion;
  readonly onProgress?: (p: Progress) => void;
  /** The server failed and the work is started over from the last saved weights. */
  readonly onRestart?: (why: string) => void;
}

export interface RemoteTrainerEngine extends TrainerEngine<TokenSample, RemoteWeights> {
  /** log p of the answer's tokens under the present weights. */
  score(s: TokenSequence): Promise<Float32Array>;
  /**
   * Exports the weights of `version` under another name, in place of files that may be damaged; undefined where they are
   * no longer the present ones.
   */
  exportAnew(version: PolicyVersion): Promise<RemoteWeights | undefined>;
  /** Deletes exported weights where the server can; no model server may have them loaded any more. Never rejects. */
  forget(path: string): Promise<void>;
  /** The same of all that earlier starts of this run exported. */
  forgetEarlier(): Promise<void>;
  /** The same of all saved weights that no checkpoint names, the present ones too: nobody goes on from them. */
  forgetSaved(): Promise<void>;
}
