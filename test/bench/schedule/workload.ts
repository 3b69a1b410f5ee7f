import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { random } from '../../../runtime/domain/index.js';
import type { FamilyId, Random } from '../../../runtime/domain/index.js';

/**
 * A workload as data (workloads/*.json). Times are seconds; every time is a mean, and `spread` is the sigma of
 * mean-preserving log-normal noise on it.
 */
export interface Workload {
  readonly name: string;
  /** Where each number comes from. */
  readonly about: string;
  readonly desktops: number;
  readonly replicas: number;
  /** Calls a replica answers side by side; its rate is `depth / decide` actions a second. */
  readonly depth: number;
  /** Virtual hours of one measurement, and of the warm-up before it. */
  readonly hours: number;
  readonly warmup: number;
  readonly reset: number;
  /** A desktop that was lost is replaced in so long. */
  readonly replace: number;
  readonly verify: number;
  /** Desktop time of one step: act, come to rest, read the screen. */
  readonly step: number;
  /** The policy's time for one action. */
  readonly decide: number;
  readonly spread: number;
  readonly length:
    | {
        readonly kind: 'histogram';
        /** Shares of 1-5, 6-10, ... steps. */
        readonly success: readonly number[];
        readonly failure: readonly number[];
      }
    | { readonly kind: 'lognormal'; readonly mean: number; readonly sigma: number };
  /** Global step cap. */
  readonly cap: number;
  /** Success rate per task: the published ones, or `count` tasks spread evenly over [from, to]. */
  readonly tasks:
    | { readonly kind: 'osworld' }
    | { readonly kind: 'even'; readonly count: number; readonly from: number; readonly to: number };
  /** Share of rollouts whose desktop is lost at a step drawn evenly. */
  readonly faults: number;
  /** Trainer: seconds per trained action and per update. */
  readonly trainAction: number;
  readonly trainUpdate: number;
  /** One replica takes new weights in place. */
  readonly swap: number;
  /** The published way: kill the engine and start it again. */
  readonly relaunch: number;
  readonly batchGroups: number;
  readonly rollouts: number;
  /** Default: that of a run file. */
  readonly eta?: number;
}

export interface SimTask {
  readonly id: FamilyId;
  readonly rate: number;
}
/** What will happen in one rollout; the same for the k-th rollout of a task in every regime. */
export interface Trace {
  /** Steps the policy takes when no cap stops it. */
  readonly length: number;
  readonly success: boolean;
  /** The desktop is lost in this step. */
  readonly faultAt: number | undefined;
  readonly noise: Random;
}

/** The same with other hours of measurement and warm-up. */
export const shorter = (w: Workload, hours: number, warmup: number): Workload => ({ ...w, hours, warmup });

const here = join(process.cwd(), 'test/bench/schedule');

export function loadWorkload(name: string): Workload {
  return JSON.parse(readFileSync(join(here, 'workloads', `${name}.json`), 'utf8')) as Workload;
}

export function tasksOf(w: Workload): readonly SimTask[] {
  if (w.tasks.kind === 'even') {
    const { count, from, to } = w.tasks;
    return Array.from({ length: count }, (_, i) => ({
      id: `t${String(i).padStart(3, '0')}` as FamilyId,
      rate: from + ((to - from) * (i + 0.5)) / count,
    }));
  }
  const { tasks } = JSON.parse(readFileSync(join(here, 'workloads', 'osworldRates.json'), 'utf8')) as {
    tasks: Readonly<Record<string, readonly [successes: number, attempts: number]>>;
  };
  return Object.entries(tasks).map(([id, [successes, attempts]]) => ({
    id: id as FamilyId,
    rate: successes / attempts,
  }));
}

/** Traces by task and count, so that the n-th rollout of a task is the same whatever scheduled it. */
export class Traces {
  readonly #w: Workload;
  readonly #seed: number;
  readonly #rates: ReadonlyMap<FamilyId, number>;
  readonly #next = new Map<FamilyId, number>();
  constructor(w: Workload, tasks: readonly SimTask[], seed: number) {
    this.#w = w;
    this.#seed = seed;
    this.#rates = new Map(tasks.map((t) => [t.id, t.rate]));
  }

  next(task: FamilyId): Trace {
    const k = this.#next.get(task) ?? 0,
      r = random(`${this.#seed}/${task}/${k}`);
    this.#next.set(task, k + 1);
    const success = r.next() < this.#rates.get(task)!;
    const length = lengthOf(this.#w.length, success, r);
    const faultAt = r.next() < this.#w.faults ? r.int(Math.min(length, this.#w.cap)) : undefined;
    return { length, success, faultAt, noise: r };
  }
}

function lengthOf(l: Workload['length'], success: boolean, r: Random): number {
  if (l.kind === 'lognormal') return Math.max(1, Math.round(l.mean * logNormal(l.sigma, r)));
  const shares = success ? l.success : l.failure;
  let u = r.next() * shares.reduce((a, b) => a + b, 0),
    bin = 0;
  while (bin < shares.length - 1 && u >= shares[bin]!) u -= shares[bin++]!;
  return bin * 5 + 1 + r.int(5);
}

/** Log-normal noise of mean 1. */
export const logNormal = (sigma: number, r: Random): number =>
  sigma === 0 ? 1 : Math.exp(sigma * r.normal() - (sigma * sigma) / 2);
