import { assisted, id, type FamilyId, type GroupId, type RolloutId, type Trajectory } from '../domain/index.js';
import type { DataManager } from '../data/dataManager.js';
import type { RolloutOrder } from '../data/types.js';
import type { Scheduler } from '../rollout/scheduler.js';
import type { Tasks } from '../tasks/open.js';
import { probePrefix } from '../domain/probeNames.js';
import type { EvalPoint as Recorded } from '../domain/run.js';
import { wilson } from '../domain/stats.js';

/** One evaluation as it was measured; the journal says when. `infeasible`: runtime/rollout/README.md#outcomes. */
export type EvalPoint = Omit<Recorded, 'at' | 'infeasible'> & Required<Pick<Recorded, 'infeasible'>>;

/** The orders of one evaluation: the same tasks every time, under the global cap. */
export function probeOrders(
  tasks: Tasks,
  episodes: number,
  label: string,
  version: number,
  maxSteps: number,
): RolloutOrder[] {
  const group = id<GroupId>(`${probePrefix(label)}v${version}`);
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
 * Counts the episodes of an evaluation. An error is not the policy's failure and is counted separately; it stays among
 * the episodes, so that a rate never comes from those alone that went well. Pure.
 */
export function tallyEpisodes(
  trajectories: readonly Trajectory[],
  infeasibleFamilies: ReadonlySet<FamilyId>,
): Omit<EvalPoint, 'label' | 'version'> {
  const perFamily: Record<string, { episodes: number; successes: number }> = {},
    infeasible = { episodes: 0, successes: 0 },
    all = { episodes: 0, successes: 0 };
  let errors = 0;
  for (const t of trajectories) {
    if (t.outcome.kind === 'error') errors++;
    // A person's help makes the outcome not the policy's.
    if (assisted(t)) continue;
    const counted = infeasibleFamilies.has(t.family)
      ? [infeasible]
      : [all, (perFamily[t.family] ??= { episodes: 0, successes: 0 })];
    for (const c of counted) {
      c.episodes++;
      if (t.outcome.kind === 'success') c.successes++;
    }
  }
  const { low, high } = wilson(all.successes, all.episodes);
  return { ...all, errors, low, high, perFamily, infeasible };
}

export interface EvaluationRequest {
  readonly data: DataManager;
  readonly scheduler: Scheduler;
  readonly tasks: Tasks;
  readonly episodes: number;
  readonly label: string;
  readonly version: number;
  readonly maxSteps: number;
  /** Samples at this temperature; default: the most probable choice always. */
  readonly temperature?: number | undefined;
  /** Cancels the evaluation: it rejects with `cancelled` and measures nothing. */
  readonly signal?: AbortSignal;
}

/** Episodes on the probe set, judged by the verifiers. Journalled. */
export async function evaluateNow(o: EvaluationRequest): Promise<EvalPoint> {
  const { label, version } = o,
    orders = probeOrders(o.tasks, o.episodes, label, version, o.maxSteps);
  const trajectories = await o.scheduler.runProbe(orders, { temperature: o.temperature, signal: o.signal });
  const infeasibleFamilies = new Set(o.tasks.source.families.filter((f) => f.infeasible).map((f) => f.id)),
    { infeasible, ...counts } = tallyEpisodes(trajectories, infeasibleFamilies);
  await o.data.note({
    type: 'eval',
    version,
    label,
    ...counts,
    infeasible: infeasible.episodes > 0 ? infeasible : undefined,
  });
  return { label, version, infeasible, ...counts };
}
