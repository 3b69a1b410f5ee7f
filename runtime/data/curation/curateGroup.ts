import {
  byPerson,
  ownFrom,
  rewardOf,
  type Random,
  type RolloutId,
  type Trajectory,
  type RetireReason,
} from '../../domain/index.js';
import type { CurationConfig } from '../config.js';
import type { CuratedMember, GroupDraft, Retired } from './mechanism.js';
import { curateBy } from './registry.js';

export type Curated =
  | {
      readonly kind: 'formed';
      readonly members: readonly CuratedMember[];
      readonly retired: readonly Retired[];
      readonly threshold: number | undefined;
      /** Numbers of mechanisms, by `<mechanism>.<number>`. */
      readonly stats: Readonly<Record<string, number>>;
    }
  | {
      readonly kind: 'dropped';
      readonly rewards: readonly number[];
      readonly retired: readonly Retired[];
      readonly reason: RetireReason;
    };

/** A trajectory that a person put into the pool against the verifier, as its group sees it. */
export const overridden = (t: Trajectory): Trajectory =>
  t.outcome.kind === 'failure' ? { ...t, outcome: { kind: 'success', reward: 1, truncated: false } } : t;

/**
 * A completed group through the mechanisms of curation (runtime/data/README.md#group-to-batch; registry.ts). `own`
 * holds outcomes only, never errors. `inject` returns a pool success or undefined and is called at most once. A
 * trajectory none of whose steps is kept stays as a member with an empty mask: its reward belongs to the baseline.
 * Steps of a taken-over rollout in which a person acted, or that they chose by declining others, are outside the mask:
 * policy gradient does not apply to them (run/credit.ts); neither are steps that a branch only acted out again, which are another rollout's samples.
 */
export function curateGroup(
  own: readonly Trajectory[],
  inject: () => Trajectory | undefined,
  c: CurationConfig,
  random: Random,
): Curated {
  const dropped = (reason: RetireReason): Curated => ({
    kind: 'dropped',
    rewards: own.map(rewardOf),
    retired: own.map((t) => ({ rollout: t.id, reason })),
    reason,
  });
  if (own.length === 0) return dropped('error');
  const draft: GroupDraft = curateBy({ members: own.map(memberOf), retired: [], stats: {} }, c, { inject, random });
  if (draft.dropped) return dropped(draft.dropped);
  const members = draft.members.map(keepInjected);
  if (!members.some(isTrained)) return dropped('masked');
  const masked = members.filter((m) => !m.injected && !isTrained(m)).map((m) => m.trajectory.id);
  return {
    kind: 'formed',
    members,
    retired: [...draft.retired, ...masked.map((rollout: RolloutId): Retired => ({ rollout, reason: 'masked' }))],
    threshold: draft.threshold,
    stats: draft.stats,
  };
}

const isTrained = (m: CuratedMember): boolean => m.keep.includes(true);
const memberOf = (trajectory: Trajectory): CuratedMember => ({
  trajectory,
  injected: false,
  reward: rewardOf(trajectory),
  keep: trajectory.steps.map((s) => !byPerson(s) && s.index >= ownFrom(trajectory)),
});
/** The injected success is all that a failed group can learn from: it is never masked entirely. */
const keepInjected = (m: CuratedMember): CuratedMember =>
  m.injected && !isTrained(m) ? { ...m, keep: m.keep.map(() => true) } : m;
