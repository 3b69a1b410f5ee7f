import type { Random, RolloutId, Trajectory } from '../../domain/index.js';
import type { DataConfig } from '../config.js';
import type { RetireReason } from '../types.js';
import { filterGroup } from './groupFilter.js';
import { selectHighEntropy } from './highEntropy.js';
import { oldestFailure } from './poolInjection.js';

export interface Retired {
  readonly rollout: RolloutId;
  readonly reason: RetireReason;
}
export interface CuratedMember {
  readonly trajectory: Trajectory;
  readonly injected: boolean;
  readonly reward: number;
  readonly keep: readonly boolean[];
}
export type Curated =
  | {
      readonly kind: 'formed';
      readonly members: readonly CuratedMember[];
      readonly retired: readonly Retired[];
      readonly threshold: number | undefined;
    }
  | {
      readonly kind: 'dropped';
      readonly rewards: readonly number[];
      readonly retired: readonly Retired[];
      readonly reason: RetireReason;
    };

export const rewardOf = (t: Trajectory): number => (t.outcome.kind === 'error' ? 0 : t.outcome.reward);
/** A trajectory that a person put into the pool without the verifier's word, as its group sees it. */
export const overridden = (t: Trajectory): Trajectory =>
  t.outcome.kind === 'failure' ? { ...t, outcome: { kind: 'success', reward: 1, truncated: false } } : t;

/**
 * A completed group through curation (runtime/data/README.md#group-to-batch): pool injection when nobody succeeded,
 * variance filter
 * and cut, high-entropy steps. `own` holds outcomes only, never errors. `inject` gives a pool success or nothing and is
 * asked at most once. A trajectory none of whose steps is kept stays as a member with an empty mask: its reward belongs
 * to the baseline. Steps of a taken-over rollout in which a person acted are outside the mask: policy gradient has
 * nothing to say about them (run/samples.ts).
 */
export function curateGroup(
  own: readonly Trajectory[],
  inject: () => Trajectory | undefined,
  c: Pick<DataConfig, 'groupFilter' | 'highEntropy'>,
  random: Random,
): Curated {
  const rewards = own.map(rewardOf);
  if (own.length === 0) return { kind: 'dropped', rewards, retired: [], reason: 'error' };
  const retired: Retired[] = [];
  let present = [...own],
    injected: Trajectory | undefined;
  if (own.every((t) => t.outcome.kind !== 'success')) {
    injected = inject();
    if (injected) {
      const out = own.length > 1 ? oldestFailure(own.map((t) => ({ success: false, endedAt: t.endedAt }))) : -1;
      // A lone failure stays: without it the success would have nothing to differ from.
      if (out >= 0) {
        retired.push({ rollout: own[out]!.id, reason: 'replaced' });
        present = present.filter((_, i) => i !== out);
      }
      present.push(injected);
    }
  }
  const isOwn = (t: Trajectory): boolean => t !== injected;
  const filtered = filterGroup(present.map(rewardOf), c.groupFilter, random, injected ? [present.length - 1] : []);
  if ('drop' in filtered)
    return {
      kind: 'dropped',
      rewards,
      retired: own.map((t) => ({ rollout: t.id, reason: filtered.drop })),
      reason: filtered.drop,
    };
  const stay = filtered.keep.map((i) => present[i]!);
  for (const t of present) if (!stay.includes(t)) retired.push({ rollout: t.id, reason: 'trimmed' });

  const { keep, threshold } = selectHighEntropy(stay, c.highEntropy);
  const members = stay.map((trajectory, i): CuratedMember => {
    const mask = keep[i]!.map((k, j) => k && (!isOwn(trajectory) || trajectory.steps[j]!.origin !== 'human'));
    // The one success of a failed group is the point of injecting it: it is never masked whole.
    const all = !isOwn(trajectory) && !mask.includes(true);
    return {
      trajectory,
      injected: !isOwn(trajectory),
      reward: rewardOf(trajectory),
      keep: all ? mask.map(() => true) : mask,
    };
  });
  if (!members.some((m) => m.keep.includes(true)))
    return {
      kind: 'dropped',
      rewards,
      retired: own.map((t) => ({ rollout: t.id, reason: 'masked' })),
      reason: 'masked',
    };
  for (const m of members)
    if (!m.injected && !m.keep.includes(true)) retired.push({ rollout: m.trajectory.id, reason: 'masked' });
  return { kind: 'formed', members, retired, threshold };
}
