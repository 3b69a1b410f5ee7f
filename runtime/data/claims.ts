import { id, rewardOf } from '../domain/index.js';
import type {
  BatchId,
  FamilyId,
  GroupId,
  PolicyVersion,
  Provenance,
  RolloutId,
  TaskId,
  Trajectory,
} from '../domain/index.js';
import type { Ages } from './ages.js';
import { overridden } from './curation/curateGroup.js';
import type { JournalEvent } from './events.js';
import type { DataState, FormedGroup } from './state.js';

export interface ClaimOptions {
  readonly version: PolicyVersion;
  /** Fewer are not claimed. Default: one. */
  readonly minGroups?: number;
  /** Most groups to take; default: `minGroups`. */
  readonly maxGroups?: number;
  /** As in CapacityInfo. */
  readonly behavior?: PolicyVersion;
}

/**
 * A trajectory in a claimed group. `keep` says for each step whether it is trained; if all are false, the trajectory
 * counts for the baseline only.
 */
export interface ClaimedMember {
  readonly trajectory: Trajectory;
  readonly keep: readonly boolean[];
  readonly injected: boolean;
  readonly reward: number;
  readonly provenance: Provenance;
  /** An injected success of the policy itself that lags more updates than the staleness bound allows. */
  readonly aged?: true;
}
export interface ClaimedGroup {
  readonly id: GroupId;
  readonly family: FamilyId;
  readonly task: TaskId;
  readonly members: readonly ClaimedMember[];
  readonly threshold?: number;
}
export interface ClaimedBatch {
  readonly id: BatchId;
  readonly version: PolicyVersion;
  readonly groups: readonly ClaimedGroup[];
  /** Steps with keep = true. */
  readonly steps: number;
}

/** The groups that one claim would take. */
export interface ClaimPlan {
  /** Oldest version that acted in each waiting group, oldest first. */
  readonly waiting: readonly PolicyVersion[];
  /** Groups to take, those with the oldest weights first. */
  readonly taken: readonly FormedGroup[];
  /** Whether these are at least `minGroups`. */
  readonly enough: boolean;
}

/** Chooses the groups of the next batch, those with the oldest weights first. Pure. */
export function planClaim(state: DataState, ages: Ages, o: ClaimOptions): ClaimPlan {
  const waiting = [...state.ready.values()]
    .map((group) => ({
      group,
      oldest: ages.oldestOf(
        group.members.flatMap((m) => (m.injected ? [] : [m.rollout])),
        o.version,
      ),
    }))
    .sort((a, b) => a.oldest - b.oldest);
  const taken: FormedGroup[] = [];
  const enough = (): boolean => taken.length >= (o.minGroups ?? 1);
  for (const { group } of waiting) {
    if (o.maxGroups === undefined ? enough() : taken.length >= o.maxGroups) break;
    taken.push(group);
  }
  return { waiting: waiting.map((w) => w.oldest), taken, enough: enough() };
}

/**
 * The batch as the trainer takes it. An injected trajectory counts with the reward a person gave it; `aged` says which
 * lag more than the bound. Pure.
 */
export function batchOf(
  state: DataState,
  taken: readonly FormedGroup[],
  version: PolicyVersion,
  trajectoryOf: (rollout: RolloutId) => Trajectory,
  aged: (t: Trajectory) => boolean,
): ClaimedBatch {
  const groups = taken.map((g): ClaimedGroup => ({
    id: g.group,
    family: g.family,
    task: g.task,
    threshold: g.threshold,
    members: g.members.map((m) => {
      const t = trajectoryOf(m.rollout),
        trajectory = m.injected && m.reward > rewardOf(t) ? overridden(t) : t;
      return {
        trajectory,
        keep: m.keep,
        injected: m.injected,
        reward: m.reward,
        provenance: trajectory.provenance,
        ...(m.injected && aged(t) ? { aged: true } : {}),
      };
    }),
  }));
  return {
    id: id<BatchId>(`b${String(state.tally.batches + 1).padStart(5, '0')}`),
    version,
    groups,
    steps: groups.reduce((n, g) => n + g.members.reduce((k, m) => k + m.keep.filter(Boolean).length, 0), 0),
  };
}

/** The journal event of a claimed batch. Pure. */
export function claimedEvent(
  batch: ClaimedBatch,
  { ledger }: DataState,
  ages: Ages,
  trajectoryOf: (rollout: RolloutId) => Trajectory,
): Extract<JournalEvent, { type: 'batch.claimed' }> {
  const { id: name, version, steps } = batch,
    groups = batch.groups.map((g) => ({ group: g.id, rollouts: ledger.inGroup(g.id) })),
    lags = groups.flatMap((g) => g.rollouts.map((r) => ages.lag(trajectoryOf(r), version))),
    poolLags = poolLagsOf(batch, ages);
  return {
    type: 'batch.claimed',
    batch: name,
    groups,
    version,
    lags,
    ...(poolLags.length > 0 ? { poolLags } : {}),
    steps,
  };
}

/** How many updates the policy's own successes that joined a batch's groups from the pool lag behind. */
export const poolLagsOf = ({ groups, version }: ClaimedBatch, ages: Ages): number[] =>
  groups.flatMap((g) =>
    g.members.flatMap(({ injected, trajectory: t }) =>
      injected && t.steps.some((s) => s.version !== undefined) ? [ages.poolLag(t, version)] : [],
    ),
  );

/**
 * Rollouts held by a person that keep the trainer waiting: the staleness bound makes an update wait only for their
 * groups, or they have been held for long and nothing else is running. `held`: true = for long. Pure.
 */
export function blockingHeld(
  state: DataState,
  ages: Ages,
  held: ReadonlyMap<RolloutId, boolean>,
  p: ClaimPlan,
  o: ClaimOptions,
): RolloutId[] {
  if (held.size === 0) return [];
  const { ledger, released, orders, planner } = state,
    live = [...held].filter(
      ([r]) => ledger.state(r)?.at === 'running' && !released.has(r) && planner.isOpen(orders.get(r)!.group),
    );
  if (!p.enough)
    return ledger.counts().byState.running === held.size ? live.flatMap(([r, long]) => (long ? [r] : [])) : [];
  const groups = new Set(live.map(([r]) => orders.get(r)!.group)),
    n = p.taken.length;
  return ages.mustWait(p.waiting, n, o) && !ages.mustWait(p.waiting, n, o, groups) ? live.map(([r]) => r) : [];
}
