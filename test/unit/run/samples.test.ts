import { describe, expect, it } from 'vitest';
import {
  GLYPH_SPEC,
  headOffsets,
  id,
  random,
  type Action,
  type Frame,
  type FrameRef,
  type GroupId,
  type RolloutId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import type { FrameStore } from '../../../runtime/data/types.js';
import { Observations } from '../../../runtime/run/backends/embeddedSamples.js';
import { chooseReplay, lrScale } from '../../../runtime/run/trainLoop.js';
import { encodeFrame } from '../../helpers/policy/encodeFrame.js';
import { imitationSamples, policySamples } from '../../helpers/run/embeddedSamples.js';

const frame = (n: number): Frame => ({ width: 640, height: 400, data: Buffer.alloc(640 * 400 * 4, n), capturedAt: 0 });
/** Frames in memory; counts how often one had to be read back. */
class MemoryFrames implements FrameStore {
  readonly #kept = new Map<string, Frame>();
  reads = 0;
  put(f: Frame): Promise<FrameRef> {
    const hash = String(f.data[0]);
    this.#kept.set(hash, f);
    return Promise.resolve({ hash, width: f.width, height: f.height });
  }
  get(r: FrameRef): Promise<Frame> {
    this.reads++;
    return Promise.resolve(this.#kept.get(r.hash)!);
  }
  read(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
}
const click: Action = { type: 'click', at: { x: 24, y: 40 } };
async function trajectory(
  o: Observations,
  name: string,
  reward: number,
  actions: readonly Action[],
  traced = true,
): Promise<Trajectory> {
  const steps = await Promise.all(
    actions.map(async (a, index) => ({
      index,
      frame: await o.put(frame(index + 1)),
      actions: [a],
      origin: traced ? ('policy' as const) : ('oracle' as const),
      settled: true,
      timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
      ...(traced
        ? {
            version: 3,
            tokens: {
              logprobs: Float32Array.of(-0.5, -1),
              entropies: Float32Array.of(1, 2),
              ids: Int32Array.of(0, headOffsets(GLYPH_SPEC).cell + 81),
            },
          }
        : {}),
    })),
  );
  return {
    id: id<RolloutId>(name),
    task: id('t#1'),
    family: id('t'),
    instruction: 'Press "Save".',
    provenance: { kind: traced ? 'rollout' : 'oracle' },
    steps,
    outcome: { kind: reward === 1 ? 'success' : 'failure', reward, truncated: false },
    cap: 5,
    startedAt: 0,
    endedAt: 1,
    resetMs: 0,
    verifyMs: 0,
  };
}
const options = { baseline: 'trajectory', norm: 'std', balance: 'trajectory', credit: 'trajectory' } as const;

describe('training samples', () => {
  it('carry advantages of the group, behaviour log-probs, and one unit of weight per trajectory', async () => {
    const o = new Observations(new MemoryFrames(), GLYPH_SPEC);
    const group = {
      id: id<GroupId>('g'),
      family: id('t') as never,
      injected: [],
      trajectories: [
        await trajectory(o, 'a', 1, [click, click]),
        await trajectory(o, 'b', 0, [click]),
        await trajectory(o, 'c', 0, [click, click, click, click]),
        await trajectory(o, 'd', 1, [click]),
      ],
    };
    const keep = [[true, true], [true], [true, false, true, false], [false]];
    const samples = await policySamples(GLYPH_SPEC, o, [{ group, keep }], options);
    expect(samples.map((s) => `${s.rollout}${s.step}`)).toEqual(['a0', 'a1', 'b0', 'c0', 'c2']);
    expect(samples[0]!.advantage).toBeCloseTo(0.866024, 5);
    expect(samples[2]!.advantage).toBeCloseTo(-0.866024, 5);
    expect(samples.map((s) => s.weight)).toEqual([0.5, 0.5, 1, 0.5, 0.5]);
    expect(samples[0]).toMatchObject({ version: 3, kind: 'policy', rolloutLogprobs: Float32Array.of(-0.5, -1) });
  });

  it('have the very state the policy saw, and equal states share a key', async () => {
    const frames = new MemoryFrames(),
      o = new Observations(frames, GLYPH_SPEC);
    const group = {
      id: id<GroupId>('g'),
      family: id('t') as never,
      injected: [],
      trajectories: [await trajectory(o, 'a', 1, [click, click]), await trajectory(o, 'b', 0, [click, click])],
    };
    const s = await policySamples(
      GLYPH_SPEC,
      o,
      [
        {
          group,
          keep: [
            [true, true],
            [true, true],
          ],
        },
      ],
      options,
    );
    expect(s[0]!.stateKey).toBe(s[2]!.stateKey);
    expect(s[0]!.stateKey).not.toBe(s[1]!.stateKey);
    expect(s[1]!.state).toEqual(encodeFrame(GLYPH_SPEC, frame(2), 'Press "Save".', [{ actions: [click] }]));
    expect(frames.reads).toBe(0);
  });

  it('have advantages of their own where trajectories part, and 0 where nothing was decided', async () => {
    const o = new Observations(new MemoryFrames(), GLYPH_SPEC),
      other: Action = { type: 'click', at: { x: 200, y: 40 } };
    // a and b begin alike; c presses elsewhere first, so that its second screen, though it looks the same, was reached
    // another way.
    const group = {
      id: id<GroupId>('g'),
      family: id('t') as never,
      injected: [],
      trajectories: [
        await trajectory(o, 'a', 1, [click, click]),
        await trajectory(o, 'b', 1, [click, other]),
        await trajectory(o, 'c', 0, [other, click]),
      ],
    };
    const s = await policySamples(
      GLYPH_SPEC,
      o,
      [
        {
          group,
          keep: [
            [true, true],
            [true, true],
            [true, true],
          ],
        },
      ],
      { ...options, norm: 'none', credit: 'fork' },
    );
    expect(s.map((x) => [`${x.rollout}${x.step}`, Math.round(x.advantage * 1000) / 1000])).toEqual([
      ['a0', 0.333],
      ['a1', 0],
      ['b0', 0.333],
      ['b1', 0],
      ['c0', -0.667],
      ['c1', -0.667],
    ]);
  });

  it('of demonstrations have no log-probs, and steps the policy cannot say are left out', async () => {
    const o = new Observations(new MemoryFrames(), GLYPH_SPEC);
    const s = await imitationSamples(GLYPH_SPEC, o, [
      await trajectory(
        o,
        'demo',
        1,
        [click, { type: 'type', text: 'not in the instruction' }, { type: 'finished' }],
        false,
      ),
    ]);
    expect(s.map((x) => x.step)).toEqual([0, 2]);
    expect(s[0]).toMatchObject({
      kind: 'imitation',
      advantage: 0,
      choices: Int32Array.of(0, headOffsets(GLYPH_SPEC).cell + 81),
    });
    expect(s[0]!.rolloutLogprobs).toBeUndefined();
  });

  it('are read back from disk when the cache has let them go', async () => {
    const frames = new MemoryFrames(),
      o = new Observations(frames, GLYPH_SPEC, { capacity: 1 });
    const t = await trajectory(o, 'a', 1, [click, click, click]);
    const s = await imitationSamples(GLYPH_SPEC, o, [t]);
    expect(s).toHaveLength(3);
    expect(frames.reads).toBeGreaterThan(0);
    expect(s[0]!.state.obs[0]).toBe(encodeFrame(GLYPH_SPEC, frame(1), '', []).obs[0]);
  });
});

describe('replay', () => {
  const success = (family: string, n: number): Trajectory =>
    ({ id: id<RolloutId>(`${family}${n}`), family: id(family) }) as Trajectory;
  it('prefers families that fail', () => {
    const all = [...Array.from({ length: 50 }, (_, i) => success('easy', i)), success('hard', 0), success('hard', 1)];
    const chosen = chooseReplay(
      all,
      new Map([
        ['easy', 0.95],
        ['hard', 0.05],
      ]),
      1000,
      random(1),
    );
    const hard = chosen.filter((t) => (t.family as string) === 'hard').length;
    // Weights 0.15 and 1.05: 87.5 % hard, give or take five standard deviations.
    expect(hard).toBeGreaterThan(820);
    expect(hard).toBeLessThan(930);
  });
  it('is empty without successes', () => expect(chooseReplay([], new Map(), 8, random(1))).toEqual([]));
});

describe('the learning rate over the budget', () => {
  it('falls linearly to a tenth over the last share, from whatever the run has used', () => {
    expect([0, 0.3, 0.6, 0.8, 1].map((used) => Number(lrScale(used, 0.4).toFixed(6)))).toEqual([1, 1, 1, 0.55, 0.1]);
    expect(lrScale(1.2, 0.4)).toBeCloseTo(0.1); // a batch that was begun as the budget ended
    expect(lrScale(0.5, 1)).toBeCloseTo(0.55);
    expect(lrScale(0, 1)).toBe(1);
  });
  it('stays constant without a decay', () => expect([0, 0.5, 1].map((used) => lrScale(used, 0))).toEqual([1, 1, 1]));
});
