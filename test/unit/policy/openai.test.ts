import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeRecord } from '../../../runtime/data/store/record.js';
import type { RolloutId } from '../../../runtime/domain/index.js';
import { StudioError, id } from '../../../runtime/domain/index.js';
import { entropyLowerBound, traceOf, versionOf } from '../../../runtime/policy/remote/completion.js';
import type { OpenAiPolicyOptions } from '../../../runtime/policy/remote/openai.js';
import { createOpenAiPolicy } from '../../../runtime/policy/remote/openai.js';
import { type Message, addBoxTokens } from '../../../runtime/policy/actions/prompt.js';
import type { PolicySession } from '../../../runtime/policy/types.js';
import { frameOf } from '../../helpers/policy/frames.js';

interface Body {
  model: string;
  messages: Message[];
  temperature: number;
  top_p: number;
  top_k?: number;
  return_token_ids?: boolean;
  logprobs: boolean;
  top_logprobs: number;
  seed: number;
  max_tokens: number;
}
interface Seen {
  readonly url: string;
  readonly body: Body;
  readonly auth: string | undefined;
}
type Handler = (seen: Seen, n: number, res: ServerResponse) => void;

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(
    servers.splice(0).map(
      (s) =>
        new Promise((r) => {
          s.closeAllConnections();
          s.close(r);
        }),
    ),
  );
});

async function server(handler: Handler): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const s = createServer((req: IncomingMessage, res) => {
    const chunks: Buffer[] = [];
    req
      .on('data', (c: Buffer) => chunks.push(c))
      .on('end', () => {
        seen.push({
          url: req.url!,
          body: JSON.parse(Buffer.concat(chunks).toString()) as Body,
          auth: req.headers.authorization,
        });
        handler(seen.at(-1)!, seen.length - 1, res);
      });
  });
  servers.push(s);
  await new Promise<void>((r) => s.listen(0, '127.0.0.1', r));
  return { url: `http://127.0.0.1:${(s.address() as AddressInfo).port}/v1`, seen };
}
const json = (res: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}): void => {
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(JSON.stringify(value));
};
const answer = (text: string, more: object = {}): object => ({
  model: 'ui-tars@v7',
  choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop', ...more }],
});
const click = "Thought: Click it.\nAction: click(start_box='(500,250)')";

const never = new AbortController().signal;
const frame = frameOf(640, 400, () => [1, 2, 3]);
let pngs = 0;
function open(
  urls: string[],
  o: Partial<OpenAiPolicyOptions> = {},
  rollout = 'r1',
  sampling = { greedy: false, temperature: 1, seed: 5 },
): PolicySession {
  const slept: number[] = [];
  return Object.assign(
    createOpenAiPolicy({
      baseUrls: urls,
      model: 'ui-tars',
      coordinates: 'relative1000',
      encodePng: async () => Buffer.from(`png${pngs++}`),
      backoffMs: 100,
      random: () => 0,
      sleep: async (ms, signal) => {
        slept.push(ms);
        if (signal.aborted) throw new StudioError('cancelled', 'x', 'x');
      },
      ...o,
    }).open({
      rollout: id<RolloutId>(rollout),
      instruction: 'Save the file',
      screen: { width: 640, height: 400 },
      sampling,
    }),
    { slept },
  );
}

describe('remote policy', () => {
  it("asks in UI-TARS's form, untruncated, and gives the action in screen pixels", async () => {
    const s = await server((_, __, res) => json(res, answer(click)));
    const p = open([`${s.url}/`], { apiKey: 'secret' });
    const d = await p.decide(frame, never);
    expect(d).toMatchObject({
      thought: 'Click it.',
      actions: [{ type: 'click', at: { x: 320, y: 100 } }],
      version: 7,
      replica: s.url,
    });
    const { body, url, auth } = s.seen[0]!;
    expect(url).toBe('/v1/chat/completions');
    expect(auth).toBe('Bearer secret');
    expect(body).toMatchObject({
      model: 'ui-tars',
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      logprobs: true,
      top_logprobs: 8,
      return_token_ids: true,
      max_tokens: 512,
    });
    expect(body.messages.map((m) => m.role)).toEqual(['system', 'user', 'user']);
    expect(JSON.stringify(body.messages[1])).toContain('## User Instruction\\nSave the file');
    expect(JSON.stringify(body.messages[2])).toContain('data:image/png;base64,');
  });

  it('keeps the newest five screenshots and every text, with box tokens put back', async () => {
    const s = await server((_, __, res) => json(res, answer(click)));
    const p = open([s.url]);
    pngs = 0;
    for (let i = 0; i < 8; i++) await p.decide(frame, never);
    const last = s.seen.at(-1)!.body.messages;
    const images = last.flatMap((m) =>
      typeof m.content === 'string'
        ? []
        : m.content.flatMap((c) =>
            c.type === 'image_url' ? [Buffer.from(c.image_url.url.split(',')[1]!, 'base64').toString()] : [],
          ),
    );
    expect(images).toEqual(['png3', 'png4', 'png5', 'png6', 'png7']);
    const texts = last.filter((m) => m.role === 'assistant').map((m) => m.content);
    expect(texts.length).toBe(7);
    expect(texts[0]).toBe("Thought: Click it.\nAction: click(start_box='<|box_start|>(500,250)<|box_end|>')");
    expect(new Set(s.seen.map((x) => x.body.seed)).size).toBe(8);
  });

  it('records what somebody else did', async () => {
    const s = await server((_, __, res) => json(res, answer(click)));
    const p = open([s.url]);
    p.acted([{ type: 'click', at: { x: 64, y: 40 } }]);
    await p.decide(frame, never);
    expect(s.seen[0]!.body.messages[2]).toEqual({
      role: 'assistant',
      content: "Action: click(start_box='<|box_start|>(100,100)<|box_end|>')",
    });
  });

  it('records log-probs, entropies as lower bounds, and token ids', async () => {
    const l = Math.log;
    const s = await server((_, __, res) =>
      json(
        res,
        answer(click, {
          token_ids: [11, 12],
          logprobs: {
            content: [
              { token: 'a', logprob: l(0.5), top_logprobs: [{ logprob: l(0.5) }, { logprob: l(0.25) }] },
              { token: 'b', logprob: -9999, top_logprobs: [] },
            ],
          },
        }),
      ),
    );
    const d = await open([s.url]).decide(frame, never);
    expect(Array.from(d.tokens!.ids!)).toEqual([11, 12]);
    expect(d.tokens!.logprobs[0]).toBeCloseTo(l(0.5), 6);
    // What the server does not say is not invented.
    expect(d.tokens!.logprobs[1]).toBeNaN();
    expect(d.tokens!.entropies[0]).toBeCloseTo(0.5 * l(2) + 0.25 * l(4) + 0.25 * l(4), 6);
    expect(d.tokens!.bound).toBe('lower');
    expect(d.tokens!.finish).toBe('stop');
  });

  it('has no tokens when the server gives none', async () => {
    const s = await server((_, __, res) => json(res, answer(click)));
    const d = await open([s.url]).decide(frame, never);
    expect(d.tokens).toBeUndefined();
  });

  it('is greedy at temperature 0', async () => {
    const s = await server((_, __, res) => json(res, answer(click)));
    await open([s.url], {}, 'r', { greedy: true, temperature: 1, seed: 1 }).decide(frame, never);
    expect(s.seen[0]!.body.temperature).toBe(0);
  });

  it('tries again after 429, 5xx and Retry-After, with growing pauses', async () => {
    const s = await server((_, n, res) =>
      n === 0
        ? json(res, {}, 500)
        : n === 1
          ? json(res, {}, 503)
          : n === 2
            ? json(res, {}, 429, { 'retry-after': '3' })
            : json(res, answer(click)),
    );
    const p = open([s.url]);
    expect((await p.decide(frame, never)).actions.length).toBe(1);
    expect((p as unknown as { slept: number[] }).slept).toEqual([100, 200, 3000]);
    expect(s.seen.length).toBe(4);
  });

  it('gives up with what the server said', async () => {
    const s = await server((_, __, res) => json(res, { error: 'out of memory' }, 500));
    await expect(open([s.url], { attempts: 3 }).decide(frame, never)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('out of memory') as string,
    });
    expect(s.seen.length).toBe(3);
  });

  it.each([
    [401, 'API key'],
    [404, 'policy.openai.model'],
  ])('does not try again after %i', async (status, hint) => {
    const s = await server((_, __, res) => json(res, { error: 'no' }, status));
    await expect(open([s.url]).decide(frame, never)).rejects.toMatchObject({
      kind: 'policy.remote',
      error: { remedy: expect.stringContaining(hint) as string },
    });
    expect(s.seen.length).toBe(1);
  });

  it("leaves the fields beyond OpenAI's own out once a server refused them", async () => {
    const s = await server(({ body }, _, res) =>
      'top_k' in body ? json(res, { error: 'unknown field top_k' }, 400) : json(res, answer(click)),
    );
    const p = open([s.url]);
    await p.decide(frame, never);
    await p.decide(frame, never);
    expect(s.seen.map((x) => 'top_k' in x.body)).toEqual([true, false, false]);
  });

  it('goes on asking for them where it is the request that was refused', async () => {
    let full = true;
    const s = await server((_, __, res) =>
      full ? json(res, { error: 'the prompt is too long' }, 400) : json(res, answer(click)),
    );
    const p = open([s.url]);
    await expect(p.decide(frame, never)).rejects.toMatchObject({ kind: 'policy.remote' });
    full = false;
    await p.decide(frame, never);
    expect(s.seen.map((x) => 'top_k' in x.body)).toEqual([true, false, true]);
  });

  it('moves to another endpoint when one breaks, and stays there', async () => {
    const dead = await server((_, __, res) => {
      res.destroy();
    });
    const ok = await server((_, __, res) => json(res, answer(click)));
    const p = open([dead.url, ok.url]);
    await p.decide(frame, never);
    await p.decide(frame, never);
    expect([dead.seen.length, ok.seen.length]).toEqual([1, 2]);
    await expect(open(['http://127.0.0.1:9/v1'], { attempts: 2 }).decide(frame, never)).rejects.toMatchObject({
      kind: 'policy.remote',
      message: expect.stringContaining('cannot be reached') as string,
    });
  });

  it('spreads sessions over endpoints and keeps each on its own', async () => {
    const a = await server((_, __, res) => json(res, answer(click))),
      b = await server((_, __, res) => json(res, answer(click)));
    const policy = createOpenAiPolicy({
      baseUrls: [a.url, b.url],
      model: 'm',
      coordinates: 'relative1000',
      encodePng: async () => Buffer.from('x'),
    });
    const sessions = ['s1', 's2', 's3', 's4'].map((s) =>
      policy.open({
        rollout: id<RolloutId>(s),
        instruction: s,
        screen: { width: 640, height: 400 },
        sampling: { greedy: false, temperature: 1, seed: 1 },
      }),
    );
    for (let i = 0; i < 3; i++) for (const s of sessions) await s.decide(frame, never);
    const who = (x: Seen): string => JSON.stringify(x.body.messages[1]).slice(-6);
    expect([a.seen.length, b.seen.length]).toEqual([6, 6]);
    expect(new Set(a.seen.map(who)).size).toBe(2);
    expect(new Set([...a.seen.map(who)].filter((x) => b.seen.map(who).includes(x))).size).toBe(0);
    for (const s of sessions) s.close();
  });

  it('stops at once when aborted, in a request and in a pause', async () => {
    let asked: () => void = () => undefined;
    const arrived = new Promise<void>((r) => {
      asked = r;
    });
    const s = await server(() => asked());
    const a = new AbortController();
    const d = expect(open([s.url]).decide(frame, a.signal)).rejects.toMatchObject({ kind: 'cancelled' });
    await arrived;
    a.abort();
    await d;
    const busy = await server((_, __, res) => json(res, {}, 500));
    const b = new AbortController();
    const waiting = createOpenAiPolicy({
      baseUrls: [busy.url],
      model: 'm',
      coordinates: 'relative1000',
      encodePng: async () => Buffer.from('x'),
      backoffMs: 60_000,
    })
      .open({
        rollout: id<RolloutId>('r'),
        instruction: 'x',
        screen: { width: 640, height: 400 },
        sampling: { greedy: false, temperature: 1, seed: 1 },
      })
      .decide(frame, b.signal);
    const stopped = expect(waiting).rejects.toMatchObject({ kind: 'cancelled' });
    while (busy.seen.length === 0) await new Promise((r) => setImmediate(r));
    b.abort();
    await stopped;
  });

  it.each([
    ['a key that no keyboard has', "Action: hotkey(key='ctrl t)caction')", /no key called "t\)caction"/],
    ['a control character', "Action: type(content='\u0001')", /cannot be typed/],
  ])('%s is an answer that is no action, asked again before anything is performed', async (_what, text, words) => {
    const s = await server((_, n, res) => json(res, n === 0 ? answer(text) : answer(click))),
      p = open([s.url]);
    await expect(p.decide(frame, never)).rejects.toMatchObject({
      kind: 'policy.invalid',
      message: expect.stringMatching(words) as string,
      error: { details: { text, version: 7 } },
    });
    expect((await p.decide(frame, never)).actions).toHaveLength(1);
  });

  it('says that an answer outside the grammar is invalid, keeps its tokens, and does not add it to the history', async () => {
    const s = await server((_, n, res) =>
      json(
        res,
        n === 0
          ? answer('I would rather not.', { logprobs: { content: [{ token: 'I', logprob: -1 }] } })
          : answer(click),
      ),
    );
    const p = open([s.url]);
    const e = await p.decide(frame, never).then(
      () => expect.unreachable(),
      (x: StudioError) => x,
    );
    expect(e.kind).toBe('policy.invalid');
    expect(e.error.details).toMatchObject({
      text: 'I would rather not.',
      labels: ['I'],
      version: 7,
      position: expect.any(Number) as number,
    });
    expect((e.error.details!.tokens as { logprobs: Float32Array }).logprobs[0]).toBe(-1);
    await p.decide(frame, never);
    expect(s.seen[1]!.body.messages.length).toBe(3);
    expect(s.seen[1]!.body.seed).not.toBe(s.seen[0]!.body.seed);
  });

  it('keeps of an answer that is far too long what two of them leave room for in the record of a step', async () => {
    const text = '\u0001'.repeat(300_000),
      tokens = (n: number): object => ({
        logprobs: {
          content: [{ token: '\u0001'.repeat(n), logprob: -1, top_logprobs: [{ token: 'x'.repeat(9), logprob: -1 }] }],
        },
      });
    for (const [length, labels] of [
      [262_000, true],
      [262_144, false],
    ] as const) {
      const s = await server((_, _n, res) => json(res, answer(text, tokens(length)))),
        e = await open([s.url])
          .decide(frame, never)
          .then(
            () => expect.unreachable(),
            (x: StudioError) => x,
          ),
        { details } = e.error;
      expect([String(details!['text']).length, details!['labels'] !== undefined]).toEqual([32_768, labels]);
      expect(encodeRecord(0, [details!, details!]).length).toBeGreaterThan(0);
    }
  });

  it('says when an endpoint answers something else', async () => {
    const s = await server((_, __, res) => json(res, { hello: 1 }));
    await expect(open([s.url]).decide(frame, never)).rejects.toMatchObject({ kind: 'policy.remote' });
  });
});

describe('completion', () => {
  it('bounds the entropy from below by any completion of the known probabilities', () => {
    const full = [0.4, 0.3, 0.15, 0.1, 0.05],
      H = -full.reduce((s, p) => s + p * Math.log(p), 0);
    let before = 0;
    for (let k = 1; k <= 5; k++) {
      const bound = entropyLowerBound([Math.log(full[0]!)], full.slice(0, k).map(Math.log));
      expect(bound).toBeLessThanOrEqual(H + 1e-12);
      expect(bound).toBeGreaterThanOrEqual(before - 1e-12);
      before = bound;
    }
    expect(before).toBeCloseTo(H, 12);
    expect(entropyLowerBound([Math.log(0.5)], [])).toBeCloseTo(Math.log(2), 12);
    expect(entropyLowerBound([0], [])).toBe(0);
  });
  it('reads the version from wherever the server says it', () => {
    expect(versionOf({ model: 'dart-7b-v12' })).toBe(12);
    expect(versionOf({ model: 'UI-TARS-1.5-7B' })).toBeUndefined();
    expect(versionOf({ model: 'm', metadata: { weight_version: '9' } })).toBe(9);
    expect(versionOf({ model: 'm-v2', metadata: { weight_version: 'default' } })).toBe(2);
    expect(versionOf({})).toBeUndefined();
  });
  it('takes token ids only when they belong to the log-probs', () => {
    const content = [
      { token: 'token_id:5', logprob: -1 },
      { token: 'token_id:6', logprob: -1 },
    ];
    expect(Array.from(traceOf({ choices: [{ logprobs: { content } }] })!.ids!)).toEqual([5, 6]);
    expect(
      traceOf({
        choices: [
          {
            token_ids: [1],
            logprobs: {
              content: [
                { token: 'a', logprob: -1 },
                { token: 'b', logprob: -1 },
              ],
            },
          },
        ],
      })!.ids,
    ).toBeUndefined();
    expect(traceOf({ choices: [{ logprobs: null }] })).toBeUndefined();
  });
  it('puts box tokens back once', () => {
    const s = "drag(start_box='(1,2)', end_box='(3, 4)')";
    const t = "drag(start_box='<|box_start|>(1,2)<|box_end|>', end_box='<|box_start|>(3, 4)<|box_end|>')";
    expect(addBoxTokens(s)).toBe(t);
    expect(addBoxTokens(t)).toBe(t);
  });
});
