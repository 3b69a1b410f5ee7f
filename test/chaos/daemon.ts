import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { activeRunsFile, parseActiveRuns } from '../../runtime/protocol/activeRuns.js';
import { DEATHS, IDLE_DEATHS } from '../../runtime/service/activeRuns.js';
import { REACH_MS } from './patient.js';
import { processes } from './processes.js';
import type { Tail } from './tail.js';
import { Window } from './window.js';

const SERVES_MS = 60_000;

/** The bundle as a daemon, with something of ours loaded before it (`preload`), and one window. */
export class Daemon {
  readonly storage: string;
  readonly window: Window;
  readonly #base: string;
  readonly #tail: () => Tail | undefined;
  readonly #preload: string;
  #process: ChildProcess | undefined;

  /** `storage`: where it lives, a folder of its own in `base` without. */
  constructor(
    base: string,
    problems: string[],
    tail: () => Tail | undefined,
    preload = 'dist/chaos/hook.mjs',
    storage = join(base, 'storage'),
  ) {
    this.#preload = preload;
    this.#base = base;
    this.#tail = tail;
    this.storage = storage;
    mkdirSync(this.storage, { recursive: true });
    this.window = new Window(this.storage, problems);
    process.once('exit', () => this.#process?.kill('SIGKILL'));
  }

  get pid(): number {
    return this.#process!.pid!;
  }
  get alive(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null;
  }
  /** As a window does it: one that finds the lock of the last one still held (exit code 3) is started again. */
  async start(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const d = spawn(
        process.execPath,
        ['--import', resolve(this.#preload), resolve('dist/runtime.js'), 'serve', this.storage],
        {
          // As the extension starts it: Linux divides the processor among sessions first.
          detached: true,
          stdio: ['ignore', 'ignore', 'pipe'],
          env: { ...process.env, DART_CHAOS: this.#base },
        },
      );
      this.#process = d;
      let said = '';
      d.stderr.on('data', (text: Buffer) => {
        said = (said + text.toString()).slice(-2000);
      });
      await this.until(() => this.#serves() || !this.alive, SERVES_MS, 'the daemon serves');
      if (this.alive) break;
      if (tries === 20 || d.exitCode !== 3) throw new Error(`The daemon ended (code ${d.exitCode}): ${said}`);
      await after(250);
    }
    const { client } = this.window;
    if (client.state !== 'reconnecting') await client.connect({ start: false });
    await this.until(() => client.state === 'ready', SERVES_MS, 'the window is connected');
  }
  #serves(): boolean {
    try {
      const record = readFileSync(join(this.storage, 'daemon.json'), 'utf8');
      return (JSON.parse(record) as { pid: number }).pid === this.pid;
    } catch {
      return false;
    }
  }
  async kill(): Promise<void> {
    const d = this.#process!;
    if (!this.alive) return;
    const gone = new Promise((done) => d.once('exit', done));
    d.kill('SIGKILL');
    await gone;
  }
  /** One more death of the daemon, and its run is not resumed. */
  get nearlyLeft(): boolean {
    const file = join(this.storage, activeRunsFile);
    if (!existsSync(file)) return false;
    return parseActiveRuns(readFileSync(file, 'utf8')).some(
      (r) => r.deaths + 1 >= DEATHS || r.idleDeaths + 1 >= IDLE_DEATHS,
    );
  }
  /** Processes under the daemon whose command line has this word. */
  children(word: string): number[] {
    return processes()
      .filter((p) => p.parent === this.pid && p.what.includes(word))
      .map((p) => p.pid);
  }

  /** Arms a place; false when nobody comes there in time. */
  async at(place: string, ms = REACH_MS): Promise<boolean> {
    const armed = join(this.#base, 'armed');
    writeFileSync(armed, place);
    const hit = await this.when(() => !existsSync(armed), ms);
    rmSync(armed, { force: true });
    return hit || this.#hit(place);
  }
  /** It may have been taken just as it was given up. */
  #hit(place: string): boolean {
    return !this.alive && existsSync(join(this.#base, 'hits')) && this.#hits().at(-1) === place;
  }
  #hits(): string[] {
    return readFileSync(join(this.#base, 'hits'), 'utf8').trim().split('\n');
  }
  async command(text: string): Promise<boolean> {
    const file = join(this.#base, 'command');
    writeFileSync(file, text);
    return this.when(() => !existsSync(file), REACH_MS);
  }
  async when(so: () => boolean, ms: number): Promise<boolean> {
    for (const end = performance.now() + ms; performance.now() < end; await after(20)) {
      this.#tail()?.poll();
      if (so()) return true;
    }
    return so();
  }
  async until(so: () => boolean, ms: number, what: string): Promise<void> {
    if (!(await this.when(so, ms))) throw new Error(`It took more than ${ms / 1000} s until ${what}.`);
  }
}
