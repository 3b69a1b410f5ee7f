import type { RolloutId } from '../domain/index.js';
import type { JournalEvent } from './events.js';
import type { DataState, FormedGroup } from './state.js';

/**
 * The events that give up a trajectory that cannot be read back: its waiting groups are retired whole, because they no
 * longer have the baseline they were curated with, and it leaves the pool. Pure.
 */
export function corrupted(state: DataState, groups: readonly FormedGroup[], rollout: RolloutId): JournalEvent[] {
  return [
    ...groups.map((g): JournalEvent => ({
      type: 'group.retired',
      group: g.group,
      rollouts: state.ledger.inGroup(g.group),
      reason: 'lost',
      whole: true,
      cause: 'corrupt',
    })),
    ...(state.pool.get(rollout)
      ? [{ type: 'pool.removed' as const, entry: rollout, reason: 'it cannot be read back' }]
      : []),
  ];
}

/** Leaves out values that could not be measured: JSON has no NaN and would write null. */
export const measured = (values: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(values).filter(([, v]) => Number.isFinite(v)));
