import { assisted, id, type GroupId, type RolloutId } from '../domain/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { Scheduler } from '../rollout/scheduler.js';
import type { Tasks } from '../tasks/open.js';
import { wilson } from '../domain/stats.js';

export interface EvalPoint {
  readonly label: string;
  readonly version: number;
  readonly episodes: number;
  readonly successes: number;
  readonly errors: number;
  readonly low: number;
  readonly high: number;
  readonly perFamily: Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;
  /** Tasks that cannot be done, apart (dart-algorithm.md 1). */
  readonly infeasible: { readonly episodes: number; readonly successes: number };
}

/** The orders of one evaluation: the same held-out tasks every time, under the global cap. */
export function probeOrders(
  tasks: Tasks,
  episodes: number,
  label: string,
  version: number,
  maxSteps: number,
): RolloutOrder[] {
  const group = id<GroupId>(`probe/${label}/v${version}`);
  return tasks.probes(episodes).map(({ family, seed }, i) => ({
    rollout: id<RolloutId>(`${group}/${i}`),
    group,
    family,
    task: tasks.taskOf(family, seed),
    seed,
    groupSize: 1,
    cap: Math.min(maxSteps, tasks.source.task(family, seed).maxSteps ?? maxSteps),
  }));
}

/**
 * Greedy episodes on the probe set, judged by the verifiers; errors are counted apart and never as failures.
 * Journalled.
 */
export async function evaluateNow(o: {
  data: DataManager;
  scheduler: Scheduler;
  tasks: Tasks;
  episodes: number;
  label: string;
  version: number;
  maxSteps: number;
  signal?: AbortSignal;
}): Promise<EvalPoint> {
  const orders = probeOrders(o.tasks, o.episodes, o.label, o.version, o.maxSteps);
  const trajectories = await o.scheduler.runProbe(orders, { greedy: true, ...(o.signal ? { signal: o.signal } : {}) });
  const infeasibleFamilies = new Set(o.tasks.source.families.filter((f) => f.infeasible).map((f) => f.id));
  const perFamily: Record<string, { episodes: number; successes: number }> = {};
  const infeasible = { episodes: 0, successes: 0 };
  let episodes = 0,
    successes = 0,
    errors = 0;
  for (const t of trajectories) {
    if (t.outcome.kind === 'error') {
      errors++;
      continue;
    }
    // Where a person helped, the outcome says nothing of the policy.
    if (assisted(t)) continue;
    const won = t.outcome.kind === 'success' ? 1 : 0;
    if (infeasibleFamilies.has(t.family)) {
      infeasible.episodes++;
      infeasible.successes += won;
      continue;
    }
    episodes++;
    successes += won;
    const f = (perFamily[t.family] ??= { episodes: 0, successes: 0 });
    f.episodes++;
    f.successes += won;
  }
  const { low, high } = wilson(successes, episodes);
  const point: EvalPoint = {
    label: o.label,
    version: o.version,
    episodes,
    successes,
    errors,
    low,
    high,
    perFamily,
    infeasible,
  };
  await o.data.note({
    type: 'eval',
    version: o.version,
    episodes,
    successes,
    errors,
    low,
    high,
    perFamily,
    label: o.label,
    ...(infeasible.episodes > 0 ? { infeasible } : {}),
  });
  return point;
}
