import { createHash } from 'node:crypto';
import { withoutSlashes } from '../../foreign/address.js';
import type { ServedModel } from '../../domain/index.js';
import type { Proof } from '../../policy/remote/adapterProof.js';
import type { ModelServerOptions } from '../../policy/remote/modelServer.js';
import { factsOf } from '../../policy/remote/serverFacts.js';
import { actingFace } from '../../trainer/remote/http.js';
import type { RemoteTrainerOptions } from '../../trainer/remote/engine.js';

/** The models that act and train, as their servers describe them. Never rejects. */
export async function servedModel(
  o: {
    readonly model: string;
    readonly adapters: string;
    readonly acting: readonly ModelServerOptions[];
    readonly training: RemoteTrainerOptions['server'];
    readonly proof: Proof | undefined;
  },
  signal: AbortSignal,
): Promise<ServedModel> {
  const { model, adapters, proof } = o,
    // The engine has its other face beside the one that trains; a server without one says nothing.
    base = actingFace(o.training.url),
    same = o.acting.findIndex(({ url }) => withoutSlashes(url) === base);
  const [acting, trains] = await Promise.all([
    Promise.all(o.acting.map((a) => factsOf(a, model, signal))),
    same < 0 ? factsOf({ url: base, apiKey: o.training.apiKey }, model, signal) : undefined,
  ]);
  return {
    model,
    adapters,
    acting,
    training: { ...(trains ?? acting[same]!), url: o.training.url },
    ...(proof ? { conversation: digestOf(proof.prompt) } : {}),
  };
}
const digestOf = (ids: Int32Array): string =>
  createHash('sha256')
    .update(Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength))
    .digest('hex');
