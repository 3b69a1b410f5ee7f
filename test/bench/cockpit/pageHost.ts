import { createReadStream } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, resolve } from 'node:path';
import { newNonce, pageHtml } from '../../../extension/panels/html.js';
import type { PageInput, ToHost, ToPage } from '../../../webview/protocol.js';
import type { Page } from '../../helpers/workbench/playwright.js';

type Body = ToPage extends infer T ? (T extends { readonly boot: string } ? Omit<T, 'boot'> : never) : never;
export interface PageHostOptions {
  readonly input: PageInput;
  /** Answers a daemon request. */
  readonly request: (method: string, params: unknown) => Promise<unknown>;
  readonly subscribed?: (q: Extract<ToHost, { type: 'subscribe' }>, send: (b: Body) => void) => void;
  readonly folders: readonly string[];
}
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.ttf': 'font/ttf',
  '.png': 'image/png',
};

/**
 * One of our pages alone in a browser, under its real content policy, with this process in the extension host's place:
 * what it costs is the page's own.
 */
export class PageHost {
  readonly #server: Server;
  readonly #page: Page;
  readonly #o: PageHostOptions;
  #boot = '';
  readonly faults: string[] = [];
  private constructor(server: Server, page: Page, o: PageHostOptions) {
    this.#server = server;
    this.#page = page;
    this.#o = o;
  }

  static async open(page: Page, o: PageHostOptions): Promise<PageHost> {
    const server = createServer((req, res) => {
      const path = decodeURIComponent((req.url ?? '/').split('?')[0]!);
      if (path === '/') {
        res.setHeader('content-type', 'text/html').end(html(o.input, origin));
        return;
      }
      const file = path.startsWith('/dist/')
        ? resolve('dist/webview', path.slice(6))
        : resolve(path.slice('/root'.length));
      if (!file.startsWith(resolve('dist/webview')) && !o.folders.some((f) => file.startsWith(f))) {
        res.writeHead(404).end();
        return;
      }
      res
        .setHeader('content-type', types[extname(file)] ?? 'application/octet-stream')
        .setHeader('cache-control', 'max-age=3600');
      createReadStream(file)
        .on('error', () => res.writeHead(404).end())
        .pipe(res);
    });
    await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      host = new PageHost(server, page, o);
    await page.exposeFunction('__toHost', (m: unknown) => {
      void host.#receive(m as ToHost, origin);
    });
    await page.goto(origin);
    return host;
  }
  post(b: Body): void {
    void this.#page.evaluate(`__fromHost(${JSON.stringify({ ...b, boot: this.#boot })})`).catch(() => undefined);
  }
  close(): Promise<void> {
    return new Promise((r) => {
      this.#server.close(() => r());
      this.#server.closeAllConnections();
    });
  }

  async #receive(m: ToHost, origin: string): Promise<void> {
    switch (m.type) {
      case 'ready':
        this.#boot = m.boot;
        this.post({
          type: 'init',
          input: this.#o.input,
          roots: this.#o.folders.map((path) => ({ path, uri: `${origin}/root${path}` })),
          daemon: 'ready',
          trusted: true,
        });
        return;
      case 'request':
        try {
          this.post({ type: 'response', id: m.id, result: await this.#o.request(m.method, m.params) });
        } catch (e) {
          this.post({
            type: 'response',
            id: m.id,
            error: { kind: 'internal', message: (e as Error).message, remedy: '' },
          });
        }
        return;
      case 'subscribe':
        this.#o.subscribed?.(m, (b) => this.post(b));
        return;
      case 'fault':
        this.faults.push(m.message);
        return;
      case 'lost':
        this.faults.push('the script of the page did not come');
        return;
      case 'action':
      case 'cancel':
      case 'now':
      case 'title':
        // What the editor around the page would do; nothing is measured there.
        return;
    }
  }
}

function html(input: PageInput, origin: string): string {
  const nonce = newNonce(),
    file = (n: string): string => `${origin}/dist/${n}`;
  const page = pageHtml({
    kind: input.kind,
    title: input.kind,
    lang: 'en',
    nonce,
    lost: { patienceMs: 60_000 },
    sources: {
      cspSource: origin,
      script: file(`${input.kind}.js`),
      styles: ['codicon', 'ui', input.kind].map((name) => file(`${name}.css`)),
    },
  });
  const api = `<script nonce="${nonce}">let state; window.acquireVsCodeApi = () => ({ postMessage: (m) => void __toHost(m), getState: () => state, setState: (s) => { state = s; } });
window.__fromHost = (m) => dispatchEvent(new MessageEvent('message', { data: m }));</script>`;
  return page
    .replace('<div id="app">', `${api}<div id="app">`)
    .replace(
      '<body',
      '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark" style="background:#1f1f1f;color:#ccc"',
    );
}
