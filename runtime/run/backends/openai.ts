import { apiKeyOf } from '../../config/apiKey.js';
import { withoutSlashes } from '../../domain/address.js';
import { StudioError } from '../../domain/index.js';
import { ModelServer } from '../../policy/remote/modelServer.js';
import { createOpenAiPolicy } from '../../policy/remote/openai.js';
import { blinded } from '../blindPolicy.js';
import { keptScreens, modelThread } from './remoteParts.js';
import type { StartedParts } from './startedParts.js';
import type { Backend, BackendRequest, PolicyBackend } from './types.js';

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

export const openai: Backend = { start: startOpenAi, model: (c) => c.policy.openai!.model };

/**
 * The content of a run file of a policy behind the address of a model server: the model given, else the first that it names. Rejects
 * with `config.invalid` where it names none, or what keeps it from being asked.
 */
export async function runFileOfServer(
  url: string,
  o: { readonly model?: string | undefined; readonly coordinates?: string | undefined; readonly signal: AbortSignal },
): Promise<{ readonly file: unknown; readonly name: string }> {
  const base = withoutSlashes(url),
    model = o.model ?? (await new ModelServer({ url: base }).models(o.signal))[0];
  if (model === undefined)
    throw new StudioError(
      'config.invalid',
      `${base} does not say which models it has.`,
      'Name one with --model, and check that the address ends in /v1.',
    );
  const openai = { baseUrls: [base], model, coordinates: o.coordinates };
  return { file: { policy: { kind: 'openai', openai } }, name: `${model} at ${base}` };
}
