import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import type { RunFile } from '../../../runtime/config/index.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { statusLine, type RunProgress } from '../../../runtime/run/reporter.js';
import { cliJson, type EvaluatedRow, type SplitCount } from './evaluated.js';
import { machine } from './report.js';
import { RunMeter, type RunMeasure } from './runMeasure.js';

/** One training run of an experiment, made by the production runtime in a process of its own. */
export interface Experiment {
  /** Folder name: letters, digits, "-", "_", "." and "/". */
  readonly name: string;
  readonly variant: string;
  readonly seed: number;
  readonly file: RunFile;
  /** The experiment whose policy it starts from. */
  readonly from?: string;
  /** A run that was cut short goes on where it was, or, where time is what is measured, begins again. */
  readonly half: 'resume' | 'redo';
  readonly warmupMs?: number;
  /**
   * The final policy is measured on these splits too, on the sets for reporting; "words-blind": with a blank screen;
   * "words-untrained": the policy before it learned anything. A run that was made with fewer gets those it lacks, while
   * its folder is there.
   */
  readonly splits?: readonly string[];
  /** Episodes of each of them (64). */
  readonly episodes?: number;
}
/** What is kept of a run: small, and with all that is needed to make it again. */
export interface RunResult {
  readonly bench: string;
  readonly name: string;
  readonly variant: string;
  readonly seed: number;
  readonly fingerprint: string;
  readonly commit: string;
  readonly command: string;
  readonly machine: Readonly<Record<string, unknown>>;
  /** One-minute load of the machine before and after. */
  readonly load: readonly [number, number];
  readonly startedAt: string;
  /** Of the whole process; of the last part where it was resumed. */
  readonly wallSeconds: number;
  readonly resumed: boolean;
  readonly file: RunFile;
  readonly measure: RunMeasure;
  readonly splits?: Readonly<Record<string, SplitCount>>;
  /** Splits that were measured after the run, and the commit that did. */
  readonly later?: Readonly<Record<string, string>>;
}
export interface LabOptions {
  readonly bench: string;
  /** Run folders and what is known of them; kept between invocations. */
  readonly dir: string;
  readonly runtime: string;
  readonly provider: 'auto' | 'docker' | 'local';
  readonly signal: AbortSignal;
  readonly log: Pick<StatusLine, 'status' | 'note'>;
  /** Keep screenshots; without, a finished run's folder has its journal, index and checkpoints only. */
  readonly frames?: boolean;
}
export class Interrupted extends Error {}
/** What the name of a split ends with where the screen is blanked, and where an untaught policy is asked. */
const BLIND = /-blind$/,
  UNTRAINED = /-untrained$/;

/**
 * Does experiments one after another, each once: what was finished before is read back, unless its run file changed.
 */
export class Lab {
  readonly #o: LabOptions;
  readonly #fingerprints = new Map<string, string>();
  readonly commit =
    git('rev-parse', '--short', 'HEAD') +
    (git('status', '--porcelain', '--untracked-files=no', '--', 'runtime') === '' ? '' : ' with changes');
  constructor(o: LabOptions) {
    this.#o = o;
  }

  /** Of the run file and of all it starts from. */
  fingerprint(e: Experiment): string {
    const from = e.from === undefined ? '' : (this.#fingerprints.get(e.from) ?? 'not made');
    return createHash('sha256')
      .update(JSON.stringify([e.file, from]))
      .digest('hex')
      .slice(0, 16);
  }
  folder(name: string): string {
    return resolve(this.#o.dir, name);
  }
  /** The run folder of an experiment, if it has begun. */
  runFolder(name: string): string | undefined {
    const runs = join(this.folder(name), 'runs');
    const ids = existsSync(runs) ? readdirSync(runs).filter((n) => existsSync(join(runs, n, 'run.json'))) : [];
    return ids[0] === undefined ? undefined : join(runs, ids[0]);
  }

  /** The result of an earlier invocation, when it is of this very experiment. */
  finished(e: Experiment): RunResult | undefined {
    const fingerprint = this.fingerprint(e);
    try {
      const r = JSON.parse(readFileSync(join(this.folder(e.name), 'result.json'), 'utf8')) as RunResult;
      if (r.fingerprint !== fingerprint) return undefined;
      this.#fingerprints.set(e.name, fingerprint);
      return r;
    } catch {
      return undefined;
    }
  }

  /** Rejects with `Interrupted` when stopped (the run can go on later), or with what the run said when it failed. */
  async run(e: Experiment, place: string): Promise<RunResult> {
    const there = this.finished(e);
    if (there) return this.#completed(e, there, place);
    const { bench, provider, log } = this.#o,
      fingerprint = this.fingerprint(e),
      folder = this.folder(e.name),
      runFile = join(folder, 'run.json'),
      begun = join(folder, 'begun.json');
    const base = e.from === undefined ? undefined : this.runFolder(e.from);
    if (e.from !== undefined && !base) throw new Error(`${e.name} starts from ${e.from}, which was not made`);
    const file: RunFile = { ...e.file, ...(base ? { warmStart: { ...e.file.warmStart, from: base } } : {}) };
    parseRunFile(file);
    const resumed = e.half === 'resume' && this.runFolder(e.name) !== undefined && textOf(begun) === fingerprint;
    if (!resumed) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { recursive: true });
      writeFileSync(runFile, JSON.stringify(file, null, 2) + '\n');
      writeFileSync(begun, fingerprint);
    }
    const runs = join(folder, 'runs'),
      args = [
        'train',
        ...(resumed ? ['--resume', this.runFolder(e.name)!] : [runFile]),
        '--runs',
        runs,
        '--provider',
        provider,
        '--json',
      ];
    const startedAt = new Date(),
      load0 = loadavg()[0]!;
    log.note(`${place} ${e.name}${resumed ? ' (goes on)' : ''}`);
    const failure = await this.#child(args, (s) => {
      log.status(`${place} ${e.name} · ${statusLine(s)}`);
    });
    if (this.#o.signal.aborted) throw new Interrupted();
    if (failure !== undefined) throw new Error(`${e.name}: ${failure}`);
    const dir = this.runFolder(e.name),
      wallSeconds = round((Date.now() - startedAt.getTime()) / 1000);
    if (!dir) throw new Error(`${e.name}: the run left no folder`);
    const splits = e.splits && (await this.#splits(e, e.splits, place));
    const result: RunResult = {
      bench,
      name: e.name,
      variant: e.variant,
      seed: e.seed,
      fingerprint,
      commit: this.commit,
      command: `node dist/runtime.js ${['train', 'run.json', '--provider', provider].join(' ')}`,
      machine: machine(),
      load: [round(load0), round(loadavg()[0]!)],
      startedAt: startedAt.toISOString(),
      wallSeconds,
      resumed,
      file: {
        ...e.file,
        ...(e.from === undefined ? {} : { warmStart: { ...e.file.warmStart, from: `the run of ${e.from}` } }),
      },
      measure: await measureRun(dir, e),
      ...(splits ? { splits } : {}),
    };
    if (!this.#o.frames) rmSync(join(dir, 'frames'), { recursive: true, force: true });
    writeAtomic(join(folder, 'result.json'), JSON.stringify(result, null, 1) + '\n');
    this.#fingerprints.set(e.name, fingerprint);
    return result;
  }

  /** What the final policy of an experiment comes to, by `evaluate`. Rejects with `Interrupted` when stopped. */
  async evaluate(name: string, args: readonly string[]): Promise<EvaluatedRow> {
    const { runtime, provider, signal } = this.#o,
      given = ['evaluate', this.runFolder(name)!, ...args, '--provider', provider];
    return cliJson<EvaluatedRow>(runtime, given, signal).catch((e: unknown) => {
      throw signal.aborted ? new Interrupted() : e;
    });
  }
  /** A result of before with the splits that it lacks, where its policy is still there. */
  async #completed(e: Experiment, r: RunResult, place: string): Promise<RunResult> {
    const lacking = (e.splits ?? []).filter((s) => r.splits?.[s] === undefined);
    if (lacking.length === 0 || this.runFolder(e.name) === undefined) return r;
    const measured = await this.#splits(e, lacking, place),
      later = Object.fromEntries(lacking.map((s) => [s, this.commit])),
      result = { ...r, splits: { ...r.splits, ...measured }, later: { ...r.later, ...later } };
    writeAtomic(join(this.folder(e.name), 'result.json'), JSON.stringify(result, null, 1) + '\n');
    return result;
  }
  async #splits(e: Experiment, names: readonly string[], place: string): Promise<Record<string, SplitCount>> {
    const out: Record<string, SplitCount> = {};
    for (const name of names) {
      this.#o.log.status(`${place} ${e.name} · evaluating (${name})`);
      const how = [
          '--split',
          name.replace(BLIND, '').replace(UNTRAINED, ''),
          '--episodes',
          String(e.episodes ?? 64),
          ...(BLIND.test(name) ? ['--blind'] : []),
          ...(UNTRAINED.test(name) ? ['--checkpoint', '0'] : []),
        ],
        { episodes, successes, perFamily } = await this.evaluate(e.name, how);
      out[name] = { episodes, successes, perFamily };
    }
    return out;
  }

  /**
   * Runs the runtime; the last words of its standard error when it failed. A group of its own: Ctrl-C reaches it once,
   * from here.
   */
  #child(args: readonly string[], onStatus: (s: RunProgress) => void): Promise<string | undefined> {
    return new Promise((done) => {
      const child = spawn(process.execPath, ['--enable-source-maps', this.#o.runtime, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
      let tail = '',
        rest = '';
      const stop = (): void => {
        child.kill('SIGINT');
      };
      this.#o.signal.addEventListener('abort', stop, { once: true });
      if (this.#o.signal.aborted) stop();
      child.stderr.setEncoding('utf8').on('data', (t: string) => {
        tail = (tail + t).slice(-2000);
      });
      child.stdout.setEncoding('utf8').on('data', (t: string) => {
        const lines = (rest + t).split('\n');
        rest = lines.pop()!;
        for (const l of lines) {
          let o: ({ type?: string; text?: string } & RunProgress) | undefined;
          try {
            o = JSON.parse(l) as typeof o;
          } catch {
            continue;
          }
          if (o?.type === 'status') onStatus(o);
          else if (o?.type === 'note' && o.text?.startsWith('Evaluation')) this.#o.log.note(`      ${o.text}`);
        }
      });
      const end = (failure: string | undefined): void => {
        this.#o.signal.removeEventListener('abort', stop);
        done(failure);
      };
      child.on('error', (e) => {
        end(e.message);
      });
      child.on('close', (code, signal) => {
        end(code === 0 ? undefined : `ended with ${signal ?? code}: ${tail.trim().split('\n').slice(-4).join(' ')}`);
      });
    });
  }
}

/** Reads a run folder back. */
export async function measureRun(dir: string, e: Pick<Experiment, 'file' | 'warmupMs'>): Promise<RunMeasure> {
  const c = parseRunFile(e.file),
    meter = new RunMeter({ desktops: c.desktops.count, ...replicasOf(c), warmupMs: e.warmupMs ?? 0 }),
    reader = await RunReader.open(dir, { index: 'local' });
  try {
    for await (const event of reader.events()) meter.add(event);
  } finally {
    await reader.close();
  }
  return roundAll(meter.done());
}

/** Model servers take many calls at once, a replica of the embedded policy one. */
function replicasOf(c: ReturnType<typeof parseRunFile>): { readonly replicas: number; readonly calls: number } {
  const servers = c.policy.kind === 'vlm' ? c.policy.vlm : undefined;
  return servers && servers.endpoints.length > 0
    ? { replicas: servers.endpoints.length, calls: servers.concurrency }
    : { replicas: c.policy.replicas, calls: 1 };
}

/** A line that is rewritten on a terminal; in a log file a line every half minute. */
export class StatusLine {
  readonly #out: NodeJS.WriteStream;
  #shown = false;
  #last = 0;
  constructor(out: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
  }
  status(line: string): void {
    if (this.#out.isTTY) {
      this.#clear();
      this.#out.write(line.slice(0, Math.max(20, (this.#out.columns ?? 120) - 1)));
      this.#shown = true;
    } else if (Date.now() - this.#last >= 30_000) {
      this.#last = Date.now();
      this.#out.write(`${line}\n`);
    }
  }
  note(text: string): void {
    this.#clear();
    this.#out.write(`${text}\n`);
  }
  #clear(): void {
    if (this.#shown) {
      this.#out.write('\r\x1b[2K');
      this.#shown = false;
    }
  }
}

export function writeAtomic(path: string, text: string): void {
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}
/** Ctrl-C as a signal: the first stops cleanly, the second leaves at once. */
export function interruptSignal(): AbortSignal {
  const stop = new AbortController();
  const on = (): void => {
    if (stop.signal.aborted) process.exit(130);
    process.stderr.write('\nStopping: the run under way ends and can go on later.\n');
    stop.abort();
  };
  process.on('SIGINT', on);
  process.on('SIGTERM', on);
  return stop.signal;
}
const textOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};
const git = (...args: string[]): string => {
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
};
const round = (x: number): number => (Number.isFinite(x) && !Number.isInteger(x) ? Number(x.toPrecision(5)) : x);
function roundAll<T>(v: T): T {
  if (typeof v === 'number') return round(v) as T;
  if (Array.isArray(v)) return v.map(roundAll) as T;
  return typeof v === 'object' && v !== null
    ? (Object.fromEntries(Object.entries(v).map(([k, x]) => [k, roundAll(x)])) as T)
    : v;
}
