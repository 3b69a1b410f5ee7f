import { readFileSync } from 'node:fs';
import { descendants } from '../chaos/processes.js';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import type { Frame } from '../helpers/workbench/playwright.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { until } from '../helpers/workbench/workbench.js';
import { sampleOf, type Sample } from './sample.js';

/** Why no real window can be opened here; undefined where one can. */
export const whyNoWindow = (): string | undefined => whyNoWorkbench('latest');

const DRAWN =
  'new Promise((r) => { const t = performance.now(); requestAnimationFrame(() => r(performance.now() - t)); })';

/** VS Code with the packaged extension, attached to a daemon that is not its own, with a dashboard and a table open. */
export class SoakWindow {
  readonly #cockpit: Cockpit;
  #pages: readonly Frame[] = [];

  private constructor(cockpit: Cockpit) {
    this.#cockpit = cockpit;
  }
  static async open(): Promise<SoakWindow> {
    return new SoakWindow(await Cockpit.start({ which: 'latest' }));
  }
  /** Where the daemon must live that it attaches to. */
  get storage(): string {
    return this.#cockpit.storage;
  }

  /** Shows the run, whose daemon serves by now. */
  async show(run: string): Promise<void> {
    const { ui, w } = this.#cockpit,
      { host } = w;
    await host.command('dartStudio.startRuntime');
    await ui.openContainer();
    await host.command('dartStudio.openDashboard', run);
    const dashboard = await ui.webview('dashboard', { timeoutMs: 60_000 });
    await host.command('dartStudio.openTrajectoryTable', run);
    const table = await ui.webview('table', { timeoutMs: 60_000 });
    await host.command('workbench.action.moveEditorToNextGroup');
    this.#pages = [await ui.webview('dashboard').catch(() => dashboard), await ui.webview('table').catch(() => table)];
    await until(async () => (await this.drawn()).length === 2, 'both pages are drawn');
  }

  /** The extension host, and the browser's processes: the workbench and the pages in it. */
  sample(at: number): Sample[] {
    const host = this.#cockpit.w.host.record?.pid,
      mine = descendants(process.pid);
    return [
      ...(host === undefined ? [] : sampleOf(host, 'extension host', at)),
      ...[...mine].flatMap((pid) => (isRenderer(pid) ? sampleOf(pid, 'pages', at) : [])),
    ];
  }
  /** In the workbench and its pages: a browser with room to spare collects little of it by itself. */
  async collectGarbage(): Promise<void> {
    const { page } = this.#cockpit.w;
    for (const of of [page, ...page.frames()]) {
      // A frame that shares the process of the one around it has no session of its own.
      const session = await page
        .context()
        .newCDPSession(of)
        .catch(() => undefined);
      await session?.send('HeapProfiler.collectGarbage').catch(() => undefined);
      await session?.detach().catch(() => undefined);
    }
  }
  /** ms until each page that is shown draws its next picture. */
  async drawn(): Promise<number[]> {
    const out: number[] = [];
    for (const page of this.#pages) out.push(await page.evaluate<number>(DRAWN));
    return out;
  }

  async close(): Promise<void> {
    await this.#cockpit.w.stop();
  }
}

function isRenderer(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer');
  } catch {
    return false;
  }
}
