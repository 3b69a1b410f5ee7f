import { assisted, message, ownFrom, type BranchPoint, type Random, type Trajectory } from '../../domain/index.js';
import type { BranchesConfig } from '../config.js';
import { hasVariance } from './groupFilter.js';
import { stepEntropy } from './highEntropy.js';
import { numbers, type CuratedMember, type Mechanism } from './mechanism.js';

/** The baseline of a group needs two rollouts that began with the task. */
const LEAST_WHOLE = 2;

/** How many rollouts of a group of `size` are branches. */
export const branchesOf = (size: number, c: BranchesConfig): number =>
  c.enabled ? Math.max(0, Math.min(c.count, size - LEAST_WHOLE)) : 0;

/**
 * The step at which the branches of a group begin (runtime/data/README.md#branches): the one of highest entropy in all
 * its rollouts, or a random one (`choose: uniform`). Undefined where no step can be reached again, or where all rollouts
 * succeeded, so that branches would teach nothing. How the chosen rollout ended plays no part: its outcome is one sample
 * of the step's value, and choosing by outcome would bias it. The first step is left out, because a branch there would
 * be an ordinary rollout.
 */
export function branchPoint(
  rollouts: readonly Trajectory[],
  c: Pick<BranchesConfig, 'choose'>,
  random: Random,
): BranchPoint | undefined {
  if (rollouts.every((t) => t.outcome.kind === 'success')) return undefined;
  const candidates = rollouts.flatMap(pointsOf);
  if (candidates.length === 0) return undefined;
  if (c.choose === 'uniform') return random.pick(candidates).point;
  return candidates.reduce((a, b) => (b.entropy > a.entropy ? b : a)).point;
}

interface Candidate {
  readonly point: BranchPoint;
  readonly entropy: number;
}

/** Steps of a rollout that can be reached again: nobody helped on the way, and every screen there was at rest. */
function pointsOf(t: Trajectory): Candidate[] {
  const out: Candidate[] = [];
  // With a person's help, the outcome is not the policy's own.
  if (t.branch || assisted(t)) return out;
  for (const [i, s] of t.steps.entries()) {
    const entropy = stepEntropy(s);
    if (i > 0 && entropy !== undefined) out.push({ point: { of: t.id, step: i }, entropy });
    if (s.settled === false || s.rejected !== undefined) break;
  }
  return out;
}

/** Rollouts of a group that passed through the same branch point: the one they branch off from, and the branches. */
export function siblingsAt<M extends { readonly trajectory: Pick<Trajectory, 'id' | 'branch' | 'steps'> }>(
  members: readonly M[],
): { readonly step: number; readonly members: readonly M[] }[] {
  const points = new Map<string, { step: number; of: string; members: M[] }>();
  for (const m of members) {
    const { branch } = m.trajectory;
    // A branch that a person ended before it began did not act there.
    if (!branch || m.trajectory.steps.length <= branch.step) continue;
    const key = `${branch.of} ${branch.step}`,
      there = points.get(key);
    if (there) there.members.push(m);
    else points.set(key, { step: branch.step, of: branch.of, members: [m] });
  }
  return [...points.values()].map(({ step, of, members: branched }) => ({
    step,
    members: [...members.filter((m) => m.trajectory.id === of), ...branched],
  }));
}

/** What branches showed: how many there are, how many of them succeeded, and whether the step decided the outcome. */
function statsOf(members: readonly CuratedMember[]): Readonly<Record<string, number>> {
  const own = members.filter((m) => !m.injected),
    branched = own.filter((m) => ownFrom(m.trajectory) > 0),
    rewards = siblingsAt(own).map((p) => p.members.map((m) => m.reward));
  if (branched.length === 0) return {};
  return {
    'branches.branched': branched.length,
    'branches.successes': branched.filter((m) => m.trajectory.outcome.kind === 'success').length,
    'branches.decided': rewards.filter(hasVariance).length,
  };
}

/** Branches over which the chart's mean is taken. */
const MEAN_OF = 32;

/**
 * Some rollouts begin in the middle of another one, at the step that `branchPoint` chooses once the others have ended.
 */
export const branches: Mechanism<'branches'> = {
  plan: (plan, _family, options) => ({ ...plan, branches: branchesOf(plan.size, options) }),
  curate: (group) => ({ ...group, stats: { ...group.stats, ...statsOf(group.members) } }),
  charts: [
    {
      name: 'replayed',
      onlyWhere: (o) => o.enabled,
      unit: 'share',
      words: {
        title: message('Branches'),
        says: message(
          'Rollouts that began in the middle of another one, and those that were given up because a screen on the way there was not the recorded one.',
        ),
        label: message('share of branches that reached their step'),
        empty: message('No rollout was branched off.'),
        summary: message('Of the newest branches, {0} reached their step.'),
      },
      read: async (run) => {
        const [ended, reached] = await run.index.columns(
          "SELECT ended_at, reason IS NOT 'diverged' FROM rollouts WHERE provenance = 'rollout' AND origin IS NOT NULL AND (outcome IS NOT 'error' OR reason = 'diverged') ORDER BY ended_at",
        );
        return { form: 'series', at: numbers(ended), value: numbers(reached), meanOf: MEAN_OF };
      },
    },
  ],
};
