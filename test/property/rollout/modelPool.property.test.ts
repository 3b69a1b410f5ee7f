import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReplicaId } from '../../../runtime/domain/index.js';
import { id } from '../../../runtime/domain/index.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import type { PublishMode, ReplicaView } from '../../../runtime/rollout/syncPlanner.js';
import { planSync, route } from '../../../runtime/rollout/syncPlanner.js';
import { FakeReplica, request, weightsRef } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

const never = new AbortController().signal;

type Move =
  | { readonly kind: 'call'; readonly session: number }
  | { readonly kind: 'publish' }
  | { readonly kind: 'crash'; readonly replica: number }
  | { readonly kind: 'abort'; readonly session: number };
const moves = (crash: boolean): fc.Arbitrary<{ move: Move; wait: number }[]> =>
  fc.array(
    fc.record({
      move: fc.oneof(
        { weight: 10, arbitrary: fc.record({ kind: fc.constant('call' as const), session: fc.nat(6) }) },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant('publish' as const) }) },
        ...(crash
          ? [{ weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), replica: fc.nat(3) }) }]
          : []),
      ),
      wait: fc.nat(40),
    }),
    { maxLength: 60 },
  );

async function play(
  replicas: number,
  mode: PublishMode,
  script: { move: Move; wait: number }[],
  service: number[],
  swapMs: number,
) {
  const clock = new VirtualClock();
  const made: FakeReplica[] = [];
  let k = 0;
  const pool = await ModelPool.start({
    replicas: Array.from({ length: replicas }, (_, i) => id<ReplicaId>(`r${i}`)),
    weights: weightsRef(0),
    clock,
    publishMode: mode,
    restart: { baseMs: 5, maxMs: 20, attempts: 1000 },
    factory: async (rid, w) => {
      const r = new FakeReplica(rid, w.version, clock, {
        serviceMs: () => service[k++ % service.length]!,
        swapMs: () => swapMs,
      });
      made.push(r);
      return r;
    },
  });
  let least = replicas;
  const down = new Set<string>();
  pool.onEvent((e) => {
    if (e.type === 'phase') {
      if (e.phase === 'down') down.add(e.replica);
      else if (e.phase === 'admitting') down.delete(e.replica);
    }
    least = Math.min(least, pool.status().replicas.filter((r) => r.phase === 'admitting' || down.has(r.id)).length);
  });
  const calls: Promise<'ok' | string>[] = [],
    versions: number[] = [],
    reports: Promise<{ failed: number; version: number }>[] = [];
  let version = 0;
  for (const { move, wait } of script) {
    if (move.kind === 'call')
      calls.push(
        pool.decide(request(), { session: `s${move.session}`, signal: never }).then(
          (a) => {
            versions.push(a.answer.version);
            return 'ok';
          },
          (e: { kind: string }) => e.kind,
        ),
      );
    if (move.kind === 'publish') reports.push(pool.publish(weightsRef(++version)));
    if (move.kind === 'crash')
      made
        .filter((m) => m.id === `r${move.replica % replicas}`)
        .at(-1)!
        .crash();
    await clock.advance(wait);
  }
  let over = false;
  const all = Promise.all([Promise.all(calls), Promise.all(reports)]).then((x) => {
    over = true;
    return x;
  });
  await clock.until(() => over);
  await clock.advance(1000);
  const [results, synced] = await all;
  return { results, synced, versions, made, least, status: pool.status(), version };
}

describe('model pool under random schedules', () => {
  it('no call ever fails because of a sync, no call meets a swap, capacity stays at (G-1)/G or more', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        moves(false),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }),
        fc.nat(50),
        async (n, script, service, swapMs) => {
          const r = await play(n, 'per-replica', script, service, swapMs);
          expect(r.results.every((x) => x === 'ok')).toBe(true);
          expect(r.synced.every((s) => s.failed === 0)).toBe(true);
          expect(r.made.flatMap((m) => m.violations)).toEqual([]);
          expect(r.least).toBeGreaterThanOrEqual(n - 1);
          expect(
            r.status.replicas.every((x) => x.version === r.version && x.phase === 'admitting' && x.inFlight === 0),
          ).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('global mode: no call fails or meets a swap either', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        moves(false),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }),
        fc.nat(50),
        async (n, script, service, swapMs) => {
          const r = await play(n, 'global', script, service, swapMs);
          expect(r.results.every((x) => x === 'ok')).toBe(true);
          expect(r.made.flatMap((m) => m.violations)).toEqual([]);
          expect(r.status.replicas.every((x) => x.version === r.version)).toBe(true);
        },
      ),
      { numRuns: 80 },
    );
  });

  it('with crashes: calls are answered or met two of them, every publish ends, every replica comes back with the newest weights', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        moves(true),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }),
        fc.nat(50),
        fc.constantFrom<PublishMode>('per-replica', 'global'),
        async (n, script, service, swapMs, mode) => {
          const r = await play(n, mode, script, service, swapMs);
          const crashes = script.filter((s) => s.move.kind === 'crash').length;
          expect(r.results.every((x) => x === 'ok' || (crashes >= 2 && x === 'policy.lost'))).toBe(true);
          expect(r.made.flatMap((m) => m.violations)).toEqual([]);
          expect(r.status).toMatchObject({ waiting: 0, publishing: false });
          expect(
            r.status.replicas.every((x) => x.version === r.version && x.phase === 'admitting' && x.inFlight === 0),
          ).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });
});

const views = fc
  .array(
    fc.record({
      phase: fc.constantFrom(
        'admitting' as const,
        'draining' as const,
        'swapping' as const,
        'down' as const,
        'dead' as const,
      ),
      version: fc.nat(2),
      inFlight: fc.nat(3),
      sessions: fc.nat(4),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((xs) => xs.map((x, i): ReplicaView => ({ ...x, id: id<ReplicaId>(`r${i}`) })));

describe('sync planner and router', () => {
  it('never takes a replica out while another living one is out, and swaps only what is drained', () => {
    fc.assert(
      fc.property(views, (vs) => {
        const step = planSync(vs, 2, 'per-replica');
        const by = new Map(vs.map((v) => [v.id, v]));
        expect(step.drain.length).toBeLessThanOrEqual(1);
        if (step.drain.length) expect(vs.every((v) => v.phase === 'admitting' || v.phase === 'dead')).toBe(true);
        for (const s of step.swap) expect(by.get(s)).toMatchObject({ phase: 'draining', inFlight: 0 });
        expect(step.done).toBe(vs.every((v) => v.phase === 'dead' || v.version === 2));
      }),
    );
  });
  it('routes to an admitting replica with room, and to the least busy one within the slack', () => {
    fc.assert(
      fc.property(
        views,
        fc.option(fc.nat(4), { nil: undefined }),
        fc.integer({ min: 1, max: 4 }),
        fc.nat(2),
        (vs, pref, depth, slack) => {
          const open = vs.filter((v) => v.phase === 'admitting' && v.inFlight < depth);
          const preferred = pref === undefined ? undefined : vs[pref]?.id;
          const got = vs.find((v) => v.id === route(vs, preferred, { depth, slack }));
          if (open.length === 0) {
            expect(got).toBeUndefined();
            return;
          }
          const least = Math.min(...open.map((v) => v.inFlight));
          expect(open).toContain(got);
          expect(got!.inFlight).toBeLessThanOrEqual(least + (got!.id === preferred ? slack : 0));
          const own = open.find((v) => v.id === preferred);
          if (own && own.inFlight <= least + slack) expect(got).toBe(own);
        },
      ),
    );
  });
});
