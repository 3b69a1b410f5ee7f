import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type {
  Desktop,
  DesktopEvent,
  DesktopPool,
  DesktopProvider,
  PoolEvent,
  PoolStatus,
} from '../../../runtime/cluster/types.js';
import {
  GLYPH_SPEC,
  gridOf,
  headOffsets,
  headSizes,
  HEADS,
  id,
  type Action,
  type DesktopId,
  type EncodedState,
  type ReplicaId,
  type RolloutId,
  type Step,
  type EmbeddedSample,
} from '../../../runtime/domain/index.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import { makeSampler } from '../../../runtime/policy/embedded/sampling.js';
import type { StepAbout } from '../../../runtime/rollout/types.js';
import { runEpisode } from '../../../runtime/rollout/episode.js';
import { DesktopRegistry } from '../../../runtime/rollout/desktopRegistry.js';
import { unpackAlternatives } from '../../../runtime/data/alternatives.js';
import { stepExtra } from '../../../runtime/run/stepExtra.js';
import { coalesce } from '../../../runtime/service/desktops.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { packSamples, type PackedState } from '../../../runtime/trainer/native/packing.js';
import { ReportBuilder } from '../../../runtime/trainer/native/report.js';
import { frameOf } from '../../helpers/policy/frames.js';
import { FakeDesktop, fakeFrames, fakeTasks, order, scriptedPolicy, task } from '../../helpers/rollout/fakes.js';
import { VirtualClock } from '../../helpers/rollout/virtualClock.js';

/** What a run writes down only so that people can look at it later. */
describe('the weight of each trained sample', () => {
  const state: EncodedState = { obs: new Uint8Array(4), instruction: new Int32Array(2), history: new Int32Array(5) };
  const sample = (stateKey: string, o: Partial<EmbeddedSample> = {}): EmbeddedSample => ({
    rollout: id<RolloutId>('r'),
    step: 0,
    stateKey,
    state,
    choices: Int32Array.of(0, 3),
    rolloutLogprobs: Float32Array.of(-1, -2),
    kind: 'policy',
    advantage: 1,
    weight: 1,
    ...o,
  });
  it('is told in the order of the batch, whatever packed states samples shared: truncated ratio, 1 for a demonstration, none for imitation', () => {
    const samples = [
      sample('a'),
      sample('b', { kind: 'imitation', advantage: 0 }),
      sample('a', { rolloutLogprobs: Float32Array.of(-3, -1) }),
      sample('c', { kind: 'imitation', advantage: 2 }),
      sample('a', { weight: 0 }),
    ];
    const states = packSamples(samples, 8);
    for (const p of states) for (const s of p.slots) s.old.set([-2, -2, 0]);
    const report = new ReportBuilder(baseTrainerOptions).build(1, 0, samples.length, states, samples.length),
      w = report.sampleWeights!;
    // Two choices an action; the masked one has none.
    expect(report.tokens).toBe(8);
    // exp(-2 + 1) and 1; capped at 1 and exp(-2 + 1).
    expect([...w].map((x) => (Number.isNaN(x) ? NaN : Number(x.toFixed(4))))).toEqual([
      Number(((Math.exp(-1) + 1) / 2).toFixed(4)),
      NaN,
      Number(((1 + Math.exp(-1)) / 2).toFixed(4)),
      1,
      NaN,
    ]);
  });
});

describe('what an update says of itself', () => {
  const state = (what: 'policy' | 'imitation' | 'injected', entropy: number): PackedState => {
      const term = what === 'imitation' ? what : 'policy',
        rollout = what === 'policy' ? Float32Array.of(-1) : undefined;
      return { entropy, slots: [{ term, tokens: 0, rollout }] } as unknown as PackedState;
    },
    made = (lr: number, applied = true) => ({ parts: [1, 2, 3, 0, 0], norm: 1, applied, lr });
  it('is the entropy of its own decisions, not of those it imitates, and the learning rate it was made with', () => {
    const b = new ReportBuilder(baseTrainerOptions);
    b.step([state('policy', 1), state('imitation', 9)], made(0.1), false);
    b.step([state('policy', 2), state('imitation', 9), state('injected', 7)], made(0.3), false);
    b.step([state('policy', 50)], made(5, false), false);
    const r = b.build(1, 0, 0, []);
    expect([r.entropy, r.lr]).toEqual([1.5, expect.closeTo(0.2)]);
  });
  it('is neither where there is nothing of its own', () => {
    const b = new ReportBuilder(baseTrainerOptions);
    b.step([state('imitation', 9)], made(5, false), false);
    const r = b.build(1, 0, 0, []);
    expect([r.entropy, r.lr]).toEqual([NaN, NaN]);
  });
});

describe('alternatives', () => {
  const spec = GLYPH_SPEC,
    off = headOffsets(spec),
    { cols } = gridOf(spec);
  it('of a place are a heat map, of anything else five', () => {
    const sizes = headSizes(spec),
      logits = Object.fromEntries(
        HEADS.map((h) => [h, Float32Array.from({ length: sizes[h] }, (_, i) => Math.sin(i * 7 + 1))]),
      ) as Parameters<ReturnType<typeof makeSampler>>[0];
    logits.type.fill(-50);
    logits.type[0] = 5;
    const s = makeSampler(spec)(logits, { greedy: true, temperature: 1, seed: 1, copyable: 3, top: 5, topPlaces: 32 });
    expect(s.alternatives.map((a) => a.length)).toEqual([5, 32]);
    for (const a of s.alternatives)
      expect(a.map((x) => x.probability)).toEqual([...a.map((x) => x.probability)].sort((p, q) => q - p));
  });

  it('come out of a decision as words, and as cells with their geometry', async () => {
    const pool = {
      decide: async () =>
        Promise.resolve({
          replica: id<ReplicaId>('replica-2'),
          queueMs: 0,
          answer: {
            choices: Int32Array.of(0, off.cell + cols + 1),
            logprobs: Float32Array.of(-0.1, -0.7),
            entropies: Float32Array.of(0.2, 1),
            version: 4,
            computeMs: 3,
            alternatives: [
              [
                { choice: 0, probability: 0.9 },
                { choice: 1, probability: 0.07 },
              ],
              [
                { choice: off.cell + cols + 1, probability: 0.5 },
                { choice: off.cell, probability: 0.25 },
              ],
            ],
          },
        }),
      end: () => undefined,
    };
    const session = embeddedPolicy(spec, pool).open({
      rollout: id<RolloutId>('r'),
      instruction: 'Press OK',
      screen: { width: 640, height: 400 },
      sampling: { greedy: false, temperature: 1, seed: 1 },
    });
    const d = await session.decide(
      frameOf(640, 400, () => [0, 0, 0]),
      new AbortController().signal,
    );
    expect(d.labels).toEqual(['click', '24,24']);
    expect(d.alternatives).toEqual([
      [
        { label: 'click', probability: 0.9 },
        { label: 'left_double', probability: 0.07 },
      ],
      [],
    ]);
    expect(d.places?.map((p) => ({ ...p, cells: [...p.cells], probabilities: [...p.probabilities] }))).toEqual([
      { token: 1, grid: [0, 0, 320, 200, 8, 40], cells: [41, 0], probabilities: [0.5, 0.25] },
    ]);
    expect(stepExtra('d1', d.alternatives, d)).toMatchObject({
      desktop: 'd1',
      replica: 'replica-2',
      labels: d.labels,
      places: d.places,
    });
    const kept = stepExtra('d1', [[{ label: 'x', probability: 0.123456789 }]], {});
    expect(kept).toEqual({ desktop: 'd1', packed: expect.anything() as unknown });
    expect(unpackAlternatives(kept.packed!)).toEqual([[{ label: 'x', probability: 0.1235 }]]);
  });
});

describe('the last screen', () => {
  const click: Action = { type: 'click', at: { x: 1, y: 2 } };
  async function play(script: readonly (readonly Action[])[], cap: number) {
    const clock = new VirtualClock(),
      desktop = new FakeDesktop('d', clock),
      about: (StepAbout | undefined)[] = [];
    let t: Awaited<ReturnType<typeof runEpisode>> | undefined;
    const steps: Step[] = [],
      run = runEpisode(
        { policy: scriptedPolicy(clock, script), tasks: fakeTasks(clock), frames: fakeFrames(clock), clock },
        { desktop, resetMs: 0, release: () => undefined },
        {
          order: order(1, { cap }),
          task: task(),
          provenance: { kind: 'rollout' },
          sampling: { greedy: false, temperature: 1, seed: 7 },
          signal: new AbortController().signal,
          onStep: (s, _, a) => {
            steps.push(s);
            about.push(a);
          },
          onPhase: () => undefined,
        },
      ).then((r) => {
        t = r;
      });
    await clock.until(() => t !== undefined);
    await run;
    return { t: t!.trajectory, log: desktop.log };
  }
  it('is kept when the step cap ended the episode, and not looked for after a terminal action', async () => {
    const capped = await play([[click], [click]], 2),
      ended = await play([[click], [{ type: 'finished' }]], 4);
    expect(capped.t.last?.hash).toBe('frame2');
    expect(capped.log.filter((x) => x === 'observe')).toHaveLength(3);
    expect(ended.t.last).toBeUndefined();
    expect(ended.log.filter((x) => x === 'observe')).toHaveLength(2);
  });
});

describe('the registry of desktops', () => {
  const clock = new VirtualClock();
  function parts() {
    const listeners = new Set<(e: PoolEvent) => void>(),
      destroyed: string[] = [];
    let status: PoolStatus = { size: 1, waiting: 0, desktops: [] };
    const pool = {
      status: () => status,
      onEvent: (l: (e: PoolEvent) => void) => {
        listeners.add(l);
        return () => listeners.delete(l);
      },
      statusOf: (d: DesktopId) => status.desktops.find((x) => x.id === d),
    } as unknown as DesktopPool;
    const provider = {
      name: 'local',
      create: async () => Promise.resolve(new FakeDesktop('d1', clock)),
      reset: async (d: Desktop) => Promise.resolve(d),
      destroy: async (d: Desktop) => {
        destroyed.push(`${d.id}${d instanceof FakeDesktop ? '' : ' wrapped'}`);
        return Promise.resolve();
      },
    } as unknown as DesktopProvider;
    const registry = new DesktopRegistry(),
      told: [string, string | undefined][] = [];
    registry.onChange((d, row) => told.push([d, row?.state]));
    registry.attach(pool);
    const set = async (state: PoolStatus['desktops'][number]['state'] | undefined): Promise<void> => {
      status = {
        size: 1,
        waiting: 0,
        desktops: state === undefined ? [] : [{ id: id<DesktopId>('d1'), state, since: 1, resets: 2, replaced: 0 }],
      };
      for (const l of listeners) l({ type: 'state', desktop: id<DesktopId>('d1'), state: state ?? 'stopped', at: 1 });
      await Promise.resolve();
    };
    return { registry, told, set, wrapped: registry.wrap(provider), destroyed };
  }

  it('tells what each does, once a change, and when it is gone', async () => {
    const { registry, told, set } = parts();
    await set('resetting');
    await set('ready');
    await set('leased');
    registry.begin('d1', { rollout: 'r1', task: 't', instruction: 'do', cap: 4, version: 3, since: 5 });
    registry.progress('d1', 2, 4);
    await Promise.resolve();
    expect(registry.rows()).toEqual([
      {
        desktop: 'd1',
        provider: 'local',
        state: 'setup',
        since: 5,
        resets: 2,
        replaced: 0,
        rollout: 'r1',
        task: 't',
        instruction: 'do',
        step: 2,
        cap: 4,
        version: 4,
      },
    ]);
    registry.end('d1');
    await set(undefined);
    expect(told).toEqual([
      ['d1', 'resetting'],
      ['d1', 'idle'],
      ['d1', 'setup'],
      ['d1', undefined],
    ]);
  });

  it('gives a desktop up: every call then says so, its pool is told, and its provider destroys the real one', async () => {
    const { registry, wrapped, destroyed } = parts();
    const d = await wrapped.create({ screen: { width: 10, height: 10 }, memoryMb: 1, pids: 1 }),
      events: DesktopEvent[] = [];
    d.onEvent((e) => events.push(e));
    expect(registry.desktop('d1')).toBe(d);
    expect(registry.restart('nobody')).toBe(false);
    expect(registry.restart('d1')).toBe(true);
    expect(events).toMatchObject([{ type: 'lost', error: { kind: 'desktop.lost' } }]);
    await expect(d.observe()).rejects.toMatchObject({ kind: 'desktop.lost' });
    await wrapped.destroy(d);
    expect(destroyed).toEqual(['d1']);
    expect(registry.desktop('d1')).toBeUndefined();
  });
});

describe('coalescing', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  it('tells the first at once, then the newest at most once in a while, and keeps keys apart', () => {
    const told: string[] = [],
      tell = coalesce<number>(250, (k, v) => told.push(`${k}${v}`));
    for (let i = 0; i < 5; i++) tell('a', i);
    tell('b', 9);
    expect(told).toEqual(['a0', 'b9']);
    vi.advanceTimersByTime(250);
    expect(told).toEqual(['a0', 'b9', 'a4']);
    vi.advanceTimersByTime(1000);
    tell('a', 7);
    expect(told).toEqual(['a0', 'b9', 'a4', 'a7']);
  });
});
