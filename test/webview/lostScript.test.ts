import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { newNonce, pageHtml, type Lost } from '../../extension/panels/html.js';
import { ignoreFailure } from '../../runtime/concurrency/failures.js';
import { openBrowser, type RealBrowser } from '../helpers/pages/browser.js';
import type { Page } from '../helpers/workbench/playwright.js';

const found = await openBrowser();
if ('why' in found) console.warn(`pages whose script is lost: tests skipped: ${found.why}`);

/** What became of a page's script on its way through VS Code's service worker. */
type Way = 'refused' | 'never' | 'comes' | 'its import refused';

describe.skipIf('why' in found)('a page whose script', () => {
  const { browser } = found as RealBrowser;
  afterAll(() => browser.close());

  /** A page with that script, and the types of the messages that it posts. */
  async function open(way: Way, lost: Lost): Promise<{ readonly page: Page; readonly posted: string[] }> {
    const posted: string[] = [],
      server = createServer((req, res) => {
        const refuse = (): void => void res.writeHead(404).end();
        if (req.url === '/')
          res
            .setHeader('content-type', 'text/html')
            .end(html(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, lost));
        else if (req.url !== '/inspector.js') refuse();
        else if (way === 'refused') refuse();
        else if (way !== 'never')
          res
            .setHeader('content-type', 'text/javascript')
            .end(
              `${way === 'comes' ? '' : "import './shared.js';"} document.documentElement.dataset.started = ''; acquireVsCodeApi().postMessage({ type: 'ready' });`,
            );
      });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const context = await browser.newContext({ viewport: { width: 800, height: 600 } }),
      page = await context.newPage();
    onTestFinished(async () => {
      await context.close();
      await end(server);
    });
    await page.exposeFunction('__toHost', (m) => {
      posted.push((m as { readonly type: string }).type);
    });
    ignoreFailure(
      page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
      'a page whose script never comes is never loaded',
    );
    return { page, posted };
  }

  const patienceEnds = (page: Page): Promise<void> => page.evaluate<void>('patienceEnds()');

  it.each(['refused', 'its import refused'] as const)('is lost (%s) says so at once, and once', async (way) => {
    const { page, posted } = await open(way, { patienceMs: 1000 });
    await expect.poll(() => posted).toEqual(['lost']);
    expect(await page.locator('#lost').innerText()).toBe('');
    await patienceEnds(page);
    expect(posted).toEqual(['lost']);
  });
  it('never comes says so when its patience ends', async () => {
    const { page, posted } = await open('never', { patienceMs: 1000 });
    await expect.poll(() => page.evaluate<string>('typeof patienceEnds')).toBe('function');
    expect(posted).toEqual([]);
    await patienceEnds(page);
    await expect.poll(() => posted).toEqual(['lost']);
  });
  it('comes says nothing but that it is ready', async () => {
    const { page, posted } = await open('comes', { patienceMs: 1000 });
    await expect.poll(() => posted).toEqual(['ready']);
    await patienceEnds(page);
    expect(posted).toEqual(['ready']);
  });
  it('is lost for the last time says in words what to do, and tells nobody', async () => {
    const { page, posted } = await open('refused', { patienceMs: 60_000, words: 'Close it & <b>open</b> it again.' });
    await expect.poll(() => page.locator('#lost').innerText()).toBe('Close it & <b>open</b> it again.');
    expect(posted).toEqual([]);
  });
});

function html(origin: string, lost: Lost): string {
  const nonce = newNonce(),
    // Time passes when the test says so.
    api = `<script nonce="${nonce}">window.setTimeout = (f) => { window.patienceEnds = f; }; window.acquireVsCodeApi = () => { delete window.acquireVsCodeApi; return { postMessage: (m) => void __toHost(m) }; };</script>`;
  return pageHtml({
    kind: 'inspector',
    title: 'Inspector',
    lang: 'en',
    nonce,
    lost,
    sources: { cspSource: origin, script: `${origin}/inspector.js`, styles: [] },
  }).replace('<title>', `${api}<title>`);
}
const end = (server: Server): Promise<void> =>
  new Promise((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });
