import { afterEach, describe, expect, it } from 'vitest';
import {
  encodeRequest,
  integers,
  jsonChunk,
  logprobRows,
  type Chunk,
} from '../../../../runtime/trainer/remote/wire/index.js';
import { SPECIAL } from '../../../helpers/engine/policy.js';
import { DESCENT, PlainClient } from '../../../helpers/engine/requests.js';
import type { ReferenceServer } from '../../../helpers/engine/server.js';
import type { ChatAnswer } from '../../../helpers/engine/serving.js';
import {
  closeServers,
  serve,
  datum,
  weights,
  plain,
  forward,
  seen,
  chat,
  said,
} from '../../../helpers/engine/serving.js';
afterEach(closeServers);

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
