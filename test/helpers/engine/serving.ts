import { floats, integers, logprobRows, type Chunk, type Datum } from '../../../runtime/trainer/remote/wire/index.js';
import type { AdamParams } from './learner.js';
import { DESCENT, PlainClient } from './requests.js';
import { ReferenceServer, type ReferenceServerOptions } from './server.js';

const open: ReferenceServer[] = [];
/** After each test. */
export function closeServers(): void {
  for (const s of open.splice(0)) s.close();
}
export async function serve(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: { imageTokens: () => 2, words: ['click(1)', 'click(2)'] }, ...o });
  open.push(s);
  return s;
}

export const bytes = (s: string): number[] => [...Buffer.from(s)];
export const picture = (n: number, expectedTokens: number | undefined = 2): Chunk => ({
  type: 'image',
  data: Uint8Array.of(n, 7),
  format: 'png',
  expectedTokens,
});
/** "ab [image] cd" with targets of the same length and whatever else the loss takes. */
export function datum(inputs: (n: number) => Datum['inputs'] = () => ({}), seed = 0, image: Chunk = picture(1)): Datum {
  const chunks: Chunk[] = [
      { type: 'encoded_text', tokens: bytes(`ab${seed}`) },
      image,
      { type: 'encoded_text', tokens: bytes('cd') },
    ],
    targets = bytes(`tarxyz${seed}`);
  return { chunks, inputs: { target_tokens: integers(targets), ...inputs(targets.length) } };
}
export const weights =
  (...w: number[]) =>
  (n: number): Datum['inputs'] => ({ weights: floats(Array.from({ length: n }, (_, i) => w[i % w.length]!)) });
export const plain = { lossFn: 'cross_entropy', forwardOnly: false } as const;
export const forward = { ...plain, forwardOnly: true };

/** Log-probs of a probe datum. */
export async function seen(c: PlainClient, d: Datum = datum()): Promise<number[]> {
  return [...logprobRows(await c.pass({ ...forward, data: [d] }), [7])[0]!];
}
/** What a step changes of them. */
export async function effect(
  server: ReferenceServer,
  train: (c: PlainClient) => Promise<unknown>,
  step: Partial<AdamParams> = DESCENT(0.01),
): Promise<number[]> {
  const c = await PlainClient.open(server),
    before = await seen(c);
  await train(c);
  await c.step(step);
  return (await seen(c)).map((x, i) => x - before[i]!);
}
export const chat = (model: string, image = 1): object => ({
  model,
  messages: [
    {
      role: 'user',
      content: [
        {
          type: 'image_url',
          image_url: { url: `data:image/png;base64,${Buffer.from([image, 7]).toString('base64')}` },
        },
        { type: 'text', text: 'press it' },
      ],
    },
  ],
  max_tokens: 4,
  temperature: 1,
  seed: 3,
  logprobs: true,
  top_logprobs: 2,
  return_token_ids: true,
});
export interface ChatAnswer {
  prompt_token_ids: number[];
  choices: [
    {
      token_ids: number[];
      finish_reason: string;
      message: { content: string };
      logprobs: { content: { logprob: number; token: string; top_logprobs: { logprob: number }[] }[] };
    },
  ];
}
export const said = async (c: PlainClient, model: string): Promise<number[]> =>
  ((await c.post('/v1/chat/completions', chat(model))) as ChatAnswer).choices[0].logprobs.content.map((t) => t.logprob);
