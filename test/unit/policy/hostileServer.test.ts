import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { parseAnswer } from '../../../runtime/policy/actions/parse.js';
import { completionOf, traceOf, versionOf, wordsOf } from '../../../runtime/policy/remote/completion.js';
import { Endpoints } from '../../../runtime/policy/remote/endpoints.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { ask } from '../../../runtime/service/runChecks/ask.js';
import { TrainingHttp } from '../../../runtime/trainer/remote/http.js';
import { threadMs } from '../../helpers/machine/loopWatch.js';
import { ending } from '../../helpers/files/hostile.js';

/** Whatever answers where a model server, or a training server, should be. */

const servers: Server[] = [];
afterEach(async () => {
  for (const s of servers.splice(0)) {
    s.closeAllConnections();
    await new Promise<void>((done) => s.close(() => done()));
  }
});
async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const s = createServer((req, res) => {
    req.resume();
    answer(req, res);
  });
  servers.push(s);
  await new Promise<void>((done) => s.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(s.address() as AddressInfo).port}`;
}
const signal = new AbortController().signal,
  key = 'a-secret-key';
/** Every client of ours that sends a key, asking `url` once. */
const clients: readonly [string, (url: string) => Promise<unknown>][] = [
  ['endpoints', (url) => new Endpoints({ baseUrls: [url], apiKey: key, attempts: 1 }).post('s', '/x', {}, {}, signal)],
  ['model server', (url) => new ModelServer({ url, apiKey: key }).complete({}, signal)],
  ['adapters', (url) => new ModelServer({ url, apiKey: key }).loadAdapter('a', 'b', signal)],
  ['models of a server', (url) => new ModelServer({ url, apiKey: key }).models(signal)],
  ['load of a server', (url) => new ModelServer({ url, apiKey: key }).load(signal)],
  [
    'training server',
    (url) => new TrainingHttp({ url, apiKey: key }).send({ path: 'x', body: '{}', timeoutMs: 5000 }, signal),
  ],
  ['check of a server', (url) => ask({ url, apiKey: key, body: {} })],
];

describe('a redirect', () => {
  for (const [name, call] of clients)
    for (const status of [301, 302, 307, 308])
      it(`of ${name} with ${status} is not followed, and the key goes nowhere else`, async () => {
        let asked = 0;
        const other = await serve((_req, res) => {
          asked++;
          res.end('{}');
        });
        const url = await serve((_req, res) => res.writeHead(status, { location: `${other}/chat/completions` }).end());
        const said = await ending(call(url));
        expect(asked).toBe(0);
        if (said !== 'done') expect(said).toMatchObject({ kind: 'policy.remote' });
      });
});

describe('an answer without end', () => {
  for (const [name, call] of clients)
    it(`of ${name} is cut off, and memory stays`, async () => {
      const chunk = Buffer.alloc(1 << 20, 0x20);
      let sent = 0;
      const url = await serve((_req, res) => {
        const more = (): void => {
          while (!res.destroyed && sent < 2 ** 31) {
            sent += chunk.length;
            if (!res.write(chunk)) {
              res.once('drain', more);
              return;
            }
          }
        };
        more();
      });
      const before = process.memoryUsage().rss,
        said = await ending(call(url), 30_000);
      expect(said).not.toBe('hangs');
      expect(sent).toBeLessThan(name === 'training server' ? 2 ** 31 : 64 << 20);
      expect(process.memoryUsage().rss - before).toBeLessThan(700 << 20);
    });
});

describe('a completion', () => {
  const good = {
    model: 'm@v3',
    choices: [
      {
        message: { content: 'Action: finished()' },
        logprobs: { content: [{ token: 'A', logprob: -1, top_logprobs: [{ token: 'A', logprob: -1 }] }] },
        token_ids: [1],
      },
    ],
    prompt_token_ids: [1, 2, 3],
  };
  it('of a model server is taken as it is', () => {
    const c = completionOf(JSON.stringify(good), 's');
    expect(c).toEqual(good);
    expect(traceOf(c)!.ids).toEqual(Int32Array.of(1));
    expect(versionOf(c)).toBe(3);
    for (const odd of [{}, { choices: [] }, { choices: [{}] }, { choices: [{ message: null, logprobs: null }] }])
      expect(traceOf(completionOf(JSON.stringify(odd), 's'))).toBeUndefined();
    // A word for why it ended is kept; anything longer is not what it is called.
    for (const [said, kept] of [
      ['length', 'length'],
      [null, undefined],
      ['x'.repeat(40), undefined],
      ['<b>', undefined],
    ])
      expect(traceOf({ choices: [{ ...good.choices[0], finish_reason: said }] })!.finish).toBe(kept);
  });
  it('of anything else is refused in words, before it can cost or throw', () => {
    const first = (o: object): object => ({ choices: [{ ...good.choices[0], ...o }] });
    const bad: unknown[] = [
      null,
      [],
      7,
      'x',
      { choices: 5 },
      { choices: [5] },
      { choices: { 0: {} } },
      { model: {} },
      { metadata: 7 },
      { metadata: { weight_version: { toString: 7 } } },
      { prompt_token_ids: { length: 1e9 } },
      { prompt_token_ids: [1.5] },
      { prompt_token_ids: ['1'] },
      first({ message: { content: ['x'] } }),
      first({ message: 'x' }),
      first({ token_ids: { length: 1e9 } }),
      first({ token_ids: [-1] }),
      first({ logprobs: { content: { length: 1e9 } } }),
      first({ logprobs: { content: 'abc' } }),
      first({ logprobs: { content: [null] } }),
      first({ logprobs: { content: [{ token: 7 }] } }),
      first({ logprobs: { content: [{ token: 'a', top_logprobs: 4 }] } }),
      first({ logprobs: { content: [{ token: 'a', top_logprobs: [7] }] } }),
      first({ logprobs: { content: [{ token: 'a', top_logprobs: Array.from({ length: 65 }, () => ({})) }] } }),
      first({ logprobs: [] }),
      first({ finish_reason: { a: 1 } }),
    ];
    for (const c of bad) {
      const text = JSON.stringify(c);
      let said: unknown;
      try {
        const read = completionOf(text, 'http://s');
        said = [traceOf(read), wordsOf(read)];
      } catch (e) {
        said = e;
      }
      expect(said, text.slice(0, 100)).toMatchObject({ kind: 'policy.remote' });
    }
    for (const text of ['', '{', '['.repeat(1e6), `[${'1,'.repeat(2e6)}1]`, '<html>'])
      expect(() => completionOf(text, 's')).toThrow(/answered with/);
  });
});

describe('an answer that was made to be slow', () => {
  const ms = (text: string): number => {
    // Processor time: how long others keep it from a processor says nothing of the parser.
    const began = threadMs();
    try {
      parseAnswer(text);
    } catch (e) {
      expect(e).toMatchObject({ kind: 'policy.invalid' });
    }
    return threadMs() - began;
  };
  const n = 32_000,
    fill = (s: string): string => s.repeat(Math.ceil(n / s.length)).slice(0, n);
  it.each(
    [
      `Action: click(a='x')${' '.repeat(30_000)}x`,
      `Action: a(b='${fill("Action: a(b='").slice(0, n - 20)}`,
      fill('Action: '),
      fill('Action:'),
      `Action: a(b=${fill('(')}`.slice(0, n),
      `Action: a(b='${fill("' ")}`.slice(0, n),
      `Action: a(b='${fill("') ")}`.slice(0, n),
      `Action: a(b='${fill("',x ")}`.slice(0, n),
      `Thought: ${fill('Reflection: Action_Summary ')}Action: x`.slice(0, n),
      `Reflection: ${fill('Action_Summary ')}`.slice(0, n - 20) + 'Action: f()',
      fill('a();'),
      fill('\n'),
      fill('</s>'),
      fill('</s> '),
      `Action: f()${fill('</s>\n')}`.slice(0, n),
      'x'.repeat(5_000_000),
    ].map((text) => [JSON.stringify(text.slice(0, 60)), text] as const),
  )('%s', (_name, text) => {
    // The best of a few: on a busy machine one may be late for reasons of others.
    expect(Math.min(ms(text), ms(text), ms(text))).toBeLessThan(50);
  });
  it('has at most 200 actions', () => {
    expect(parseAnswer(`Action: ${'wait();'.repeat(200)}`).calls).toHaveLength(200);
    expect(() => parseAnswer(`Action: ${'wait();'.repeat(201)}`)).toThrow(/More than 200 actions/);
  });
});
