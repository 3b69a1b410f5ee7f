import { describe, expect, it } from 'vitest';
import { id } from '../../../runtime/domain/index.js';
import type { FamilyId, GroupId, TaskId } from '../../../runtime/domain/index.js';
import { baseDataConfig } from '../../helpers/data/manager.js';
import type { PlannerConfig } from '../../../runtime/data/config.js';
import { SuccessLengths } from '../../../runtime/data/curation/dynamicLength.js';
import { SuccessStats } from '../../../runtime/data/curation/successStats.js';
import { Planner } from '../../../runtime/data/planner.js';
import type { PlannerDeps, PlannerFamily } from '../../../runtime/data/planner.js';
import type { RolloutOrder } from '../../../runtime/data/types.js';

const families: PlannerFamily[] = ['a', 'b', 'c', 'd'].map((f) => ({
  id: id<FamilyId>(f),
  seeds: { from: 10, count: 50 },
}));
function deps(
  o: { planner?: Partial<PlannerConfig>; size?: number; explore?: number; families?: PlannerFamily[] } = {},
): PlannerDeps {
  return {
    families: o.families ?? families,
    taskOf: (f, seed) => id<TaskId>(`${f}#${seed}`),
    stats: new SuccessStats(32),
    lengths: new SuccessLengths(0),
    config: {
      ...baseDataConfig,
      planner: { ...baseDataConfig.planner, ...o.planner },
      dynamicRollouts: { ...baseDataConfig.dynamicRollouts, max: o.size ?? 3 },
      dynamicLength: { ...baseDataConfig.dynamicLength, exploreShare: o.explore ?? 0 },
    },
  };
}
function take(p: Planner): RolloutOrder {
  const events = p.next();
  for (const e of events) p.apply(e);
  const last = events.at(-1);
  if (last?.type !== 'rollout.queued') throw new Error('no order');
  return last.order;
}
const finish = (p: Planner, o: RolloutOrder): void => {
  p.started(o.group, o.rollout);
  p.recorded(o.group, o.rollout, false);
};

describe('planner', () => {
  it('hands out a group in adjacent orders that share family, task and seed', () => {
    const p = new Planner(deps()),
      orders = Array.from({ length: 9 }, () => take(p));
    expect(orders.map((o) => o.group)).toEqual([
      'g000001',
      'g000001',
      'g000001',
      'g000002',
      'g000002',
      'g000002',
      'g000003',
      'g000003',
      'g000003',
    ]);
    for (const g of ['g000001', 'g000002', 'g000003'])
      expect(
        new Set(orders.filter((o) => o.group === g).map((o) => `${o.family} ${o.task} ${o.seed} ${o.groupSize}`)).size,
      ).toBe(1);
    expect(new Set(orders.map((o) => o.rollout)).size).toBe(9);
  });

  it('decides nothing until the decision is applied', () => {
    const p = new Planner(deps());
    expect(p.next()).toEqual(p.next());
    expect(p.state()).toEqual({ groups: 0, rollouts: 0, open: [] });
  });

  it('goes through all families once per pass, in another order each pass', () => {
    const p = new Planner(deps({ size: 1 })),
      passes = Array.from({ length: 6 }, () => Array.from({ length: 4 }, () => take(p).family).join(''));
    for (const pass of passes) expect([...pass].sort().join('')).toBe('abcd');
    expect(new Set(passes).size).toBeGreaterThan(1);
  });

  it('draws seeds from the range or the list', () => {
    const p = new Planner(
      deps({
        size: 1,
        families: [
          { id: id<FamilyId>('r'), seeds: { from: 5, count: 3 } },
          { id: id<FamilyId>('l'), seeds: [100, 200] },
        ],
      }),
    );
    const seen = new Map<string, Set<number>>();
    for (let i = 0; i < 60; i++) {
      const o = take(p);
      (seen.get(o.family) ?? seen.set(o.family, new Set()).get(o.family)!).add(o.seed);
    }
    expect([...seen.get('r')!].sort()).toEqual([5, 6, 7]);
    expect([...seen.get('l')!].sort()).toEqual([100, 200]);
  });

  it('prefers families between sure failure and sure success, and forgets none', () => {
    const d = deps({ size: 1, planner: { planner: 'variance' } });
    for (let i = 0; i < 30; i++) {
      d.stats.add(id<FamilyId>('a'), true);
      d.stats.add(id<FamilyId>('b'), false);
      d.stats.add(id<FamilyId>('c'), i % 2 === 0);
      d.stats.add(id<FamilyId>('d'), i % 10 === 0);
    }
    const p = new Planner(d),
      n: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 };
    for (let i = 0; i < 2000; i++) n[take(p).family]!++;
    expect(n['c']!).toBeGreaterThan(2 * n['d']!);
    expect(n['d']!).toBeGreaterThan(n['a']!);
    for (const f of ['a', 'b']) expect(n[f]!).toBeGreaterThan(50);
  });

  it('weighs uncertainty harder when told to', () => {
    const share = (uncertainty: number): number => {
      const d = deps({ size: 1, planner: { planner: 'variance', uncertainty } });
      for (let i = 0; i < 30; i++) {
        d.stats.add(id<FamilyId>('a'), true);
        d.stats.add(id<FamilyId>('b'), false);
        d.stats.add(id<FamilyId>('c'), i % 2 === 0);
        d.stats.add(id<FamilyId>('d'), i % 10 === 0);
      }
      const p = new Planner(d);
      return Array.from({ length: 1000 }, () => take(p)).filter((o) => o.family === 'c').length / 1000;
    };
    expect(share(2)).toBeGreaterThan(share(1) + 0.1);
    expect(share(2)).toBeLessThan(1);
  });

  it('starts a few of a group, and the rest only while its outcome is open', () => {
    const one = [families[0]!],
      start = (p: Planner): RolloutOrder[] => {
        const os = [take(p), take(p)];
        for (const o of os) p.started(o.group, o.rollout);
        return os;
      };
    const run = (
      known: readonly boolean[],
      outcomes: readonly [boolean, boolean],
    ): { size: number | undefined; left: number } => {
      const all = deps({ size: 4, families: one, planner: { pilot: 2 } }),
        d = {
          ...all,
          config: { ...all.config, dynamicRollouts: { ...all.config.dynamicRollouts, enabled: false } },
        };
      for (const x of known) d.stats.add(id<FamilyId>('a'), x);
      const p = new Planner(d),
        [x, y] = start(p) as [RolloutOrder, RolloutOrder];
      expect(p.unissued).toBe(0);
      for (const [o, ok] of [
        [x, outcomes[0]],
        [y, outcomes[1]],
      ] as const) {
        d.stats.add(id<FamilyId>('a'), ok);
        p.recorded(o.group, o.rollout, ok);
      }
      return { size: p.complete(x.group)?.members.length, left: p.unissued };
    };
    const never = Array<boolean>(30).fill(false),
      always = Array<boolean>(30).fill(true),
      mixed = Array.from({ length: 30 }, (_, i) => i % 2 === 0);
    expect(run(never, [false, false])).toEqual({ size: 2, left: 0 });
    expect(run(always, [true, true])).toEqual({ size: 2, left: 0 });
    expect(run(mixed, [false, false])).toEqual({ size: undefined, left: 2 });
    expect(run(never, [true, false])).toEqual({ size: undefined, left: 2 });
  });
  it('replaces an error among the first before it decides', () => {
    const d = deps({ size: 4, families: [families[0]!], planner: { pilot: 2, retries: 1 } }),
      p = new Planner(d),
      a = take(p),
      b = take(p);
    for (const o of [a, b]) p.started(o.group, o.rollout);
    p.recorded(a.group, a.rollout, false);
    p.retired(b.group, b.rollout, 'error');
    const c = take(p);
    expect([c.group, p.complete(a.group)]).toEqual([a.group, undefined]);
    p.retired(c.group, c.rollout, 'error'); // no retries left: decided by the one that ended
    expect(p.unissued).toBe(2);
  });

  it('gives mastered families smaller groups and shorter caps, except to exploring rollouts', () => {
    const d = deps({ size: 8, explore: 0.3, families: [families[0]!] });
    for (let i = 0; i < 32; i++) d.stats.add(id<FamilyId>('a'), i < 29);
    d.lengths.add(id<FamilyId>('a'), 5);
    const p = new Planner(d),
      orders = Array.from({ length: 300 }, () => take(p));
    expect(orders[0]!.groupSize).toBe(2);
    expect(p.outlook(id<FamilyId>('a'))).toEqual({ size: 2, cap: 7 });
    const exploring = orders.filter((o) => o.cap === 30).length;
    expect(exploring + orders.filter((o) => o.cap === 7).length).toBe(300);
    expect(exploring).toBeGreaterThan(50);
    expect(exploring).toBeLessThan(130);
  });

  it('retries errors within the group, then goes on with fewer', () => {
    const p = new Planner(deps({ planner: { retries: 2 } })),
      [a, b, c] = [take(p), take(p), take(p)] as const;
    for (const o of [a, b, c]) p.started(o.group, o.rollout);
    p.retired(a.group, a.rollout, 'error');
    const a2 = take(p);
    expect(a2).toMatchObject({ group: a.group, task: a.task, seed: a.seed });
    expect(a2.rollout).not.toBe(a.rollout);
    p.retired(a2.group, a2.rollout, 'error');
    const a3 = take(p);
    expect(a3.group).toBe(a.group);
    p.retired(a3.group, a3.rollout, 'error');
    expect(take(p).group).not.toBe(a.group);
    expect(p.complete(a.group)).toBeUndefined();
    p.recorded(b.group, b.rollout, false);
    p.recorded(c.group, c.rollout, false);
    expect(p.complete(a.group)).toMatchObject({
      plan: { group: a.group, task: a.task },
      members: [b.rollout, c.rollout],
    });
  });

  it('hands out lost and stopped rollouts again without using up retries', () => {
    const p = new Planner(deps({ size: 1, planner: { retries: 0 } }));
    let o = take(p);
    for (const reason of ['lost', 'stopped', 'lost'] as const) {
      p.retired(o.group, o.rollout, reason);
      const next = take(p);
      expect(next.group).toBe(o.group);
      o = next;
    }
    finish(p, o);
    expect(p.complete(o.group)?.members).toEqual([o.rollout]);
  });

  it('forgets a group that is closed', () => {
    const p = new Planner(deps()),
      o = take(p);
    expect(p.openGroups()).toEqual([o.group]);
    p.close(o.group);
    expect(p.openGroups()).toEqual([]);
  });

  it('goes on exactly after a restore through JSON, at any point', () => {
    for (let cut = 1; cut < 12; cut++) {
      const d = deps({ explore: 0.3 }),
        p = new Planner(d);
      for (let i = 0; i < cut; i++) {
        const o = take(p);
        if (i % 4 === 1) p.retired(o.group, o.rollout, 'error');
        else if (i % 2 === 0) finish(p, o);
      }
      const q = Planner.restore(d, JSON.parse(JSON.stringify(p.state())));
      expect(q.state()).toEqual(p.state());
      for (let i = 0; i < 10; i++) expect(take(q)).toEqual(take(p));
    }
  });

  it('has nothing to say without families', () => {
    expect(new Planner(deps({ families: [] })).next()).toEqual([]);
  });

  it('ignores ends of rollouts it does not know', () => {
    const p = new Planner(deps()),
      before = p.state();
    p.retired(id<GroupId>('g9'), id('r9'), 'error');
    p.started(id<GroupId>('g9'), id('r9'));
    expect(p.state()).toEqual(before);
  });
});
