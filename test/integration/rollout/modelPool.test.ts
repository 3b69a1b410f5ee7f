import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReplicaId, RolloutId } from '../../../runtime/domain/index.js';
import { GLYPH_SPEC, id } from '../../../runtime/domain/index.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import { startReplica } from '../../../runtime/policy/embedded/replica.js';
import type { Replica } from '../../../runtime/policy/types.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import type { ModelPoolEvent } from '../../../runtime/rollout/types.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { frameOf } from '../../helpers/policy/frames.js';
import type { ReplicaKit } from '../../helpers/policy/replicas.js';
import { replicaKit } from '../../helpers/policy/replicas.js';

let kit: ReplicaKit;
beforeAll(async () => {
  kit = await replicaKit();
});
afterAll(async () => {
  await kit?.dispose();
});

const never = new AbortController().signal;
const frames = [0, 1, 2, 3].map((k) => frameOf(640, 400, (x, y) => [(x * (k + 1)) & 255, y & 255, (x ^ y) & 255]));

async function setUp(n: number) {
  const replicas = new Map<string, Replica>();
  const events: ModelPoolEvent[] = [];
  const pool = await ModelPool.start({
    replicas: Array.from({ length: n }, (_, i) => id<ReplicaId>(`r${i}`)),
    weights: await kit.weights(0),
    clock: systemClock,
    restart: { baseMs: 20, maxMs: 100, attempts: 5 },
    factory: async (rid, weights) => {
      const r = await startReplica({ id: rid, entry: kit.entry, spec: GLYPH_SPEC, graph: kit.graph, weights });
      replicas.set(rid, r);
      return r;
    },
  });
  pool.onEvent((e) => events.push(e));
  return {
    pool,
    events,
    pidOf: (rid: string) => (replicas.get(rid) as unknown as { child: { pid: number } }).child.pid,
  };
}
/** Sessions that decide one after another until told to stop; every failure is kept. */
function load(pool: ModelPool, sessions: number) {
  const policy = embeddedPolicy(GLYPH_SPEC, pool);
  const versions: number[][] = [],
    failures: unknown[] = [];
  let going = true,
    decisions = 0;
  const all = Promise.all(
    Array.from({ length: sessions }, async (_, s) => {
      const session = policy.open({
        rollout: id<RolloutId>(`s${s}`),
        instruction: 'Type "hello" and press 3',
        screen: { width: 640, height: 400 },
        sampling: { greedy: false, temperature: 1, seed: s },
      });
      versions[s] = [];
      while (going) {
        try {
          versions[s].push((await session.decide(frames[decisions++ % 4]!, never)).version);
        } catch (e) {
          failures.push(e);
          await new Promise((r) => setImmediate(r));
        }
      }
      session.close();
    }),
  );
  return {
    versions,
    failures,
    count: () => decisions,
    stop: async () => {
      going = false;
      await all;
    },
  };
}

describe('model pool with real replica processes', () => {
  it('swaps weights under load, replica by replica, without a failed call', async () => {
    const { pool, events } = await setUp(2);
    try {
      const l = load(pool, 4);
      for (let v = 1; v <= 5; v++) {
        const before = l.count();
        const report = await pool.publish(await kit.weights(v));
        expect(report).toMatchObject({ version: v, failed: 0 });
        expect(report.replicas.length).toBe(2);
        while (l.count() < before + 10) await new Promise((r) => setImmediate(r));
      }
      await l.stop();
      expect(l.failures).toEqual([]);
      expect(new Set(l.versions.flat())).toEqual(new Set([0, 1, 2, 3, 4, 5]));
      let out = 0,
        most = 0;
      for (const e of events)
        if (e.type === 'phase') {
          out += e.phase === 'draining' ? 1 : e.phase === 'admitting' ? -1 : 0;
          most = Math.max(most, out);
        }
      expect(most).toBe(1);
      expect(pool.status().replicas.map((r) => [r.version, r.inFlight, r.sessions])).toEqual([
        [5, 0, 0],
        [5, 0, 0],
      ]);
    } finally {
      await pool.close();
    }
  });

  it('survives the death of a replica: its calls are answered elsewhere and it comes back', async () => {
    const { pool, pidOf } = await setUp(2);
    try {
      const l = load(pool, 4);
      const back = new Promise<void>((r) => {
        let down = false;
        pool.onEvent((e) => {
          if (e.type === 'phase' && e.replica === 'r0') {
            if (e.phase === 'down') down = true;
            else if (down && e.phase === 'admitting') r();
          }
        });
      });
      while (l.count() < 20) await new Promise((r) => setImmediate(r));
      process.kill(pidOf('r0'), 'SIGKILL');
      await back;
      const before = l.count();
      while (l.count() < before + 20) await new Promise((r) => setImmediate(r));
      await l.stop();
      expect(l.failures).toEqual([]);
      expect(pool.status().replicas[0]).toMatchObject({ phase: 'admitting', restarts: 1 });
    } finally {
      await pool.close();
    }
  });

  it('with one replica, calls wait for the swap', async () => {
    const { pool } = await setUp(1);
    try {
      const l = load(pool, 3);
      await pool.publish(await kit.weights(1));
      const before = l.count();
      while (l.count() < before + 5) await new Promise((r) => setImmediate(r));
      await l.stop();
      expect(l.failures).toEqual([]);
    } finally {
      await pool.close();
    }
  });
});
