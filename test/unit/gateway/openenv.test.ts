import { connect as connectRaw } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { StudioError } from '../../../runtime/domain/index.js';
import { serveOpenEnv, type OpenEnvOptions, type ServedEnvironments } from '../../../runtime/gateway/openenv/serve.js';
import { mcpAnswer } from '../../../runtime/gateway/openenv/session.js';
import type { Environment, Observed } from '../../../runtime/gateway/openenv/types.js';

/** OpenEnv's wire, without desktops. */
const served: ServedEnvironments[] = [];
afterEach(async () => {
  for (const s of served.splice(0)) await s.close();
});

const seen = (step: number, done = false): Observed => ({
  observation: { step },
  reward: done ? 1 : undefined,
  done,
});
class Counter implements Environment {
  step = async (data: Readonly<Record<string, unknown>>): Promise<Observed> => {
    await Promise.resolve();
    if (data['action'] === 'nonsense')
      throw new StudioError('policy.invalid', 'There is no action nonsense.', 'Choose another.');
    if (data['action'] === 'break') throw new StudioError('desktop.lost', 'The desktop is gone.', 'Reset.');
    return seen(++this.#steps, data['action'] === 'finish');
  };
  #steps = 0;
  closed = false;
  reset(): Promise<Observed> {
    this.#steps = 0;
    return Promise.resolve(seen(0));
  }
  state(): Readonly<Record<string, unknown>> {
    return { step_count: this.#steps };
  }
  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}
async function serve(o: Partial<OpenEnvOptions> & { capacity?: number } = {}) {
  const opened: Counter[] = [],
    s = await serveOpenEnv({
      port: 0,
      environments: {
        name: 'counter',
        description: 'counts',
        version: '1.2.3',
        schema: { action: { type: 'object' }, observation: { type: 'object' }, state: { type: 'object' } },
        capacity: o.capacity ?? 2,
        open: () => {
          const c = new Counter();
          opened.push(c);
          return c;
        },
      },
      ...o,
    });
  served.push(s);
  return { opened, at: `127.0.0.1:${s.port}` };
}

interface Client {
  readonly socket: WebSocket;
  /** The next answer. */
  readonly next: () => Promise<{ type: string; data: Record<string, unknown> }>;
  readonly ask: (m: unknown) => Promise<{ type: string; data: Record<string, unknown> }>;
  readonly closed: Promise<number>;
}
async function connect(at: string, headers: Record<string, string> = {}): Promise<Client> {
  const socket = new WebSocket(`ws://${at}/ws`, { headers }),
    answers: string[] = [],
    waiting: ((text: string) => void)[] = [],
    closed = new Promise<number>((done) => socket.once('close', (code) => done(code)));
  socket.on('message', (d: Buffer) => {
    const w = waiting.shift();
    if (w) w(d.toString());
    else answers.push(d.toString());
  });
  const next = async (): Promise<{ type: string; data: Record<string, unknown> }> =>
    JSON.parse(answers.shift() ?? (await new Promise<string>((done) => waiting.push(done)))) as never;
  await new Promise((done, fail) => socket.once('open', done).once('error', fail));
  return {
    socket,
    next,
    ask: (m) => {
      socket.send(typeof m === 'string' ? m : JSON.stringify(m));
      return next();
    },
    closed,
  };
}

describe('OpenEnv', () => {
  it('a session resets, steps to a reward, tells its state, and its environment ends with it', async () => {
    const { at, opened } = await serve(),
      c = await connect(at);
    expect(await c.ask({ type: 'reset', data: { seed: 1 } })).toEqual({
      type: 'observation',
      data: { observation: { step: 0 }, reward: null, done: false },
    });
    expect((await c.ask({ type: 'step', data: { action: 'go' } })).data).toMatchObject({ done: false, reward: null });
    expect((await c.ask({ type: 'step', data: { action: 'finish' } })).data).toMatchObject({ done: true, reward: 1 });
    expect(await c.ask({ type: 'state' })).toEqual({ type: 'state', data: { step_count: 2 } });
    c.socket.send(JSON.stringify({ type: 'close' }));
    await c.closed;
    await expect.poll(() => opened[0]!.closed).toBe(true);
  });

  it('what is wrong has its code, and the session goes on', async () => {
    const { at } = await serve(),
      c = await connect(at);
    const codes = [];
    for (const m of [
      '{',
      // Parsed, it would hold up everybody else.
      '['.repeat(500_000),
      `[${'0,'.repeat(400_000)}0]`,
      '[]',
      { type: 'reset', data: 3 },
      { type: 'dance' },
      { type: 'step', data: { action: 'nonsense' } },
      { type: 'step', data: { action: 'break' } },
    ]) {
      const a = await c.ask(m);
      expect(a.type).toBe('error');
      codes.push(a.data['code']);
    }
    expect(codes).toEqual([
      'INVALID_JSON',
      'INVALID_JSON',
      'INVALID_JSON',
      'VALIDATION_ERROR',
      'VALIDATION_ERROR',
      'UNKNOWN_TYPE',
      'VALIDATION_ERROR',
      'EXECUTION_ERROR',
    ]);
    expect((await c.ask({ type: 'reset' })).type).toBe('observation');
  });

  it('one session more than there are desktops is told so, until another ends', async () => {
    const { at } = await serve({ capacity: 1 }),
      first = await connect(at),
      second = await connect(at);
    expect(await second.next()).toMatchObject({
      type: 'error',
      data: { code: 'CAPACITY_REACHED', active_sessions: 1, max_sessions: 1 },
    });
    expect(await second.closed).toBe(1013);
    const shared = await fetch(`http://${at}/reset`, { method: 'POST', body: '{}' });
    expect(shared.status).toBe(503);
    first.socket.close();
    await first.closed;
    await expect.poll(async () => (await fetch(`http://${at}/reset`, { method: 'POST', body: '{}' })).status).toBe(200);
  });

  it('a client that sends without end, or too much at once, or nothing for long, is cut off', async () => {
    const { at, opened } = await serve({ capacity: 3 }),
      flood = await connect(at);
    opened[0]!.step = () => new Promise(() => undefined);
    for (let i = 0; i < 40; i++) flood.socket.send(JSON.stringify({ type: 'step', data: {} }));
    expect(await flood.closed).toBe(1008);
    const large = await connect(at);
    large.socket.send('x'.repeat(2 << 20));
    expect(await large.closed).toBe(1009);

    const idle = await serve({ idleMs: 20 }),
      silent = await connect(idle.at);
    expect(await silent.next()).toMatchObject({ data: { code: 'SESSION_ERROR' } });
    await silent.closed;
    await expect.poll(() => idle.opened[0]!.closed).toBe(true);
  });

  it('web pages, other names of this machine and clients without the token are refused', async () => {
    const { at } = await serve({ token: 'secret' }),
      given = { authorization: 'Bearer secret' };
    await expect(connect(at)).rejects.toThrow('401');
    await expect(connect(at, { ...given, origin: 'http://evil.example' })).rejects.toThrow('403');
    await expect(connect(at, { ...given, host: 'rebound.example' })).rejects.toThrow('403');
    expect((await (await connect(at, given)).ask({ type: 'reset' })).type).toBe('observation');
    // A refused client that resets the connection, or asks for what is no address, ends nobody else's.
    for (const line of ['GET /ws', 'GET //']) {
      const raw = connectRaw(Number(at.split(':')[1]));
      raw.write(
        `${line} HTTP/1.1\r\nHost: ${at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${line === 'GET //' ? 'Authorization: Bearer secret\r\n' : ''}\r\n`,
      );
      raw.on('error', () => undefined);
      await new Promise((done) => raw.once('data', done));
      raw.resetAndDestroy();
    }
    expect((await (await connect(at, given)).ask({ type: 'reset' })).type).toBe('observation');
    await expect(
      serveOpenEnv({ port: 0, host: '0.0.0.0', environments: { capacity: 1 } as never }),
    ).rejects.toMatchObject({ kind: 'config.invalid' });
  });

  it('its HTTP routes are what `openenv validate` asks for', async () => {
    const { at } = await serve(),
      get = async (path: string): Promise<unknown> => (await fetch(`http://${at}${path}`)).json();
    expect(await get('/health')).toEqual({ status: 'healthy' });
    expect(await get('/metadata')).toEqual({ name: 'counter', description: 'counts', version: '1.2.3' });
    expect(Object.keys((await get('/schema')) as object)).toEqual(['action', 'observation', 'state']);
    expect(await get('/openapi.json')).toMatchObject({
      info: { version: '1.2.3' },
      paths: { '/reset': {}, '/step': {}, '/state': {} },
    });
    expect(await get('/state')).toMatchObject({ step_count: 0 });
    const post = async (path: string, body: unknown): Promise<unknown> =>
      (await fetch(`http://${at}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
    expect(await post('/mcp', {})).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } });
    expect(await post('/reset', { seed: 3 })).toMatchObject({ done: false, observation: { step: 0 } });
    expect(await post('/step', { action: { action: 'finish' } })).toMatchObject({ done: true, reward: 1 });
    expect((await fetch(`http://${at}/step`, { method: 'POST', body: '[]' })).status).toBe(422);
    expect((await fetch(`http://${at}/elsewhere`)).status).toBe(404);
    expect((await fetch(`http://${at}/reset`, { method: 'POST' })).status).toBe(200);
    expect((await fetch(`http://${at}/mcp`, { method: 'POST', body: 'x'.repeat(2 << 20) })).status).toBe(413);
  });

  it('plain HTTP holds no desktop without an episode', async () => {
    const { at, opened } = await serve({ capacity: 1 });
    expect((await fetch(`http://${at}/step`, { method: 'POST', body: '{}' })).status).toBe(422);
    expect(opened).toEqual([]);
    const c = await connect(at);
    expect((await c.ask({ type: 'reset' })).type).toBe('observation');
  });

  it('has no tools, and says so in JSON-RPC', () => {
    expect(mcpAnswer({ jsonrpc: '2.0', id: 7, method: 'tools/list' })).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: { tools: [] },
    });
    expect(mcpAnswer({ jsonrpc: '2.0', id: 'a', method: 'tools/call' })).toMatchObject({ error: { code: -32601 } });
    for (const bad of [undefined, 3, [], { method: 'x' }])
      expect(mcpAnswer(bad)).toMatchObject({ id: null, error: { code: -32600 } });
  });
});
