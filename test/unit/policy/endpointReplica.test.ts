import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  id,
  sequencesOf,
  type Frame,
  type ReplicaId,
  type RolloutId,
  type Step,
} from '../../../runtime/domain/index.js';
import { ChatSession } from '../../../runtime/policy/remote/chatSession.js';
import { saidIn } from '../../../runtime/policy/remote/completion.js';
import {
  startEndpointReplica,
  type AdapterWeights,
  type ChatAnswer,
  type ChatCall,
} from '../../../runtime/policy/remote/endpointReplica.js';
import { ChatTokenizer } from '../../../runtime/policy/remote/demonstrationTokens.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { pooledChat } from '../../../runtime/policy/remote/pooledChat.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import type { ReferenceServer, ReferenceServerOptions, Trouble } from '../../helpers/engine/server.js';
import { closePolicies, servePolicy, trained } from '../../helpers/engine/trained.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await closePolicies();
});
const never = new AbortController().signal;
const serve = servePolicy;
type Pool = ModelPool<ChatCall, ChatAnswer, AdapterWeights>;
async function pool(servers: readonly ReferenceServer[], weights: AdapterWeights): Promise<Pool> {
  const p = await ModelPool.start<ChatCall, ChatAnswer, AdapterWeights>({
    replicas: servers.map((_, i) => id<ReplicaId>(`server-${i + 1}`)),
    weights,
    clock: systemClock,
    depth: 8,
    restart: { baseMs: 5, maxMs: 20, attempts: 40 },
    factory: (replica, w) =>
      startEndpointReplica(
        {
          id: replica,
          run: 'run',
          start: 'a',
          url: `${servers[Number(replica.slice(7)) - 1]!.url}/v1`,
          weights: w,
          backoffMs: 1,
          imageToken: SPECIAL.imagePad,
        },
        never,
      ),
  });
  closers.push(() => p.close());
  return p;
}
const GO = { messages: [{ role: 'user', content: 'go' }], max_tokens: 1, logit_bias: { [SPECIAL.imagePad]: -100 } };
const SHOWN = { messages: [{ role: 'user' as const, content: 'go' }], answer: 'hm' };
const screen = (n: number): Frame => ({ width: 64, height: 64, data: Buffer.alloc(4, n), capturedAt: 0 });
const session = (p: Pool, rollout = 'r'): ChatSession =>
  new ChatSession(
    {
      encodePng: (f) => Promise.resolve(Uint8Array.of(f.data[0]!, 1, 2)),
      coordinates: 'relative1000',
      images: 2,
      maxTokens: 1,
      imageToken: SPECIAL.imagePad,
    },
    pooledChat(p),
    {
      rollout: id<RolloutId>(rollout),
      instruction: 'Press it.',
      screen: { width: 64, height: 64 },
      sampling: { greedy: false, temperature: 1, seed: 3 },
    },
  );
const loaded = async (s: ReferenceServer): Promise<string[]> => {
  const list = (await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string }[] };
  return list.data.map((m) => m.id).filter((m) => m !== s.baseModel);
};

describe('servers as replicas', () => {
  it('publish under load: no call fails, none is of a version that was not current, the old adapter goes', async () => {
    // Adapters live where they are trained: two servers that share a disk.
    const disk = new Map(),
      a = await serve({ disk }),
      b = await serve({ disk }),
      model = await trained(a),
      p = await pool([a, b], await model.save(1));
    let version = 1,
      stop = false,
      calls = 0;
    const clients = Array.from({ length: 8 }, async (_, i) => {
      while (!stop) {
        const floor = p.oldest,
          r = await p.decide(
            {
              body: { ...GO, logprobs: true },
              extras: {},
              signal: never,
            },
            { session: `s${i}`, signal: never },
          );
        expect(r.answer.version).toBeGreaterThanOrEqual(floor);
        expect(r.answer.version).toBeLessThanOrEqual(version);
        calls++;
      }
    });
    for (let v = 2; v <= 6; v++) {
      const weights = await model.save(v);
      version = v;
      const report = await p.publish(weights);
      expect(report).toMatchObject({ version: v, failed: 0 });
      expect(report.replicas).toHaveLength(2);
    }
    stop = true;
    await Promise.all(clients);
    expect(calls).toBeGreaterThan(20);
    await expect.poll(() => loaded(a)).toEqual(['run.a@v6']);
    await expect.poll(() => loaded(b)).toEqual(['run.a@v6']);
  });

  it('what an earlier start of the run left on a server goes; what belongs to others stays', async () => {
    const s = await serve(),
      model = await trained(s),
      first = await model.save(1),
      server = new ModelServer({ url: `${s.url}/v1` });
    for (const name of ['run.old@v1', 'run2.x@v1', 'mine']) await server.loadAdapter(name, first.path, never);
    await pool([s], first);
    expect(await loaded(s)).toEqual(['run2.x@v1', 'mine', 'run.a@v1']);
  });

  it('an adapter that a server ignores, or cannot read, is found: the old one stays in use', async () => {
    const s = await serve({ faults: ['noop-adapter'] }),
      model = await trained(s),
      first = await model.save(1),
      p = await pool([s], first);
    await expect(p.publish(await model.proven(s, 2))).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('does not answer with the weights of run.a@v2') as string,
    });
    await expect(p.publish({ version: 3, path: 'tinker://nowhere/sampler_weights/v3' })).rejects.toMatchObject({
      kind: 'policy.remote',
    });
    expect(p.oldest).toBe(1);
    expect(await loaded(s)).toEqual(['run.a@v1']);
  });

  it.each([
    ['ignores', true],
    ['applies', false],
  ])(
    'small changes of an adapter that a server %s: they add up, and it should say something else',
    async (_, ignored) => {
      const s = await serve(ignored ? { faults: ['noop-adapter'] } : {}),
        model = await trained(s),
        first = await model.proven(s, 1, 0),
        p = await pool([s], first);
      let refused: unknown,
        last = first;
      for (let version = 2; version < 30 && refused === undefined; version++) {
        last = await model.proven(s, version, 0.01);
        refused = await p.publish(last).then(
          () => undefined,
          (e: unknown) => e,
        );
      }
      const from = first.expected!.logprobs,
        apart = last.expected!.logprobs.reduce((sum, x, i) => sum + Math.abs(x - from[i]!), 0) / from.length;
      if (!ignored) expect([refused, p.oldest]).toEqual([undefined, 29]);
      else {
        expect(refused).toMatchObject({
          kind: 'policy.remote',
          message: expect.stringMatching(/does not answer with the weights .*to the last digit/) as string,
        });
        // Long before they are too far from the server's for that alone.
        expect(apart).toBeGreaterThan(0.02);
        expect(apart).toBeLessThan(0.04);
        expect(p.oldest).toBe(last.version - 1);
      }
    },
  );

  it('an adapter that a cache answers for as it was under that name and path is found', async () => {
    const s = await serve({ faults: ['stale-adapter'] }),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      server = new ModelServer({ url: `${s.url}/v1` }),
      stale = 'run.a@v2';
    // As after a crash, if a start had the name of the one before: version 2 was out, and is made anew with other weights.
    const { path } = await model.save(2);
    await server.loadAdapter(stale, path, never);
    await server.unloadAdapter(stale);
    const anew = await model.proven(s, 2);
    expect(anew.path).toBe(path);
    await expect(p.publish(anew)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining(`does not answer with the weights of ${stale}`) as string,
    });
    expect(p.oldest).toBe(1);
    expect(await loaded(s)).toEqual(['run.a@v1']);
    // Under a name of its own nothing is remembered.
    await p.publish(await model.proven(s, 3));
    expect(p.oldest).toBe(3);
  });

  it.each([
    ['that a server answers 500 to', '/load_lora_adapter'],
    ['that breaks at its first token', '/chat/completions'],
  ])('an adapter %s is to blame where the server goes on answering', async (_, path) => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      lost: unknown[] = [];
    p.onEvent((e) => e.type === 'lost' && lost.push(e));
    s.next(path, { status: 500, body: { message: 'incomplete metadata, file not fully covered' } });
    await expect(p.publish(await model.save(2))).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('incomplete metadata') as string,
    });
    expect(lost).toEqual([]);
    expect(p.oldest).toBe(1);
    expect(await loaded(s)).toEqual(['run.a@v1']);
    await p.publish(await model.save(3));
    expect(p.oldest).toBe(3);
  });

  it.each([400, 500])(
    'an adapter whose lm_head a server refuses with %i says what to do about that',
    async (status) => {
      const s = await serve(),
        model = await trained(s),
        p = await pool([s], await model.save(1)),
        message = "expected target modules in {'q_proj', 'o_proj'} but received ['lm_head']";
      s.next('/load_lora_adapter', { status, body: { message } });
      await expect(p.publish(await model.save(2))).rejects.toMatchObject({
        kind: 'policy.remote',
        message: expect.stringContaining('lm_head') as string,
        error: { remedy: expect.stringMatching(/lm_head.*needs a newer vLLM \(0\.32\.0 takes it\)/) as string },
      });
      expect(p.oldest).toBe(1);
    },
  );

  it('a server that answers 500 to everything is lost, and gets the adapter when it is back', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      lost: unknown[] = [];
    p.onEvent((e) => e.type === 'lost' && lost.push(e));
    s.next('/load_lora_adapter', { status: 500 });
    s.next('/chat/completions', { status: 500 });
    await expect(p.publish(await model.save(2))).resolves.toMatchObject({ version: 2 });
    expect(lost).not.toEqual([]);
  });

  it('an adapter under which the expected token is hardly probable is found', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      { expected, ...weights } = await model.proven(s, 2);
    // A token that is not among the most probable ones is at most as probable as the least of them.
    const publish = (logprob: number): Promise<unknown> =>
      p.publish({
        ...weights,
        expected: {
          ...expected!,
          answer: Int32Array.of(-1),
          tokens: ['no such token'],
          logprobs: Float32Array.of(logprob),
        },
      });
    expect(expected).toBeDefined();
    await expect(publish(-0.01)).rejects.toMatchObject({ message: expect.stringContaining('at most') as string });
    await expect(publish(-50)).resolves.toMatchObject({ version: 2 });
  });

  // After a large step neither the server says what it is expected to say nor does the trainer find that probable.
  const IMPROBABLE = { answer: Int32Array.of(70, 71), tokens: ['F', 'G'] };
  it('tokens that are improbable with any weights prove an adapter where the server scores them', async () => {
    const s = await serve({ faults: ['noop-adapter'] }),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      weights = await model.proven(s, 2, 2, IMPROBABLE);
    expect(Math.max(...weights.expected!.logprobs)).toBeLessThan(-8);
    await expect(p.publish(weights)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('does not answer with the weights of run.a@v2') as string,
    });
    expect(s.count('/v1/completions')).toBe(2);
    expect(p.oldest).toBe(1);
  });

  it.each([
    ['the adapter is the right one', {}, undefined],
    ['the server has no completions of tokens', { faults: ['noop-adapter'] }, { status: 404 }],
    ['the server tells processed log-probs', { faults: ['noop-adapter'], tells: 'processed' }, undefined],
  ] satisfies [string, ReferenceServerOptions, Trouble | undefined][])(
    'tokens that are improbable with any weights refuse no adapter where %s',
    async (_, options, trouble) => {
      const s = await serve(options),
        model = await trained(s),
        p = await pool([s], await model.save(1));
      const weights = await model.proven(s, 2, 2, IMPROBABLE),
        asked = IMPROBABLE.answer.length + weights.expected!.unsaid!.answer.length;
      if (trouble) s.next('/v1/completions', ...Array<Trouble>(asked).fill(trouble));
      await expect(p.publish(weights)).resolves.toMatchObject({ version: 2 });
      expect(s.count('/v1/completions')).toBe(asked);
    },
  );

  it('weights that are as sure of their answer are told apart by tokens that nobody says', async () => {
    const s = await serve({ faults: ['stale-adapter'] }),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      server = new ModelServer({ url: `${s.url}/v1` }),
      sure = { answer: Int32Array.of(261), tokens: ["Action: click(start_box='(100,100)')"] },
      { prompt } = (await model.proven(s, 1)).expected!,
      steps = async (n: number): Promise<AdapterWeights> => {
        for (let i = 1; i < n; i++) await model.save(3, 0.5, prompt);
        return model.save(3, 0.5, prompt);
      };
    // Remembered under the name and path of the weights that have learned the same text further.
    await server.loadAdapter('run.a@v3', (await steps(20)).path, never);
    await server.unloadAdapter('run.a@v3');
    await steps(20);
    const weights = await model.proven(s, 3, 0.1, sure);
    expect(weights.expected!.logprobs[0]).toBeGreaterThan(-0.01);
    await expect(p.publish(weights)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('does not answer with the weights of run.a@v3') as string,
    });
    expect(p.oldest).toBe(1);
    // By the answer alone they are not.
    await p.publish({ ...weights, expected: { ...weights.expected!, unsaid: undefined } });
    expect(p.oldest).toBe(3);
  });

  it('an adapter that answers as the trainer does is taken', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1));
    for (const v of [2, 3, 4]) await p.publish(await model.proven(s, v));
    expect(p.oldest).toBe(4);
  });

  it('a server that dies is asked again when it is back; calls go elsewhere meanwhile', async () => {
    const disk = new Map(),
      a = await serve({ disk }),
      b = await serve({ disk }),
      model = await trained(a),
      p = await pool([a, b], await model.save(1));
    b.kill();
    const ask = (i: number): Promise<unknown> =>
      p.decide({ body: GO, extras: {}, signal: never }, { session: `s${i}`, signal: never });
    await Promise.all(Array.from({ length: 6 }, (_, i) => ask(i)));
    await b.restart();
    await expect.poll(() => p.status().replicas.map((r) => r.phase)).toEqual(['admitting', 'admitting']);
  });

  it('a server that was started again between two calls is given its adapter again: no call fails', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      ask = (): Promise<unknown> => p.decide({ body: GO, extras: {}, signal: never }, { session: 's', signal: never });
    await ask();
    // What a restart leaves; no connection breaks, since none is open.
    s.openAi.unload({ lora_name: 'run.a@v1' });
    expect(await loaded(s)).toEqual([]);
    await Promise.all([ask(), ask(), ask()]);
    expect(await loaded(s)).toEqual(['run.a@v1']);
    expect(p.status().replicas).toMatchObject([{ phase: 'admitting', version: 1 }]);
  });

  it('a server that is started again in the middle of a publish gets the new adapter all the same', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      next = await model.save(2);
    const openAi = s.openAi,
      load = openAi.load.bind(openAi);
    let lost = false;
    // Between the adapter and its proof.
    openAi.load = (b) => {
      const said = load(b);
      if (!lost) openAi.unload(b);
      lost = true;
      return said;
    };
    await expect(p.publish(next)).resolves.toMatchObject({ version: 2 });
    expect(lost).toBe(true);
    await expect.poll(() => loaded(s)).toEqual(['run.a@v2']);
  });

  it('gets fewer calls while its own figures say that its memory is full, and is not asked where it gives none', async () => {
    const s = await serve(),
      model = await trained(s);
    let said = 'vllm:kv_cache_usage_perc{engine="0"} 0.95';
    s.openAi.metrics = () => said;
    const replica = await startEndpointReplica(
      {
        id: id<ReplicaId>('e'),
        run: 'run',
        start: 'a',
        url: `${s.url}/v1`,
        weights: await model.save(1),
        concurrency: 10,
      },
      never,
    );
    closers.push(() => replica.close());
    expect(replica.limit).toBe(10);
    await replica.decide({ body: GO, extras: {}, signal: never });
    await expect.poll(() => replica.limit).toBe(7);
    // Not at every call: once a second at most.
    await replica.decide({ body: GO, extras: {}, signal: never });
    expect(s.count('/metrics')).toBe(1);

    const mute = await serve(),
      other = await startEndpointReplica(
        {
          id: id<ReplicaId>('m'),
          run: 'run',
          start: 'a',
          url: `${mute.url}/v1`,
          weights: await (await trained(mute)).save(1),
          concurrency: 4,
        },
        never,
      );
    closers.push(() => other.close());
    said = '';
    mute.openAi.metrics = () => 'process_cpu_seconds_total 1';
    await other.decide({ body: GO, extras: {}, signal: never });
    expect(other.limit).toBe(4);
  });

  it('a decision leaves nothing with the replica, whose signal lives as long', async () => {
    const s = await serve(),
      model = await trained(s),
      replica = await startEndpointReplica(
        { id: id<ReplicaId>('e'), run: 'run', start: 'a', url: `${s.url}/v1`, weights: await model.save(1) },
        never,
      ),
      any = vi.spyOn(AbortSignal, 'any'),
      { signal } = new AbortController();
    closers.push(() => replica.close());
    try {
      await replica.decide({ body: GO, extras: {}, signal });
      expect(any).not.toHaveBeenCalled();
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    } finally {
      any.mockRestore();
    }
  });
  it('a call whose replica is closed beneath it is lost, to be asked again; one that was given up is cancelled', async () => {
    const s = await serve(),
      model = await trained(s),
      replica = await startEndpointReplica(
        { id: id<ReplicaId>('e'), run: 'run', start: 'a', url: `${s.url}/v1`, weights: await model.save(1) },
        never,
      ),
      given = new AbortController(),
      before = s.count('/chat/completions'),
      ask = (signal: AbortSignal): Promise<ChatAnswer> => replica.decide({ body: GO, extras: {}, signal });
    s.next('/chat/completions', { hang: true }, { hang: true });
    const all = Promise.allSettled([ask(given.signal), ask(never)]);
    await expect.poll(() => s.count('/chat/completions')).toBe(before + 2);
    given.abort();
    await replica.close();
    expect(await all).toMatchObject([{ reason: { kind: 'cancelled' } }, { reason: { kind: 'policy.lost' } }]);
  });

  it('a busy server is waited for, a key is sent, and a refusal says what to do', async () => {
    const s = await serve({ apiKey: 'k' });
    const server = new ModelServer({ url: `${s.url}/v1`, apiKey: 'k', backoffMs: 1 });
    s.next('/chat/completions', { status: 429 }, { status: 429 });
    const body = { model: s.baseModel, messages: [{ role: 'user', content: 'x' }], max_tokens: 1 };
    expect((await server.complete(body, never)).choices).toHaveLength(1);
    s.next('/chat/completions', { status: 429 }, { status: 429 });
    const impatient = new ModelServer({ url: `${s.url}/v1`, apiKey: 'k', backoffMs: 1, busyMs: 0 });
    await expect(impatient.complete(body, never)).rejects.toMatchObject({ kind: 'policy.lost' });
    await expect(new ModelServer({ url: `${s.url}/v1` }).complete(body, never)).rejects.toMatchObject({
      kind: 'policy.remote',
      error: { remedy: expect.stringContaining('policy.vlm.apiKeyEnv') as string },
    });
    await expect(server.complete({ ...body, model: 'other' }, never)).rejects.toMatchObject({
      kind: 'policy.remote',
      error: {
        message: expect.stringContaining('answered 404') as string,
        remedy: expect.stringMatching(/policy\.vlm\.model.*\/v1/) as string,
      },
    });
  });
});

describe('episodes on such servers', () => {
  it('every prompt is read back as the server counted it, rejected answers and all', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      chat = session(p),
      steps: Step[] = [];
    const bare = { settled: true, timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 } };
    let rejected: NonNullable<Step['rejected']>[number][] = [];
    for (let n = 0; steps.length < 4;) {
      const frame = screen(n);
      for (;;) {
        try {
          const d = await chat.decide(frame, never);
          steps.push({
            ...bare,
            index: steps.length,
            frame: { hash: `${n}`, width: 64, height: 64 },
            actions: d.actions,
            tokens: d.tokens,
            prompt: d.prompt,
            version: d.version,
            origin: 'policy',
            rejected,
          });
          rejected = [];
          n++;
          break;
        } catch (e) {
          const details = (e as { error: { details: { text: string } } }).error.details;
          rejected.push({ reason: 'x', ...details });
        }
      }
    }
    const read = sequencesOf({ id: id<RolloutId>('r'), steps });
    const asked = s.calls
      .filter((c) => c.path.endsWith('/chat/completions'))
      .map((c) => JSON.parse(c.body.toString()) as { messages: { content: unknown }[] })
      .filter((c) => JSON.stringify(c.messages).includes('image_url'));
    expect(read).toHaveLength(asked.length);
    expect(read.some((x) => x.rejected)).toBe(true);
    // The prompt's images are those sent, the newest last; two at most.
    read.forEach((x, i) => {
      const urls = JSON.stringify(asked[i]!.messages).match(/base64,[^"]+/g)!;
      expect(x.images).toHaveLength(urls.length);
      expect(x.images.at(-1)!.frame.hash).toBe(x.step.frame.hash);
      expect(x.images.length).toBeLessThanOrEqual(2);
      expect(x.answer).toHaveLength(1);
    });
  });

  it('a server that once leaves out what it was shown ends the records of that episode', async () => {
    const prompts: (number[] | undefined)[] = [[1, SPECIAL.imagePad, 2], undefined, [1, SPECIAL.imagePad, 2]];
    let call = 0;
    const chat = new ChatSession(
      {
        encodePng: () => Promise.resolve(Uint8Array.of(call)),
        coordinates: 'relative1000',
        imageToken: SPECIAL.imagePad,
        images: 1,
      },
      {
        complete: () =>
          Promise.resolve({
            said: saidIn({
              choices: [
                {
                  message: { content: 'Action: wait()' },
                  token_ids: [5],
                  logprobs: { content: [{ token: 'a', logprob: -1 }] },
                },
              ],
              prompt_token_ids: prompts[call++],
            }),
            version: 1,
            replica: id<ReplicaId>('x'),
            queueMs: 0,
            computeMs: 0,
          }),
        end: () => undefined,
      },
      {
        rollout: 'r',
        instruction: 'Wait.',
        screen: { width: 64, height: 64 },
        sampling: { greedy: false, temperature: 1, seed: 1 },
      },
    );
    const recorded: boolean[] = [];
    for (const n of [0, 1, 2]) recorded.push((await chat.decide(screen(n), never)).prompt !== undefined);
    expect(recorded).toEqual([true, false, false]);
  });

  it('a demonstration becomes the tokens of its prompt and its answer, the end of the answer with them', async () => {
    const s = await serve(),
      tokenizer = new ChatTokenizer([new ModelServer({ url: `${s.url}/v1` })], s.baseModel);
    const { prompt, answer } = await tokenizer.tokens(SHOWN, never);
    expect(prompt.slice(0, 1)).toEqual([SPECIAL.imStart]);
    expect([...answer]).toEqual([s.policy.encode('hm')[0], SPECIAL.eos]);
  });
  it('a busy tokenizer is waited for, any of the servers will do, and what all fail at is asked again', async () => {
    const [a, b] = [await serve(), await serve()],
      servers = [a, b].map((s) => new ModelServer({ url: `${s.url}/v1`, backoffMs: 1 })),
      right = [a.policy.encode('hm')[0], SPECIAL.eos],
      tokens = async (attempts: number): Promise<number[]> => {
        const t = new ChatTokenizer(servers, a.baseModel, { baseMs: 1, maxMs: 2, attempts });
        return [...(await t.tokens(SHOWN, never)).answer];
      };
    a.next('/tokenize', { status: 429 }, { status: 500 });
    expect(await tokens(0)).toEqual(right);
    expect(b.count('/tokenize')).toBe(1);
    a.kill();
    b.next('/tokenize', { status: 500 }, { status: 500 }, { status: 500 });
    await expect(tokens(0)).rejects.toMatchObject({ kind: 'policy.lost' });
    expect(await tokens(2)).toEqual(right);
  });
  it('what ends an answer is looked for again where it was not found', async () => {
    const s = await serve(),
      server = new ModelServer({ url: `${s.url}/v1` }),
      tokenizer = new ChatTokenizer([server], s.baseModel);
    const tokenize = server.tokenize.bind(server);
    let calls = 0;
    // Prompt and answer before.
    server.tokenize = (body, signal) => {
      if (++calls === 3) s.next('/tokenize', { status: 500 });
      return tokenize(body, signal);
    };
    await expect(tokenizer.tokens(SHOWN, never)).rejects.toMatchObject({ kind: 'policy.lost' });
    expect([...(await tokenizer.tokens(SHOWN, never)).answer]).toEqual([s.policy.encode('hm')[0], SPECIAL.eos]);
  });
});
