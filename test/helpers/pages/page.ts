import { build } from 'esbuild';
import { createReadStream, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, resolve } from 'node:path';
import { newNonce, pageHtml } from '../../../extension/panels/html.js';
import { LongRequests } from '../../../extension/panels/longRequests.js';
import type {
  DaemonState,
  HostAction,
  HostError,
  PageInput,
  PageKind,
  ToHost,
  ToPage,
} from '../../../webview/protocol.js';
import type { Browser, Page } from '../workbench/playwright.js';
import { PATIENCE_MS } from '../workbench/workbench.js';

export type Theme = 'dark' | 'light' | 'hc-dark' | 'hc-light';
export const themes: readonly Theme[] = ['dark', 'light', 'hc-dark', 'hc-light'];
/** Body classes VS Code sets; HC light has both. */
const bodyClass: Readonly<Record<Theme, string>> = {
  dark: 'vscode-dark',
  light: 'vscode-light',
  'hc-dark': 'vscode-high-contrast',
  'hc-light': 'vscode-high-contrast-light vscode-high-contrast',
};

export interface Bundle {
  readonly js: string;
  readonly css: string;
  /** The sheet of all pages. */
  readonly ui: string;
}
/** The page as shipped: minified, for the browser. */
export async function bundle(kind: PageKind): Promise<Bundle> {
  const r = await build({
    entryPoints: { [kind]: `webview/${kind}/main.ts`, ui: 'webview/ui/style.css' },
    outdir: 'out',
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    target: 'chrome128',
    format: 'iife',
    legalComments: 'none',
    logLevel: 'silent',
    loader: { '.ttf': 'file' },
    define: { __BUILD_TIME__: '0', __BUILD_VERSION__: '"test"' },
  });
  const text = (name: string): string => r.outputFiles.find((f) => f.path.endsWith(`/${name}`))?.text ?? '';
  return { js: text(`${kind}.js`), css: text(`${kind}.css`), ui: text('ui.css') };
}

/** A daemon's answer to a page's request; throw a HostError to fail it. */
export type Answer = (method: string, params: Readonly<Record<string, unknown>>) => unknown;
type Body = ToPage extends infer T ? (T extends { readonly boot: string } ? Omit<T, 'boot'> : never) : never;
export interface OpenOptions {
  readonly input: PageInput;
  readonly answer: Answer;
  /** Folders whose files the page may show. */
  readonly folders: readonly string[];
  /** How the page is told a folder's path; as it is, where it is left out. */
  readonly named?: (folder: string) => string;
  readonly theme?: Theme;
  /** Translations by their English. */
  readonly words?: Readonly<Record<string, string>>;
  readonly width?: number;
  readonly height?: number;
  readonly daemon?: DaemonState;
  /** What the page kept before. */
  readonly saved?: unknown;
  readonly reducedMotion?: boolean;
  /** Device pixels per CSS pixel. */
  readonly deviceScaleFactor?: number;
  /** Script that runs before those of the page. */
  readonly before?: string;
}

/** One page in a browser under its real content policy; this process is extension host and daemon. */
export class TestPage {
  readonly page: Page;
  readonly actions: HostAction[] = [];
  readonly requests: { readonly method: string; readonly params: Readonly<Record<string, unknown>> }[] = [];
  readonly subscriptions: Extract<ToHost, { type: 'subscribe' }>[] = [];
  /** Errors of the page, also those the content policy reports. */
  readonly faults: string[] = [];
  readonly titles: string[] = [];
  /** Requests that the page gave up. */
  readonly cancelled: number[] = [];
  readonly #server: Server;
  readonly #o: OpenOptions;
  /** What a page begins with, as its host knows it by now; and what goes on where the page is built again. */
  #input: PageInput;
  readonly #long = new LongRequests(
    (a) =>
      this.post(a).then(
        () => true,
        () => false,
      ),
    () => undefined,
  );
  #closed = false;
  #boot = '';
  #origin = '';
  /** What the page keeps over hiding and reload, and all that it kept before. */
  saved: unknown;
  readonly kept: unknown[] = [];

  private constructor(page: Page, server: Server, o: OpenOptions) {
    this.page = page;
    this.#server = server;
    this.#o = o;
    this.saved = o.saved;
    this.#input = o.input;
  }

  static async open(browser: Browser, b: Bundle, o: OpenOptions): Promise<TestPage> {
    const context = await browser.newContext({
      viewport: { width: o.width ?? 1280, height: o.height ?? 860 },
      ...(o.reducedMotion ? { reducedMotion: 'reduce' as const } : {}),
      ...(o.deviceScaleFactor === undefined ? {} : { deviceScaleFactor: o.deviceScaleFactor }),
    });
    if (o.before !== undefined) await context.addInitScript(o.before);
    const page = await context.newPage(),
      theme = o.theme ?? 'dark',
      nonce = newNonce();
    page.setDefaultTimeout(PATIENCE_MS);
    const types: Readonly<Record<string, string>> = {
      '.js': 'text/javascript',
      '.css': 'text/css',
      '.ttf': 'font/ttf',
      '.png': 'image/png',
    };
    const server = createServer((req, res) => {
      const path = decodeURIComponent((req.url ?? '/').split('?')[0]!),
        origin = t.#origin;
      const send = (type: string, body: string): void => {
        res.setHeader('content-type', type).end(body);
      };
      if (path === '/') {
        send('text/html', html(o, theme, nonce, origin, t.saved));
        return;
      }
      if (path === `/${o.input.kind}.js`) {
        send('text/javascript', b.js);
        return;
      }
      if (path === `/${o.input.kind}.css`) {
        send('text/css', b.css);
        return;
      }
      if (path === '/ui.css') {
        send('text/css', b.ui);
        return;
      }
      if (path === '/theme.css') {
        send('text/css', readFileSync('test/helpers/pages/theme.css', 'utf8'));
        return;
      }
      const file = path.startsWith('/codicon')
        ? resolve('node_modules/@vscode/codicons/dist', path.slice(1))
        : path.startsWith('/root/')
          ? resolve(path.slice('/root'.length))
          : '';
      if (!path.startsWith('/codicon') && !o.folders.some((f) => file.startsWith(resolve(f)))) {
        res.writeHead(404).end();
        return;
      }
      res
        .setHeader('content-type', types[extname(file)] ?? 'application/octet-stream')
        .setHeader('cache-control', 'max-age=3600');
      createReadStream(file)
        .on('error', () => {
          res.removeHeader('cache-control');
          res.writeHead(404).end();
        })
        .pipe(res);
    });
    const t: TestPage = new TestPage(page, server, o);
    await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
    t.#origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await page.exposeFunction('__toHost', (m) => {
      // An answer may come when the page is gone: that is no fault of either.
      t.#receive(m as ToHost | { readonly type: 'state'; readonly state: unknown }).catch((e: unknown) => {
        if (!t.#closed) t.faults.push(String(e));
      });
    });
    page.on('console', (m) => {
      if (m.type() === 'error' && !/404|Content Security Policy/.test(m.text())) t.faults.push(m.text());
    });
    page.on('pageerror', (e) => t.faults.push(e.message));
    await page.goto(t.#origin);
    return t;
  }
  post(b: Body, boot = this.#boot): Promise<void> {
    if (b.type === 'show') this.#input = b.input;
    return this.page.evaluate<void>(`__fromHost(${JSON.stringify({ ...b, boot })})`);
  }
  async close(): Promise<void> {
    this.#closed = true;
    await this.page.context().close();
    await new Promise<void>((r) => {
      this.#server.close(() => r());
      this.#server.closeAllConnections();
    });
  }
  /**
   * Waits until an expression is true in the page, looked at every frame. (Playwright's own waiting needs eval, which
   * the policy forbids.)
   */
  until(expression: string): Promise<void> {
    return this.page.evaluate<void>(
      `new Promise((ok, no) => { const t = performance.now(), go = () => { try { if (${expression}) ok(); else if (performance.now() - t > ${PATIENCE_MS}) no(new Error(${JSON.stringify(`not true after ${PATIENCE_MS / 1000} s: ${expression}`)})); else requestAnimationFrame(go); } catch (e) { no(e); } }; go(); })`,
    );
  }
  /**
   * Rules that the page breaks, each with the elements that do; once controls have taken over what they were told,
   * which takes them a frame.
   */
  async axe(source: string): Promise<readonly string[]> {
    await this.page.evaluate<void>('new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r())))');
    // Half a megabyte to parse: once a page.
    if (!(await this.page.evaluate<boolean>("typeof axe !== 'undefined'")))
      await this.page.evaluate<void>(`${source};undefined`);
    return this.page.evaluate<string[]>(
      `axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ') + ' (' + (n.any[0] ?? n.all[0] ?? n.none[0] ?? { message: '' }).message + ')').join(', ')))`,
    );
  }

  async #receive(m: ToHost | { readonly type: 'state'; readonly state: unknown }): Promise<void> {
    switch (m.type) {
      case 'state':
        this.saved = m.state;
        this.kept.push(m.state);
        return;
      case 'ready':
        this.#boot = m.boot;
        await this.post({
          type: 'init',
          input: this.#input,
          roots: this.#o.folders.map((path) => ({
            path: this.#o.named?.(path) ?? path,
            uri: `${this.#origin}/root${path}`,
          })),
          daemon: this.#o.daemon ?? 'ready',
          trusted: true,
          jobs: this.#long.jobs,
        });
        this.#long.tell();
        return;
      case 'now':
        this.#input = m.input;
        return;
      case 'request': {
        const params = m.params as Readonly<Record<string, unknown>>;
        this.requests.push({ method: m.method, params });
        this.#long.began(m.id, m.method, params);
        let body: Omit<Extract<ToPage, { type: 'response' }>, 'boot'>;
        try {
          body = { type: 'response', id: m.id, result: await this.#o.answer(m.method, params) };
        } catch (e) {
          body = {
            type: 'response',
            id: m.id,
            error: e instanceof Error ? { kind: 'internal', message: e.message, remedy: '' } : (e as HostError),
          };
        }
        // To the page that asked: another may have been built meanwhile, and counts its requests anew.
        if (this.#long.has(m.id)) await this.#long.ended(body);
        else await this.post(body, m.boot).catch(() => undefined);
        return;
      }
      case 'subscribe':
        this.subscriptions.push(m);
        return;
      case 'action':
        this.actions.push(m.action);
        return;
      case 'title':
        this.titles.push(m.title);
        return;
      case 'fault':
        this.faults.push(m.message);
        return;
      case 'lost':
        this.faults.push('the script of the page did not come');
        return;
      case 'cancel':
        this.cancelled.push(m.id);
        return;
    }
  }
}

function html(
  { input: { kind }, words }: OpenOptions,
  theme: Theme,
  nonce: string,
  origin: string,
  saved: unknown,
): string {
  const page = pageHtml({
    kind,
    title: kind,
    lang: 'en',
    words,
    nonce,
    sources: {
      cspSource: origin,
      script: `${origin}/${kind}.js`,
      styles: ['theme', 'codicon', 'ui', kind].map((name) => `${origin}/${name}.css`),
    },
    lost: { patienceMs: 60_000 },
  });
  const api = `<script nonce="${nonce}">{ let state = ${(JSON.stringify(saved) ?? 'undefined').replace(/</g, '\\u003c')}; window.acquireVsCodeApi = () => ({ postMessage: (m) => void __toHost(m), getState: () => state, setState: (s) => { state = s; void __toHost({ type: 'state', state: s }); } });
addEventListener('securitypolicyviolation', (e) => void __toHost({ type: 'fault', message: e.violatedDirective + ' ' + e.blockedURI + ' by ' + (e.composedPath()[0].outerHTML ?? '').slice(0, 300) }));
window.__fromHost = (m) => void dispatchEvent(new MessageEvent('message', { data: m })); }</script>`;
  return page
    .replace('<html ', `<html data-theme="${theme}" `)
    .replace('<body ', `<body class="${bodyClass[theme]}" data-vscode-theme-kind="${bodyClass[theme].split(' ')[0]}" `)
    .replace('<div id="app">', `${api}<div id="app">`);
}
