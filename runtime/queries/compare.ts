import { parseStoredConfig } from '../config/index.js';
import { isObject } from '../foreign/json.js';
import type { RunReader } from '../data/store/runStore.js';
import type {
  ComparedRun,
  ComparedTask,
  ConfigDifference,
  RunProgressCurve,
  RunTimeline,
  TaskRow,
} from '../protocol/types.js';
import { balancedCurve, series } from './curves.js';
import { outcomes } from './outcomes.js';
import type { RunFacts } from './facts.js';
import { evalPoints } from './overview.js';
import { taskRows } from './tasks.js';
import { timelineOf } from './timeline.js';

/** Moments at which the progress of a run is told: its updates, as long as they are no more than half of them. */
const MOMENTS = 400;
/** Metrics of one run: more would be a run file of another kind. */
const MOST_METRICS = 64;

export interface CompareQuery {
  /** Rollouts of the mean. */
  readonly window: number;
  /** Points of a curve. */
  readonly maxPoints: number;
}
/** The parts of a comparison for one run, beside what the list of runs says of it. */
export type ComparedParts = Pick<ComparedRun, 'progress' | 'success' | 'evals' | 'tasks' | 'series'>;

export async function comparedParts(run: RunReader, facts: RunFacts, q: CompareQuery): Promise<ComparedParts> {
  const [o, timeline, evals, trained, names, [last]] = await Promise.all([
    outcomes(run),
    timelineOf(run),
    evalPoints(run),
    trainedOf(run),
    run.index.query(`SELECT name FROM metrics GROUP BY name LIMIT ${MOST_METRICS}`),
    run.index.query("SELECT value AS at FROM meta WHERE key = 'at'"),
  ]);
  const infeasible = (f: string): boolean => facts.families.get(f)?.infeasible ?? false,
    [metrics, tasks] = await Promise.all([
      series(
        run,
        names.map((r) => String(r['name'])),
        q.maxPoints,
      ),
      taskRows(run, facts, undefined, false, { outcomes: o, evals }),
    ]);
  return {
    progress: progressOf({
      from: run.meta.createdAt,
      to: Number(last?.['at'] ?? run.meta.createdAt),
      timeline,
      ended: o.at,
      trained,
    }),
    success: await balancedCurve(o, { ...q, infeasible }),
    evals: evals.map((e) => ({ ...e, perFamily: {} })),
    tasks: tasks.map(taskOf),
    series: metrics.map(({ name, at, value }) => ({ name, at, value })),
  };
}
/** An update's end: at `at`, `n` updates more than before (1 when absent) with all their steps and tokens. */
interface Trained {
  readonly at: number;
  readonly n?: number;
  readonly steps: number;
  readonly tokens?: number;
}
/**
 * Updates in order, older ones several at once. Without tokens where one that left its metrics does not say how many it
 * had: a run of before they were recorded. One whose metrics a crash took counts as none.
 */
export async function trainedOf(run: RunReader): Promise<Trained[]> {
  const [at = [], n = [], steps = [], tokens = [], mute = []] = await run.index.columns(
      `SELECT at, n, steps, tokens, mute FROM past_updates
      UNION ALL SELECT trained_at, 1, steps, tokens, mute FROM batches WHERE trained_at IS NOT NULL ORDER BY 1`,
    ),
    told = !mute.some((m) => Number(m) > 0);
  return at.map((t, i) => ({
    at: Number(t),
    n: Number(n[i]),
    steps: Number(steps[i] ?? 0),
    ...(told && { tokens: Number(tokens[i] ?? 0) }),
  }));
}
const taskOf = (t: TaskRow): ComparedTask => ({
  family: t.family,
  title: t.title,
  heldOut: t.heldOut,
  infeasible: t.infeasible,
  rollouts: t.rollouts,
  rate: t.rate,
  low: t.low,
  high: t.high,
  recent: t.recent,
  evaluation: t.evaluation,
});

/** Pure; `ended` and `trained` ascend. */
export function progressOf(r: {
  readonly from: number;
  readonly to: number;
  readonly timeline: Pick<RunTimeline, 'outages'>;
  readonly ended: ArrayLike<number>;
  readonly trained: readonly Trained[];
}): RunProgressCurve {
  const to = Math.max(r.from + 1, r.to, r.ended[r.ended.length - 1] ?? 0, r.trained.at(-1)?.at ?? 0),
    half = MOMENTS / 2,
    every = Math.max(1, Math.ceil(r.trained.length / half)),
    moments = [
      ...Array.from({ length: half + 1 }, (_, i) => r.from + ((to - r.from) * i) / half),
      ...r.trained.filter((_, i) => i % every === 0 || i === r.trained.length - 1).map((b) => b.at),
    ],
    at = [...new Set(moments)].sort((a, b) => a - b);
  const away = (t: number): number =>
    r.timeline.outages.reduce((a, x) => a + Math.max(0, Math.min(x.to, t) - x.from), 0);
  const updates: number[] = [],
    rollouts: number[] = [],
    actions: number[] = [],
    tokens: number[] = [];
  let u = 0,
    n = 0,
    e = 0,
    a = 0,
    k = 0;
  for (const t of at) {
    while (e < r.ended.length && r.ended[e]! <= t) e++;
    while (u < r.trained.length && r.trained[u]!.at <= t) {
      const b = r.trained[u++]!;
      n += b.n ?? 1;
      a += b.steps;
      k += b.tokens ?? 0;
    }
    updates.push(n);
    rollouts.push(e);
    actions.push(a);
    tokens.push(k);
  }
  return {
    at: at.map(Math.round),
    workedMs: at.map((t) => Math.round(t - r.from - away(t))),
    updates,
    rollouts,
    actions,
    ...(r.trained.every((b) => b.tokens !== undefined) ? { tokens } : {}),
  };
}

/** Keys of a run file that training does not depend on. */
const OUTSIDE = new Set(['$schema', 'name', 'preset', 'store.dir']);
/** A run file as one value a key, defaults filled in; one of another version as it is. */
export function flatConfig(config: unknown): ReadonlyMap<string, string> {
  let whole: unknown = config;
  try {
    whole = parseStoredConfig(config ?? {});
  } catch {
    /* its own keys are compared */
  }
  const out = new Map<string, string>(),
    walk = (value: unknown, path: string): void => {
      if (isObject(value)) for (const [k, v] of Object.entries(value)) walk(v, path === '' ? k : `${path}.${k}`);
      else if (value !== undefined && path !== '' && !OUTSIDE.has(path)) out.set(path, JSON.stringify(value));
    };
  walk(whole, '');
  return out;
}
/**
 * The keys on which run files do not agree, in the order in which the run file has them, and which runs are one
 * configuration under several seeds. Pure.
 */
export function compareConfigs(all: readonly ReadonlyMap<string, string>[]): {
  readonly differences: ConfigDifference[];
  readonly groups: number[];
} {
  const keys = [...new Set(all.flatMap((c) => [...c.keys()]))].filter((k) => k !== 'seed'),
    differences = keys
      .map((key): ConfigDifference => ({ key, values: all.map((c) => c.get(key) ?? '') }))
      .filter((d) => new Set(d.values).size > 1),
    known: string[] = [],
    groups = all.map((_, i) => {
      const mine = JSON.stringify(differences.map((d) => d.values[i])),
        at = known.indexOf(mine);
      return at < 0 ? known.push(mine) - 1 : at;
    });
  return { differences, groups };
}
