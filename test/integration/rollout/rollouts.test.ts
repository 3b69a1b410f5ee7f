import { resolve } from 'node:path';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPool } from '../../../runtime/cluster/pool.js';
import type { DesktopPool, DesktopProvider } from '../../../runtime/cluster/types.js';
import type { FrameStore, RolloutOrder } from '../../../runtime/data/types.js';
import type { FamilyId, GroupId, ReplicaId, RolloutId } from '../../../runtime/domain/index.js';
import { GLYPH_SPEC, id, isEncoded } from '../../../runtime/domain/index.js';
import { encodeActions } from '../../../runtime/policy/embedded/codec.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import { startReplica } from '../../../runtime/policy/embedded/replica.js';
import { systemClock } from '../../../runtime/rollout/clock.js';
import { ModelPool } from '../../../runtime/rollout/modelPool.js';
import type { SchedulerEvent } from '../../../runtime/rollout/types.js';
import { probeSampling, trainingSampling } from '../../../runtime/rollout/sampling.js';
import { Scheduler } from '../../../runtime/rollout/scheduler.js';
import { createTaskEngine, metricWorkers } from '../../../runtime/tasks/index.js';
import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';
import { SMALL, localProvider, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import type { ReplicaKit } from '../../helpers/policy/replicas.js';
import { replicaKit } from '../../helpers/policy/replicas.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`rollouts on real desktops are skipped: ${why}`);

/** Frames by content, in memory. */
function memoryFrames(): FrameStore & { readonly hashes: Set<string> } {
  const hashes = new Set<string>();
  return {
    hashes,
    async put(f) {
      const hash = createHash('sha256')
        .update(isEncoded(f) ? f.png : f.data)
        .digest('hex');
      hashes.add(hash);
      return { width: f.width, height: f.height, hash };
    },
    get: () => Promise.reject(new Error('unused')),
    read: () => Promise.reject(new Error('unused')),
  };
}

describe.skipIf(why !== undefined)('rollouts on real desktops', () => {
  let kit: ReplicaKit, models: ModelPool, provider: DesktopProvider, desktops: DesktopPool;
  beforeAll(async () => {
    kit = await replicaKit();
    provider = localProvider();
    desktops = createPool({ provider, spec: SMALL, size: 2 });
    models = await ModelPool.start({
      replicas: [id<ReplicaId>('r0')],
      weights: await kit.weights(0),
      clock: systemClock,
      factory: (rid, weights) =>
        startReplica({ id: rid, entry: kit.entry, spec: GLYPH_SPEC, graph: kit.graph, weights }),
    });
  });
  afterAll(async () => {
    await models?.close();
    await desktops?.close();
    await provider?.dispose();
    await kit?.dispose();
  });

  const suite = deskSuite();
  const families = ['desk/press-button', 'desk/entry-type', 'desk/list-pick', 'desk/window-close'];
  const order = (n: number, cap: number): RolloutOrder => ({
    rollout: id<RolloutId>(`r${n}`),
    group: id<GroupId>('g'),
    family: id<FamilyId>(families[n % families.length]!),
    task: suite.task(id<FamilyId>(families[n % families.length]!), n).id,
    seed: n,
    cap,
    groupSize: 1,
  });

  function scheduler(
    total: number,
    cap: number,
  ): {
    s: Scheduler;
    events: SchedulerEvent[];
    frames: ReturnType<typeof memoryFrames>;
    ended(n: number): Promise<void>;
  } {
    let made = 0;
    const events: SchedulerEvent[] = [],
      frames = memoryFrames();
    const s = new Scheduler(
      {
        pool: desktops,
        clock: systemClock,
        episode: {
          policy: embeddedPolicy(GLYPH_SPEC, models),
          tasks: createTaskEngine({ metrics: metricWorkers({ file: resolve('dist/runtime.js') }) }),
          frames,
          clock: systemClock,
        },
        next: () => (made < total ? order(made++, cap) : undefined),
        admit: () => Infinity,
        taskOf: (o) => suite.task(o.family, o.seed),
        sampling: trainingSampling(1, 1),
        probeSampling: probeSampling(1),
      },
      { slots: 2 },
    );
    s.onEvent((e) => events.push(e));
    const ended = (n: number): Promise<void> =>
      new Promise((r) => {
        let k = events.filter((e) => e.type === 'ended').length;
        if (k >= n) r();
        s.onEvent((e) => {
          if (e.type === 'ended' && ++k >= n) r();
        });
      });
    return { s, events, frames, ended };
  }

  it('runs setup, turns and verifier of six tasks, swaps weights in between, and ends without an error', async () => {
    const { s, events, frames, ended } = scheduler(6, 4);
    s.start();
    await ended(2);
    expect((await models.publish(await kit.weights(1))).failed).toBe(0);
    await ended(6);
    await s.stop({ graceMs: 0 });
    const all = events.flatMap((e) => (e.type === 'ended' ? [e.trajectory] : []));
    expect(all.map((t) => (t.outcome.kind === 'error' ? t.outcome.error.message : 'judged'))).toEqual(
      Array<string>(6).fill('judged'),
    );
    for (const t of all) {
      expect(t.steps.length).toBeGreaterThan(0);
      expect(t.steps.length).toBeLessThanOrEqual(4);
      for (const step of t.steps) {
        expect(frames.hashes.has(step.frame.hash)).toBe(true);
        expect(step.tokens!.logprobs.length).toBe(step.tokens!.ids!.length);
        // What is stored is enough to train on: the actions give the same choices back (a copied word may occur twice).
        const again = encodeActions(GLYPH_SPEC, SMALL.screen, t.instruction, step.actions)!;
        expect(again[0]).toBe(step.tokens!.ids![0]);
        expect(step.version === 0 || step.version === 1).toBe(true);
      }
    }
    expect(all.some((t) => t.steps.some((x) => x.version === 1))).toBe(true);
    expect(desktops.status().desktops.some((d) => d.state === 'leased')).toBe(false);
  });

  it('stops in the middle: rollouts are cancelled and their desktops reset for the next', async () => {
    const { s, events } = scheduler(50, 50);
    const step = new Promise<void>((r) => {
      s.onEvent((e) => {
        if (e.type === 'step') r();
      });
    });
    s.start();
    await step;
    await s.stop({ graceMs: 0 });
    const outcomes = events.flatMap((e) => (e.type === 'ended' ? [e.trajectory.outcome] : []));
    expect(outcomes.length).toBeGreaterThan(0);
    for (const o of outcomes) if (o.kind === 'error') expect(o.error.kind).toBe('cancelled');
    const lease = await desktops.lease({ signal: new AbortController().signal });
    expect((await lease.desktop.observe()).width).toBe(640);
    lease.release();
    expect(desktops.status().desktops.reduce((n, d) => n + d.replaced, 0)).toBe(0);
  });

  it('runs probes, greedily, while no training rollout may start', async () => {
    const { s, events } = scheduler(0, 3);
    const probes = await s.runProbe([order(100, 3), order(101, 3)]);
    await s.stop({ graceMs: 0 });
    expect(probes.map((t) => [t.id, t.provenance.kind, t.outcome.kind === 'error'])).toEqual([
      ['r100', 'probe', false],
      ['r101', 'probe', false],
    ]);
    const steps = events.flatMap((e) => (e.type === 'step' ? [e] : []));
    // Greedy: what was done is the most probable alternative of every choice.
    for (const e of steps) {
      expect(e.alternatives).toHaveLength(e.step.tokens!.logprobs.length);
      e.alternatives!.forEach((a, i) => {
        // Choices of a place are given as places.
        const of =
          a.length > 0 ? a.map((x) => x.probability) : [...e.about!.places!.find((x) => x.token === i)!.probabilities];
        expect(of[0]).toBe(Math.max(...of));
        expect(Math.log(of[0]!)).toBeCloseTo(e.step.tokens!.logprobs[i]!, 4);
      });
    }
    expect(steps.length).toBeGreaterThan(0);
  });
});
