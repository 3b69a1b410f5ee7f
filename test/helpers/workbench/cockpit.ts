import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DiscoveryRecord } from '../../../runtime/protocol/version.js';
import type { RunFile } from '../../../runtime/config/index.js';
import { isAlive } from '../machine/processes.js';
import { Ui } from './ui.js';
import { until, Workbench, type WorkbenchOptions } from './workbench.js';

export const extensionId = 'dart-studio.dart-studio';
export const screenshots = 'test/e2e/screenshots';

/**
 * A short and a long task, two desktops, no reading lessons: rollouts of up to 13 steps come within half a minute, and
 * go on until the run is stopped.
 */
export const tinyRun = (provider: 'docker' | 'local'): string =>
  JSON.stringify(
    {
      name: 'tiny',
      seed: 3,
      tasks: { families: ['press-button', 'form-two'] },
      desktops: { count: 2, provider },
      policy: { replicas: 1 },
      rollout: { maxSteps: 13 },
      curation: { dynamicRollouts: { max: 4 }, dynamicLength: { enabled: false } },
      trainer: { batchGroups: 1, epochs: 1, replay: 4 },
      warmStart: { demonstrations: 2, steps: 10 },
      evaluation: { episodes: 2, everyMinutes: 0 },
    } satisfies RunFile,
    null,
    2,
  );

/** The extension in a workbench. */
export class Cockpit {
  readonly w: Workbench;
  readonly ui: Ui;
  private constructor(w: Workbench) {
    this.w = w;
    this.ui = new Ui(w.page);
  }
  static async start(o: WorkbenchOptions): Promise<Cockpit> {
    return new Cockpit(await Workbench.start(o));
  }

  /** The extension's global storage: where the daemon lives. */
  get storage(): string {
    return join(this.w.dir, 'user/User/globalStorage', extensionId);
  }
  /** The runtime that was installed with the extension. */
  get bundle(): string {
    const extensions = join(this.w.dir, 'ext'),
      name = readdirSync(extensions).find((f) => f.startsWith(extensionId));
    return join(extensions, name!, 'dist', 'runtime.js');
  }
  /** The daemon's record; undefined where none was started. */
  get daemon(): DiscoveryRecord | undefined {
    try {
      return JSON.parse(readFileSync(join(this.storage, 'daemon.json'), 'utf8')) as DiscoveryRecord;
    } catch {
      return undefined;
    }
  }
  /** Run folders of the workspace. */
  get runs(): readonly string[] {
    const dir = join(this.w.folder, 'runs');
    return existsSync(dir)
      ? readdirSync(dir)
          .filter((f) => existsSync(join(dir, f, 'run.json')))
          .map((f) => join(dir, f))
      : [];
  }
  get isActive(): Promise<boolean> {
    return this.w.host.run((v, id) => v.extensions.getExtension(id)?.isActive ?? false, extensionId);
  }

  /** What a picture of a failure shows. */
  async picture(name: string): Promise<void> {
    await this.w.page.screenshot({ path: join(screenshots, `${name}.png`) });
  }

  async setTheme(name: string): Promise<void> {
    await this.w.host.run(async (v, n) => {
      await v.workspace.getConfiguration('workbench').update('colorTheme', n, v.ConfigurationTarget.Global);
    }, name);
  }
  /** Shows the tab at a place, counted from 1. */
  async showTab(at: number): Promise<void> {
    await this.w.host.command(`workbench.action.openEditorAtIndex${at}`);
  }
  async closeEditors(): Promise<void> {
    await this.w.host.command('workbench.action.closeAllEditors');
  }
  /** Labels of the open tabs. */
  get tabs(): Promise<readonly string[]> {
    return this.w.host.run((v) => v.window.tabGroups.all.flatMap((g) => g.tabs.map((t) => t.label)));
  }

  /** The daemon of this workbench ends, with whatever it trains. */
  async endDaemon(): Promise<void> {
    const d = this.daemon;
    if (d && isAlive(d.pid)) {
      try {
        process.kill(d.pid, 'SIGTERM');
      } catch {
        /* it has ended */
      }
      await until(() => !isAlive(d.pid), `the daemon (pid ${d.pid}) ends`, 60_000).catch(() => {
        try {
          process.kill(d.pid, 'SIGKILL');
        } catch {
          /* it has ended */
        }
      });
    }
  }
  async stop(): Promise<void> {
    await this.endDaemon();
    await this.w.stop();
  }
}
