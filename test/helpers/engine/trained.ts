import { proofOf, unsaidAfter, type Proof, type Scored } from '../../../runtime/policy/remote/adapterProof.js';
import type { AdapterWeights } from '../../../runtime/policy/remote/endpointReplica.js';
import { TrainingClient, type RemoteModel } from '../../../runtime/trainer/remote/client.js';
import { floats, integers } from '../../../runtime/trainer/remote/wire/index.js';
import { SPECIAL } from './policy.js';
import { ReferenceServer, type ReferenceServerOptions } from './server.js';

/** Servers whose model acts in the grammar of actions, and further versions of their weights. */

const closers: (() => unknown)[] = [];
const never = new AbortController().signal;
const words = ["Action: click(start_box='(100,100)')", 'hm'];

/** After each test. */
export async function closePolicies(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}
export async function servePolicy(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: { words }, ...o });
  closers.push(() => s.close());
  return s;
}
/** A training server's model, and a way to save a further version that answers differently. */
export async function trained(s: ReferenceServer): Promise<{
  /** `behind`: the tokens behind which it learns to say its first word. */
  readonly save: (version: number, learningRate?: number, behind?: ArrayLike<number>) => Promise<AdapterWeights>;
  /** With what the trainer makes of the proof, or of other tokens in the place of its answer. */
  readonly proven: (
    s: ReferenceServer,
    version: number,
    learningRate?: number,
    other?: Pick<Proof, 'answer' | 'tokens'>,
  ) => Promise<AdapterWeights>;
}> {
  const client = await TrainingClient.connect({ url: s.url, version: 'test' }, never);
  closers.push(() => client.close());
  const model: RemoteModel = await client.createModel({ base: s.baseModel, rank: 4 }, never);
  const save = async (
    version: number,
    learningRate = 0.5,
    behind: ArrayLike<number> = [65, 66, 67],
  ): Promise<AdapterWeights> => {
    const tokens = Array.from(behind),
      datum = {
        chunks: [{ type: 'encoded_text' as const, tokens }],
        inputs: {
          target_tokens: integers([...tokens.slice(1), 261]),
          weights: floats(tokens.map((_, i) => (i === tokens.length - 1 ? 1 : 0))),
        },
      };
    await model.forwardBackward([datum], { name: 'cross_entropy' }, never);
    await model.optimStep({ learningRate, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClip: 0 }, never);
    return { version, path: await model.saveForSampler(`v${version}`, never) };
  };
  const scored = async (prompt: Int32Array, answer: Int32Array): Promise<Scored> => {
    const targets = [...prompt.slice(1), ...answer],
      [row] = await model.forward(
        [
          {
            chunks: [{ type: 'encoded_text', tokens: Int32Array.of(...prompt, ...answer.subarray(0, -1)) }],
            inputs: { target_tokens: integers(targets), weights: floats(targets.map(() => 0)) },
          },
        ],
        never,
      );
    return { answer, logprobs: row!.slice(-answer.length) };
  };
  return {
    save,
    async proven(server, version, learningRate, other) {
      const acting = { url: `${server.url}/v1`, imageToken: SPECIAL.imagePad },
        proof = (await proofOf(acting, server.baseModel, never))!,
        weights = await save(version, learningRate),
        { prompt, answer, tokens } = { ...proof, ...other };
      return {
        ...weights,
        expected: {
          prompt,
          tokens,
          ...(await scored(prompt, answer)),
          unsaid: await scored(prompt, unsaidAfter(prompt)),
        },
      };
    },
  };
}
