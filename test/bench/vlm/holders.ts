import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { DaemonClient } from '../../../extension/daemon/client.js';
import { runPaths } from '../../../runtime/data/store/runMeta.js';
import { withDeadline } from '../../../runtime/concurrency/deadline.js';
import type { Recovered } from '../../../runtime/protocol/activeRuns.js';
import * as methods from '../../../runtime/protocol/methods.js';
import { folderOf, startWith, type Command, type Ended, type JournalWriter } from '../../helpers/run/cli.js';

/** A daemon that starts says at once what it does about runs that were active. */
const RECOVERY_MS = 120_000;

/** Who holds a run that kills meet: `train` in the foreground, or the daemon that windows share. */

/** How it went on after a kill. */
export type Resumed = 'itself' | 'request';
export interface Holder {
  readonly run: string;
  readonly writer: JournalWriter;
  /** kill -9; resolves when the process is gone. */
  kill(): Promise<void>;
  /** After a kill. */
  goOn(): Promise<{ readonly holder: Holder; readonly resumed: Resumed }>;
  /** Ends the run in order. Rejects where it does not end so. */
  stop(): Promise<void>;
}
type Environment = Readonly<Record<string, string>>;

/** `train FILE` in a process group of its own. `text`: the run file. */
export async function heldByCommand(dir: string, text: string, env: Environment): Promise<Holder> {
  const file = join(dir, 'run.json'),
    to = ['--json', '--runs', join(dir, 'runs')];
  await writeFile(file, text);
  const command = startWith(env, 'train', file, ...to),
    run = await folderOf(command);
  const of = (c: Command): Holder => ({
    run,
    writer: c,
    async kill() {
      c.signal('SIGKILL', true);
      await c.ended;
    },
    goOn: () => Promise.resolve({ holder: of(startWith(env, 'train', '--resume', run, ...to)), resumed: 'request' }),
    async stop() {
      c.signal('SIGINT', false);
      const { code, stderr } = await c.ended;
      if (code !== 130) throw new Error(`the run did not end in order (${code}):\n${stderr}`);
    },
  });
  return of(command);
}

/** A daemon that is started, attached to and asked as the extension does: its record, its token, its WebSocket. */
export async function heldByDaemon(dir: string, text: string, env: Environment): Promise<Holder> {
  const first = await Window.open(join(dir, 'storage'), env),
    { run } = await first.client.request(methods.startRun, { text, base: dir });
  return new DaemonHolder(first, run, () => Window.open(join(dir, 'storage'), env));
}

/** A window's connection. */
class Window {
  readonly client: DaemonClient;
  readonly #recovered: Recovered[] = [];
  #heard: (() => void)[] = [];

  static async open(storage: string, env: Environment): Promise<Window> {
    const window = new Window(storage, env);
    await window.client.connect({ start: true });
    window.#recovered.push(...(window.client.hello!.recovered ?? []));
    return window;
  }
  private constructor(storage: string, env: Environment) {
    const build = JSON.parse(readFileSync('dist/build.json', 'utf8')) as { version: string; time: number };
    this.client = new DaemonClient({
      ...{ storage, env, build, client: 'kills', log: () => undefined },
      runtime: resolve('dist/runtime.js'),
    });
    this.client.on(methods.runRecovered, (r) => {
      this.#recovered.push(r);
      for (const wake of this.#heard.splice(0)) wake();
    });
  }
  /** What the daemon, which has just started, did of itself about a run that was active. */
  async recovered(run: string): Promise<Recovered> {
    for (;;) {
      const found = this.#recovered.find((r) => r.run === run);
      if (found) return found;
      await withDeadline(
        RECOVERY_MS,
        [],
        (signal) =>
          new Promise<void>((wake, lost) => {
            this.#heard.push(wake);
            signal.addEventListener('abort', () => {
              lost(new Error(`the daemon that was started again says nothing of ${run}: it is lost`));
            });
          }),
      );
    }
  }
}

class DaemonHolder implements Holder {
  readonly run: string;
  readonly writer: JournalWriter;
  readonly #window: Window;
  readonly #again: () => Promise<Window>;

  constructor(window: Window, run: string, again: () => Promise<Window>) {
    this.run = run;
    this.#window = window;
    this.#again = again;
    const over = endOf(window.client, run);
    this.writer = {
      ended: over,
      async hear() {
        while (!existsSync(runPaths(run).journal)) await after(20);
        return {};
      },
    };
  }
  async kill(): Promise<void> {
    const { client } = this.#window,
      { pid } = client.hello!;
    // A window that is there would start the next one at once.
    client.dispose();
    process.kill(pid, 'SIGKILL');
    while (existsSync(`/proc/${pid}`)) await after(20);
  }
  async goOn(): Promise<{ readonly holder: Holder; readonly resumed: Resumed }> {
    const window = await this.#again(),
      { outcome } = await window.recovered(this.run);
    if (outcome !== 'resumed') await window.client.request(methods.resumeRun, { run: this.run });
    const holder = new DaemonHolder(window, this.run, this.#again);
    return { holder, resumed: outcome === 'resumed' ? 'itself' : 'request' };
  }
  async stop(): Promise<void> {
    const { client } = this.#window,
      { state, error } = await client.request(methods.stopRun, { run: this.run });
    await client.shutdown();
    client.dispose();
    if (state !== 'stopped') throw new Error(`the run did not end in order (${state}): ${error?.message ?? ''}`);
  }
}
/** Resolves when the run, or the daemon, is over although nobody here ended it. */
const endOf = (client: DaemonClient, run: string): Promise<Ended> =>
  new Promise((done) => {
    const over = (why: string): void => {
      done({ code: 1, signal: null, stdout: '', stderr: why });
    };
    client.on(methods.runsChanged, (r) => {
      if (r.run === run && ['finished', 'stopped', 'failed', 'interrupted'].includes(r.state)) over(`it is ${r.state}`);
    });
    client.onState((s) => {
      if (s === 'reconnecting' || s === 'stopped') over('the daemon is gone');
    });
  });
