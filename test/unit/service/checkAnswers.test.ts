import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { ask, wordsOf, type Reply } from '../../../runtime/service/runChecks/ask.js';

const servers: Server[] = [];
afterEach(async () => {
  for (const s of servers.splice(0)) {
    s.closeAllConnections();
    await new Promise<void>((done) => s.close(() => done()));
  }
});
async function said(text: string): Promise<Reply> {
  const s = createServer((req, res) => {
    req.resume();
    res.end(text);
  });
  servers.push(s);
  await new Promise<void>((done) => s.listen(0, '127.0.0.1', done));
  return ask({ url: `http://127.0.0.1:${(s.address() as AddressInfo).port}`, apiKey: undefined });
}

it('a check reads an answer once, and only what is within its bounds', async () => {
  expect(await said('{"data":[1]}')).toEqual({ status: 200, text: '{"data":[1]}', json: { data: [1] } });
  const words = await said('no JSON');
  expect(words).toEqual({ status: 200, text: 'no JSON', json: undefined });
  expect('status' in words && wordsOf(words)).toBe('200: no JSON');
  const away = (why: string): object => ({ away: expect.stringContaining(why) as string });
  expect(await said(`${'['.repeat(50)}${']'.repeat(50)}`)).toEqual(away('the answer holds more than 32 lists'));
  expect(await said(`[${'1,'.repeat(300_000)}1]`)).toEqual(away('the answer holds more than 262144 values'));
  expect(await said(`"${'x'.repeat(5 << 20)}"`)).toEqual(away('longer than 4 MB'));
});
