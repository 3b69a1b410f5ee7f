import { Worker } from 'node:worker_threads';
import { StudioError, messageOf } from '../../domain/index.js';
import type { ProcessEntry, ProcessRole } from '../../concurrency/process.js';
import { timeLimit } from '../../concurrency/timeLimit.js';
import { buffersOf } from './job.js';
import type { MetricDone, MetricJob, MetricRunner } from './job.js';

const ROLE: ProcessRole = '__metrics';

export interface MetricPoolOptions {
  /** Longest time for one metric, ms, from when a worker begins with it; a usual one takes less than 1. */
  readonly limitMs?: number;
  /** Workers at most. */
  readonly workers?: number;
  /** A worker that has been idle this long, ms, ends. */
  readonly idleMs?: number;
}
const DEFAULTS: Required<MetricPoolOptions> = { limitMs: 10_000, workers: 3, idleMs: 120_000 };
/** A worker is there within 0.1 s on an idle machine. */
const START_MS = 60_000;
/** Memory limit of a worker; the longest text that a metric reads takes a fraction of it. */
const MEMORY_MB = 512;

interface Waiting {
  readonly job: MetricJob;
  readonly done: (d: MetricDone) => void;
  readonly failed: (e: Error) => void;
}
interface Thread {
  readonly worker: Worker;
  /** Undefined while it starts and while it is idle. */
  doing: Waiting | undefined;
  ready: boolean;
  /** Of its start, and of its rest. */
  timer: NodeJS.Timeout | undefined;
  /** Clears the time limit of its job. */
  clearLimit: (() => void) | undefined;
  ended: boolean;
}

/**
 * Metrics in worker threads. They read what an agent left behind and run regular expressions of task files, and either
 * can be made to run for ever; here that costs one worker, which is killed at its deadline and replaced. Workers start
 * when needed and take the next waiting job. They do not keep the process alive.
 */
export class MetricPool implements MetricRunner {
  readonly #entry: ProcessEntry;
  readonly #o: Required<MetricPoolOptions>;
  readonly #threads = new Set<Thread>();
  readonly #queue: Waiting[] = [];
  constructor(entry: ProcessEntry, options: MetricPoolOptions = {}) {
    this.#entry = entry;
    this.#o = { ...DEFAULTS, ...options };
  }

  async run(job: MetricJob, signal: AbortSignal): Promise<MetricDone> {
    signal.throwIfAborted();
    let stop = (): void => undefined;
    try {
      return await new Promise<MetricDone>((done, failed) => {
        const waiting: Waiting = { job, done, failed };
        stop = (): void => {
          const at = this.#queue.indexOf(waiting);
          if (at >= 0) this.#queue.splice(at, 1);
          failed(signal.reason as Error);
        };
        signal.addEventListener('abort', stop, { once: true });
        this.#queue.push(waiting);
        this.#next();
      });
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Gives waiting jobs to idle workers; starts another worker when all are busy. */
  #next(): void {
    for (const t of this.#threads) {
      if (this.#queue.length === 0) return;
      if (t.ready && !t.doing) this.#begin(t, this.#queue.shift()!);
    }
    const starting = [...this.#threads].filter((t) => !t.ready).length;
    for (let n = starting; n < this.#queue.length && this.#threads.size < this.#o.workers; n++) this.#start();
  }
  #begin(t: Thread, w: Waiting): void {
    clearTimeout(t.timer);
    t.doing = w;
    t.worker.ref();
    t.clearLimit = timeLimit(this.#o.limitMs, () => {
      this.#end(t, noVerdict(w.job, `did not come to a verdict within ${this.#o.limitMs / 1000} s`, 'timeout'));
    });
    try {
      t.worker.postMessage(w.job, [...buffersOf(w.job.result), ...buffersOf(w.job.expected)]);
    } catch (e) {
      // Nested too deep to be sent; nothing was.
      t.doing = undefined;
      this.#rest(t);
      w.done({ score: 0, expected: '', found: `values that cannot be judged (${messageOf(e)})` });
    }
  }
  #rest(t: Thread): void {
    clearTimeout(t.timer);
    t.clearLimit?.();
    t.worker.unref();
    t.timer = setTimeout(() => {
      this.#end(t);
    }, this.#o.idleMs).unref();
  }

  #start(): void {
    const worker = new Worker(this.#entry.file, {
        workerData: { role: ROLE },
        resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
      }),
      t: Thread = { worker, doing: undefined, ready: false, timer: undefined, clearLimit: undefined, ended: false };
    this.#threads.add(t);
    t.timer = setTimeout(() => {
      this.#end(t, undefined, `it did not start within ${START_MS / 1000} s`);
    }, START_MS);
    worker.on('message', (m: 'ready' | MetricDone) => {
      if (t.ended) return;
      const w = t.doing;
      t.ready = true;
      t.doing = undefined;
      this.#rest(t);
      if (m !== 'ready') w?.done(m);
      this.#next();
    });
    worker.on('error', (e: NodeJS.ErrnoException) => {
      this.#end(t, undefined, e.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'it ran out of memory' : e.message);
    });
    worker.on('exit', () => {
      this.#end(t, undefined, 'it left by itself');
    });
  }

  /** Ends a worker: its caller learns why, and waiting calls go to other workers. */
  #end(t: Thread, why?: Error, how = 'it was ended'): void {
    if (t.ended) return;
    t.ended = true;
    clearTimeout(t.timer);
    t.clearLimit?.();
    this.#threads.delete(t);
    const { doing, ready } = t;
    t.doing = undefined;
    void t.worker.terminate();
    if (doing)
      doing.failed(why ?? noVerdict(doing.job, `came to no verdict: the worker that judges ended, ${how}`, 'crash'));
    // A worker that cannot even start would be started again for ever.
    else if (!ready)
      for (const w of this.#queue.splice(0))
        w.failed(noVerdict(w.job, `came to no verdict: the worker that judges did not start, ${how}`, 'crash'));
    this.#next();
  }

  /** Ends the workers; running and waiting jobs get no verdict. */
  close(): void {
    for (const w of this.#queue.splice(0)) w.failed(noVerdict(w.job, 'was stopped', 'crash'));
    for (const t of [...this.#threads]) this.#end(t);
  }
}

const REMEDY = {
  timeout:
    'The rollout has no reward. Look at the regular expressions in the evaluator of the task file (nested repetitions such as (a+)+ never end) and at the size of what it compares.',
  crash: 'The rollout has no reward; the next one is judged by a new worker. If it happens again, please report it.',
};
const noVerdict = (job: MetricJob, what: string, cause: keyof typeof REMEDY): StudioError =>
  new StudioError('task.verify', `The metric ${job.func} ${what}.`, REMEDY[cause], {
    details: { cause, metric: job.func },
  });

const pools = new Map<string, MetricPool>();
/** The workers of this process, started from a bundle: one small pool, however many runs and replays there are. */
export function metricWorkers(entry: ProcessEntry): MetricPool {
  let pool = pools.get(entry.file);
  if (!pool) pools.set(entry.file, (pool = new MetricPool(entry)));
  return pool;
}
