import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { discoveryFile, protocolVersion, socketPath } from '../../runtime/protocol/version.js';
import {
  cleanUp,
  daemonLog,
  entry,
  folder,
  removeFolders,
  startDaemon,
  when,
  wire,
  type Daemon,
} from '../helpers/daemon/harness.js';

beforeAll(async () => {
  await entry();
});
afterEach(cleanUp);
afterAll(removeFolders);

/** How an upgrade with these headers is answered: 'open', or the HTTP status. */
function knock(d: Daemon, o: { path?: string; headers?: Record<string, string> } = {}): Promise<string | number> {
  return new Promise((done, fail) => {
    const s = new WebSocket(`ws://127.0.0.1:${d.record.port}${o.path ?? socketPath}`, {
      headers: { Authorization: `Bearer ${d.record.token}`, ...o.headers },
    });
    s.on('open', () => {
      s.terminate();
      done('open');
    });
    s.on('unexpected-response', (_req, res) => {
      s.terminate();
      done(res.statusCode!);
    });
    s.on('error', (e) => {
      if (s.readyState !== WebSocket.CLOSING) fail(e);
    });
  });
}
const get = async (d: Daemon, path: string, method = 'GET'): Promise<{ status: number; body: string }> => {
  const req = request({
    host: '127.0.0.1',
    port: d.record.port,
    path,
    method,
    headers: { Authorization: `Bearer ${d.record.token}` },
  }).end();
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  let body = '';
  for await (const c of res) body += String(c);
  return { status: res.statusCode!, body };
};

describe('who is let in', () => {
  it('the holder of the token, and nobody who lacks any one thing', async () => {
    const d = await startDaemon(folder()),
      port = d.record.port;
    expect(await knock(d)).toBe('open');
    expect(await knock(d, { headers: { Authorization: `Bearer ${'0'.repeat(64)}` } })).toBe(401);
    expect(await knock(d, { headers: { Authorization: `Bearer ${d.record.token.slice(0, 63)}` } })).toBe(401);
    expect(await knock(d, { headers: { Authorization: '' } })).toBe(401);
    expect(await knock(d, { headers: { Origin: `http://127.0.0.1:${port}` } })).toBe(401);
    expect(await knock(d, { headers: { Origin: 'vscode-webview://abc' } })).toBe(401);
    expect(await knock(d, { headers: { Origin: 'null' } })).toBe(401);
    expect(await knock(d, { headers: { Host: `localhost:${port}` } })).toBe(401);
    expect(await knock(d, { headers: { Host: `rebound.example:${port}` } })).toBe(401);
    expect(await knock(d, { headers: { Host: '127.0.0.1' } })).toBe(401);
    for (const path of [
      '/',
      `${socketPath}/`,
      `${socketPath}?token=${d.record.token}`,
      '/Dart-Studio',
      `//x${socketPath}`,
    ])
      expect(await knock(d, { path }), path).toBe(401);
    expect(await knock(d)).toBe('open');
  });

  it('plain HTTP gets 404 and not a byte more, also with the token', async () => {
    const d = await startDaemon(folder());
    for (const [path, method] of [
      ['/', 'GET'],
      [socketPath, 'GET'],
      ['/health', 'GET'],
      [socketPath, 'POST'],
      [socketPath, 'OPTIONS'],
    ] as const)
      expect(await get(d, path, method)).toEqual({ status: 404, body: '' });
  });

  it('bytes that are not HTTP do not disturb it', async () => {
    const d = await startDaemon(folder());
    const s = connect(d.record.port, '127.0.0.1');
    s.on('error', () => undefined).end(Buffer.from([0x16, 3, 1, 0, 0xff, 0, 1, 2, 3]));
    await once(s, 'close');
    expect(await knock(d)).toBe('open');
  });

  it('listens on 127.0.0.1 only', async () => {
    const d = await startDaemon(folder());
    const hex = d.record.port.toString(16).toUpperCase().padStart(4, '0');
    const listening = ['/proc/net/tcp', '/proc/net/tcp6']
      .flatMap((f) => readFileSync(f, 'utf8').split('\n'))
      .map((l) => l.trim().split(/\s+/))
      .filter((f) => f[3] === '0A' && f[1]?.endsWith(`:${hex}`))
      .map((f) => f[1]);
    expect(listening).toEqual([`0100007F:${hex}`]);
  });
});

describe('what others can see', () => {
  it('record and log are for their owner alone, the token is in neither log, arguments nor environment', async () => {
    const dir = folder(),
      d = await startDaemon(dir);
    expect(statSync(`${dir}/${discoveryFile}`).mode & 0o777).toBe(0o600);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(`${dir}/daemon.log`).mode & 0o777).toBe(0o600);
    expect(d.record).toMatchObject({
      pid: d.child.pid,
      protocol: protocolVersion,
      build: { version: '1.2.3', time: 1000 },
    });
    const w = await wire(d.record);
    await w.hello();
    await knock(d, { headers: { Authorization: `Bearer ${'0'.repeat(64)}` } });
    await when(dir, () => daemonLog(dir).includes('wrong token'));
    expect(daemonLog(dir)).not.toContain(d.record.token);
    for (const f of ['cmdline', 'environ'])
      expect(readFileSync(`/proc/${d.child.pid}/${f}`, 'utf8')).not.toContain(d.record.token);
    expect(d.output()).not.toContain(d.record.token);
  });

  it('another daemon has another token', async () => {
    const a = await startDaemon(folder()),
      b = await startDaemon(folder());
    expect(a.record.token).not.toBe(b.record.token);
    expect(await knock(b, { headers: { Authorization: `Bearer ${a.record.token}` } })).toBe(401);
  });
});
