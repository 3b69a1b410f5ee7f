import { afterEach, describe, expect, it } from 'vitest';
import { groupAdvantages } from '../../../../runtime/trainer/objective/advantages.js';
import {
  objective,
  type ObjectiveOptions,
  type ObjectiveStep,
} from '../../../../runtime/trainer/objective/objective.js';
import { carried, signedWeights, type Carrier } from '../../../../runtime/trainer/objective/signedWeights.js';
import { TrainingClient, type RemoteModel } from '../../../../runtime/trainer/remote/client.js';
import { floats, integers, type Chunk, type Datum } from '../../../../runtime/trainer/remote/wire/index.js';
import { SPECIAL } from '../../../helpers/engine/policy.js';
import { ReferenceServer } from '../../../helpers/engine/server.js';

/**
 * The whole way on one small server: rollouts through the OpenAI face, the objective here, its gradient as signed
 * weights through the Tinker face, a new adapter for each version. Which word is right depends on the picture alone.
 */

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});
const never = new AbortController().signal,
  WORDS = ['click(1)', 'click(2)', 'click(3)'],
  SCREENS = [0, 1, 2].map((i) => ({ image: Uint8Array.of(i, 40), right: WORDS[i]! }));
const OPTIONS: ObjectiveOptions = {
  algorithm: 'ppo',
  epsLow: 0.2,
  epsHigh: 0.28,
  dualClip: 10,
  tis: { enabled: true, level: 'token', cap: 1 },
  unknownBehaviour: 'one',
  klBeta: 0,
  imitationCoef: 1,
};
interface Rollout {
  readonly datum: Datum;
  readonly start: number;
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly reward: number;
}

async function roll(
  s: ReferenceServer,
  model: string,
  screen: (typeof SCREENS)[number],
  n: number,
  seed: number,
): Promise<Rollout[]> {
  const url = `data:image/png;base64,${Buffer.from(screen.image).toString('base64')}`;
  const r = await fetch(`${s.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url } },
            { type: 'text', text: 'go' },
          ],
        },
      ],
      max_tokens: 3,
      temperature: 1,
      n,
      // Calls run side by side: what each draws must not depend on which comes first.
      seed,
      logprobs: true,
      return_token_ids: true,
    }),
  });
  expect(r.status).toBe(200);
  const { prompt_token_ids: prompt, choices } = (await r.json()) as {
    prompt_token_ids: number[];
    choices: { token_ids: number[]; message: { content: string }; logprobs: { content: { logprob: number }[] } }[];
  };
  const at = prompt.indexOf(SPECIAL.imagePad),
    end = prompt.lastIndexOf(SPECIAL.imagePad) + 1;
  return choices.map(({ token_ids: tokens, message, logprobs }) => {
    const chunks: Chunk[] = [
      { type: 'encoded_text', tokens: prompt.slice(0, at) },
      { type: 'image', data: screen.image, format: 'png', expectedTokens: end - at },
      { type: 'encoded_text', tokens: [...prompt.slice(end), ...tokens.slice(0, -1)] },
    ];
    // A target that is an image pad is scored and weighs nothing.
    const targets = [...prompt.slice(1), ...tokens];
    return {
      datum: { chunks, inputs: { target_tokens: integers(targets) } },
      start: prompt.length - 1,
      tokens,
      logprobs: logprobs.content.map((t) => t.logprob),
      reward: message.content === screen.right ? 1 : 0,
    };
  });
}

/** One update; answers the share of successes of its rollouts. */
async function update(s: ReferenceServer, m: RemoteModel, v: number, carrier: Carrier, sign: 1 | -1): Promise<number> {
  const groups = await Promise.all(
      SCREENS.map((x, i) => roll(s, v === 1 ? 'tiny' : `run@v${v - 1}`, x, 16, 100 * v + i)),
    ),
    all = groups.flat(),
    advantages = groups.flatMap((g) =>
      groupAdvantages(
        g.map((r) => r.reward),
        g.map(() => 1),
        { baseline: 'trajectory', norm: 'std' },
      ),
    );
  const first = await m.forward(
    all.map((r) => r.datum),
    never,
  );
  const steps = all.map((r, i): ObjectiveStep => ({
    term: 'policy',
    now: first[i]!.subarray(r.start, r.start + r.tokens.length),
    rollout: r.logprobs,
    advantage: advantages[i]!,
    weight: 1,
  }));
  const { gradient } = objective(steps, OPTIONS);
  const data = all.map((r, i): Datum => {
    const w = signedWeights(
      gradient[i]!.map((g) => sign * g),
      { targets: first[i]!.length, start: r.start },
    );
    const extra = Object.entries(carried(carrier, w, first[i])).map(([k, v]) => [k, floats(v)] as const);
    return { ...r.datum, inputs: { ...r.datum.inputs, ...Object.fromEntries(extra) } };
  });
  await m.forwardBackward(data, { name: carrier }, never);
  await m.optimStep({ learningRate: 0.08, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClip: 1 }, never);
  return all.reduce((a, r) => a + r.reward, 0) / all.length;
}

describe('reinforcement learning over HTTP', () => {
  it.each<[Carrier, 1 | -1, string]>([
    ['cross_entropy', 1, 'learns which word goes with which picture'],
    ['importance_sampling', 1, 'learns which word goes with which picture'],
    ['cross_entropy', -1, 'learns the opposite where the gradient has its sign turned round'],
  ])('%s %i: %s', async (carrier, sign) => {
    const s = await ReferenceServer.start({ policy: { words: WORDS, imageTokens: () => 3 } });
    open.push(() => {
      s.close();
    });
    const client = await TrainingClient.connect({ url: s.url, version: '0' }, never);
    open.push(() => {
      client.close();
    });
    const m = await client.createModel({ base: 'tiny', rank: 8 }, never),
      share: number[] = [];
    for (let v = 1; v <= 25; v++) {
      share.push(await update(s, m, v, carrier, sign));
      await post(s, 'load_lora_adapter', {
        lora_name: `run@v${v}`,
        lora_path: await m.saveForSampler(`v${v}`, never),
      });
      if (v > 1) await post(s, 'unload_lora_adapter', { lora_name: `run@v${v - 1}` });
    }
    const mean = (xs: readonly number[]): number => xs.reduce((a, x) => a + x, 0) / xs.length;
    const learned = mean(share.slice(-3));
    expect(mean(share.slice(0, 3))).toBeLessThan(0.4);
    if (sign === 1) expect(learned).toBeGreaterThan(0.75);
    else expect(learned).toBeLessThan(0.1);
  });
});
async function post(s: ReferenceServer, path: string, body: object): Promise<void> {
  const r = await fetch(`${s.url}/v1/${path}`, { method: 'POST', body: JSON.stringify(body) });
  expect([r.status, await r.text()]).toEqual([200, expect.stringContaining('Success') as string]);
}
