import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { StudioError, random } from '../../../runtime/domain/index.js';
import { ChatSession, type ChatTransport } from '../../../runtime/policy/remote/chatSession.js';
import { callHere, type ModelCall, type ModelCaller } from '../../../runtime/policy/remote/modelCalls.js';
import { ModelThread } from '../../../runtime/policy/remote/modelThread.js';
import { Picture } from '../../../runtime/policy/remote/picture.js';
import { keptScreens } from '../../../runtime/run/backends/remoteParts.js';

const entry = { file: resolve('dist/runtime.js') };
const never = new AbortController().signal;
const tooLong = (): StudioError => new StudioError('policy.remote', 'too long', 'Lower it.');

const completion = {
  model: 'm@v7',
  choices: [
    {
      message: { content: "Thought: there.\nAction: click(start_box='(1,2)')" },
      token_ids: [5, 6],
      logprobs: {
        content: [
          { token: 'a', logprob: -0.5, top_logprobs: [{ token: 'b', logprob: -1 }] },
          { token: 'c', logprob: -9999, top_logprobs: [] },
        ],
      },
    },
  ],
  prompt_token_ids: [1, 2, 9, 9, 3],
};

describe('the thread that asks model servers', () => {
  let dir: string, threads: ModelThread[], servers: Server[];
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-models-'));
    threads = [];
    servers = [];
  });
  afterEach(() => {
    for (const t of threads.splice(0)) t.close();
    for (const s of servers.splice(0)) {
      s.closeAllConnections();
      s.close();
    }
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  async function serve(answer: (req: IncomingMessage, res: ServerResponse, body: string) => void): Promise<string> {
    const s = createServer((req, res) => {
      let body = '';
      req.setEncoding('latin1').on('data', (d: string) => (body += d));
      req.on('end', () => answer(req, res, body));
    });
    servers.push(s);
    await new Promise<void>((r) => s.listen(0, '127.0.0.1', r));
    return `http://127.0.0.1:${(s.address() as { port: number }).port}`;
  }
  const thread = (program?: string, graceMs?: number): ModelThread => {
    let file = entry.file;
    if (program !== undefined) {
      file = join(dir, `${Math.random()}.mjs`);
      writeFileSync(file, program);
    }
    const t = new ModelThread({ file }, { graceMs });
    threads.push(t);
    return t;
  };
  const callOf = (url: string, body: unknown = {}, over: Partial<ModelCall> = {}): ModelCall => ({
    url,
    body,
    timeoutMs: 20_000,
    most: 1 << 16,
    server: url,
    tooLong,
    ...over,
  });
  const both = (): readonly ModelCaller[] => [callHere, thread()];

  it('sends what this thread sends, key and pictures included, and reads the same from the answer', async () => {
    const requests: { readonly body: string; readonly key: string | undefined }[] = [];
    const url = await serve((req, res, body) => {
      requests.push({ body, key: req.headers.authorization });
      res.end(JSON.stringify(completion));
    });
    const store = new PngFrameStore(join(dir, 'sent')),
      png = await pngOf(screenOf(3)),
      { hash } = await store.put({ width: 64, height: 40, png, capturedAt: 1 });
    const kept = keptScreens(store).kept!(hash)!,
      onDisk = new Picture(png),
      // A view of larger memory, which must stay ours.
      inMemory = new Picture(Buffer.concat([Buffer.alloc(7), png, Buffer.alloc(5)]).subarray(7, 7 + png.length));
    onDisk.leaveTo(kept);
    expect([onDisk.inMemory, inMemory.inMemory]).toEqual([false, true]);
    const body = { text: 'a " \u0000 ü', urls: [onDisk, inMemory, onDisk] };
    const [here, there] = await Promise.all(both().map((c) => c.call(callOf(url, body, { apiKey: 'secret' }), never)));
    expect(there).toEqual(here);
    expect(there!.said).toMatchObject({ model: 'm@v7', version: 7, labels: ['a', 'c'] });
    expect(Array.from(there!.said!.promptIds!)).toEqual(completion.prompt_token_ids);
    expect(requests[0]).toEqual(requests[1]);
    expect(requests[0]!.key).toBe('Bearer secret');
    const data = `data:image/png;base64,${png.toString('base64')}`;
    expect(JSON.parse(Buffer.from(requests[1]!.body, 'latin1').toString())).toEqual({
      text: body.text,
      urls: [data, data, data],
    });
    await store.close();
  });

  it('says of refusals, answers that are none, and answers without end what this thread says', async () => {
    const url = await serve((req, res) => {
      if (req.url === '/busy') res.writeHead(429, { 'retry-after': '2' }).end('later');
      else if (req.url === '/long') res.end(Buffer.alloc(1 << 17, 32));
      else if (req.url === '/cut') res.destroy();
      else res.end('no JSON');
    });
    const of = (c: ModelCaller, path: string): Promise<unknown> =>
      c.call(callOf(url + path), never).then(
        (r) => r,
        (e: unknown) => (e instanceof StudioError ? e.error : String(e)),
      );
    const [here, there] = both();
    for (const path of ['/busy', '/long', '/text', '/cut'])
      expect(await of(there!, path)).toEqual(await of(here!, path));
    expect(await of(there!, '/busy')).toEqual({ status: 429, retryAfterMs: 2000, text: 'later' });
    expect(await of(there!, '/long')).toMatchObject({ kind: 'policy.remote', message: 'too long' });
    expect(await of(there!, '/text')).toMatchObject({ kind: 'policy.remote' });
  });

  it('ends the request with the signal, and nothing else with it', async () => {
    let gone = (): void => undefined,
      asked = (): void => undefined;
    const isGone = new Promise<void>((r) => (gone = r)),
      isAsked = new Promise<void>((r) => (asked = r));
    const url = await serve((req, res) => {
      if (req.url === '/other') return void res.end(JSON.stringify(completion));
      res.on('close', () => gone());
      asked();
    });
    const t = thread(),
      stop = new AbortController(),
      waiting = t.call(callOf(url), stop.signal);
    await isAsked;
    stop.abort();
    await expect(waiting).rejects.toThrow('cancelled');
    await isGone;
    expect((await t.call(callOf(`${url}/other`), never)).status).toBe(200);
    await expect(t.call(callOf(url), stop.signal)).rejects.toThrow('cancelled');
  });

  it('finds a picture that was moved after its place was told', async () => {
    const bodies: string[] = [];
    const url = await serve((_req, res, body) => {
      bodies.push(body);
      res.end(JSON.stringify(completion));
    });
    const png = await pngOf(screenOf(4)),
      p = new Picture(png);
    p.leaveTo({
      place: { file: join(dir, 'gone', 'a', 'b.pack'), hash: 'ab'.repeat(32), at: 0, bytes: 9 },
      read: async () => png,
    });
    expect((await thread().call(callOf(url, [p]), never)).status).toBe(200);
    expect(bodies).toHaveLength(1);
    expect(JSON.parse(bodies[0]!)).toEqual([`data:image/png;base64,${png.toString('base64')}`]);
    p.leaveTo({ place: undefined, read: () => Promise.reject(new Error('no such file')) });
    await expect(thread().call(callOf(url, [p]), never)).rejects.toThrow('no such file');
    await expect(callHere.call(callOf(url, [p]), never)).rejects.toThrow('no such file');
    const t = thread();
    p.leaveTo({
      place: undefined,
      read: async () => {
        t.close();
        return png;
      },
    });
    await expect(t.call(callOf(url, [p]), never)).rejects.toThrow('cancelled');
    expect(bodies).toHaveLength(1);
  });

  it.each([
    ['dies', 'process.exit(3);', 'ended', 20_000],
    ['fails', "throw new Error('broken');", 'broken', 20_000],
    ['hangs', 'setInterval(() => undefined, 1000);', 'does not answer', 50],
  ])(
    'a thread that %s loses the calls under way; after three the calls are made in this thread',
    async (_how, text, why, timeoutMs) => {
      const url = await serve((_req, res) => res.end(JSON.stringify(completion)));
      const t = thread(text, 50),
        call = (): Promise<unknown> => t.call(callOf(url, {}, { timeoutMs }), never);
      for (let i = 0; i < 3; i++) {
        const results = await Promise.allSettled([call(), call()]);
        for (const r of results)
          expect(r).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining(why) as string } });
      }
      expect(await t.call(callOf(url), never)).toMatchObject({ status: 200 });
    },
  );

  it('sessions leave their screens to the disk, and are shown the same', async () => {
    const shown: string[][] = [];
    const url = await serve((_req, res, body) => {
      const messages = (JSON.parse(body) as { messages: { content: unknown }[] }).messages,
        urls = messages.flatMap((m) =>
          Array.isArray(m.content) ? (m.content as { image_url?: { url: string } }[]) : [],
        );
      shown.push(urls.flatMap((c) => (c.image_url ? [c.image_url.url] : [])));
      res.end(JSON.stringify(completion));
    });
    const t = thread(),
      store = new PngFrameStore(join(dir, 'sessions'));
    const pictures: Picture[] = [];
    const transport: ChatTransport = {
      complete: async ({ body }, { signal }) => {
        for (const m of body['messages'] as { content: { image_url?: { url: Picture } }[] }[])
          if (Array.isArray(m.content))
            pictures.push(...m.content.flatMap((c) => (c.image_url ? [c.image_url.url] : [])));
        const { said } = await t.call(callOf(url, body), signal);
        return { said: said!, version: 7, replica: 'r' as never, queueMs: 0, computeMs: 0 };
      },
      end: () => undefined,
    };
    const session = new ChatSession({ ...keptScreens(store), coordinates: 'qwen25', images: 3 }, transport, {
      rollout: 'r',
      instruction: 'Do it.',
      screen: { width: 64, height: 40 },
      sampling: { seed: 1, temperature: 1, greedy: false },
    });
    const files: string[] = [];
    for (let i = 0; i < 5; i++) {
      const png = await pngOf(screenOf(10 + i));
      files.push(`data:image/png;base64,${png.toString('base64')}`);
      const screen = { width: 64, height: 40, png, capturedAt: 1 };
      await store.put(screen);
      pictures.length = 0;
      await session.decide(screen, never);
      expect(pictures.map((p) => p.inMemory)).toEqual([...new Array<boolean>(Math.min(i, 2)).fill(false), true]);
    }
    expect(shown).toEqual([1, 2, 3, 3, 3].map((n, i) => files.slice(i + 1 - n, i + 1)));
    await store.close();
  });
});

function screenOf(seed: number): Parameters<typeof pngOf>[0] {
  const r = random(seed),
    data = Buffer.alloc(64 * 40 * 4);
  for (let i = 0; i < data.length; i++) data[i] = i % 4 === 3 ? 0 : r.int(256);
  return { width: 64, height: 40, data, capturedAt: 1 };
}
