import { basename, join } from 'node:path';
import { it, onTestFailed } from 'vitest';
import { isAlive } from '../machine/processes.js';
import type { Cockpit } from './cockpit.js';
import type { Frame } from './playwright.js';
import { until } from './workbench.js';

const sections = ['Tasks', 'Desktops', 'Trajectories', 'Experience Pool'] as const;
export type Section = (typeof sections)[number];
type RunState = 'running' | 'paused' | 'stopping' | 'finished' | 'stopped' | 'failed' | 'interrupted';

/**
 * What a flow takes as given. Each brings the workbench there from wherever the flow before left it, and does nothing
 * where it is so already: flows share one training run, yet any of them can run alone, and one that fails takes none
 * of the others along. They work by commands; what a person does is for the flows themselves.
 */
export class Given {
  readonly #c: Cockpit;
  /** The name in the run file, which is also that file's: `NAME.dart-run.json`. */
  readonly #name: string;
  #hasFailed = false;
  constructor(c: Cockpit, name = 'tiny') {
    this.#c = c;
    this.#name = name;
  }

  /** The flow under way failed: the next one gets a window and a runtime of its own. */
  failed(): void {
    this.#hasFailed = true;
  }

  /** Nothing is open and nothing is asked: no dialog, quick pick, editor or notification. */
  async clearWorkbench(): Promise<void> {
    const { host, page } = this.#c.w;
    if (this.#hasFailed) {
      await this.#c.endDaemon();
      await this.#c.w.reopen();
      this.#hasFailed = false;
    }
    const asks = page.locator('.monaco-dialog-box, .quick-input-widget').filter({ visible: true });
    await until(async () => {
      if ((await asks.count()) === 0) return true;
      await page.keyboard.press('Escape');
      return false;
    }, 'every dialog and quick pick is closed');
    // A window that has just opened may be writing its settings, whose document is dirty meanwhile and opens for nobody.
    await until(
      () =>
        host.run(async (v) => {
          try {
            for (const d of v.workspace.textDocuments.filter((x) => x.isDirty)) {
              await v.window.showTextDocument(d);
              await v.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
            }
            return true;
          } catch {
            return false;
          }
        }),
      'no document has unsaved changes',
    );
    await host.run(async (v) => {
      await v.commands.executeCommand('workbench.action.closeAllEditors');
      await v.commands.executeCommand('notifications.clearAll');
    });
  }

  /** The side bar shows Runs and these sections. */
  async sideBar(...open: Section[]): Promise<void> {
    await this.#c.ui.openContainer();
    await this.#c.ui.expand('Runs');
    for (const title of sections) {
      if (open.includes(title)) await this.#c.ui.expand(title);
      else await this.#c.ui.collapse(title);
    }
  }

  /** The extension sleeps, in a window in which nothing of it was asked for yet. */
  async nothingStarted(): Promise<void> {
    await this.noRuntime();
    if (!(await this.#c.isActive)) return;
    await this.#c.w.host.command('workbench.view.explorer');
    await this.#c.w.reload();
  }
  async noRuntime(): Promise<void> {
    const d = this.#c.daemon;
    if (!d || !isAlive(d.pid)) return;
    await this.noTraining();
    await this.#c.w.host.command('dartStudio.stopRuntime');
    await until(() => !isAlive(d.pid), 'the runtime has ended', 60_000);
    await this.#c.w.host.command('notifications.clearAll');
  }
  /** This window is attached to a runtime and lists the runs of the workspace. */
  async runtime(): Promise<void> {
    const { host } = this.#c.w;
    await host.command('dartStudio.startRuntime');
    await this.#c.ui.openContainer();
    await this.#c.ui.expand('Runs');
    await host.command('dartStudio.refresh');
    await until(
      async () => (await this.#c.ui.rows('Runs')).length >= this.#c.runs.length,
      'the runs of the workspace are listed',
      60_000,
    );
  }

  /**
   * A runtime runs, and this window found it: it asked for none, so it starts none by itself either when that one ends.
   */
  async attachedOnly(): Promise<void> {
    await this.runtime();
    await this.#c.w.reload();
    await this.#c.ui.openContainer();
    await this.#c.ui.expand('Runs');
    await until(
      async () => (await this.#c.ui.rows('Runs')).length >= this.#c.runs.length,
      'the runs of the workspace are listed',
      60_000,
    );
  }

  /** Its folder: the newest of this name. */
  get runFolder(): string | undefined {
    return this.#c.runs.filter((r) => basename(r).includes(this.#name)).at(-1);
  }
  async #state(): Promise<RunState | undefined> {
    const row = (await this.#c.ui.rows('Runs')).find((r) => r.startsWith(`${this.#name}, `));
    return /, (running|paused|stopping|finished|stopped|failed|interrupted)\b/.exec(row ?? '')?.[1] as
      RunState | undefined;
  }
  async #reaches(...states: RunState[]): Promise<void> {
    await until(
      async () => {
        const s = await this.#state();
        return s !== undefined && states.includes(s);
      },
      `${this.#name} is ${states.join(' or ')}`,
      90_000,
    );
  }

  /** The run trains, and rollouts of training (not only of the evaluation before it) have ended. */
  async training(): Promise<void> {
    const { host, folder } = this.#c.w;
    await this.runtime();
    if ((await this.#state()) === 'stopping') await this.#reaches('stopped', 'finished', 'failed');
    switch (await this.#state()) {
      case 'running':
        break;
      case 'paused':
        await host.command('dartStudio.resume');
        break;
      case undefined:
        await host.run(
          (v, file) => {
            void v.commands.executeCommand('dartStudio.startTrainingWithFile', v.Uri.file(file));
          },
          join(folder, `${this.#name}.dart-run.json`),
        );
        break;
      default:
        await host.begin('dartStudio.resumeRun', this.runFolder);
        await this.#c.ui.pick('As set in its run file');
    }
    await this.#reaches('running');
    await this.#select();
    await this.sideBar('Trajectories');
    await this.#c.ui.row('Trajectories', /\d+ steps · v\d/).waitFor({ timeout: 180_000 });
    await host.command('notifications.clearAll');
  }
  /** No run is under way. */
  async noTraining(): Promise<void> {
    await this.runtime();
    const state = await this.#state();
    if (state === 'running' || state === 'paused') await this.#c.w.host.command('dartStudio.stopTraining');
    if (state === 'running' || state === 'paused' || state === 'stopping')
      await this.#reaches('stopped', 'finished', 'failed');
    await this.#c.w.host.command('notifications.clearAll');
  }
  /** The run trained and was stopped; it is the one selected. */
  async trained(): Promise<void> {
    await this.runtime();
    const state = await this.#state();
    if (state === undefined || state === 'interrupted' || state === 'failed') await this.training();
    await this.noTraining();
    await this.#reaches('stopped', 'finished');
    await this.#select();
  }
  async #select(): Promise<void> {
    await this.#c.w.host.command('dartStudio.selectRun', this.runFolder);
  }

  /** What each page shows, in a few words. */
  async pages(): Promise<string> {
    const said = this.#c.w.page
      .frames()
      .map((f) =>
        f
          .evaluate<string>(
            "document.body?.dataset.page ? `${document.body.dataset.page} page, ${innerWidth} px wide: ${document.body.innerText.replace(/\\s+/g, ' ').slice(0, 300)}` : ''",
          )
          .catch(() => ''),
      );
    return (await Promise.all(said)).filter((s) => s !== '').join('\n');
  }

  /** The dashboard of the run, which exists. */
  async dashboard(): Promise<Frame> {
    await this.#c.w.host.command('dartStudio.openDashboard', this.runFolder);
    const page = await this.#c.ui.webview('dashboard', { timeoutMs: 60_000 });
    // VS Code closes the panel of a page that has saved nothing when its window is reloaded.
    await page.locator('.state').first().waitFor();
    return page;
  }
  /** The inspector on an ended rollout of the run with others of its group to compare it with. */
  async inspector(): Promise<Frame> {
    await this.sideBar('Trajectories');
    const ended = this.#c.ui
      .section('Trajectories')
      .locator('.monaco-list-row[aria-label*="success, "], .monaco-list-row[aria-label*="failure, "]');
    let page!: Frame,
      tried = 0;
    await until(
      async () => {
        const there = await ended.count();
        if (there === 0) return false;
        // The list grows at its top while training goes on, and a low view shows half a row: a press may miss.
        const shown = async (): Promise<void> => {
          await ended.nth(tried++ % there).click({ timeout: 5000 });
          page = await this.#c.ui.webview('inspector', { timeoutMs: 10_000 });
          await page.locator('.ds-sibling button.compare').first().waitFor({ state: 'attached', timeout: 5000 });
          // A press on a list that grows may hit the neighbour: one that the runtime's end cut off has no steps.
          await page.locator('.ds-badge-slot .ds-outcome:is(.success, .failure)').waitFor({ timeout: 5000 });
          await page.locator('.ds-shot').first().waitFor({ timeout: 5000 });
        };
        return shown().then(
          () => true,
          () => false,
        );
      },
      'a rollout with others of its group is shown',
      120_000,
    );
    return page;
  }
}

/**
 * A flow through the workbench as a test. It begins with nothing open, states what it takes as given, and leaves a
 * picture when it fails. The limit is longer than all waits of a flow together: each of these says what it waited for,
 * and a flow that vitest gives up would go on pressing keys in the next one.
 */
export const flowIn =
  (given: () => Given, picture: (name: string) => Promise<void>, timeoutMs = 600_000) =>
  (name: string, f: () => Promise<void>): void => {
    it(
      name,
      async () => {
        onTestFailed(async () => {
          given().failed();
          await picture(`failed-${name.replace(/\W+/g, '-').slice(0, 60)}`);
        });
        await given().clearWorkbench();
        try {
          await f();
        } catch (e) {
          // A picture stays where the test ran; what the pages said goes wherever its report goes.
          if (e instanceof Error) e.message += `\n${await given().pages()}`;
          throw e;
        }
      },
      timeoutMs,
    );
  };
