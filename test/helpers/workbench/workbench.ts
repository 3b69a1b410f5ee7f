import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { isAlive } from '../machine/processes.js';
import { Host } from './host.js';
import type { Browser, Page } from './playwright.js';
import { chromium, rig, type Which } from './rig.js';

const execute = promisify(execFile);

/** User settings under which a workbench is quiet and looks the same every time. */
const quiet = {
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Dark Modern',
  'window.autoDetectColorScheme': false,
  'window.autoDetectHighContrast': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.tips.enabled': false,
  'workbench.enableExperiments': false,
  'chat.disableAIFeatures': true,
  'chat.commandCenter.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'files.simpleDialog.enable': true,
  'window.dialogStyle': 'custom',
  'workbench.reduceMotion': 'on',
  'editor.minimap.enabled': false,
  'git.enabled': false,
  'git.openRepositoryInParentFolders': 'never',
};
/** Icons and progress bars move in spite of `workbench.reduceMotion`: a tenth of what a live run costs here is their drawing. */
const STILL = `{
  const still = new CSSStyleSheet();
  still.replaceSync('*, ::before, ::after { animation: none !important }');
  document.adoptedStyleSheets.push(still);
}`;
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface WorkbenchOptions {
  readonly which: Which;
  /** Workspace trust is asked for: starts in Restricted Mode. */
  readonly restricted?: boolean;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Files of the workspace folder by relative path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Puts more than texts into the workspace folder, before the window opens. */
  readonly prepare?: (folder: string) => Promise<void>;
}

/**
 * A VS Code workbench with the packaged extension installed: a server of its own, a browser of its own, folders of its
 * own.
 */
export class Workbench {
  readonly dir: string;
  /** The workspace folder. */
  readonly folder: string;
  readonly host: Host;
  readonly #server: ChildProcess;
  readonly #url: string;
  readonly #browser: Browser;
  page: Page;
  /** Errors of the page's console, for a failed test's message. */
  readonly errors: string[] = [];

  private constructor(dir: string, token: string, server: ChildProcess, url: string, browser: Browser, page: Page) {
    this.dir = dir;
    this.folder = join(dir, 'ws');
    this.#server = server;
    this.#url = url;
    this.#browser = browser;
    this.page = page;
    this.host = new Host(join(dir, 'hosts'), token, this.folder);
  }

  static async start(o: WorkbenchOptions): Promise<Workbench> {
    const r = rig(),
      dir = mkdtempSync(join(tmpdir(), 'dart-e2e-')),
      install = r[o.which]!,
      token = randomBytes(32).toString('hex');
    for (const d of ['home', 'user/User', 'user/Machine', 'ext', 'ws', 'hosts'])
      mkdirSync(join(dir, d), { recursive: true });
    writeFileSync(join(dir, 'user/User/settings.json'), JSON.stringify({ ...quiet, ...o.settings }));
    // The workbench is remote here: settings of scope `machine` count only from the machine's own file.
    writeFileSync(join(dir, 'user/Machine/settings.json'), JSON.stringify(o.settings ?? {}));
    for (const [f, content] of Object.entries(o.files ?? {})) {
      mkdirSync(dirname(join(dir, 'ws', f)), { recursive: true });
      writeFileSync(join(dir, 'ws', f), content);
    }
    await o.prepare?.(join(dir, 'ws'));
    const node = join(install, 'node_modules/node/bin');
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(([k]) => !/^(npm_|VITEST|NODE_|VSCODE_|INIT_CWD)/.test(k)),
    );
    const env = {
      ...inherited,
      PATH: existsSync(node) ? node + delimiter + process.env['PATH']! : process.env['PATH']!,
      HOME: join(dir, 'home'),
      EXTENSIONS_GALLERY: '{"serviceUrl":""}',
      DART_STUDIO_CACHE: r.cache,
      E2E_HOSTS: join(dir, 'hosts'),
      E2E_TOKEN: token,
      ...o.env,
    };
    const bin = join(install, 'node_modules/.bin/code-server'),
      where = [
        '--extensions-dir',
        join(dir, 'ext'),
        '--user-data-dir',
        join(dir, 'user'),
        '--config',
        join(dir, 'config.yaml'),
      ];
    await execute(bin, [...where, '--install-extension', r.vsix!, '--install-extension', r.helper!, '--force'], {
      env,
    });
    const server = spawn(
      bin,
      [
        ...where,
        '--bind-addr',
        '127.0.0.1:0',
        '--auth',
        'none',
        '--disable-telemetry',
        '--disable-update-check',
        '--disable-getting-started-override',
        ...(o.restricted ? [] : ['--disable-workspace-trust']),
        '-e',
        join(dir, 'ws'),
      ],
      { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    );
    const log = createWriteStream(join(dir, 'server.log'));
    server.stderr.pipe(log);
    const url = await new Promise<string>((done, fail) => {
      createInterface({ input: server.stdout }).on('line', (l) => {
        log.write(l + '\n');
        const m = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(l);
        if (m) done(m[1]!);
      });
      server.once('exit', (code) => fail(new Error(`code-server ended (exit code ${code}); see ${dir}/server.log`)));
    });
    const browser = await chromium().launch({ executablePath: r.browser!, headless: true, args: flags });
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, reducedMotion: 'reduce' });
    await context.addInitScript(STILL);
    const page = await context.newPage();
    const w = new Workbench(dir, token, server, url, browser, page);
    await w.#open(page);
    return w;
  }

  async #open(page: Page): Promise<void> {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('console', (m) => {
      if (m.type() === 'error') this.errors.push(m.text());
    });
    await page.goto(`${this.#url}/?folder=${this.folder}`, { waitUntil: 'domcontentloaded' });
    await this.ready(page);
  }
  /** The workbench is drawn and its extension host answers. */
  async ready(page = this.page): Promise<void> {
    await page.locator('.monaco-workbench').waitFor();
    await until(async () => {
      try {
        return (await this.host.run((v) => v.version)) !== '';
      } catch {
        return false;
      }
    }, 'the extension host answers');
  }
  /** Developer: Reload Window; resolves when a new extension host answers. */
  async reload(): Promise<void> {
    const left = this.#leaves();
    await Promise.all([left, this.host.begin('workbench.action.reloadWindow')]);
    // The old page starts another host when its own ends before it does: that one goes with the page.
    const before = this.host.record?.pid;
    this.host.renew();
    await this.#newHost(before);
  }
  /** The present document has made room for another one. */
  async #leaves(): Promise<void> {
    const { page } = this,
      timeout = 90_000;
    await page.waitForEvent('request', {
      predicate: (r) => r.isNavigationRequest() && r.frame() === page.mainFrame(),
      timeout,
    });
    await page.waitForEvent('framenavigated', { predicate: (f) => f === page.mainFrame(), timeout });
  }
  /** The same from outside the window, whatever state that is in. */
  async reopen(): Promise<void> {
    const before = this.host.record?.pid;
    this.host.renew();
    await this.page.goto(`${this.#url}/?folder=${this.folder}`, { waitUntil: 'domcontentloaded' });
    await this.#newHost(before);
  }
  /** No window is open meanwhile, and no extension host lives. */
  async windowless(work: () => Promise<void>): Promise<void> {
    const before = this.host.record?.pid;
    this.host.renew();
    await this.page.goto('about:blank');
    await until(() => before === undefined || !isAlive(before), 'the extension host ends with its window', 90_000);
    try {
      await work();
    } finally {
      await this.page.goto(`${this.#url}/?folder=${this.folder}`, { waitUntil: 'domcontentloaded' });
      await this.#newHost(before);
    }
  }
  async #newHost(before: number | undefined): Promise<void> {
    await until(
      () => this.host.record !== undefined && this.host.record.pid !== before,
      'a new extension host starts',
      90_000,
    );
    await this.ready();
  }
  /** Another window on the same folder. */
  async secondWindow(): Promise<Page> {
    this.host.stay();
    const page = await this.page.context().newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${this.#url}/?folder=${this.folder}`, { waitUntil: 'domcontentloaded' });
    await page.locator('.monaco-workbench').waitFor();
    return page;
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    const gone = new Promise((done) => {
      if (this.#server.exitCode !== null || this.#server.signalCode !== null) done(undefined);
      else this.#server.once('exit', done);
    });
    try {
      process.kill(-this.#server.pid!, 'SIGTERM');
    } catch {
      /* it has ended */
    }
    await gone;
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** How long a busy machine may take until something has to be there, ms. A test as a whole has several times as long. */
export const PATIENCE_MS = 120_000;
/** Whether what is waited for came, or was given up. */
export const came = (waited: Promise<unknown>): Promise<boolean> =>
  waited.then(
    () => true,
    () => false,
  );
/** Waits for a condition that has no event on this side of the browser; looks ten times a second. */
export async function until(
  so: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = PATIENCE_MS,
): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await so())) {
    if (Date.now() > end) throw new Error(`waited ${timeoutMs / 1000} s in vain: ${what}`);
    await new Promise((r) => setTimeout(r, 100));
  }
}
