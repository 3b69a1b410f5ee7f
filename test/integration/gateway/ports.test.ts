import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDockerProvider } from '../../../runtime/cluster/providers/docker.js';
import type { DesktopProvider } from '../../../runtime/cluster/types.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { serveOsworld, type Served } from '../../../runtime/gateway/osworld/serve.js';
import { HD, localProvider, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { engineHere } from '../../helpers/cluster/engine.js';

const noLocal = await whyNoLocalDesktops(),
  noEngine = (await engineHere()) === undefined ? 'no Docker engine answers here' : undefined,
  noRoot = noEngine ?? (process.getuid?.() === 0 ? undefined : 'files of containers are seen by root alone');
interface Kind {
  readonly kind: string;
  readonly why: string | undefined;
  readonly provider: () => DesktopProvider;
}
const KINDS: readonly Kind[] = [
  { kind: 'local', why: noLocal, provider: localProvider },
  { kind: 'Docker, by its files', why: noRoot, provider: () => createDockerProvider({ path: 'fast', spares: 0 }) },
  { kind: 'Docker, by pipes', why: noEngine, provider: () => createDockerProvider({ path: 'portable', spares: 0 }) },
];
for (const { kind, why } of KINDS) if (why) console.warn(`skipped: ports of ${kind}: ${why}`);

/** What DevTools say of themselves, whatever is posted, megabytes without end, and who is asked. */
const PROGRAM = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def say(self, data):
        self.send_response(200)
        self.send_header('content-length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        if self.path == '/endless':
            self.send_response(200)
            self.end_headers()
            while True: self.wfile.write(bytes(65536))
        self.say(('{"port": %s, "webSocketDebuggerUrl": "ws://%s/devtools/browser/1"}' % (sys.argv[1], self.headers['host'])).encode())
    def do_POST(self):
        self.say(self.rfile.read(int(self.headers['content-length'])))
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
`;

describe.each(KINDS)('ports that lead to programs of a real desktop: $kind', ({ why, provider }) => {
  const it = test.skipIf(why);
  let served: Served;
  beforeAll(async () => {
    if (why) return;
    served = await serveOsworld({
      provider: provider(),
      spec: HD,
      count: 2,
      port: 0,
      picture: pngOf,
      onLine: () => {},
    });
  }, 120_000);
  afterAll(async () => {
    await served?.close();
  });
  const post = async (n: number, path: string, body: unknown): Promise<void> => {
    const r = await fetch(`http://127.0.0.1:${served.desktops[n]!.port}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    expect(r.status, await r.text()).toBe(200);
  };
  /** Starts it in a desktop and waits until it answers there. */
  const start = async (n: number, port: number): Promise<void> => {
    await post(n, '/setup/launch', { command: ['python3', '-c', PROGRAM, String(port)] });
    await post(n, '/execute_with_verification', {
      command: 'true',
      verification: { command_success: `python3 -c "import socket; socket.create_connection(('127.0.0.1', ${port}))"` },
      max_wait_time: 20,
      check_interval: 0.1,
    });
  };
  const client = async (port: number): Promise<Socket> => {
    const c = connect(port, '127.0.0.1');
    c.on('error', () => c.destroy());
    await once(c, 'connect');
    return c;
  };
  /** Whatever comes until it ends. */
  const said = (c: Socket): Promise<Buffer | 'cut'> => buffer(c).catch(() => 'cut' as const);

  it('Chromium’s and VLC’s of each desktop, with the name by which they are asked', async () => {
    await start(0, 9222);
    await start(0, 8080);
    await start(1, 9222);
    const [a, b] = [served.desktops[0]!, served.desktops[1]!];
    expect(new Set([a.port, b.port, a.chromium, b.chromium, a.vlc, b.vlc]).size).toBe(6);
    for (const [port, inside] of [
      [a.chromium, 9222],
      [a.vlc, 8080],
      [b.chromium, 9222],
    ] as const)
      expect(await (await fetch(`http://127.0.0.1:${port}/json/version`)).json()).toEqual({
        port: inside,
        webSocketDebuggerUrl: `ws://127.0.0.1:${port}/devtools/browser/1`,
      });
  });

  it('megabytes both ways, many at once', async () => {
    const sent = [1, 2, 3, 4].map(() => randomBytes(6 << 20)),
      got = await Promise.all(
        sent.map(async (body) =>
          Buffer.from(
            await (
              await fetch(`http://127.0.0.1:${served.desktops[0]!.chromium}/`, { method: 'POST', body })
            ).arrayBuffer(),
          ),
        ),
      );
    expect(got.map((g, i) => g.equals(sent[i]!))).toEqual([true, true, true, true]);
  });

  it('end at once where nobody listens', async () => {
    const c = await client(served.desktops[1]!.vlc);
    c.write('GET / HTTP/1.1\r\n\r\n');
    expect(['cut', '']).toContain(String(await said(c)));
  });

  it('a client that does not read keeps nobody else waiting', async () => {
    const { chromium } = served.desktops[0]!,
      idle = await client(chromium);
    idle.pause();
    idle.write('GET /endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    for (let i = 0; i < 5; i++) expect((await fetch(`http://127.0.0.1:${chromium}/json/version`)).status).toBe(200);
    idle.destroy();
  });

  it('end with the episode, and lead to the next one', async () => {
    const { chromium } = served.desktops[0]!,
      asked = request({ host: '127.0.0.1', port: chromium, path: '/endless' });
    asked.on('error', () => {});
    asked.end();
    const [endless] = (await once(asked, 'response')) as [NodeJS.ReadableStream];
    const over = new Promise((done) => endless.once('error', done).once('end', done).resume());
    const silent = await client(chromium);
    await post(0, '/dart/reset', {});
    await over;
    expect(['cut', '']).toContain(String(await said(silent)));
    const early = await client(chromium);
    early.write('GET / HTTP/1.1\r\n\r\n');
    expect(['cut', '']).toContain(String(await said(early)));
    await start(0, 9222);
    expect((await fetch(`http://127.0.0.1:${chromium}/json/version`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${served.desktops[1]!.chromium}/json/version`)).status).toBe(200);
  });
});
