import { withoutSlashes } from '../../foreign/address.js';
import { StudioError } from '../../domain/index.js';
import { ModelServer } from '../../policy/remote/modelServer.js';

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
