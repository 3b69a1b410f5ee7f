import type { RolloutId } from '../domain/index.js';
import type { JournalEvent, LossCause } from './events.js';
import type { DataState, FormedGroup } from './state.js';

/**
 * The events that give up a trajectory that cannot be read back, or that the trainer does not take: its waiting groups
 * are retired whole, because they no longer have the baseline they were curated with, and it leaves the pool. Pure.
 */
export function lostGroups(
  state: DataState,
  groups: readonly FormedGroup[],
  { rollout, cause }: { readonly rollout: RolloutId; readonly cause: LossCause },
): JournalEvent[] {
  return [
    ...groups.map((g): JournalEvent => ({
      type: 'group.retired',
      group: g.group,
      rollouts: state.ledger.inGroup(g.group),
      reason: 'lost',
      whole: true,
      cause,
    })),
    ...(state.pool.get(rollout) ? [{ type: 'pool.removed' as const, entry: rollout, reason: LOSS_WORDS[cause] }] : []),
  ];
}

/** What is said of such a trajectory. */
export const LOSS_WORDS: Readonly<Record<LossCause, string>> = {
  corrupt: 'it cannot be read back',
  refused: 'the trainer does not take it',
};

/** Leaves out values that could not be measured: JSON has no NaN and would write null. */
export const measured = (values: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(values).filter(([, v]) => Number.isFinite(v)));
