import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { DaemonClient } from '../../extension/daemon/client.js';
import * as methods from '../../runtime/protocol/methods.js';
import { audit, type Audit, type Known } from './auditor.js';
import { Daemon } from './daemon.js';
import { Engine } from './engine.js';
import { faults } from './faults/index.js';
import { orphans } from './orphans.js';
import { Others } from './others.js';
import type { Fault, Patient } from './patient.js';
import { reportOf, type ChaosReport, type Made } from './report.js';
import { runFile } from './runFile.js';
import { Tail } from './tail.js';

/** A run that has accepted nothing for so long has not recovered. */
const GIVE_UP_MS = 120_000;
const DISK = '512m';
/** Share of the faults that damages what is on disk, at the end, and that comes before reinforcement learning. */
const SHARE = { damage: 1 / 5, lessons: 1 / 8 };
/** From so many on, faults that take long are made too. */
const LONG_RUN = 60;

export interface ChaosOptions {
  readonly kills: number;
  readonly seed: number;
  readonly only?: readonly string[] | undefined;
  readonly provider: 'local' | 'docker';
}

/** One daemon, one run after another, one window, and what happens to them. */
export class Chaos implements Patient {
  readonly base = mkdtempSync(join(tmpdir(), 'dart-chaos-'));
  readonly disk = join(this.base, 'disk');
  readonly mounted: boolean;
  folder = '';
  tail!: Tail;
  engine: Engine | undefined;
  readonly damaged = new Set<number>();
  checkpoints = 0;
  readonly notes = new Set<string>();
  readonly problems: string[] = [];
  readonly #o: ChaosOptions;
  readonly #daemon: Daemon;
  #state: number;
  #marked = false;
  readonly #others = new Others(this.base);
  readonly #made: Made[] = [];
  readonly #missed: string[] = [];
  readonly #impossible: Record<string, string> = {};
  /** Runs before the last one. */
  readonly #stopped: {
    readonly folder: string;
    readonly audit: Audit;
    readonly steps: number;
    readonly versions: number;
  }[] = [];

  constructor(o: ChaosOptions) {
    this.#o = o;
    this.#state = o.seed >>> 0 || 1;
    mkdirSync(this.disk, { recursive: true });
    this.mounted = mount(this.disk);
    this.#daemon = new Daemon(this.base, this.problems, () => this.tail);
  }

  async run(): Promise<ChaosReport> {
    let strict: Audit | undefined;
    try {
      await this.#begin();
      const { kills } = this.#o,
        damages = this.#of('damage').length === 0 ? 0 : Math.floor(kills * (this.#o.only ? 1 / 2 : SHARE.damage)),
        live = this.#of('live').length === 0 ? this.#made.length : kills - damages;
      await this.#lessons(Math.max(1, Math.floor(kills * SHARE.lessons)));
      await this.until(() => this.tail.versions > 0, GIVE_UP_MS, 'the run had trained');
      await this.#phase('live', live);
      await this.#windowKnowsAll();
      strict = audit(this.folder, this.#known, false);
      if (this.#of('damage').length > 0) await this.#phase('damage', kills);
    } catch (e) {
      this.problems.push(e instanceof Error ? (e.stack ?? e.message) : String(e));
    }
    return this.#report(strict);
  }

  /** A number in [0, 1) that the seed decides. */
  random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
  }

  // what a fault may do

  get pid(): number {
    return this.#daemon.pid;
  }
  get alive(): boolean {
    return this.#daemon.alive;
  }
  get client(): DaemonClient {
    return this.#daemon.window.client;
  }
  mark(): void {
    this.#marked = true;
    this.#others.begin();
    this.tail.mark();
    this.tail.flight.over();
  }
  startDaemon(): Promise<void> {
    return this.#daemon.start();
  }
  killDaemon(): Promise<void> {
    return this.#daemon.kill();
  }
  cut(): boolean {
    return this.#daemon.window.cut();
  }
  children(word: string): number[] {
    return this.#daemon.children(word);
  }
  at(place: string, ms?: number): Promise<boolean> {
    return this.#daemon.at(place, ms);
  }
  command(text: string): Promise<boolean> {
    return this.#daemon.command(text);
  }
  when(so: () => boolean, ms: number): Promise<boolean> {
    return this.#daemon.when(so, ms);
  }
  until(so: () => boolean, ms: number, what: string): Promise<void> {
    return this.#daemon.until(so, ms, what);
  }

  // the phases

  async #begin(): Promise<void> {
    const { provider } = this.#o;
    if (provider === 'docker') {
      const why = Engine.whyNot();
      if (why !== undefined) throw new Error(`--provider docker: ${why}`);
      this.engine = new Engine(join(this.base, 'engine'));
      await this.engine.begin();
    }
    await this.startDaemon();
    await this.#startRun();
    for (const [kind, f] of this.#wanted()) {
      const why = f.unless?.(this);
      if (why !== undefined) this.#impossible[kind] = why;
    }
  }
  async #startRun(): Promise<void> {
    const hosts = this.engine ? { hosts: [{ host: this.engine.host, capacity: 16 }] } : {},
      text = JSON.stringify(runFile({ provider: this.#o.provider, ...hosts })),
      { run } = await this.client.request(methods.startRun, { text, base: this.disk });
    this.folder = run;
    this.tail = new Tail(run);
    this.#daemon.window.follow(run);
  }
  /** Lessons come once: each of their faults in a run of its own, the last of which goes on. */
  async #lessons(n: number): Promise<void> {
    const names = this.#of('lessons');
    while (names.length > n) names.splice(Math.floor(this.random() * names.length), 1);
    for (const [i, kind] of names.entries()) {
      if (i > 0) await this.#anotherRun();
      await this.#make(kind);
    }
  }
  /** The run is stopped and judged, and another one begins. */
  async #anotherRun(): Promise<void> {
    await this.#windowKnowsAll();
    await this.client.request(methods.stopRun, { run: this.folder, now: true });
    this.tail.poll();
    this.#stopped.push({
      folder: this.folder,
      audit: audit(this.folder, this.#known, true),
      steps: this.tail.count('rollout.step'),
      versions: this.tail.versions,
    });
    await this.#startRun();
  }
  /** Faults of a phase, in passes through all of its kinds, until there were `until` in all. */
  async #phase(phase: Fault['phase'], until: number): Promise<void> {
    for (let queue: string[] = []; this.#made.length < until && this.problems.length === 0;) {
      if (queue.length === 0) queue = this.#shuffled(this.#of(phase));
      await after(300 + 1200 * this.random());
      await this.#make(queue.shift()!);
      if (this.#missed.length > 3 * this.#o.kills + 20) this.problems.push('faults do not come to their places');
    }
  }
  async #make(kind: string): Promise<void> {
    // A run that ends three daemons in a row with nothing recorded between them is left stopped, and rightly.
    await this.until(() => !this.#daemon.nearlyLeft, GIVE_UP_MS, `a rollout was recorded before ${kind}`);
    this.#marked = false;
    this.tail.poll();
    this.tail.flight.begin();
    if (!(await faults[kind]!.make(this))) {
      this.#missed.push(kind);
      return;
    }
    if (!this.#marked) this.mark();
    await this.until(() => this.tail.recovery !== undefined, GIVE_UP_MS, `a step was accepted after ${kind}`);
    const ms = this.tail.recovery!;
    const others = this.#others.share();
    this.#made.push({ kind, ms, others, ...this.tail.flight.cost() });
    const beside = others > 0.1 ? `, others used ${Math.round(100 * others)} % of the processors` : '';
    process.stderr.write(`${this.#made.length} ${kind}: ${Math.round(ms)} ms${beside}\n`);
  }
  #wanted(): [string, Fault][] {
    const { only, kills } = this.#o;
    return Object.entries(faults).filter(([k, f]) => (only ? only.includes(k) : !f.slow || kills >= LONG_RUN));
  }
  #of(phase: Fault['phase']): string[] {
    return this.#wanted().flatMap(([k, f]) => (f.phase === phase && this.#impossible[k] === undefined ? [k] : []));
  }
  #shuffled(names: readonly string[]): string[] {
    return names
      .map((k) => ({ k, x: this.random() }))
      .sort((a, b) => a.x - b.x)
      .map((o) => o.k);
  }

  /** What was cut off comes: no event is missing at the window. */
  async #windowKnowsAll(): Promise<void> {
    const { window } = this.#daemon;
    this.tail.poll();
    const head = Math.max(...this.tail.seen.keys());
    await this.until(() => window.next > head, 20_000, `the window knew of record ${head}`);
    window.unfollow();
  }
  get #known(): Known {
    const { damaged, checkpoints, notes } = this;
    return { seen: this.tail.seen, damaged, checkpoints, notes };
  }

  async #report(strict: Audit | undefined): Promise<ChaosReport> {
    let last: Audit | undefined;
    try {
      await this.client.request(methods.stopRun, { run: this.folder, now: true });
      await this.client.shutdown();
      this.tail.poll();
      last = audit(this.folder, this.#known, true);
    } catch (e) {
      this.problems.push(`the run could not be stopped: ${String(e)}`);
    }
    this.#daemon.window.close();
    const earlier = this.#stopped,
      sumOf = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0);
    const left = (): string[] =>
      orphans(this.base, [...earlier.map((r) => r.folder), this.folder, this.#daemon.storage], this.pid);
    await this.when(() => left().length === 0, 5000);
    const lost = [...left(), ...((await this.engine?.left()) ?? [])];
    await this.killDaemon().catch(() => undefined);
    await this.engine?.close();
    const report = reportOf({
      made: this.#made,
      stopped: earlier.map((r) => r.audit),
      strict,
      last,
      orphans: lost,
      problems: this.problems,
      rest: {
        seed: this.#o.seed,
        provider: this.#o.provider,
        steps: (this.tail?.count('rollout.step') ?? 0) + sumOf(earlier.map((r) => r.steps)),
        versions: (this.tail?.versions ?? 0) + sumOf(earlier.map((r) => r.versions)),
        events: this.#daemon.window.events,
        missed: this.#missed,
        impossible: this.#impossible,
      },
    });
    if (report.problems.length + report.slow.length === 0) this.#remove();
    else process.stderr.write(`Kept for a look: ${this.base}\n`);
    return report;
  }
  #remove(): void {
    if (this.mounted) execFileSync('umount', ['-l', this.disk]);
    rmSync(this.base, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
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
