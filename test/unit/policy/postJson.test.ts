import { createServer, type Server } from 'node:http';
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Picture, jsonPieces } from '../../../runtime/policy/remote/picture.js';
import { postJson } from '../../../runtime/policy/remote/postJson.js';

const servers: Server[] = [];
afterEach(() => {
  for (const s of servers.splice(0)) {
    s.closeAllConnections();
    s.close();
  }
});
async function serve(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const s = createServer(answer as never);
  servers.push(s);
  await new Promise<void>((r) => s.listen(0, '127.0.0.1', r));
  return `http://127.0.0.1:${(s.address() as { port: number }).port}/v1`;
}
const post = (
  url: string,
  body: unknown,
  signal = new AbortController().signal,
  timeoutMs = 5000,
): ReturnType<typeof postJson> =>
  postJson({
    url,
    body: jsonPieces(body),
    timeoutMs,
    most: 1 << 16,
    tooLong: () => new Error('too long'),
    signal,
  });

describe('requests with pictures', () => {
  it('hold pictures as they are stored until they are sent, and arrive as the same JSON', async () => {
    const pictures = Array.from({ length: 5 }, (_, i) => new Picture(randomBytes(100_000 + i))),
      body = { model: 'm', text: 'a " \u0000 ü', messages: pictures.map((url) => ({ image_url: { url } })) },
      pieces = jsonPieces(body);
    expect(pieces.filter((p) => p instanceof Picture)).toEqual(pictures);
    expect(pieces.filter((p) => typeof p === 'string').join('').length).toBeLessThan(1000);
    let got = '',
      length = '';
    const url = await serve((req, res) => {
      length = req.headers['content-length']!;
      req.on('data', (d: Buffer) => (got += d.toString('latin1')));
      req.on('end', () => res.end('{}'));
    });
    expect(await post(url, body)).toMatchObject({ status: 200, text: '{}' });
    const whole = Buffer.from(JSON.stringify(body));
    expect(got).toBe(whole.toString('latin1'));
    expect(Number(length)).toBe(whole.length);
    expect(JSON.parse(whole.toString())).toMatchObject({ text: body.text });
  });

  it('are not given up for an answer that arrived while the process stood still', async () => {
    const url = await serve((req, res) => {
      req.resume();
      res.end('{"here":true}');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
    });
    expect(await post(url, {}, undefined, 300)).toMatchObject({ text: '{"here":true}' });
  });

  it('are sent again when the server closed the connection that was used again', async () => {
    let asked = 0;
    const url = await serve((req, res) => {
      req.resume();
      asked++;
      if (asked === 2) req.socket.resetAndDestroy();
      else req.on('end', () => res.end('{}'));
    });
    await post(url, {});
    expect((await post(url, {})).status).toBe(200);
    expect(asked).toBe(3);
  });

  it('have one time for both attempts when the server closes the connection long after', async () => {
    let asked = 0;
    const url = await serve((req, res) => {
      req.resume();
      asked++;
      if (asked === 2) setTimeout(() => req.socket.resetAndDestroy(), 600);
      else req.on('end', () => res.end('{}'));
    });
    await post(url, {});
    const timers = vi.spyOn(globalThis, 'setTimeout');
    expect((await post(url, {}, undefined, 60_000)).status).toBe(200);
    expect(asked).toBe(3);
    const delays = timers.mock.calls.map(([, ms]) => ms!);
    timers.mockRestore();
    // A time limit has two halves (concurrency/timeLimit.ts).
    expect(delays.slice(0, 2)).toEqual([30_000, 600]);
    expect(delays[2]).toBeLessThan(59_450 / 2);
  });

  it('have a time limit, which the error names', async () => {
    const silent = await serve((req) => req.resume());
    await expect(post(silent, {}, undefined, 50)).rejects.toThrow('no answer within 0.05 s');
  });

  it('follow no redirect, end with the signal, and take no answer without end', async () => {
    const away = await serve((req, res) => {
      req.resume();
      res.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
    });
    expect((await post(away, {})).status).toBe(302);
    const silent = await serve((req) => req.resume()),
      stop = new AbortController(),
      waiting = post(silent, {}, stop.signal);
    stop.abort();
    await expect(waiting).rejects.toThrow('cancelled');
    // Nobody is asked, and no error is left for nobody.
    await expect(post('http://127.0.0.1:9/v1', {}, AbortSignal.abort())).rejects.toThrow('cancelled');
    await new Promise((r) => setImmediate(r));
    const endless = await serve((req, res) => {
      req.resume();
      const more = (): void =>
        void (res.write(Buffer.alloc(1 << 15, 32)) ? setImmediate(more) : res.once('drain', more));
      more();
    });
    await expect(post(endless, {})).rejects.toThrow('too long');
  });
});
