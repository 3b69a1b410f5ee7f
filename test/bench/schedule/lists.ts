import type { Arrangement, Simulation } from './simulate.js';
import { simulate } from './simulate.js';
import { estimate, type Estimate } from './statistics.js';
import type { Workload } from './workload.js';

/**
 * What scheduling brings when nothing else differs: every arrangement rolls out and trains the very same list of
 * rollouts, from a cold start to the last of them.
 */
export interface Lists {
  readonly rows: readonly ListRow[];
  /** Trained actions a minute, d over a, and what it would be if d never waited for anything. */
  readonly ratio: { readonly value: number; readonly half: number; readonly most: number };
}
export interface ListRow {
  readonly arrangement: Arrangement;
  readonly rollouts: number;
  readonly trainedRollouts: number;
  readonly hours: Estimate;
  readonly trainedActions: Estimate;
  readonly ratio: Estimate;
}

interface ListRun {
  readonly actionsPerMinute: number;
  readonly hours: number;
  /** Hours that no schedule can be under: the demand on the resource that runs out first. */
  readonly least: number;
  readonly rollouts: number;
  readonly trained: number;
  readonly ratio: number;
}

const runOf = ({ measured: m, hours, stats }: Simulation): ListRun => ({
  actionsPerMinute: m.trainedActions,
  hours,
  least: m.ratio * hours,
  rollouts: stats.ledger.generated,
  trained: stats.ledger.trained,
  ratio: m.ratio,
});

/** Throws when two arrangements did not get the same list. */
export async function runLists(
  w: Workload,
  arrangements: readonly Arrangement[],
  seeds: readonly number[],
  groups: number,
  each: (a: Arrangement, s: Simulation) => void,
): Promise<Lists> {
  const runs = new Map<string, ListRun[]>();
  for (const seed of seeds) {
    let first: readonly RolloutFate[] | undefined;
    for (const a of arrangements) {
      const s = await simulate(w, a, seed, { groups });
      each(a, s);
      const fates = fatesOf(s);
      first ??= fates;
      if (JSON.stringify(fates) !== JSON.stringify(first))
        throw new Error(`${a.name}: the list of rollouts is not that of ${arrangements[0]!.name}`);
      runs.set(a.name, [...(runs.get(a.name) ?? []), runOf(s)]);
    }
  }
  const rows = arrangements.map((arrangement): ListRow => {
    const mine = runs.get(arrangement.name)!;
    return {
      arrangement,
      rollouts: mine[0]!.rollouts,
      trainedRollouts: mine[0]!.trained,
      hours: estimate(mine.map((r) => r.hours)),
      trainedActions: estimate(mine.map((r) => r.actionsPerMinute)),
      ratio: estimate(mine.map((r) => r.ratio)),
    };
  });
  const [a, d] = ['a', 'd'].map((name) => runs.get(name)!),
    { mean, half } = estimate(d!.map((r, i) => r.actionsPerMinute / a![i]!.actionsPerMinute)),
    most = estimate(d!.map((r, i) => (r.actionsPerMinute * r.hours) / r.least / a![i]!.actionsPerMinute)).mean;
  return { rows, ratio: { value: mean, half, most } };
}

/** Length of every rollout and whether it was trained, in the order of the lengths: the list, whenever each came. */
type RolloutFate = readonly [steps: number, trained: boolean];
const fatesOf = ({ lengths }: Simulation): RolloutFate[] => {
  const sorted = (xs: readonly number[]): number[] => [...xs].sort((a, b) => a - b);
  return [
    ...sorted(lengths.resolved).map((n): RolloutFate => [n, false]),
    ...sorted(lengths.trained).map((n): RolloutFate => [n, true]),
  ];
};
