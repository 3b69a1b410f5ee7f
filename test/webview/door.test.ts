import { createServer } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { socketPath } from '../../runtime/protocol/version.js';
import {
  cleanUp,
  daemonLog,
  entry,
  folder,
  removeFolders,
  startDaemon,
  wire,
  type Daemon,
} from '../helpers/daemon/harness.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import type { Page } from '../helpers/workbench/playwright.js';

/** What a web page in a real browser can do to a daemon of the same machine, even when it knows the token: nothing. */

const found = await openBrowser(['--host-resolver-rules=MAP *.test 127.0.0.1']);
if ('why' in found) console.warn(`tests of web pages against the daemon skipped: ${found.why}`);

/** Everything a page has that sends something. Runs in the page; answers by name what came of it. */
const tries = (host: string, token: string): string => `(async () => {
  const out = {}, base = 'http://${host}', url = 'ws://${host}${socketPath}';
  const socket = (...more) => new Promise((done) => {
    const s = new WebSocket(...more);
    s.onopen = () => done('open');
    s.onerror = () => done('refused');
    s.onmessage = () => done('message');
  });
  out.socket = await socket(url);
  out.socketWithProtocol = await socket(url, ['bearer.${token}', '${token}']);
  out.socketWithQuery = await socket(url + '?token=${token}');
  const fetched = async (path, init) => {
    try {
      const r = await fetch(base + path, init);
      return r.type + ' ' + r.status + ' ' + (await r.text());
    } catch (e) {
      return 'failed';
    }
  };
  out.get = await fetched('/', {});
  out.simple = await fetched('${socketPath}', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '{}' });
  out.withToken = await fetched('${socketPath}', { headers: { Authorization: 'Bearer ${token}' } });
  out.put = await fetched('/', { method: 'PUT', body: 'x' });
  out.beacon = navigator.sendBeacon(base + '${socketPath}', 'x') === true;
  const element = (tag, attribute, path) => new Promise((done) => {
    const e = document.createElement(tag);
    e.onload = () => done('loaded');
    e.onerror = () => done('failed');
    e[attribute] = base + path;
    document.body.append(e);
  });
  out.script = await element('script', 'src', '/x.js');
  out.image = await element('img', 'src', '/x.png');
  out.events = await new Promise((done) => {
    const s = new EventSource(base + '/events');
    s.onopen = () => done('open');
    s.onerror = () => { s.close(); done('failed'); };
  });
  return out;
})()`;
const refused = {
  socket: 'refused',
  socketWithProtocol: 'refused',
  socketWithQuery: 'refused',
  script: 'failed',
  image: 'failed',
  events: 'failed',
};

describe.skipIf('why' in found)('a web page', () => {
  const { browser } = found as RealBrowser,
    site = createServer((_req, res) => {
      res
        .writeHead(200, { 'content-type': 'text/html', connection: 'close' })
        .end('<!DOCTYPE html><title>evil</title><body></body>');
    });
  let dir: string, d: Daemon, port: number;
  beforeAll(async () => {
    await entry();
    dir = folder();
    d = await startDaemon(dir);
    await new Promise<void>((done) => site.listen(0, '127.0.0.1', done));
    port = (site.address() as AddressInfo).port;
  });
  afterAll(async () => {
    site.close();
    await browser.close();
    await cleanUp();
    removeFolders();
  });
  async function page<R>(f: (p: Page) => Promise<R>): Promise<R> {
    const context = await browser.newContext({ viewport: { width: 400, height: 300 } });
    try {
      return await f(await context.newPage());
    } finally {
      await context.close();
    }
  }
  const from = (address: string, host: string): Promise<Record<string, unknown>> =>
    page(async (p) => {
      await p.goto(address);
      return p.evaluate<Record<string, unknown>>(tries(host, d.record.token));
    });
  /** The daemon is as it was, for those who may. */
  async function unharmed(): Promise<void> {
    const w = await wire(d.record);
    expect(await w.hello()).toMatchObject({ pid: d.child.pid, activeRuns: [] });
    w.socket.terminate();
  }

  it('of another origin, also of this machine, gets no connection and no answer', async () => {
    for (const address of [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`, `http://evil.test:${port}/`]) {
      const said = await from(address, `127.0.0.1:${d.record.port}`);
      expect(said, address).toMatchObject({ ...refused, get: 'failed', withToken: 'failed', put: 'failed' });
      // It may send what it cannot read the answer of: that is 404 and does nothing.
      expect(said['simple'], address).toMatch(/^(opaque 0 |failed)$/);
    }
    expect(daemonLog(dir)).toContain('wrong origin');
    await unharmed();
  });

  it('without an origin of its own (a file, a sandboxed frame) neither', async () => {
    const said = await from('data:text/html,<title>x</title><body></body>', `127.0.0.1:${d.record.port}`);
    expect(said).toMatchObject({ ...refused, get: 'failed' });
    await unharmed();
  });

  it('whose name was pointed at the daemon (DNS rebinding) reads 404 without a byte, and no more', async () => {
    // A name's address changes between two connections: this stands where the name points.
    let to = port;
    const name = createTcpServer((c) => {
      const there = connect(to, '127.0.0.1');
      for (const x of [c, there]) x.on('error', () => x.destroy());
      c.pipe(there).pipe(c);
    });
    await new Promise<void>((done) => name.listen(0, '127.0.0.1', done));
    const host = `rebound.test:${(name.address() as AddressInfo).port}`;
    const said = await page(async (p) => {
      await p.goto(`http://${host}/`);
      to = d.record.port;
      return p.evaluate<Record<string, unknown>>(tries(host, d.record.token));
    }).finally(() => name.close());
    // Of the same origin, as the browser sees it: it does read the answers.
    expect(said).toMatchObject({ ...refused, get: 'basic 404 ', withToken: 'basic 404 ', put: 'basic 404 ' });
    expect(daemonLog(dir)).toContain('wrong host');
    await unharmed();
  });
});
