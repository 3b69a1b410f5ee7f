import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { datumBytes, inRequests } from '../../../../runtime/trainer/remote/chunks.js';
import { TrainingClient, type AdamParams, type ClientOptions } from '../../../../runtime/trainer/remote/client.js';
import { floats, integers, type Datum } from '../../../../runtime/trainer/remote/wire/index.js';
import { ReferenceServer, type ReferenceServerOptions, type Trouble } from '../../../helpers/engine/server.js';

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});
const never = new AbortController().signal;
const ADAM: AdamParams = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClip: 1 };

async function serve(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ policy: { imageTokens: () => 2 }, pollMs: 50, ...o });
  open.push(() => {
    s.close();
  });
  return s;
}
/** Waits are noted and take no time; the clock goes on by them. */
async function connect(
  s: ReferenceServer | string,
  o: Partial<ClientOptions> = {},
): Promise<{ client: TrainingClient; waits: number[]; retries: string[] }> {
  const waits: number[] = [],
    retries: string[] = [];
  let clock = 0;
  const client = await TrainingClient.connect(
    {
      url: typeof s === 'string' ? s : s.url,
      version: '0.38.0',
      now: () => clock,
      sleep: (ms, signal) => {
        clock += ms;
        waits.push(ms);
        signal.throwIfAborted();
        return new Promise((resolve) => setImmediate(resolve));
      },
      random: () => 0.5,
      onRetry: (why) => retries.push(why),
      ...o,
    },
    never,
  );
  open.push(() => {
    client.close();
  });
  return { client, waits, retries };
}
function datum(text: string, weight = 1): Datum {
  const tokens = [...Buffer.from(text)],
    n = tokens.length + 2;
  return {
    chunks: [
      { type: 'image', data: Uint8Array.of(tokens.length), format: 'png', expectedTokens: 2 },
      { type: 'encoded_text', tokens },
    ],
    inputs: {
      target_tokens: integers(Array.from({ length: n }, (_, i) => 97 + (i % 20))),
      weights: floats(Array.from({ length: n }, () => weight)),
    },
  };
}
const CE = { name: 'cross_entropy' };
const BASE = { base: 'tiny', rank: 8 };

describe('a training client', () => {
  it.each([
    ['both', 415],
    ['proto', 415],
    ['json', 415],
    ['json', 422],
    ['json', 500],
  ] as const)(
    'trains, saves, samples and loads on a server that speaks %s and answers %i to what is not',
    async (speaks, foreign) => {
      const s = await serve({ speaks, foreign }),
        { client } = await connect(s),
        m = await client.createModel(BASE, never),
        data = [datum('one'), datum('two', -0.5)],
        before = await m.forward(data, never);
      const out = await m.forwardBackward(data, CE, never);
      expect(out.metrics.has('loss:sum')).toBe(true);
      const metrics = await m.optimStep(ADAM, never);
      expect(metrics.get('grad_norm')).toBeGreaterThan(0);
      const after = await m.forward(data, never),
        gain = (rows: readonly Float32Array[]): number =>
          rows.reduce((g, r, i) => g + [1, -0.5][i]! * r.reduce((x, y) => x + y, 0), 0);
      expect(gain(after)).toBeGreaterThan(gain(before));
      const path = await m.saveWeights('1', never),
        sampler = await m.saveForSampler('v1', never);
      await m.optimStep(ADAM, never);
      await m.load(path, true, never);
      expect(await m.forward(data, never)).toEqual(after);
      const session = await client.samplingSession({ path: sampler }, never);
      for (const from of [{ session, seqId: 1 }, { modelPath: sampler }, { baseModel: 'tiny' }]) {
        const drawn = await client.sample(
          { chunks: data[0]!.chunks, samples: 2, maxTokens: 3, temperature: 1, from },
          never,
        );
        expect(drawn.sequences.map((q) => q.logprobs!.length)).toEqual(drawn.sequences.map((q) => q.tokens.length));
      }
      expect((await m.info(never)).lora_rank).toBe(8);
      expect(client.proto).toBe(speaks !== 'json');
    },
  );

  it.each([
    [422, 1],
    [500, 3],
  ])('a server of protobuf alone that answers %i %i times stays one of protobuf', async (status, times) => {
    const s = await serve({ speaks: 'proto' }),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    s.next('forward_backward', ...Array.from({ length: times }, () => ({ status })));
    expect(await m.forward([datum('one')], never)).toHaveLength(1);
    expect(client.proto).toBe(true);
  });
  it('a session is opened with a dictionary, since older servers take no null', async () => {
    const s = await serve();
    await connect(s);
    const opened = s.calls.find((c) => c.path.endsWith('create_session'))!;
    expect(JSON.parse(opened.body.toString())).toMatchObject({ tags: [], user_metadata: {} });
  });

  it.each([
    ['tinker://m/weights/v1', ['training_runs/m/checkpoints/weights/v1']],
    ['tinker://m/sampler_weights/v1', ['training_runs/m/checkpoints/sampler_weights/v1']],
    ['tinker://m/v1', ['training_runs/m/checkpoints/sampler_weights/v1']],
    ['/a/folder', []],
  ])('deletes the weights at %s', async (uri, paths) => {
    const s = await serve(),
      { client } = await connect(s);
    await client.forget(uri, never);
    const deleted = s.calls.filter((c) => c.method === 'DELETE').map((c) => c.path);
    expect(deleted).toEqual(paths.map((p) => expect.stringContaining(p) as string));
  });

  it('cuts a batch into requests of the size the server takes, with the gradient of one', async () => {
    const weightsAfter = async (config: Record<string, number>): Promise<[Float64Array, number]> => {
      const s = await serve({ config }),
        { client } = await connect(s),
        m = await client.createModel(BASE, never),
        data = ['a', 'bb', 'ccc', 'dddd', 'eeeee'].map((t) => datum(t));
      const out = await m.forwardBackward(data, CE, never);
      expect(out.outputs.map((o) => o.get('logprobs')!.data.length)).toEqual([3, 4, 5, 6, 7]);
      await m.optimStep(ADAM, never);
      return [s.tinker.weightsOf(m.id), s.count('forward_backward')];
    };
    const [whole, one] = await weightsAfter({}),
      [cut, three] = await weightsAfter({ fwdbwd_max_chunk_len: 2 });
    expect([one, three]).toEqual([1, 3]);
    expect(Math.max(...whole.map((x, i) => Math.abs(x - cut[i]!)))).toBeLessThan(1e-12);
  });
  it('no request asks for more log-probs than can be parsed in one go', () => {
    const long = (n: number): Datum => ({
        chunks: [],
        inputs: { target_tokens: integers(new Array<number>(n).fill(1)) },
      }),
      limits = { fwdbwd_max_chunk_len: 1024, fwdbwd_max_chunk_bytes_count: 1e9 },
      parts = inRequests([30_000, 30_000, 30_000, 100_000, 10].map(long), limits);
    expect(parts.map((p) => p.length)).toEqual([2, 1, 1, 1]);
  });
  it('no request has more pictures than a server can prepare at once, however small they are as files', () => {
    const shown = (...tokens: (number | undefined)[]): Datum => ({
        chunks: tokens.map((expectedTokens) => ({
          type: 'image',
          data: new Uint8Array(9),
          format: 'png',
          expectedTokens,
        })),
        inputs: { target_tokens: integers([1]) },
      }),
      limits = { fwdbwd_max_chunk_len: 1024, fwdbwd_max_chunk_bytes_count: 1e9 },
      sizes = (data: readonly Datum[]): number[] => inRequests(data, limits).map((p) => p.length);
    // Five screens of 1280 x 720 each.
    expect(sizes(new Array<Datum>(50).fill(shown(1196, 1196, 1196, 1196, 1196)))).toEqual([21, 21, 8]);
    expect(sizes([shown(1 << 18), shown(1), shown()])).toEqual([1, 2]);
    // A picture that does not say how many it has counts as a large one.
    expect(sizes(new Array<Datum>(10).fill(shown(undefined)))).toEqual([8, 2]);
  });
  it('requests keep the order of datums and their bounds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 100, max: 3000 }),
        (sizes, length, bytes) => {
          const data = sizes.map((n) => datum('x'.repeat(n))),
            parts = inRequests(data, { fwdbwd_max_chunk_len: length, fwdbwd_max_chunk_bytes_count: bytes });
          expect(parts.flat()).toEqual(data);
          for (const p of parts) {
            expect(p.length).toBeLessThanOrEqual(length);
            if (p.length > 1) expect(p.reduce((a, d) => a + datumBytes(d), 0)).toBeLessThanOrEqual(bytes);
          }
        },
      ),
    );
  });
});

describe('trouble on the way', () => {
  const AWAY: readonly [string, string, Trouble][] = (
    ['optim_step', 'forward_backward', 'retrieve_future'] as const
  ).flatMap((path) =>
    (
      [
        ['a connection that breaks before', { drop: 'before' }],
        ['a connection that breaks after it was done', { drop: 'after' }],
        ['a busy server', { status: 429, headers: { 'retry-after': '2' } }],
        ['a proxy at a loss', { status: 503 }],
        ['a failure after it was done', { status: 500, after: true }],
        ['408', { status: 408 }],
        ['a conflict with the call before', { status: 409 }],
      ] as [string, Trouble][]
    )
      .filter(([, t]) => path !== 'retrieve_future' || !('status' in t && t.status === 409))
      .map(([name, t]) => [path, name, t] as [string, string, Trouble]),
  );
  it.each(AWAY)('%s, %s: asked again, done once', async (path, _, trouble) => {
    const run = async (troubled: boolean): Promise<[Float64Array, number]> => {
      const s = await serve(),
        { client, waits } = await connect(s),
        m = await client.createModel(BASE, never);
      if (troubled) s.next(path, trouble, trouble);
      for (let i = 0; i < 2; i++) {
        await m.forwardBackward([datum('one')], CE, never);
        await m.optimStep(ADAM, never);
      }
      expect(s.tinker.optimizerSteps(m.id)).toBe(2);
      if ('status' in trouble && trouble.headers && troubled) expect(waits).toContain(2000);
      return [s.tinker.weightsOf(m.id), s.calls.length];
    };
    const [want] = await run(false),
      [got] = await run(true);
    expect(got).toEqual(want);
  });

  it('a server that forgot the answer is sent the same call, and does not do it again', async () => {
    const s = await serve(),
      { client, retries } = await connect(s),
      m = await client.createModel(BASE, never);
    await m.forwardBackward([datum('one')], CE, never);
    s.next('retrieve_future', { status: 410 }, { status: 410 });
    await m.optimStep(ADAM, never);
    expect(retries.filter((r) => r.includes('forgot'))).toHaveLength(2);
    expect(s.tinker.optimizerSteps(m.id)).toBe(1);
  });
  it('a step asked for again by its number, by a client that was started anew, is not done again', async () => {
    const s = await serve(),
      m = await (await connect(s)).client.createModel(BASE, never);
    await m.forwardBackward([datum('one')], CE, never);
    await m.optimStep(ADAM, never);
    const want = s.tinker.weightsOf(m.id).slice();
    const again = (await connect(s)).client.attach(m.id, m.seq);
    await again.optimStep(ADAM, never, 2);
    expect(s.tinker.weightsOf(m.id)).toEqual(want);
    expect(s.tinker.optimizerSteps(m.id)).toBe(1);
  });
  it('slow work is waited for', async () => {
    let release!: () => void;
    const held = new Promise<void>((r) => (release = r)),
      s = await serve({ pollMs: 5, beforeWork: (what) => (what === 'optim_step' ? held : Promise.resolve()) }),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    const step = m.optimStep(ADAM, never);
    await expect.poll(() => s.count('retrieve_future')).toBeGreaterThan(5);
    release();
    await step;
    expect(s.count('optim_step')).toBe(1);
  });
  it('a server that is killed and comes back without the model: said so, and trained on from its weights', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    await m.forwardBackward([datum('one')], CE, never);
    await m.optimStep(ADAM, never);
    const path = await m.saveWeights('1', never),
      want = s.tinker.weightsOf(m.id).slice();
    await s.restart();
    await expect(m.optimStep(ADAM, never)).rejects.toMatchObject({ kind: 'trainer.lost' });
    const back = (await connect(s)).client.attach(m.id, 3);
    await back.load(path, true, never);
    await back.optimStep(ADAM, never, 2);
    expect(s.tinker.weightsOf(m.id)).toEqual(want);
  });
});

describe('the layers of an adapter', () => {
  it('are those of the protocol, unless the output layer is left out', async () => {
    const s = await serve(),
      { client } = await connect(s);
    for (const m of [BASE, { ...BASE, head: true }, { ...BASE, head: false }, { base: 'tiny', rank: 0, head: false }])
      await client.createModel(m, never);
    const asked = s.calls
      .filter((c) => c.path.endsWith('/create_model'))
      .map((c) => (JSON.parse(c.body.toString()) as { readonly lora_config: object }).lora_config);
    expect(asked).toEqual([{ rank: 8 }, { rank: 8 }, { rank: 8, train_unembed: false }, { rank: 0 }]);
  });
});

describe('a pass of many requests', () => {
  const MINUTE = 60_000;
  /** A server that ends one request of one datum each `minutes`, one after the other; polls are held for half a minute. */
  async function slow(minutes: number): Promise<{ client: TrainingClient; submitted: () => number }> {
    let clock = 0,
      submitted = 0;
    const answers = (path: string, body: { readonly request_id?: string }): [number, object] => {
      if (path === 'client/config') return [200, { proto_write_fwdbwd: false, fwdbwd_max_chunk_len: 1 }];
      if (path === 'create_session') return [200, { session_id: 's' }];
      if (path === 'forward') return [200, { request_id: String(++submitted) }];
      if (path !== 'retrieve_future') return [200, {}];
      clock += MINUTE / 2 / 4;
      return clock >= Number(body.request_id) * minutes * MINUTE
        ? [200, { loss_fn_outputs: [{ logprobs: { data: [-1, -1, -1, -1, -1], dtype: 'float32', shape: [5] } }] }]
        : [408, { type: 'try_again' }];
    };
    const client = await TrainingClient.connect(
      {
        url: 'http://slow',
        version: '0.38.0',
        fetch: (url, init) => {
          // A pass is sent in parts; what it says does not matter here.
          const sent = typeof init?.body === 'string' ? init.body : '{}',
            path = new URL(url as string).pathname.replace('/api/v1/', ''),
            [status, body] = answers(path, JSON.parse(sent) as { readonly request_id?: string });
          return Promise.resolve(Response.json(body, { status }));
        },
        now: () => clock,
        sleep: (ms) => {
          clock += ms;
          return Promise.resolve();
        },
      },
      never,
    );
    open.push(() => {
      client.close();
    });
    return { client, submitted: () => submitted };
  }
  const four = ['one', 'two', 'six', 'ten'].map((t) => datum(t));

  it('may take hours in all while the server ends one after the other', async () => {
    const { client, submitted } = await slow(25);
    expect(await client.attach('m', 0).forward(four, never)).toHaveLength(4);
    expect(submitted()).toBe(4);
  });
  it('is given up where none has ended for an hour', async () => {
    const { client } = await slow(61);
    await expect(client.attach('m', 0).forward(four, never)).rejects.toMatchObject({
      kind: 'trainer.remote',
      message: expect.stringMatching(/did not do a forward pass in 3\d{3} s: it is still running/) as string,
    });
  });
});

describe('a call that cannot be done', () => {
  it('ends with the server own words, and the next one goes on', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    await expect(m.forwardBackward([datum('one')], { name: 'none' }, never)).rejects.toMatchObject({
      kind: 'trainer.invalid',
      message: expect.stringContaining('there is no loss none') as string,
    });
    await m.forwardBackward([datum('one')], CE, never);
  });
  it('out of memory says what to lower', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    s.next('retrieve_future', { status: 200, body: { error: 'CUDA out of memory', category: 'server' } });
    await expect(m.optimStep(ADAM, never)).rejects.toMatchObject({
      kind: 'trainer.remote',
      error: { remedy: expect.stringContaining('Lower') as string },
    });
  });
  it('gives up at its deadline, in words', async () => {
    const s = await serve(),
      { client } = await connect(s, { deadlineMs: 20_000 }),
      m = await client.createModel(BASE, never);
    s.next('optim_step', ...new Array<Trouble>(100).fill({ status: 503 }));
    await expect(m.optimStep(ADAM, never)).rejects.toMatchObject({
      kind: 'trainer.remote',
      message: expect.stringMatching(/did not do optim_step in \d+ s/) as string,
    });
  });
  it('is cancelled at once, whatever it waits for', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    for (const path of ['optim_step', 'retrieve_future']) {
      const stop = new AbortController();
      s.next(path, { hang: true });
      const before = s.count(path),
        step = m.optimStep(ADAM, stop.signal);
      await expect.poll(() => s.count(path)).toBe(before + 1);
      stop.abort();
      await expect(step).rejects.toMatchObject({ kind: 'cancelled' });
    }
    client.close();
    await expect(m.optimStep(ADAM, never)).rejects.toMatchObject({ kind: 'cancelled' });
  });
  it('an answer of no protocol is refused', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    s.next('retrieve_future', { garbage: '\xff\xff' });
    await expect(m.forward([datum('one')], never)).rejects.toMatchObject({ kind: 'trainer.remote' });
    s.next('retrieve_future', { status: 200, body: { path: 7 } });
    await expect(m.saveWeights('1', never)).rejects.toMatchObject({ kind: 'trainer.remote' });
  });
  it('a target that is not scored is refused', async () => {
    const s = await serve(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    s.next('retrieve_future', {
      status: 200,
      body: { loss_fn_outputs: [{ logprobs: { data: [-1, null, -1, -1, -1], dtype: 'float32', shape: [5] } }] },
    });
    await expect(m.forward([datum('one')], never)).rejects.toThrow('target 1 of datum 0 has the log-prob NaN');
  });
});

describe('the key', () => {
  it('is sent with every call, and a server that wants it says so', async () => {
    const s = await serve({ apiKey: 'tml-secret' }),
      { client } = await connect(s, { apiKey: 'tml-secret' });
    await client.createModel(BASE, never);
    expect(s.calls.every((c) => c.headers['x-api-key'] === 'tml-secret')).toBe(true);
    await expect(connect(s)).rejects.toMatchObject({
      kind: 'trainer.remote',
      error: { remedy: expect.stringContaining('apiKeyEnv') as string },
    });
  });
  it('goes nowhere else, even where the server points to another', async () => {
    const other = await serve(),
      here = createServer((_, r) => r.writeHead(307, { location: `${other.url}/api/v1/client/config` }).end());
    await new Promise<void>((resolve) => here.listen(0, '127.0.0.1', resolve));
    open.push(() => here.close());
    const url = `http://127.0.0.1:${(here.address() as AddressInfo).port}`;
    await expect(connect(url, { apiKey: 'tml-secret' })).rejects.toThrow('sends client/config elsewhere (status 307)');
    expect(other.calls).toEqual([]);
  });
  it('an address that is none is refused', async () => {
    for (const url of ['nowhere', 'ftp://host', 'file:///etc'])
      await expect(connect(url)).rejects.toMatchObject({ kind: 'config.invalid' });
  });
});

describe('a session', () => {
  it('is kept alive, one beat at a time', async () => {
    const s = await serve(),
      { client } = await connect(s, { heartbeatMs: 5 });
    s.next('session_heartbeat', { hang: true });
    await expect.poll(() => s.count('session_heartbeat')).toBe(1);
    const m = await client.createModel(BASE, never);
    for (let i = 0; i < 5; i++) await m.optimStep(ADAM, never);
    expect(s.count('session_heartbeat')).toBe(1);
    client.close();
  });
});

describe('a server of another age', () => {
  const SPOKEN = /says that it is odd 9\.1\.0; DART Studio speaks the Tinker protocol as its SDK 0\.25 to 0\.38/;
  const named = async (o: ReferenceServerOptions = {}): Promise<ReferenceServer> => {
    const s = await serve(o);
    s.next('/version', { status: 200, body: { name: 'odd', version: '9.1.0' } });
    return s;
  };
  const skew = {
    kind: 'trainer.remote',
    message: expect.stringMatching(SPOKEN) as string,
    error: { remedy: expect.stringMatching(/^Update the older of the two, DART Studio or the server/) as string },
  };

  it.each([
    [426, { detail: 'SDK 0.38.0 is too old' }],
    [400, { detail: 'unknown sdk_version' }],
    [501, { detail: 'no sessions here' }],
    [422, { detail: [{ type: 'missing', loc: ['body', 'project_id'] }] }],
    [200, { session: 'other' }],
  ])('that answers %i %o to a session is named, with what is spoken', async (status, body) => {
    const s = await named();
    s.next('create_session', { status, body });
    await expect(connect(s)).rejects.toMatchObject(skew);
  });

  it('that lacks a call is no server that was lost', async () => {
    const s = await named(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    const gone = { status: 404, body: { detail: 'Not Found' } },
      describes = (...paths: string[]): void => {
        s.next('/openapi.json', { status: 200, body: { paths: Object.fromEntries(paths.map((p) => [p, {}])) } });
      };
    s.next('save_weights_for_sampler', gone, gone, gone, gone);
    describes('/api/v1/create_session', '/api/v1/create_model');
    await expect(m.saveForSampler('v1', never)).rejects.toMatchObject(skew);
    // It has the call: the model is gone. So it is where only a gateway describes its calls, or nobody does.
    describes('/api/v1/create_session', '/api/v1/save_weights_for_sampler');
    await expect(m.saveForSampler('v1', never)).rejects.toMatchObject({ kind: 'trainer.lost' });
    describes('/{path:path}');
    await expect(m.saveForSampler('v1', never)).rejects.toMatchObject({ kind: 'trainer.lost' });
    await expect(m.saveForSampler('v1', never)).rejects.toMatchObject({ kind: 'trainer.lost' });
  });

  it('that takes a pass in no language is named; not that JSON would be tried', async () => {
    const s = await named(),
      { client } = await connect(s),
      m = await client.createModel(BASE, never);
    s.next('forward_backward', { status: 415 }, { status: 415 }, { status: 415 });
    await expect(m.forwardBackward([datum('one')], CE, never)).rejects.toMatchObject(skew);
  });

  it('that answers a future in another shape is named', async () => {
    const s = await named(),
      { client } = await connect(s);
    s.next('create_model', { status: 200, body: { id: 7 } });
    await expect(client.createModel(BASE, never)).rejects.toMatchObject(skew);
  });

  it('without a page of its version is named by the description of its calls, or not at all', async () => {
    const s = await serve(),
      none = { status: 404 };
    s.next('/version', none, none);
    s.next('/openapi.json', { status: 200, body: { info: { title: 'SkyRL', version: '0.3.1' } } });
    s.next('create_session', { status: 426 }, { status: 426 });
    await expect(connect(s)).rejects.toMatchObject({
      message: expect.stringContaining('it is SkyRL 0.3.1;') as string,
    });
    await expect(connect(s)).rejects.toMatchObject({
      message: expect.stringContaining('does not say what it is;') as string,
    });
  });

  it('that has something against this client says so in the error that follows', async () => {
    const s = await named();
    s.next('create_session', { status: 200, body: { session_id: 's', error_message: 'SDK 0.38 ends in May.' } });
    const { client } = await connect(s);
    s.next('create_model', { status: 422, body: { detail: 'no' } });
    await expect(client.createModel(BASE, never)).rejects.toMatchObject({
      message: expect.stringContaining('it said: SDK 0.38 ends in May.') as string,
    });
  });
});
