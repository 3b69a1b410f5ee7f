import { pngOf } from '../../data/store/png.js';
import { createOpenAiPolicy } from '../../policy/remote/openai.js';
import { apiKeyOf } from '../../config/apiKey.js';
import type { BackendRequest, PolicyBackend } from './types.js';

/** A model behind endpoints of somebody else: rolled out and evaluated, not trained. */
export function startOpenAi(r: BackendRequest): Promise<PolicyBackend> {
  const o = r.config.policy.openai!;
  const policy = createOpenAiPolicy({
    baseUrls: o.baseUrls,
    model: o.model,
    maxTokens: o.maxTokens,
    images: o.images,
    coordinates: o.coordinates,
    apiKey: apiKeyOf('policy.openai.apiKeyEnv', o.apiKeyEnv),
    encodePng: (f) => r.frames.encode?.(f) ?? pngOf(f),
  });
  return Promise.resolve({ policy, frames: r.frames });
}
