import type { RunConfig } from '../../config/index.js';
import { startEmbedded } from './embedded.js';
import { startOpenAi } from './openai.js';
import { startVlm } from './vlm.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest, PolicyBackend } from './types.js';

export type { BackendRequest, Learner, PolicyBackend, Replicas, Snapshot } from './types.js';

/** What starts the policy of a run, by `policy.kind`. */
export const BACKENDS: Readonly<
  Record<RunConfig['policy']['kind'], (r: BackendRequest, parts: StartedParts) => Promise<PolicyBackend>>
> = {
  embedded: startEmbedded,
  vlm: startVlm,
  openai: startOpenAi,
};
