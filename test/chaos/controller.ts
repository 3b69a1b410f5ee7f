import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { DaemonClient } from '../../extension/daemon/client.js';
import * as methods from '../../runtime/protocol/methods.js';
import { audit, type Audit } from './auditor.js';
import { damageFaults, liveFaults, type Fault, type Patient } from './faults.js';
import { processes } from './processes.js';
import { Tail } from './tail.js';

export interface ChaosReport {
  readonly kills: number;
  readonly seed: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly skipped: number;
  readonly trained_twice: number;
  readonly redone_steps: number;
  readonly corrupt: number;
  readonly orphans: number;
  /** From the end of a fault, or from its detection, to the first step that was accepted after it. */
  readonly recovery_max_ms: number;
  readonly steps: number;
  readonly versions: number;
  readonly by_kind: Readonly<Record<string, { readonly n: number; readonly recovery_max_ms: number }>>;
  /** Faults whose place was not come to in time; others were made instead. */
  readonly missed: readonly string[];
  readonly problems: readonly string[];
}

/** A run that has accepted nothing for so long has not recovered. */
const GIVE_UP_MS = 180_000;
/** How long the place of a fault is waited for. */
const REACH_MS = 30_000;
const DISK = '512m';

const RUN_FILE = {
  name: 'chaos',
  seed: 3,
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { count: 2, provider: 'local' },
  policy: { replicas: 2 },
  rollout: { maxSteps: 4 },
  curation: { dynamicRollouts: { max: 4 } },
  trainer: { batchGroups: 1 },
  warmStart: { demonstrations: 2, steps: 10 },
  evaluation: { episodes: 0 },
  budget: { minutes: 600 },
};

/** One daemon, one run, one window, and what happens to them. */
export class Chaos implements Patient {
  readonly base = mkdtempSync(join(tmpdir(), 'dart-chaos-'));
  /** The run folder is on a small file system of its own where one can be made. */
  readonly disk = join(this.base, 'disk');
  readonly mounted: boolean;
  readonly storage = join(this.base, 'storage');
  folder = '';
  tail!: Tail;
  readonly damaged = new Set<number>();
  readonly problems: string[] = [];
  readonly #kills: number;
  readonly #seed: number;
  readonly #only: readonly string[] | undefined;
  #state: number;
  #daemon: ChildProcess | undefined;
  #client: DaemonClient | undefined;

  constructor(kills: number, seed: number, only?: readonly string[]) {
    this.#kills = kills;
    this.#seed = seed;
    this.#only = only;
    this.#state = seed >>> 0 || 1;
    for (const d of [this.disk, this.storage]) mkdirSync(d, { recursive: true });
    this.mounted = mount(this.disk);
  }

  async run(): Promise<ChaosReport> {
    const done: { kind: string; ms: number }[] = [],
      missed: string[] = [];
    let strict: Audit | undefined;
    try {
      await this.#begin();
      const damages = this.#only ? 0 : Math.floor(this.#kills / 5);
      const pick = (from: Readonly<Record<string, Fault>>): string[] => {
        const names = Object.keys(from).filter((k) => !this.#only || this.#only.includes(k));
        return names
          .map((k) => ({ k, x: this.random() }))
          .sort((a, b) => a.x - b.x)
          .map((o) => o.k);
      };
      const all = { ...liveFaults, ...damageFaults };
      for (let queue: string[] = []; done.length < this.#kills && this.problems.length === 0;) {
        const last = done.length >= this.#kills - damages;
        if (last && !strict) {
          strict = audit(this.folder, this.tail.seen, this.damaged, false);
          queue = [];
        }
        if (queue.length === 0) queue = pick(last ? damageFaults : this.#only ? all : liveFaults);
        const kind = queue.shift()!;
        await after(300 + 1500 * this.random());
        if (!(await all[kind]!(this))) {
          missed.push(kind);
          if (missed.length > 3 * this.#kills + 20) this.problems.push('faults do not come to their places');
          continue;
        }
        const ms = await this.#recovered(kind);
        done.push({ kind, ms });
        process.stderr.write(`${done.length} ${kind}: ${Math.round(ms)} ms\n`);
      }
    } catch (e) {
      this.problems.push(e instanceof Error ? (e.stack ?? e.message) : String(e));
    }
    return this.#report(done, missed, strict);
  }

  /** A number in [0, 1) that the seed decides. */
  random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
  }

  // the daemon and what belongs to it

  get pid(): number {
    return this.#daemon!.pid!;
  }
  get alive(): boolean {
    return this.#daemon?.exitCode === null && this.#daemon.signalCode === null;
  }
  async startDaemon(): Promise<void> {
    this.#daemon = spawn(
      process.execPath,
      ['--import', resolve('dist/chaos/hook.mjs'), resolve('dist/runtime.js'), 'serve', this.storage],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, DART_CHAOS: this.base } },
    );
    await this.connect();
  }
  async killDaemon(): Promise<void> {
    const d = this.#daemon!;
    if (this.alive) {
      const gone = new Promise((done) => d.once('exit', done));
      d.kill('SIGKILL');
      await gone;
    }
  }
  async connect(): Promise<void> {
    this.#client?.dispose();
    const record = join(this.storage, 'daemon.json'),
      mine = (): boolean => {
        try {
          return (JSON.parse(readFileSync(record, 'utf8')) as { pid: number }).pid === this.pid;
        } catch {
          return false;
        }
      };
    await this.until(mine, 60_000, 'the daemon serves');
    const client = (this.#client = new DaemonClient({
      storage: this.storage,
      runtime: resolve('dist/runtime.js'),
      build: { version: '0', time: 0 },
      client: 'chaos',
      log: () => undefined,
    }));
    client.on(methods.runRecovered, (r) => this.#told(r.outcome, r.message));
    await client.connect({ start: false });
    for (const r of client.hello?.recovered ?? []) this.#told(r.outcome, r.message);
  }
  #told(outcome: string, message: string): void {
    if (outcome !== 'resumed') this.problems.push(`the run was not resumed: ${message}`);
  }
  /** Processes under the daemon whose command line has this word. */
  children(word: string): number[] {
    return processes()
      .filter((p) => p.parent === this.pid && p.what.includes(word))
      .map((p) => p.pid);
  }

  // faults at chosen places

  /** Arms a place; false when nobody comes there in time. */
  async at(place: string): Promise<boolean> {
    const armed = join(this.base, 'armed');
    writeFileSync(armed, place);
    const hit = await this.when(() => !existsSync(armed), REACH_MS);
    rmSync(armed, { force: true });
    return hit;
  }
  async command(text: string): Promise<boolean> {
    const file = join(this.base, 'command');
    writeFileSync(file, text);
    return this.when(() => !existsSync(file), REACH_MS);
  }
  async when(so: () => boolean, ms: number): Promise<boolean> {
    for (const end = performance.now() + ms; performance.now() < end; await after(20)) {
      this.tail?.poll();
      if (so()) return true;
    }
    return so();
  }
  async until(so: () => boolean, ms: number, what: string): Promise<void> {
    if (!(await this.when(so, ms))) throw new Error(`It took more than ${ms / 1000} s until ${what}.`);
  }

  async #begin(): Promise<void> {
    await this.startDaemon();
    const { run } = await this.#client!.request(methods.startRun, { text: JSON.stringify(RUN_FILE), base: this.disk });
    this.folder = run;
    this.tail = new Tail(run);
    await this.until(() => this.tail.versions > 0, GIVE_UP_MS, 'the run had trained');
  }
  /** ms until the first step is accepted. */
  async #recovered(kind: string): Promise<number> {
    const began = performance.now();
    this.tail.poll();
    const had = this.tail.count('rollout.step');
    await this.until(() => this.tail.count('rollout.step') > had, GIVE_UP_MS, `a step was accepted after ${kind}`);
    return performance.now() - began;
  }

  async #report(
    done: readonly { readonly kind: string; readonly ms: number }[],
    missed: readonly string[],
    strict: Audit | undefined,
  ): Promise<ChaosReport> {
    let last: Audit | undefined;
    try {
      await this.#client?.request(methods.stopRun, { run: this.folder, now: true });
      await this.#client?.shutdown();
      this.tail.poll();
      last = audit(this.folder, this.tail.seen, this.damaged, true);
    } catch (e) {
      this.problems.push(`the run could not be stopped: ${String(e)}`);
    }
    this.#client?.dispose();
    await this.when(() => this.#orphans().length === 0, 5000);
    const orphans = this.#orphans();
    await this.killDaemon().catch(() => undefined);
    const problems = [
        ...this.problems,
        ...(strict?.problems ?? []).map((p) => `before any damage: ${p}`),
        ...(last?.problems ?? []),
        ...orphans.map((o) => `left behind: ${o}`),
      ],
      kinds = [...new Set(done.map((d) => d.kind))].sort(),
      slowest = (of: readonly { readonly ms: number }[]): number => Math.round(Math.max(0, ...of.map((d) => d.ms)));
    const versions = this.tail?.versions ?? 0,
      steps = this.tail?.count('rollout.step') ?? 0;
    if (problems.length === 0) this.#remove();
    else process.stderr.write(`Kept for a look: ${this.base}\n`);
    return {
      kills: done.length,
      seed: this.#seed,
      lost: (last?.lost ?? 0) + (strict?.lost ?? 0),
      duplicated: (last?.duplicated ?? 0) + (strict?.duplicated ?? 0),
      skipped: last?.skipped ?? 0,
      trained_twice: (last?.trained_twice ?? 0) + (strict?.trained_twice ?? 0),
      redone_steps: last?.redone_steps ?? 0,
      corrupt: last?.corrupt ?? 0,
      orphans: orphans.length,
      recovery_max_ms: slowest(done),
      steps,
      versions,
      by_kind: Object.fromEntries(
        kinds.map((k) => {
          const of = done.filter((d) => d.kind === k);
          return [k, { n: of.length, recovery_max_ms: slowest(of) }];
        }),
      ),
      missed,
      problems,
    };
  }

  /** What a stopped daemon must not leave: processes, locks, sockets, temporary files. */
  #orphans(): string[] {
    const files = (dir: string): string[] =>
      existsSync(dir)
        ? readdirSync(dir, { recursive: true, withFileTypes: true }).map((e) => join(e.parentPath, e.name))
        : [];
    // A lock that was let go of says so; what it lay in stays, for the next holder to see.
    const bad = (f: string): boolean =>
      /\.tmp$|\.replaced$|\/reserve$|\/\.weights(\/|$)|\/daemon\.json$|\.sock$/.test(f) ||
      (/\/lock\/\d+$/.test(f) && !existsSync(join(f, 'released.json')));
    return [
      ...processes()
        .filter((p) => p.pid !== process.pid && belongs(p.pid, this.base))
        .map((p) => `${p.pid} ${p.what.slice(0, 100)}`),
      ...[...files(this.folder), ...files(this.storage)].filter(bad),
    ];
  }
  #remove(): void {
    if (this.mounted) execFileSync('umount', ['-l', this.disk]);
    rmSync(this.base, { recursive: true, force: true });
  }
}

function mount(dir: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', dir], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
/** Whether it was started by the daemon of this controller: children have its environment. */
function belongs(pid: number, base: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`DART_CHAOS=${base}`);
  } catch {
    return false;
  }
}
