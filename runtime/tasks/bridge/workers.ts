import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StudioError, messageOf } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { timeLimit } from '../../concurrency/timeLimit.js';
import { boundedLines } from '../../files/boundedLines.js';
import { Asker, say, type Answer } from './asker.js';
import { evaluatorFault, type EvaluatorPlace } from './environment.js';
import { UNREADABLE, messageIn, understood, wordsOf, type BridgeEnd, type Said, type Stage } from './said.js';
import { workerCommand } from './sandbox.js';

/** The input of a metric: a value, in which `{$file: name}` is a file of the job, or a getter of the evaluators. */
export type Source = { readonly value: unknown } | { readonly getter: Readonly<Record<string, unknown>> };
export interface BridgeJob {
  readonly func: string;
  readonly result: Source;
  readonly expected: Source | undefined;
  readonly options: Readonly<Record<string, unknown>>;
  /** OSWorld's cache folder: gold files, what was saved, what other getters fetched; by plain names. */
  readonly files: ReadonlyMap<string, Buffer>;
}
/** The evaluators' getters and metrics by name, and packages that are not installed. */
export interface Ready {
  readonly getters: readonly string[];
  readonly metrics: readonly string[];
  readonly absent: readonly string[];
}

export interface WorkerPoolOptions {
  readonly workers?: number;
  /** Longest time of one evaluation, ms, from when a worker begins with it. */
  readonly limitMs?: number;
  /** A worker that has been idle this long, ms, ends. */
  readonly idleMs?: number;
}
const DEFAULTS: Required<WorkerPoolOptions> = { workers: 2, limitMs: 90_000, idleMs: 120_000 };
/** Time limit of a worker's start, which takes 1.5 to 6 s on an idle machine, mostly to import. */
const START_MS = 90_000;
/**
 * Metrics that execute what the policy left behind, in the worker's own process: only inside a sandbox, and that worker
 * judges nothing else.
 */
const EXECUTES = new Set(['check_python_file_by_test_suite', 'check_gnome_favorite_apps']);
export const executesCandidate = (func: string): boolean => EXECUTES.has(func);
/** Bytes. Results are cut to 200 characters; the longest that is asked of a desktop is a command. */
const MOST_LINE = 4 << 20;
/** The last words of a worker that ended, characters. */
const TAIL = 2000;

interface Worker {
  readonly child: ChildProcess;
  readonly jobs: string;
  readonly sandboxed: boolean;
  readonly ready: Promise<Ready>;
  /** Each line that it prints while it has a job, or what became of it. */
  heard: ((line: string | Lost) => void) | undefined;
  stderr: string;
  idle: NodeJS.Timeout | undefined;
  ended: boolean;
}

/** Why no more is heard of a worker. */
interface Lost {
  readonly lost: string;
}

/**
 * Python processes that judge with OSWorld's evaluators, one job each at a time. One that does not end in time is
 * killed, and another takes its place. They are started when they are needed and do not keep this process alive.
 */
export class EvaluatorWorkers {
  readonly place: EvaluatorPlace;
  readonly #o: Required<WorkerPoolOptions>;
  readonly #all = new Set<Worker>();
  readonly #free: Worker[] = [];
  /** Wakes one that waits; in the order in which they came. */
  readonly #waiting = new Set<() => void>();
  /** Workers that are there or begin. */
  #places = 0;

  constructor(place: EvaluatorPlace, o: WorkerPoolOptions = {}) {
    this.place = place;
    this.#o = { ...DEFAULTS, ...o };
  }

  /** The getters and metrics of these evaluators. Rejects with `task.verify` when they cannot be started. */
  async offers(): Promise<Ready> {
    const w = await this.#take(new AbortController().signal);
    this.#give(w);
    return w.ready;
  }

  /**
   * Runs one metric with its getters. Rejects with what `answer` rejected with, with `task.verify` for any other fault
   * of ours, and with the signal's reason.
   */
  async run(job: BridgeJob, answer: Answer, signal: AbortSignal): Promise<BridgeEnd> {
    const w = await this.#take(signal);
    if (!w.sandboxed && executesCandidate(job.func)) {
      this.#give(w);
      throw evaluatorFault(`run the file that is judged (${job.func}), which is done only inside bubblewrap`);
    }
    let cache: string | undefined;
    try {
      cache = await this.#jobFolder(w);
      for (const [name, data] of job.files) await writeFile(join(cache, plainName(name)), data);
      return await this.#judge(w, job, cache, answer, signal);
    } finally {
      // Executed code may have changed anything in the worker's process.
      if (executesCandidate(job.func)) this.#end(w);
      this.#give(w);
      if (cache !== undefined)
        ignoreFailure(
          rm(cache, { recursive: true, force: true }),
          'a temporary folder, which the worker may have left',
        );
    }
  }

  /** A worker whose folder is gone or full judges nothing any more: another one has another. */
  async #jobFolder(w: Worker): Promise<string> {
    try {
      return await mkdtemp(join(w.jobs, 'job-'));
    } catch (e) {
      this.#end(w);
      throw noFolder(e);
    }
  }

  async #judge(w: Worker, job: BridgeJob, cache: string, answer: Answer, signal: AbortSignal): Promise<BridgeEnd> {
    let clearLimit = (): void => undefined,
      stop = (): void => undefined;
    const { func, result, expected, options } = job;
    // While its files were written.
    signal.throwIfAborted();
    if (w.ended) return { kind: 'lost', stage: 'result', text: 'ended before they judged' };
    try {
      return await new Promise<BridgeEnd>((resolve, reject) => {
        let stage: Stage = 'result';
        // Later lines of the worker are not looked at.
        const done = (end: BridgeEnd): void => {
          w.heard = undefined;
          resolve(end);
        };
        const failed = (e: unknown): void => {
          w.heard = undefined;
          reject(e as Error);
        };
        clearLimit = timeLimit(this.#o.limitMs, () => {
          this.#end(w);
          done({ kind: 'timeout', stage });
        });
        stop = (): void => {
          this.#end(w);
          failed(signal.reason);
        };
        signal.addEventListener('abort', stop, { once: true });
        const asker = new Asker(w, answer);
        const take = (s: Said): void => {
          if (s.kind === 'ask' && !asker.asking) return void asker.ask(s.name, s.what);
          if (s.kind === 'metric') stage = 'metric';
          else if (s.kind === 'lost' || s.kind === 'ask') {
            this.#end(w);
            if (asker.failure !== undefined) failed(asker.failure);
            else done({ kind: 'lost', stage, text: s.kind === 'lost' ? s.text : 'asked out of turn' });
          } else if (asker.failure !== undefined) failed(asker.failure);
          else if (s.kind === 'fault') failed(evaluatorFault(`cannot judge ${func}: ${s.text}`));
          else done(s.end);
        };
        w.heard = (line): void => {
          if (typeof line !== 'string') return take({ kind: 'lost', text: line.lost });
          try {
            take(understood(line, stage, executesCandidate(func) && stage === 'metric'));
          } catch {
            // No output of a worker may end this process.
            take({ kind: 'lost', text: UNREADABLE });
          }
        };
        say(w, { job: { func, result, expected, options, cache } });
      });
    } finally {
      clearLimit();
      signal.removeEventListener('abort', stop);
      w.heard = undefined;
    }
  }

  async #take(signal: AbortSignal): Promise<Worker> {
    for (;;) {
      signal.throwIfAborted();
      const w = this.#free.pop();
      if (w) {
        clearTimeout(w.idle);
        w.child.ref();
        return w;
      }
      if (this.#places < this.#o.workers) return this.#start();
      await this.#freed(signal);
    }
  }

  /** Resolves when a worker or the room for one was freed, or the signal fires. */
  #freed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
  /** Everybody looks again: waking one alone is lost when that one was cancelled meanwhile. */
  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** A worker that is done: for whoever waits, or to rest. */
  #give(w: Worker): void {
    if (!w.ended) {
      w.child.unref();
      w.idle = setTimeout(() => this.#end(w), this.#o.idleMs).unref();
      this.#free.push(w);
    }
    this.#wake();
  }

  async #start(): Promise<Worker> {
    let w: Worker;
    this.#places++;
    try {
      w = await this.#spawn();
    } catch (e) {
      this.#places--;
      this.#wake();
      throw e instanceof StudioError ? e : evaluatorFault('do not start', e);
    }
    try {
      await w.ready;
    } catch (e) {
      this.#end(w);
      throw e;
    }
    const { stdin, stdout, stderr } = w.child;
    for (const s of [stdin, stdout, stderr]) (s as { unref?: () => void } | null)?.unref?.();
    return w;
  }
  async #spawn(): Promise<Worker> {
    const jobs = await mkdtemp(join(tmpdir(), 'dart-studio-judge-')).catch((e: unknown) => {
      throw noFolder(e);
    });
    try {
      const { file, args, env, sandboxed } = await workerCommand(this.place, jobs),
        child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
      const w: Worker = {
        child,
        jobs,
        sandboxed,
        ready: this.#readiness(child, () => w),
        heard: undefined,
        stderr: '',
        idle: undefined,
        ended: false,
      };
      this.#all.add(w);
      return w;
    } catch (e) {
      ignoreFailure(rm(jobs, { recursive: true, force: true }), 'an empty temporary folder');
      throw e;
    }
  }

  /** Listens to a new worker; resolves when it has imported its evaluators. */
  #readiness(child: ChildProcess, worker: () => Worker): Promise<Ready> {
    const ready = new Promise<Ready>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(evaluatorFault(`did not start within ${START_MS / 1000} s`));
        this.#end(worker());
      }, START_MS);
      const ended = (why: string): void => {
        clearTimeout(timer);
        const w = worker();
        reject(evaluatorFault(`do not start (${why})`));
        this.#end(w);
        w.heard?.({ lost: `ended while they judged (${lastWords(w)})` });
      };
      // First: one that could not be started has no streams.
      child.once('error', (e) => ended(messageOf(e)));
      child.stdin!.on('error', () => undefined); // its end says so
      child.stderr!.on('data', (d: Buffer) => {
        const w = worker();
        w.stderr = (w.stderr + d.toString()).slice(-TAIL);
      });
      child.once('close', () => ended(lastWords(worker())));
      let waiting = true;
      const said = (line: string): void => {
        const w = worker();
        if (w.heard) return w.heard(line);
        // A worker without a job has nothing to say.
        if (!waiting) return;
        const m = messageIn(line);
        if (m && 'ready' in m) {
          waiting = false;
          clearTimeout(timer);
          resolve(m['ready'] as Ready);
        } else if (m && 'broken' in m) w.stderr = wordsOf(m['broken'], TAIL);
      };
      boundedLines(child.stdout!, MOST_LINE, said, () => {
        const w = worker();
        w.heard?.({ lost: 'gave an answer that is too long' });
        this.#end(w);
      });
    });
    ignoreFailure(ready, 'whoever takes the worker is told');
    return ready;
  }

  #end(w: Worker): void {
    if (w.ended) return;
    w.ended = true;
    clearTimeout(w.idle);
    this.#all.delete(w);
    this.#places--;
    const at = this.#free.indexOf(w);
    if (at >= 0) this.#free.splice(at, 1);
    w.child.kill('SIGKILL');
    ignoreFailure(rm(w.jobs, { recursive: true, force: true }), 'temporary files of a worker that was killed');
    this.#wake();
  }

  /** Ends all workers. */
  close(): void {
    for (const w of [...this.#all]) this.#end(w);
  }
}

const lastWords = (w: Worker): string => w.stderr.trim().split('\n').at(-1)?.slice(0, 300) || 'without a word';

const noFolder = (cause: unknown): StudioError =>
  new StudioError(
    'task.verify',
    `OSWorld's evaluators have no folder to work in: ${messageOf(cause)}.`,
    `See that ${tmpdir()} can be written to and has room.`,
    { cause },
  );

/** A name without folders: what a task file says is no path of this machine. */
function plainName(name: string): string {
  if (name !== '' && !/[/\\\0]/.test(name) && name !== '.' && name !== '..') return name;
  throw new StudioError(
    'task.verify',
    `The evaluator would save a file as ${name}, which is no plain file name.`,
    'Correct "dest" in the task file.',
  );
}

const pools = new Map<string, EvaluatorWorkers>();
/** The workers of this process for these evaluators. */
export function evaluatorWorkers(place: EvaluatorPlace, o: WorkerPoolOptions = {}): EvaluatorWorkers {
  const key = JSON.stringify([place, o]);
  let pool = pools.get(key);
  if (!pool) pools.set(key, (pool = new EvaluatorWorkers(place, o)));
  return pool;
}
