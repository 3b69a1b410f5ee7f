import type { RunConfig } from '../../config/index.js';
import type { BackendRequest, StartedParts } from '../engine.js';
import { startEmbedded } from './embedded.js';
import { startOpenAi } from './openai.js';
import type { PolicyBackend } from './types.js';

export type { Learner, PolicyBackend, Replicas, Snapshot } from './types.js';

/** What starts the policy of a run, by `policy.kind`. */
export const BACKENDS: Readonly<
  Record<RunConfig['policy']['kind'], (r: BackendRequest, parts: StartedParts) => Promise<PolicyBackend>>
> = {
  embedded: startEmbedded,
  openai: startOpenAi,
};
