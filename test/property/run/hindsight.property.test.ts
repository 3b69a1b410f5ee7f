import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id, random, type RolloutId, type TaskId, type Trajectory } from '../../../runtime/domain/index.js';
import { curateGroup } from '../../../runtime/data/curation/curateGroup.js';
import { withinShare } from '../../../runtime/data/curation/hindsight.js';
import { ExperiencePool } from '../../../runtime/data/experiencePool.js';
import { applyToPool, pooling } from '../../../runtime/data/pooling.js';
import { relabelled } from '../../../runtime/rollout/hindsight.js';
import { imitationSteps, policySteps } from '../../../runtime/run/credit.js';
import { baseDataConfig, failure, familyIds, makeTrajectory, success, taskOf } from '../../helpers/data/manager.js';

const family = familyIds[0]!,
  task = taskOf(family, 1);
const rollout = (n: number, won: boolean): Trajectory =>
  makeTrajectory({ rollout: id<RolloutId>(`r${n}`), family, task, cap: 9 }, won ? success : failure, {
    seed: n,
    steps: 1 + (n % 3),
    endedAt: n,
  });
/** A success that is in the pool: relabelled, scripted, or the policy's own. */
function entry(n: number, kind: 'hindsight' | 'oracle' | 'rollout'): Trajectory {
  const t = { ...rollout(100 + n, true), task: id<TaskId>(`${task}+${n}`) };
  return kind === 'hindsight'
    ? relabelled(
        rollout(100 + n, false),
        { id: t.task, instruction: `other ${n}` },
        { kind: 'success', reward: 1, truncated: false },
      )
    : { ...t, provenance: { kind } };
}
const isRelabelled = (t: Trajectory): boolean => t.provenance.kind === 'hindsight';

describe('relabelled successes', () => {
  it('never reach the policy gradient, whatever the pool holds and however groups end; they are imitated', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('hindsight' as const, 'hindsight' as const, 'oracle' as const, 'rollout' as const), {
          maxLength: 12,
        }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
        fc.constantFrom('shortest' as const, 'newest' as const, 'novelty' as const),
        fc.boolean(),
        fc.constantFrom('trajectory' as const, 'fork' as const),
        (kinds, won, selection, filter, credit) => {
          const c = {
              ...baseDataConfig,
              pool: { ...baseDataConfig.pool, selection },
              groupFilter: { ...baseDataConfig.groupFilter, enabled: filter },
            },
            pool = new ExperiencePool(c.pool, { maxPerFamily: 4 }),
            there = new Map<RolloutId, Trajectory>();
          for (const [n, kind] of kinds.entries()) {
            const t = entry(n, kind);
            for (const e of pooling(pool, t, 'auto', 0).events) applyToPool(pool, e);
            there.set(t.id, t);
          }
          const own = won.map((w, n) => rollout(n, w)),
            chosen = pool.choose(task, family, 0),
            curated = curateGroup(own, () => chosen && there.get(chosen.id), c, random(1));
          if (curated.kind === 'formed') {
            const trajectories = curated.members.map((m) => m.trajectory);
            expect(trajectories.some(isRelabelled)).toBe(false);
            const steps = policySteps(
              [
                {
                  group: {
                    id: 'g' as never,
                    family,
                    trajectories,
                    injected: curated.members.filter((m) => m.injected).map((m) => m.trajectory.id),
                  },
                  keep: curated.members.map((m) => m.keep),
                },
              ],
              { baseline: 'step', norm: 'std', balance: 'step', credit },
              () => true,
            );
            expect(steps.some((s) => isRelabelled(s.trajectory))).toBe(false);
          }
          const held = pool.entries().map((e) => there.get(e.id)!);
          for (const s of imitationSteps(withinShare(held, 0.5), () => true))
            if (isRelabelled(s.trajectory)) expect(s).toMatchObject({ kind: 'imitation', advantage: 0, weight: 1 });
          for (const t of held.filter(isRelabelled)) expect(t.steps.some((s) => s.tokens)).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });
});
