import { apiKeyOf } from '../../config/apiKey.js';
import { createOpenAiPolicy } from '../../policy/remote/openai.js';
import { blinded } from '../blindPolicy.js';
import { keptScreens, modelThread } from './remoteParts.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest, PolicyBackend } from './types.js';

/** A model behind endpoints of somebody else: rolled out and evaluated, not trained. */
export function startOpenAi(r: BackendRequest, parts: StartedParts): Promise<PolicyBackend> {
  const o = r.config.policy.openai!;
  const policy = createOpenAiPolicy({
    baseUrls: o.baseUrls,
    model: o.model,
    maxTokens: o.maxTokens,
    images: o.images,
    coordinates: o.coordinates,
    apiKey: apiKeyOf('policy.openai.apiKeyEnv', o.apiKeyEnv),
    caller: modelThread(r, parts),
    ...keptScreens(r.frames),
  });
  return Promise.resolve({ policy: r.config.policy.blind ? blinded(policy) : policy, frames: r.frames });
}
