import type { SettleOptions } from '../cluster/types.js';
import type { DataManager } from '../data/dataManager.js';
import type { FrameStore } from '../data/types.js';
import type { Steerable } from '../rollout/types.js';
import type { Scheduler } from '../rollout/scheduler.js';
import type { HeldRollout } from './runAccess.js';

/** How long the trainer waits for a rollout that a person holds, when it has nothing else to wait for. */
const HOLD_PATIENCE_MS = 120_000;

export function heldRollout(
  s: Steerable,
  d: {
    readonly data: Pick<DataManager, 'hold'>;
    readonly scheduler: Scheduler;
    readonly instruction: string;
    readonly frames: FrameStore;
    readonly settle: SettleOptions;
  },
): HeldRollout {
  const { rollout } = s.order,
    { data, scheduler, ...own } = d;
  let patience: NodeJS.Timeout | undefined;
  return {
    ...s,
    ...own,
    onEvent: (l) => scheduler.onEvent(l),
    hold: (on) => {
      clearTimeout(patience);
      // A probe belongs to no group.
      if (s.kind !== 'rollout') return;
      data.hold(rollout, on ? 'held' : 'free');
      if (on) {
        patience = setTimeout(() => {
          data.hold(rollout, 'long');
        }, HOLD_PATIENCE_MS);
        patience.unref();
      }
    },
  };
}
