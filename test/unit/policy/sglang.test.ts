import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { id, type Frame, type ReplicaId, type RolloutId } from '../../../runtime/domain/index.js';
import { proofOf } from '../../../runtime/policy/remote/adapterProof.js';
import { ChatSession } from '../../../runtime/policy/remote/chatSession.js';
import { ChatTokenizer } from '../../../runtime/policy/remote/demonstrationTokens.js';
import {
  startEndpointReplica,
  type AdapterWeights,
  type ChatAnswer,
  type ChatCall,
} from '../../../runtime/policy/remote/endpointReplica.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { pooledChat } from '../../../runtime/policy/remote/pooledChat.js';
import { factsOf } from '../../../runtime/policy/remote/serverFacts.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { LAYERS } from '../../../runtime/service/runChecks/flags.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import type { ReferenceServer, ReferenceServerOptions } from '../../helpers/engine/server.js';
import type { Sglang } from '../../helpers/engine/sglang.js';
import { closePolicies, servePolicy, trained } from '../../helpers/engine/trained.js';

/** Servers that answer as SGLang does; no real one ran (runtime/config/README.md#sglang). */

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await closePolicies();
});
const never = new AbortController().signal;
const serve = (o: ReferenceServerOptions = {}): Promise<ReferenceServer> => servePolicy({ sglang: {}, ...o });

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
const ask = (p: Pool, session = 's'): Promise<{ readonly answer: ChatAnswer }> =>
  p.decide(
    { body: { ...GO, logprobs: true }, extras: { return_token_ids: true }, signal: never },
    { session, signal: never },
  );
const loaded = async (s: ReferenceServer): Promise<readonly string[]> =>
  (await new ModelServer({ url: `${s.url}/v1` }).models(never)).filter((m) => m !== s.baseModel);

const faceOf = (s: ReferenceServer): Sglang => s.openAi as Sglang;

describe('SGLang servers as replicas', () => {
  it('are told by themselves: adapters are loaded beside /v1 and asked for as MODEL:ADAPTER', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      { said, version } = (await ask(p)).answer;
    expect([said.model, version]).toEqual(['tiny:run.a@v1', 1]);
    expect(s.count('/v1/load_lora_adapter')).toBe(0);
    expect(await loaded(s)).toEqual(['run.a@v1']);
  });

  it.each(['0.5.17', '0.5.23'])('%s: token ids of prompt and answer and a log-prob of each arrive', async (version) => {
    const s = await serve({ sglang: { version } }),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      { tokens, promptIds } = (await ask(p)).answer.said;
    expect(promptIds?.[0]).toBe(SPECIAL.imStart);
    expect(tokens?.ids).toHaveLength(1);
    expect(tokens!.logprobs[0]).toBeLessThan(0);
  });

  it('record prompts with pictures and what was said to them', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1)),
      chat = new ChatSession(
        {
          encodePng: (f) => Promise.resolve(Uint8Array.of(f.data[0]!, 1, 2)),
          coordinates: 'relative1000',
          images: 2,
          maxTokens: 1,
          imageToken: SPECIAL.imagePad,
        },
        pooledChat(p),
        {
          rollout: id<RolloutId>('r'),
          instruction: 'Press it.',
          screen: { width: 64, height: 64 },
          sampling: { greedy: false, temperature: 1, seed: 3 },
        },
      ),
      screen: Frame = { width: 64, height: 64, data: Buffer.alloc(4, 1), capturedAt: 0 };
    const recorded = await chat
      .decide(screen, never)
      .catch((e: unknown) => (e as { error: { details: object } }).error.details);
    expect(recorded).toMatchObject({ prompt: { images: [{ format: 'png' }] }, version: 1 });
  });

  it('publish under load: no call fails, calls go on while an adapter is loaded, the old one goes after its last call', async () => {
    const disk = new Map(),
      a = await serve({ disk }),
      b = await serve({ disk }),
      model = await trained(a),
      p = await pool([a, b], await model.save(1));
    for (const s of [a, b]) {
      const face = faceOf(s),
        load = face.loadAdapter.bind(face);
      face.loadAdapter = async (body) => {
        const before = s.count('/chat/completions');
        await expect.poll(() => s.count('/chat/completions')).toBeGreaterThan(before + 2);
        return load(body);
      };
    }
    let version = 1,
      stop = false,
      calls = 0;
    const clients = Array.from({ length: 8 }, async (_, i) => {
      while (!stop) {
        const floor = p.oldest,
          { answer } = await ask(p, `s${i}`);
        expect(answer.version).toBeGreaterThanOrEqual(floor);
        expect(answer.version).toBeLessThanOrEqual(version);
        expect(answer.said.model).toBe(`tiny:run.a@v${answer.version}`);
        calls++;
      }
    });
    for (let v = 2; v <= 6; v++) {
      const weights = await model.proven(a, v);
      version = v;
      await expect(p.publish(weights)).resolves.toMatchObject({ version: v, failed: 0 });
    }
    stop = true;
    await Promise.all(clients);
    expect(calls).toBeGreaterThan(20);
    await expect.poll(() => loaded(a)).toEqual(['run.a@v6']);
    await expect.poll(() => loaded(b)).toEqual(['run.a@v6']);
  });

  it('are asked of the very tokens of the proof: an adapter that is ignored is found and taken off', async () => {
    const s = await serve({ faults: ['noop-adapter'] }),
      model = await trained(s),
      p = await pool([s], await model.save(1));
    await expect(p.publish(await model.proven(s, 2))).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('does not answer with the weights of run.a@v2') as string,
    });
    expect(p.oldest).toBe(1);
    expect(await loaded(s)).toEqual(['run.a@v1']);
    expect(s.count('/generate')).toBe(1);
    expect((await ask(p)).answer.version).toBe(1);
  });

  it('refuse an adapter that they cannot read, and go on with the old one', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1));
    await expect(p.publish({ version: 3, path: 'tinker://nowhere/sampler_weights/v3' })).rejects.toMatchObject({
      kind: 'policy.remote',
      error: { remedy: expect.stringContaining('--lora-target-modules') as string },
    });
    s.next('/load_lora_adapter', { status: 500 });
    await expect(p.publish(await model.save(4))).rejects.toMatchObject({ kind: 'policy.remote' });
    expect(await loaded(s)).toEqual(['run.a@v1']);
  });

  it('take no adapter with a layer that was not named when they were started', async () => {
    const s = await serve({ sglang: { modules: LAYERS.split(' ').filter((l) => l !== 'lm_head') } }),
      model = await trained(s);
    await expect(pool([s], await model.save(1))).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('incompatible with the current LoRA memory pool') as string,
    });
    // As the page starts one, it takes what our engine trains.
    expect(readFileSync('runtime/config/README.md', 'utf8')).toContain(`--lora-target-modules ${LAYERS} `);
  });

  it('that were started again get their adapter again: no call fails', async () => {
    const s = await serve(),
      model = await trained(s),
      p = await pool([s], await model.save(1));
    await ask(p);
    // What a restart leaves; no connection breaks, since none is open.
    faceOf(s).forget();
    expect(await loaded(s)).toEqual([]);
    await Promise.all([ask(p), ask(p), ask(p)]);
    expect(await loaded(s)).toEqual(['run.a@v1']);
  });

  it('take an adapter twice and give it up twice without an error', async () => {
    const s = await serve(),
      { path } = await (await trained(s)).save(1),
      server = new ModelServer({ url: `${s.url}/v1` });
    await server.loadAdapter('x@v1', path, never);
    await server.loadAdapter('x@v1', path, never);
    await expect(server.loadAdapter('x@v1', `${path}x`, never)).rejects.toMatchObject({ kind: 'policy.remote' });
    await server.unloadAdapter('x@v1');
    await server.unloadAdapter('x@v1');
    expect(await loaded(s)).toEqual([]);
  });

  it('too old to say token ids do not start a run', async () => {
    const s = await serve({ sglang: { version: '0.5.16' } }),
      weights = await (await trained(s)).save(1);
    await expect(pool([s], weights)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('it says that it is SGLang 0.5.16, and 0.5.17 is the first') as string,
      error: { remedy: expect.stringContaining('Update it to SGLang 0.5.17') as string },
    });
  });

  it('say what they are, and of their configuration no more', async () => {
    const s = await serve(),
      url = `${s.url}/v1`;
    expect(await factsOf({ url }, s.baseModel, never)).toEqual({ url, server: 'sglang 0.5.23', context: 65_536 });
  });

  it('make tokens of demonstrations, one pad for each picture', async () => {
    const s = await serve(),
      tokenizer = new ChatTokenizer([new ModelServer({ url: `${s.url}/v1` })], s.baseModel),
      shown = { messages: [{ role: 'user' as const, content: 'go' }], answer: 'hm' };
    expect((await tokenizer.tokens(shown, never)).answer.at(-1)).toBe(SPECIAL.eos);
    const url = `data:image/png;base64,${Buffer.from([1, 7]).toString('base64')}`;
    expect(await tokenizer.imageTokens(url, '1x1', SPECIAL.imagePad, never)).toBeGreaterThan(0);
  });

  it('draw other tokens each time, whatever the seed', async () => {
    const s = await serve(),
      proofs = new Set<string>();
    for (let i = 0; i < 8; i++)
      proofs.add(
        String((await proofOf({ url: `${s.url}/v1`, imageToken: SPECIAL.imagePad }, s.baseModel, never))?.answer),
      );
    expect(proofs.size).toBeGreaterThan(1);
  });
});
