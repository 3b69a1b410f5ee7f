import { afterEach, describe, expect, it } from 'vitest';
import { floats, integers, jsonChunk, logprobRows } from '../../../../runtime/trainer/remote/wire/index.js';
import { FAULTS, type Fault } from '../../../helpers/engine/faults.js';
import { DESCENT, PlainClient } from '../../../helpers/engine/requests.js';
import type { ReferenceServer } from '../../../helpers/engine/server.js';
import {
  closeServers,
  serve,
  bytes,
  picture,
  datum,
  weights,
  plain,
  forward,
  seen,
  effect,
  said,
} from '../../../helpers/engine/serving.js';
afterEach(closeServers);

/** Log-probs of a prompt by the weights of now, saved for sampling. */
async function promptOf(c: PlainClient, name: string): Promise<number[]> {
  const out = await c.sample({
    model_path: await c.save('save_weights_for_sampler', name),
    prompt: { chunks: datum().chunks.map(jsonChunk) },
    sampling_params: { max_tokens: 1, seed: 1 },
    prompt_logprobs: true,
  });
  return [...out.promptLogprobs!].slice(1);
}

/** For each fault, something that a client sees and that is otherwise with it. */
const SHOWS: Record<Fault, (s: ReferenceServer) => Promise<readonly (number | string)[]>> = {
  'mask-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(0.5))] })),
  'clamp-negative-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(-0.5))] })),
  'normalise-by-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(2))] })),
  'mean-over-datums': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1)), datum(weights(1), 1)] })),
  'mean-over-tokens': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1))] })),
  'mean-over-request': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1)), datum(weights(1), 1)] })),
  'clamp-negative-advantages': (s) =>
    effect(s, (c) =>
      c.pass({
        ...plain,
        lossFn: 'importance_sampling',
        data: [
          datum((n) => ({
            logprobs: floats(new Array<number>(n).fill(-6)),
            advantages: floats(new Array<number>(n).fill(-1)),
          })),
        ],
      }),
    ),
  'drop-images': async (s) => {
    const c = await PlainClient.open(s),
      [a, b] = [await seen(c), await seen(c, datum(undefined, 0, picture(2)))];
    return a.map((x, i) => x - b[i]!);
  },
  'reorder-chunks': async (s) => seen(await PlainClient.open(s)),
  'unchecked-image-tokens': async (s) => {
    const c = await PlainClient.open(s),
      d = datum(undefined, 0, picture(1, 3)),
      targets = integers(bytes('targetss'));
    return c.pass({ ...forward, data: [{ ...d, inputs: { target_tokens: targets } }] }).then(
      () => ['taken'],
      (e: Error) => [e.message],
    );
  },
  'ignore-clip': (s) =>
    effect(s, (c) => c.pass({ ...plain, data: [datum(weights(5))] }), { ...DESCENT(0.01), grad_clip_norm: 0.1 }),
  'ignore-learning-rate': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1))] })),
  'ignore-weight-decay': (s) =>
    effect(
      s,
      async (c) => {
        await c.pass({ ...plain, data: [datum(weights(1))] });
        await c.step({ learning_rate: 0.1 });
      },
      { learning_rate: 0.1, weight_decay: 5 },
    ),
  'ignore-clip-bands': (s) =>
    effect(s, (c) =>
      c.pass({
        ...plain,
        lossFn: 'ppo',
        lossFnConfig: { clip_low_threshold: 0.01, clip_high_threshold: 100 },
        data: [
          datum((n) => ({
            logprobs: floats(new Array<number>(n).fill(-9)),
            advantages: floats(new Array<number>(n).fill(1)),
          })),
        ],
      }),
    ),
  'targets-off-by-one': async (s) => seen(await PlainClient.open(s)),
  'unscored-rows': async (s) => seen(await PlainClient.open(s), datum(weights(0))),
  'forward-trains': (s) => effect(s, (c) => c.pass({ ...forward, data: [datum(weights(1))] })),
  'keep-gradient': (s) =>
    effect(s, async (c) => {
      await c.pass({ ...plain, data: [datum(weights(1))] });
      await c.step(DESCENT(0.01));
    }),
  'forget-gradient': (s) =>
    effect(s, async (c) => {
      await c.pass({ ...plain, data: [datum(weights(1))] });
      await c.pass({ ...plain, data: [datum(weights(1), 1)] });
    }),
  'swap-datums': async (s) => {
    const c = await PlainClient.open(s);
    return [...logprobRows(await c.pass({ ...forward, data: [datum(), datum(undefined, 1)] }), [7, 7])[0]!];
  },
  'apply-twice': (s) =>
    effect(s, async (c) => {
      await c.pass({ ...plain, data: [datum(weights(1))] }, 50);
      await c.pass({ ...plain, data: [datum(weights(1))] }, 50);
    }),
  'noop-adapter': async (s) => {
    const c = await PlainClient.open(s);
    await c.pass({ ...plain, data: [datum(weights(1))] });
    await c.step({ learning_rate: 0.1 });
    await c.post('/v1/models', {});
    await c.send('/v1/load_lora_adapter', { lora_name: 'a', lora_path: await c.save('save_weights_for_sampler', 'a') });
    return said(c, 'a');
  },
  'stale-adapter': async (s) => {
    const c = await PlainClient.open(s);
    for (let i = 0; i < 2; i++) {
      await c.pass({ ...plain, data: [datum(weights(1))] });
      await c.step({ learning_rate: 0.1 });
      const path = await c.save('save_weights_for_sampler', 'same');
      await c.send('/v1/unload_lora_adapter', { lora_name: 'a' });
      await c.send('/v1/load_lora_adapter', { lora_name: 'a', lora_path: path });
    }
    return said(c, 'a');
  },
  'stale-sampler': async (s) => {
    const c = await PlainClient.open(s);
    await c.pass({ ...plain, data: [datum(weights(1))] });
    await c.step({ learning_rate: 0.1 });
    return promptOf(c, 'a');
  },
  'stale-prefix-cache': async (s) => {
    const c = await PlainClient.open(s),
      out: number[][] = [];
    for (const name of ['a', 'b']) {
      await c.pass({ ...plain, data: [datum(weights(1))] });
      await c.step({ learning_rate: 0.1 });
      out.push(await promptOf(c, name));
    }
    return out.at(-1)!;
  },
  'biased-logprobs': async (s) => said(await PlainClient.open(s), 'tiny'),
  'lossy-restore': async (s) => {
    const c = await PlainClient.open(s),
      train = async (): Promise<void> => {
        await c.pass({ ...plain, data: [datum(weights(1))] });
        await c.step({ learning_rate: 0.1 });
      };
    await train();
    const path = await c.save('save_weights', 'a');
    for (let i = 0; i < 3; i++) await train();
    await c.load(path);
    await train();
    return seen(c);
  },
  'stale-save': async (s) => {
    const c = await PlainClient.open(s);
    await c.save('save_weights', 'a');
    await c.pass({ ...plain, data: [datum(weights(1))] });
    await c.step({ learning_rate: 0.1 });
    await c.load(await c.save('save_weights', 'b'));
    return seen(c);
  },
  'weights-go-with-model': async (s) => {
    const c = await PlainClient.open(s),
      path = await c.save('save_weights', 'a');
    await c.post('unload_model', { model_id: c.model });
    return [s.disk.has(path) ? 'kept' : 'gone'];
  },
  'gap-after-refusal': async (s) => {
    const c = await PlainClient.open(s);
    await c.pass({ ...plain, lossFn: 'none', data: [datum()] }).catch((e: unknown) => e);
    return seen(c).then(
      (x) => x,
      (e: Error) => [e.message.slice(0, 60)],
    );
  },
};

describe('every planted fault', () => {
  const shown = (xs: readonly (number | string)[]): string =>
    JSON.stringify(xs.map((x) => (typeof x === 'number' ? x.toPrecision(5) : x)));
  it.each(Object.keys(FAULTS) as Fault[])('%s shows, and a server without it does not', async (fault) => {
    const clean = shown(await SHOWS[fault](await serve()));
    expect(shown(await SHOWS[fault](await serve()))).toBe(clean);
    expect(shown(await SHOWS[fault](await serve({ faults: [fault] })))).not.toBe(clean);
  });
});
