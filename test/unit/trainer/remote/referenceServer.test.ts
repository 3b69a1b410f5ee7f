import { afterEach, describe, expect, it } from 'vitest';
import {
  encodeRequest,
  floats,
  integers,
  jsonChunk,
  logprobRows,
  type Chunk,
  type Datum,
} from '../../../../runtime/trainer/remote/wire/index.js';
import { FAULTS, type Fault } from '../../../helpers/engine/faults.js';
import type { AdamParams } from '../../../helpers/engine/learner.js';
import { SPECIAL } from '../../../helpers/engine/policy.js';
import { DESCENT, PlainClient } from '../../../helpers/engine/requests.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../../helpers/engine/server.js';

const open: ReferenceServer[] = [];
async function serve(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: { imageTokens: () => 2, words: ['click(1)', 'click(2)'] }, ...o });
  open.push(s);
  return s;
}
afterEach(() => {
  for (const s of open.splice(0)) s.close();
});

const bytes = (s: string): number[] => [...Buffer.from(s)];
const picture = (n: number, expectedTokens: number | undefined = 2): Chunk => ({
  type: 'image',
  data: Uint8Array.of(n, 7),
  format: 'png',
  expectedTokens,
});
/** "ab [image] cd" with targets of the same length and whatever else the loss takes. */
function datum(inputs: (n: number) => Datum['inputs'] = () => ({}), seed = 0, image: Chunk = picture(1)): Datum {
  const chunks: Chunk[] = [
      { type: 'encoded_text', tokens: bytes(`ab${seed}`) },
      image,
      { type: 'encoded_text', tokens: bytes('cd') },
    ],
    targets = bytes(`tarxyz${seed}`);
  return { chunks, inputs: { target_tokens: integers(targets), ...inputs(targets.length) } };
}
const weights =
  (...w: number[]) =>
  (n: number): Datum['inputs'] => ({ weights: floats(Array.from({ length: n }, (_, i) => w[i % w.length]!)) });
const plain = { lossFn: 'cross_entropy', forwardOnly: false } as const;
const forward = { ...plain, forwardOnly: true };

/** Log-probs of a probe datum. */
async function seen(c: PlainClient, d: Datum = datum()): Promise<number[]> {
  return [...logprobRows(await c.pass({ ...forward, data: [d] }), [7])[0]!];
}
/** What a step changes of them. */
async function effect(
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
const chat = (model: string, image = 1): object => ({
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
interface ChatAnswer {
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
const said = async (c: PlainClient, model: string): Promise<number[]> =>
  ((await c.post('/v1/chat/completions', chat(model))) as ChatAnswer).choices[0].logprobs.content.map((t) => t.logprob);

describe.each([
  ['protobuf', true],
  ['JSON', false],
])('the reference server in %s', (_, proto) => {
  it('scores every target, adds gradients up, steps', async () => {
    const s = await serve(),
      c = await PlainClient.open(s, proto),
      before = await seen(c);
    expect(before.every((x) => x < 0)).toBe(true);
    await c.pass({ ...plain, data: [datum(weights(1))] });
    await c.step(DESCENT(0.01));
    const after = await seen(c);
    expect(after.reduce((a, x) => a + x, 0)).toBeGreaterThan(before.reduce((a, x) => a + x, 0));
  });
  it('samples with the log-probs that a forward pass gives', async () => {
    const s = await serve(),
      c = await PlainClient.open(s, proto),
      prompt = datum().chunks;
    const path = await c.save('save_weights_for_sampler', 'v1');
    const out = await c.sample({
      model_path: path,
      prompt: { chunks: prompt.map(jsonChunk) },
      num_samples: 2,
      sampling_params: { max_tokens: 5, temperature: 1, seed: 11 },
      prompt_logprobs: true,
    });
    expect(out.sequences).toHaveLength(2);
    const { tokens, logprobs } = out.sequences[0]!,
      chunks: Chunk[] = [...prompt, { type: 'encoded_text', tokens: tokens.slice(0, -1) }],
      targets = [...new Array<number>(6).fill(46), ...tokens];
    const rows = logprobRows(
      await c.pass({ ...forward, data: [{ chunks, inputs: { target_tokens: integers(targets) } }] }),
      [targets.length],
    );
    logprobs!.forEach((x, i) => expect(rows[0]![6 + i]).toBeCloseTo(x, 6));
  });
  it('restores weights and optimizer bit by bit', async () => {
    const s = await serve(),
      c = await PlainClient.open(s, proto),
      train = async (client: PlainClient): Promise<void> => {
        await client.pass({ ...plain, data: [datum(weights(1, -0.5))] });
        await client.step({ learning_rate: 0.01 });
      };
    await train(c);
    const path = await c.save('save_weights', '0001');
    await train(c);
    const want = s.tinker.weightsOf(c.model).slice();
    const other = await PlainClient.open(s, proto);
    await other.load(path);
    await train(other);
    expect(s.tinker.weightsOf(other.model)).toEqual(want);
  });
});

describe('futures and idempotency', () => {
  it('a sequence number asked again is answered from what it made; another request under it is a conflict', async () => {
    const s = await serve(),
      c = await PlainClient.open(s);
    await c.pass({ ...plain, data: [datum(weights(1))] }, 1);
    const body = { model_id: c.model, seq_id: 2, adam_params: { learning_rate: 0.1 } },
      first = (await c.post('optim_step', body)) as { request_id: string };
    await c.wait(first);
    const once = s.tinker.weightsOf(c.model).slice();
    expect(await c.post('optim_step', body)).toEqual(first);
    expect(s.tinker.weightsOf(c.model)).toEqual(once);
    expect(s.tinker.optimizerSteps(c.model)).toBe(1);
    const r = await c.send('optim_step', { ...body, adam_params: { learning_rate: 0.2 } });
    expect(r.status).toBe(409);
  });
  it('says 408 with the state of the queue while it works, the error in a 200, 410 for what is gone', async () => {
    let release: (() => void) | undefined;
    const s = await serve({
        pollMs: 20,
        beforeWork: (what) =>
          what === 'optim_step' ? new Promise((resolve) => (release = resolve)) : Promise.resolve(),
      }),
      c = await PlainClient.open(s);
    const step = (await c.post('optim_step', { model_id: c.model, seq_id: 1, adam_params: {} })) as {
      request_id: string;
    };
    const early = await c.fetchFuture(step.request_id);
    expect([early.status, await early.json()]).toEqual([408, expect.objectContaining({ queue_state: 'active' })]);
    release!();
    await c.wait(step);
    const wrong = (await c.post(
      'forward_backward',
      encodeRequest({ ...plain, lossFn: 'none', modelId: c.model, seqId: 2, data: [datum()] }),
    )) as { request_id: string };
    const failed = await c.fetchFuture(wrong.request_id);
    expect([failed.status, await failed.json()]).toEqual([200, { error: 'there is no loss none', category: 'user' }]);
    s.tinker.forgetFutures();
    expect((await c.fetchFuture(step.request_id)).status).toBe(410);
  });
  it('does what was asked before a connection breaks, and nothing twice', async () => {
    const s = await serve(),
      c = await PlainClient.open(s);
    await c.pass({ ...plain, data: [datum(weights(1))] });
    s.next('optim_step', { drop: 'after' });
    await expect(c.step({}, 2)).rejects.toThrow();
    expect(s.tinker.optimizerSteps(c.model)).toBe(1);
    await c.step({}, 2);
    expect(s.tinker.optimizerSteps(c.model)).toBe(1);
  });
  it('killed in the middle of an update, it comes back from disk, is asked again and has the same bits', async () => {
    const s = await serve(),
      c = await PlainClient.open(s),
      update = async (from: number): Promise<void> => {
        await c.pass({ ...plain, data: [datum(weights(1, -0.5))] }, from);
        await c.step({ learning_rate: 0.01 }, from + 1);
      };
    await update(1);
    c.seq = 2;
    const path = await c.save('save_weights', 'a');
    await update(4);
    const want = s.tinker.weightsOf(c.model).slice();
    s.next('optim_step', { die: 'after' });
    await expect(update(6)).rejects.toThrow();
    await s.restart();
    await c.load(path);
    // Already in the checkpoint: answered, not done.
    await update(1);
    expect(s.tinker.optimizerSteps(c.model)).toBe(1);
    await update(4);
    expect(s.tinker.weightsOf(c.model)).toEqual(want);
  });
  it.each<[string, Parameters<ReferenceServer['next']>[1], number]>([
    ['429', { status: 429, headers: { 'retry-after': '1' } }, 429],
    ['garbage', { garbage: 'x' }, 200],
  ])('gives %s once when asked to', async (_, trouble, status) => {
    const s = await serve(),
      c = await PlainClient.open(s);
    s.next('session_heartbeat', trouble);
    expect((await c.send('session_heartbeat', { session_id: c.session })).status).toBe(status);
    expect((await c.send('session_heartbeat', { session_id: c.session })).status).toBe(200);
  });
  it('wants its key, and the language it speaks', async () => {
    const s = await serve({ apiKey: 'tml-k', speaks: 'json' }),
      c = new PlainClient(s);
    expect((await c.send('create_session', {})).status).toBe(401);
    const r = await c.send('forward_backward', new Uint8Array(), { 'x-api-key': 'tml-k' });
    expect(r.status).toBe(415);
  });
});

describe('the OpenAI face', () => {
  it('answers with images expanded in the prompt, token ids and log-probs that the trainer agrees with', async () => {
    const s = await serve(),
      c = await PlainClient.open(s),
      a = (await c.post('/v1/chat/completions', chat('tiny'))) as ChatAnswer,
      { prompt_token_ids: ids, choices } = a,
      [{ token_ids, logprobs }] = choices;
    expect(ids.filter((t) => t === SPECIAL.imagePad)).toHaveLength(2);
    expect(logprobs.content[0]!.top_logprobs).toHaveLength(2);
    const at = ids.indexOf(SPECIAL.imagePad),
      chunks: Chunk[] = [
        { type: 'encoded_text', tokens: ids.slice(0, at) },
        { type: 'image', data: Uint8Array.of(1, 7), format: 'png', expectedTokens: 2 },
        { type: 'encoded_text', tokens: [...ids.slice(at + 2), ...token_ids.slice(0, -1)] },
      ],
      targets = [...ids.slice(1).map(() => 46), ...token_ids];
    const rows = logprobRows(
      await c.pass({ ...forward, data: [{ chunks, inputs: { target_tokens: integers(targets) } }] }),
      [targets.length],
    );
    logprobs.content.forEach((t, i) => expect(rows[0]![ids.length - 1 + i]).toBeCloseTo(t.logprob, 6));
  });
  it('loads versions under names of their own and forgets them', async () => {
    const s = await serve(),
      c = await PlainClient.open(s),
      base = await said(c, 'tiny');
    await c.pass({ ...plain, data: [datum(weights(1))] });
    await c.step({ learning_rate: 0.1 });
    const path = await c.save('save_weights_for_sampler', 'v1'),
      load = { lora_name: 'run@v1', lora_path: path };
    const status = async (p: string, b: object): Promise<number> => (await c.send(p, b)).status;
    expect(await status('/v1/load_lora_adapter', load)).toBe(200);
    expect(await status('/v1/load_lora_adapter', load)).toBe(400);
    expect(await status('/v1/load_lora_adapter', { lora_name: 'x', lora_path: '/none' })).toBe(404);
    expect(await said(c, 'run@v1')).not.toEqual(base);
    const list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map((m) => m.id)).toEqual(['tiny', 'run@v1']);
    expect(await status('/v1/unload_lora_adapter', { lora_name: 'run@v1' })).toBe(200);
    expect(await status('/v1/chat/completions', chat('run@v1'))).toBe(404);
    expect(await (await fetch(`${s.url}/metrics`)).text()).toMatch(/num_requests_running\{engine="0"\} 0/);
  });
  it('frees its slot when the client goes away', async () => {
    const s = await serve({
      beforeSample: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('gone')));
        }),
    });
    const stop = new AbortController(),
      call = fetch(`${s.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(chat('tiny')),
        signal: stop.signal,
      });
    await expect.poll(() => s.openAi.running).toBe(1);
    stop.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => s.openAi.running).toBe(0);
  });
});

/** For each fault, something that a client sees and that is otherwise with it. */
const SHOWS: Record<Fault, (s: ReferenceServer) => Promise<readonly (number | string)[]>> = {
  'mask-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(0.5))] })),
  'clamp-negative-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(-0.5))] })),
  'normalise-by-weights': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(2))] })),
  'mean-over-datums': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1)), datum(weights(1), 1)] })),
  'mean-over-tokens': (s) => effect(s, (c) => c.pass({ ...plain, data: [datum(weights(1))] })),
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
    const out = await c.sample({
      model_path: await c.save('save_weights_for_sampler', 'a'),
      prompt: { chunks: datum().chunks.map(jsonChunk) },
      sampling_params: { max_tokens: 1, seed: 1 },
      prompt_logprobs: true,
    });
    return [...out.promptLogprobs!].slice(1);
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
