import type { PolicyVersion } from '../domain/index.js';
import type { DataConfig } from './config.js';
import { admissionCapacity, groupCapacity } from './curation/staleness.js';
import type { DataState } from './state.js';

export interface CapacityInfo {
  /** Most rollouts running at once, e.g. the number of desktops. */
  readonly maxConcurrent: number;
  readonly version: PolicyVersion;
  /** Oldest version a replica may still answer with, while weights are being published. Default `version`. */
  readonly behavior?: PolicyVersion;
}

/**
 * Rollouts that may start now under the staleness bound (runtime/data/README.md#staleness-bound) and `maxConcurrent`; 0
 * or less = wait for a change. `starved`: the trainer asked for a batch and got none. Pure.
 */
export function rolloutCapacity(state: DataState, config: DataConfig, i: CapacityInfo, starved: boolean): number {
  const b = state.ledger.counts().byState,
    running = b.queued + b.running,
    c = config.staleness;
  if (!c.enabled) return i.maxConcurrent - running;
  // Batches vary in size, so trained trajectories count as B per update; the rule is then running + buffered <= (eta +
  // 1) B.
  const accepted = i.version * c.perUpdate + b.recorded + b.grouped + b.claimed;
  const capacity = Math.min(
    groupSlots(state, config, i),
    admissionCapacity({
      maxConcurrent: i.maxConcurrent,
      running,
      accepted,
      version: i.behavior ?? i.version,
      eta: c.eta,
      perUpdate: c.perUpdate,
    }),
  );
  // A bound too tight for one batch must not stop the run: when nothing runs and the trainer got no batch, one more
  // rollout may start, on the newest weights.
  return capacity <= 0 && running === 0 && b.claimed === 0 && starved && (i.behavior ?? i.version) === i.version
    ? Math.min(1, i.maxConcurrent)
    : capacity;
}

/** Rollouts that may start by the bound in groups: what open groups still lack, and whole groups beyond. */
function groupSlots(
  { planner, ready, claimed }: DataState,
  config: DataConfig,
  { version, behavior = version }: CapacityInfo,
): number {
  const { groupsPerUpdate } = config.staleness;
  if (groupsPerUpdate === undefined) return Infinity;
  // A group that starts on weights one version old may wait one update less.
  const eta = config.staleness.eta - (version - behavior);
  const pending =
    planner.openGroups().length + ready.size + [...claimed.values()].reduce((n, b) => n + b.groups.length, 0);
  return (
    planner.unissued +
    Math.max(0, groupCapacity({ pending, eta, perUpdate: groupsPerUpdate })) * config.dynamicRollouts.max
  );
}
