import type { GroupView } from '../../runtime/protocol/types.js';

/** The sibling most worth comparing with: of another outcome, then nearest in length. */
export function bestContrast(g: GroupView | undefined, self: string): string | undefined {
  const me = g?.members.find((m) => m.rollout === self),
    others = g?.members.filter((m) => m.rollout !== self && m.steps > 0) ?? [];
  const score = (m: GroupView['members'][number]): number =>
    (me && m.outcome !== me.outcome ? 0 : 1000) +
    (m.outcome === 'error' ? 500 : 0) +
    Math.abs(m.steps - (me?.steps ?? 0));
  return [...others].sort((x, y) => score(x) - score(y))[0]?.rollout;
}
