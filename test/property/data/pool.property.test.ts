import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalAction,
  id,
  type GroupId,
  type Provenance,
  type RolloutId,
  type RunId,
  type TaskId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import type { PoolConfig } from '../../../runtime/data/config.js';
import { choosePoolEntry, unusable, usable } from '../../../runtime/data/curation/poolInjection.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { ExperiencePool } from '../../../runtime/data/experiencePool.js';
import { applyToPool, pooling } from '../../../runtime/data/pooling.js';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { poolView } from '../../../runtime/queries/pool.js';
import {
  baseDataConfig,
  broken,
  failure,
  familyIds,
  makeTrajectory,
  success,
  withDir,
} from '../../helpers/data/manager.js';

const names = Array.from({ length: 6 }, (_, i) => id<RolloutId>(`t${i}`)),
  family = familyIds[0]!;
const kinds = ['rollout', 'probe', 'oracle', 'human', 'imported', 'hindsight'] as const;
const relabelled = { maxPerFamily: 2 };
function provenanceOf(kind: (typeof kinds)[number]): Provenance {
  if (kind === 'imported') return { kind, from: 'there' };
  return kind === 'hindsight'
    ? { kind, of: id<RolloutId>('r'), task: id<TaskId>('asked'), instruction: 'asked' }
    : { kind };
}
const trajectory = (n: number, kind: (typeof kinds)[number], outcome = success) =>
  makeTrajectory({ rollout: names[n]!, family, task: id<TaskId>(`${family}#${n % 2}`), cap: 9 }, outcome, {
    seed: n,
    version: n,
    provenance: provenanceOf(kind),
  });

type Act =
  | {
      do: 'join';
      n: number;
      /** Acts as this one would. */
      like: number;
      kind: (typeof kinds)[number];
      outcome: 'success' | 'failure' | 'error';
      override: boolean;
      person: boolean;
    }
  | { do: 'switch'; n: number; on: boolean }
  | { do: 'remove'; n: number; person: boolean }
  | { do: 'use'; n: number; group: number };
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    do: fc.constant('join' as const),
    n: fc.nat(5),
    like: fc.nat(5),
    kind: fc.constantFrom(...kinds),
    outcome: fc.constantFrom('success' as const, 'success' as const, 'failure' as const, 'error' as const),
    override: fc.boolean(),
    person: fc.boolean(),
  }),
  fc.record({ do: fc.constant('switch' as const), n: fc.nat(5), on: fc.boolean() }),
  fc.record({ do: fc.constant('remove' as const), n: fc.nat(5), person: fc.boolean() }),
  fc.record({ do: fc.constant('use' as const), n: fc.nat(5), group: fc.nat(1000) }),
);
const config = (o: Partial<PoolConfig> = {}): PoolConfig => ({
  ...baseDataConfig.pool,
  reuseCap: 2,
  maxAge: 3,
  maxPerFamily: 4,
  ...o,
});
/** What it does and in which task, whatever its screens and whoever made it. */
const didOf = (t: Trajectory): string => JSON.stringify([t.task, t.steps.map((s) => s.actions.map(canonicalAction))]);
/** What a run would journal for these acts. */
function history(acts: readonly Act[], c: PoolConfig): { pool: ExperiencePool; events: JournalEvent[] } {
  const pool = new ExperiencePool(c, relabelled),
    events: JournalEvent[] = [],
    say = (e: JournalEvent): void => {
      events.push(e);
      applyToPool(pool, e);
    };
  const groups = new Set<number>(),
    joined = new Map<RolloutId, Trajectory>();
  for (const a of acts) {
    const rollout = names[a.n]!;
    if (a.do === 'join') {
      const model = trajectory(a.like, a.kind),
        t = {
          ...trajectory(a.n, a.kind, a.outcome === 'success' ? success : a.outcome === 'failure' ? failure : broken),
          task: model.task,
          instruction: model.instruction,
          steps: model.steps,
        };
      const r = pooling(pool, t, a.override ? { override: 'seen' } : 'auto', 5, a.person ? 'person' : undefined);
      for (const e of r.events) say(e);
      expect(pool.get(rollout) !== undefined && r.answer.pooled).toBe(r.answer.pooled);
      expect(r.answer.why === undefined).toBe(r.answer.pooled);
      // Neither an error nor a held-out episode, whoever wants it; a failure only with a reason.
      if (a.outcome === 'error' || a.kind === 'probe' || (a.outcome === 'failure' && !a.override))
        expect(r.answer.pooled).toBe(false);
      // A person's own success always joins, unless the pool has the very same already.
      const duplicates = [...joined.values()].filter(
        (x) => x.id !== rollout && pool.get(x.id) && didOf(x) === didOf(t),
      );
      if (a.kind === 'human' && a.outcome === 'success' && duplicates.length === 0) expect(r.answer.pooled).toBe(true);
      if (r.answer.twin !== undefined) {
        expect(r.answer.pooled).toBe(false);
        expect(duplicates.map((x) => x.id)).toContain(r.answer.twin);
      }
      if (r.answer.pooled && r.events.some((e) => e.type === 'pool.added')) joined.set(rollout, t);
      // Whoever wants it and by whatever way: no two entries do the same in the same task.
      const did = pool.entries().map((e) => didOf(joined.get(e.id)!));
      expect(new Set(did).size).toBe(did.length);
    } else if (a.do === 'switch') say({ type: 'pool.switched', entries: [rollout], enabled: a.on });
    else if (a.do === 'remove')
      say({ type: 'pool.removed', entry: rollout, reason: 'x', ...(a.person ? { by: 'person' as const } : {}) });
    else if (pool.get(rollout) && !groups.has(a.group)) {
      groups.add(a.group);
      say({
        type: 'group.formed',
        group: id<GroupId>(`g${a.group}`),
        family,
        task: id<TaskId>('x'),
        version: 0,
        retired: [],
        members: [{ rollout, injected: true, reward: 1, keep: [true] }],
      });
    }
  }
  return { pool, events };
}

describe('experience pool', () => {
  it('replays to the same entries, never over its share, and gives only what may be given', () => {
    fc.assert(
      fc.property(
        fc.array(act, { maxLength: 60 }),
        fc.constantFrom('shortest' as const, 'newest' as const, 'novelty' as const),
        fc.nat(12),
        (acts, selection, version) => {
          const c = config({ selection }),
            { pool, events } = history(acts, c),
            again = new ExperiencePool(c, relabelled);
          for (const e of events) applyToPool(again, e);
          expect(again.entries()).toEqual(pool.entries());
          for (const n of names) expect(again.rejected(n)).toBe(pool.rejected(n));
          const seconds = pool.entries().filter((e) => e.provenance === 'hindsight');
          expect(seconds.length).toBeLessThanOrEqual(relabelled.maxPerFamily);
          expect(pool.entries().length - seconds.length).toBeLessThanOrEqual(c.maxPerFamily);
          const chosen = choosePoolEntry(pool.entries(), id<TaskId>(`${family}#0`), family, version, c),
            ready = pool.entries().filter((e) => usable(e, version, c));
          expect(chosen === undefined).toBe(ready.length === 0);
          if (!chosen) return;
          expect(chosen.enabled && chosen.uses < c.reuseCap).toBe(true);
          expect(chosen.provenance).not.toBe('hindsight');
          if (chosen.version !== undefined) expect(version - chosen.version).toBeLessThanOrEqual(c.maxAge);
          const same = ready.filter((e) => e.task === chosen.task),
            from = ready.some((e) => (e.task as string) === `${family}#0`) ? same : ready;
          if (selection === 'shortest') expect(chosen.steps).toBe(Math.min(...from.map((e) => e.steps)));
          if (selection === 'newest') expect(chosen.added).toBe(Math.max(...from.map((e) => e.added)));
          for (const e of pool.entries()) if (!e.enabled) expect(unusable(e, version, c)).toBe('off');
        },
      ),
      { numRuns: 300 },
    );
  });

  it('the index says what the replay says, entry by entry', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 40 }), (acts) =>
        withDir(async (dir) => {
          const c = config(),
            { pool, events } = history(acts, c),
            store = await RunStore.open(dir, { index: 'local', create: { id: id<RunId>('r'), createdAt: 1 } });
          await Promise.all(events.map((e) => store.append(e)));
          await store.close();
          const reader = await RunReader.open(dir, { index: 'local' });
          try {
            const view = await poolView(reader, {
                facts: { trained: [], families: new Map() },
                config: c,
                version: 6,
                active: false,
              }),
              rows = view.families.flatMap((f) => f.entries);
            const key = (
              e: { uses: number; enabled: boolean; steps: number; override?: string },
              rollout: string,
            ): unknown[] => [rollout, e.uses, e.enabled, e.steps, e.override];
            expect(rows.map((e) => key(e, e.rollout)).sort()).toEqual(
              pool
                .entries()
                .map((e) => key(e, e.id))
                .sort(),
            );
            for (const e of rows) expect(e.why).toBe(unusable(pool.get(id<RolloutId>(e.rollout))!, 6, c));
            expect(view.entries).toBe(pool.entries().length);
          } finally {
            await reader.close();
          }
        }),
      ),
      { numRuns: 15 },
    );
  });
});
