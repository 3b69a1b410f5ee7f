import type { Random } from '../../domain/index.js';
import type { GroupFilterConfig } from '../config.js';
import type { Mechanism } from './mechanism.js';

/** Equal rewards give zero advantages: nothing to learn. */
export const hasVariance = (rewards: readonly number[]): boolean =>
  rewards.length > 1 && Math.max(...rewards) - Math.min(...rewards) > 1e-9;

/** Indices, ascending, of the trajectories that stay, or the reason why the whole group is dropped. */
export type FilterResult = { readonly keep: readonly number[] } | { readonly drop: 'no-variance' };

/**
 * Variance filter, and cut to the batch's group size. The cut is a uniform draw that always keeps one of the highest
 * and one of the lowest rewards, and everything in `pinned` (an injected trajectory). It ignores lengths, so it cannot
 * favour short trajectories.
 */
export function filterGroup(
  rewards: readonly number[],
  c: GroupFilterConfig,
  random: Random,
  pinned: readonly number[] = [],
): FilterResult {
  if (rewards.length === 0 || rewards.length < (c.enabled ? c.minSize : 1)) return { drop: 'no-variance' };
  if (c.enabled && !hasVariance(rewards)) return { drop: 'no-variance' };
  const all = rewards.map((_, i) => i);
  if (all.length <= c.maxSize) return { keep: all };
  const order = random.shuffle(all);
  const max = Math.max(...rewards),
    min = Math.min(...rewards);
  const must = new Set(pinned);
  for (const extreme of [max, min]) {
    if ([...must].some((i) => rewards[i] === extreme)) continue;
    const i = order.find((j) => rewards[j] === extreme);
    if (i !== undefined) must.add(i);
  }
  const chosen = [...must, ...order.filter((i) => !must.has(i))].slice(0, Math.max(c.maxSize, must.size));
  return { keep: chosen.sort((a, b) => a - b) };
}

/** Drops groups without variance and cuts larger ones to what a batch takes. An injected trajectory is never cut. */
export const groupFilter: Mechanism<'groupFilter'> = {
  curate: (group, options, { random }) => {
    const { members } = group,
      injected = members.flatMap((m, i) => (m.injected ? [i] : []));
    const filtered = filterGroup(
      members.map((m) => m.reward),
      options,
      random,
      injected,
    );
    if ('drop' in filtered) return { ...group, dropped: filtered.drop };
    const stay = new Set(filtered.keep);
    return {
      ...group,
      members: members.filter((_, i) => stay.has(i)),
      retired: [
        ...group.retired,
        ...members.flatMap((m, i) => (stay.has(i) ? [] : [{ rollout: m.trajectory.id, reason: 'trimmed' as const }])),
      ],
    };
  },
  charts: [],
};
