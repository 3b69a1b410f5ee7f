import { describe, expect, it } from 'vitest';
import type { ReplicaId } from '../../../runtime/domain/index.js';
import { MODEL_FAULTS, StudioError, id } from '../../../runtime/domain/index.js';
import type { ReplicaAnswer, ReplicaRequest } from '../../../runtime/policy/types.js';
import type { ModelPoolEvent, ModelPoolOptions } from '../../../runtime/rollout/types.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import { FakeReplica, request, weightsRef } from '../../helpers/rollout/fakes.js';
import { VirtualClock, flush } from '../../helpers/rollout/virtualClock.js';

const never = new AbortController().signal;
async function setUp(n: number, o: Partial<ModelPoolOptions> & { serviceMs?: number; swapMs?: number } = {}) {
  const clock = new VirtualClock();
  const made: FakeReplica[] = [];
  const events: ModelPoolEvent[] = [];
  const pool = await ModelPool.start({
    replicas: Array.from({ length: n }, (_, i) => id<ReplicaId>(`r${i}`)),
    weights: weightsRef(0),
    clock,
    factory: async (rid, w) => {
      const r = new FakeReplica(rid, w.version, clock, {
        serviceMs: () => o.serviceMs ?? 10,
        swapMs: () => o.swapMs ?? 30,
      });
      made.push(r);
      return r;
    },
    ...o,
  });
  pool.onEvent((e) => events.push(e));
  return {
    clock,
    made,
    pool,
    events,
    ask: (session: string, signal = never) => pool.decide(request(), { session, signal }),
  };
}

describe('model pool', () => {
  it('spreads sessions and keeps each on its replica', async () => {
    const { clock, pool, ask } = await setUp(2);
    const where: string[][] = [[], []];
    for (let k = 0; k < 5; k++) {
      const both = Promise.all([ask('a'), ask('b')]);
      await clock.advance(20);
      (await both).forEach((x, i) => where[i]!.push(x.replica));
    }
    expect(new Set(where[0]).size).toBe(1);
    expect(new Set(where[1]).size).toBe(1);
    expect(where[0]![0]).not.toBe(where[1]![0]);
    pool.end('a');
    pool.end('b');
    expect(pool.status().replicas.map((r) => r.sessions)).toEqual([0, 0]);
  });

  it('reports waiting and computing apart', async () => {
    const { clock, ask } = await setUp(1, { depth: 1 });
    const calls = Promise.all([ask('a'), ask('b'), ask('c')]);
    await clock.advance(100);
    expect((await calls).map((c) => [c.queueMs, c.answer.computeMs])).toEqual([
      [0, 10],
      [10, 10],
      [20, 10],
    ]);
  });

  it('publishes to one replica at a time while the others answer', async () => {
    const { clock, made, pool, events, ask } = await setUp(3);
    const running = Array.from({ length: 6 }, (_, i) => ask(`s${i}`));
    const report = pool.publish(weightsRef(1));
    let answered = 0;
    const more: Promise<unknown>[] = [];
    for (let t = 0; t < 20; t++) {
      more.push(ask(`t${t}`).then(() => answered++));
      await clock.advance(10);
    }
    const r = await report;
    expect(r).toMatchObject({ version: 1, failed: 0 });
    expect(r.replicas.map((x) => x.replica).sort()).toEqual(['r0', 'r1', 'r2']);
    expect(r.replicas.every((x) => x.swapMs === 30)).toBe(true);
    await clock.advance(500);
    await Promise.all([...running, ...more]);
    expect(answered).toBe(20);
    let out = 0,
      most = 0;
    for (const e of events)
      if (e.type === 'phase') {
        if (e.phase === 'draining') out++;
        if (e.phase === 'admitting') out--;
        most = Math.max(most, out);
      }
    expect(most).toBe(1);
    expect(made.flatMap((m) => m.violations)).toEqual([]);
    expect(made.map((m) => m.version)).toEqual([1, 1, 1]);
    expect(pool.status().version).toBe(1);
  });

  it('lets calls wait during a swap when there is one replica', async () => {
    const { clock, pool, ask } = await setUp(1);
    const report = pool.publish(weightsRef(1));
    await clock.advance(5);
    const call = ask('a');
    await clock.advance(100);
    expect((await call).answer.version).toBe(1);
    expect((await report).failed).toBe(0);
  });

  it('says which weights the last of its replicas still answers with', async () => {
    const { clock, pool } = await setUp(2, { swapMs: 30 });
    const seen: number[] = [pool.oldest];
    const report = pool.publish(weightsRef(1));
    for (const ms of [10, 30, 30]) {
      await clock.advance(ms);
      seen.push(pool.oldest);
    }
    await report;
    expect([seen, pool.oldest]).toEqual([[0, 0, 0, 1], 1]);
  });

  it('takes all replicas out together in global mode', async () => {
    const { clock, pool, events } = await setUp(3, { publishMode: 'global' });
    const report = pool.publish(weightsRef(1));
    await clock.advance(100);
    await report;
    const phases = events.flatMap((e) => (e.type === 'phase' ? [e.phase] : []));
    expect(phases).toEqual([
      'draining',
      'draining',
      'draining',
      'swapping',
      'swapping',
      'swapping',
      'admitting',
      'admitting',
      'admitting',
    ]);
  });

  it('keeps the old weights in use when the file is damaged', async () => {
    const { clock, made, pool, ask } = await setUp(2);
    for (const m of made) m.refuse = new StudioError('store.damaged', 'bad file', 'x');
    await expect(pool.publish(weightsRef(1))).rejects.toMatchObject({ kind: 'store.damaged' });
    expect(pool.status()).toMatchObject({
      version: 0,
      publishing: false,
      replicas: [
        { phase: 'admitting', version: 0 },
        { phase: 'admitting', version: 0 },
      ],
    });
    for (const m of made) m.refuse = undefined;
    const call = ask('a'),
      again = pool.publish(weightsRef(2));
    await clock.advance(500);
    expect((await again).version).toBe(2);
    await call;
  });

  it('tries the calls of a crashed replica once more elsewhere and restarts it', async () => {
    const { clock, made, pool, events, ask } = await setUp(2);
    const calls = Promise.all(Array.from({ length: 4 }, (_, i) => ask(`s${i}`)));
    await clock.advance(5);
    made[0]!.crash();
    await clock.advance(1);
    expect(pool.status().replicas[0]).toMatchObject({ phase: 'down', inFlight: 0 });
    await clock.advance(149);
    expect((await calls).every((c) => c.replica === 'r1')).toBe(true);
    await clock.advance(100);
    expect(made.length).toBe(3);
    expect(pool.status().replicas[0]).toMatchObject({ phase: 'admitting', restarts: 1, inFlight: 0 });
    expect(events.some((e) => e.type === 'lost' && e.replica === 'r0')).toBe(true);
  });

  it('fails a call only after it met two crashes', async () => {
    const { clock, made, ask } = await setUp(2, { depth: 1 });
    const call = ask('a');
    const failed = expect(call).rejects.toMatchObject({ kind: 'policy.lost' });
    await clock.advance(1);
    made[0]!.crash();
    await clock.advance(1);
    made[1]!.crash();
    await failed;
  });

  it('restarts with growing pauses and gives up after too many in a row', async () => {
    let starts = 0;
    const clock = new VirtualClock();
    const pool = await ModelPool.start({
      replicas: [id<ReplicaId>('r0')],
      weights: weightsRef(0),
      clock,
      restart: { baseMs: 100, maxMs: 300, attempts: 4 },
      factory: async (rid) => {
        if (starts++ > 0) throw new StudioError('engine.unavailable', 'the port is taken', 'choose another');
        return (first = new FakeReplica(rid, 0, clock, { serviceMs: () => 1, swapMs: () => 1 }));
      },
    });
    const t0 = clock.now();
    const at: number[] = [];
    pool.onEvent((e) => {
      if (e.type === 'lost') at.push(e.at - t0);
    });
    const waiting = expect(
      (first.crash(), pool.decide(request(), { session: 'a', signal: never })),
    ).rejects.toMatchObject({ kind: 'policy.lost' });
    await clock.advance(5000);
    await waiting;
    expect(at).toEqual([0, 100, 300, 600, 900]);
    expect(pool.status().replicas[0]!.phase).toBe('dead');
    // What the last replica died of says what to do, whether it was a process here or somebody's server.
    await expect(pool.decide(request(), { session: 'a', signal: never })).rejects.toMatchObject({
      kind: 'policy.lost',
      message: expect.stringContaining('the port is taken') as string,
      error: { remedy: 'choose another' },
    });
    await expect(pool.publish(weightsRef(1))).rejects.toMatchObject({ kind: 'policy.lost' });
  });
  let first: FakeReplica;

  it('restarts a replica with the newest good weights, also in the middle of a publish', async () => {
    const { clock, made, pool } = await setUp(2);
    const report = pool.publish(weightsRef(1));
    await clock.advance(35); // the first has version 1, the second is swapping
    const second = made.find((m) => m.version === 0)!;
    second.crash();
    await clock.advance(1000);
    await report;
    expect(pool.status().replicas.map((r) => r.version)).toEqual([1, 1]);
  });

  it('replaces a replica that does not answer', async () => {
    const { clock, made, pool, ask } = await setUp(1, { callTimeoutMs: 1000 });
    (made[0] as unknown as { decide: () => Promise<never> }).decide = () => new Promise(() => undefined);
    const call = ask('a');
    await clock.advance(2000);
    expect((await call).replica).toBe('r0');
    expect(made.length).toBe(2);
    expect(made[0]!.closed).toBe(true);
    expect(pool.status().replicas[0]!.restarts).toBe(1);
  });

  it('keeps a replica of which one answer was late, and asks again; late twice, it hangs', async () => {
    const { clock, made, pool, ask } = await setUp(1),
      late = new StudioError('policy.lost', 'no answer within 300 s', 'It is asked again.', {
        details: MODEL_FAULTS.late,
      }),
      [replica] = made as unknown as { decide: (r: ReplicaRequest) => Promise<ReplicaAnswer> }[],
      decide = replica!.decide.bind(replica);
    let lates = 1;
    replica!.decide = (r) => (lates-- > 0 ? Promise.reject(late) : decide(r));
    const first = ask('a');
    await clock.advance(20);
    expect((await first).replica).toBe('r0');
    expect([made.length, pool.status().replicas[0]!.phase]).toEqual([1, 'admitting']);
    lates = 2;
    const second = expect(ask('a')).rejects.toMatchObject({ kind: 'policy.lost' });
    await clock.advance(1);
    await second;
    expect(pool.status().replicas[0]!.phase).toBe('down');
  });

  it('drops a cancelled call, waiting or running', async () => {
    const { clock, pool, ask } = await setUp(1, { depth: 1 });
    const a = new AbortController(),
      b = new AbortController();
    const running = ask('a', a.signal),
      waiting = ask('b', b.signal);
    const both = Promise.all([
      expect(running).rejects.toMatchObject({ kind: 'cancelled' }),
      expect(waiting).rejects.toMatchObject({ kind: 'cancelled' }),
    ]);
    a.abort();
    b.abort();
    await both;
    expect(pool.status()).toMatchObject({ waiting: 0, replicas: [{ inFlight: 1 }] });
    await clock.advance(20);
    expect(pool.status()).toMatchObject({ replicas: [{ inFlight: 0 }] });
  });

  it('serves publishes one after another', async () => {
    const { clock, pool, made } = await setUp(2);
    const all = Promise.all([1, 2, 3].map((v) => pool.publish(weightsRef(v))));
    expect(pool.status().publishing).toBe(true);
    await clock.advance(1000);
    expect((await all).map((r) => r.version)).toEqual([1, 2, 3]);
    expect(made.map((m) => m.version)).toEqual([3, 3]);
    await flush();
    expect(pool.status().publishing).toBe(false);
  });

  it('closes: waiting calls are cancelled and replicas end', async () => {
    const { pool, made, ask } = await setUp(1, { depth: 1 });
    const running = ask('a'),
      waiting = expect(ask('b')).rejects.toMatchObject({ kind: 'cancelled' });
    running.catch(() => undefined);
    await pool.close();
    await waiting;
    expect(made.every((m) => m.closed)).toBe(true);
    made[0]!.crash();
    await expect(running).rejects.toMatchObject({ kind: 'cancelled' });
    await expect(ask('c')).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('does not start when a replica cannot', async () => {
    const clock = new VirtualClock();
    const made: FakeReplica[] = [];
    await expect(
      ModelPool.start({
        replicas: [id<ReplicaId>('r0'), id<ReplicaId>('r1')],
        weights: weightsRef(0),
        clock,
        factory: async (rid) => {
          if (rid === 'r1') throw new StudioError('engine.unavailable', 'no engine', 'x');
          const r = new FakeReplica(rid, 0, clock, { serviceMs: () => 1, swapMs: () => 1 });
          made.push(r);
          return r;
        },
      }),
    ).rejects.toMatchObject({ kind: 'engine.unavailable' });
    expect(made[0]!.closed).toBe(true);
  });
});
