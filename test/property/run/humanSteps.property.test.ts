import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  GLYPH_SPEC,
  assisted,
  headOffsets,
  id,
  random,
  type Frame,
  type FrameRef,
  type GroupId,
  type RolloutId,
  type Step,
  type EmbeddedSample,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import { curateGroup } from '../../../runtime/data/curation/curateGroup.js';
import type { FrameStore } from '../../../runtime/data/types.js';
import { Observations } from '../../../runtime/run/backends/embeddedSamples.js';
import { policySamples } from '../../helpers/run/embeddedSamples.js';
import { groupAdvantages } from '../../../runtime/trainer/objective/advantages.js';
import { dataConfig } from '../../helpers/data/manager.js';

/** One grey frame serves all steps: what matters here is who acted. */
const frames: FrameStore = {
  put: () => Promise.reject(new Error('nothing is stored')),
  get: (r) =>
    Promise.resolve<Frame>({
      width: r.width,
      height: r.height,
      data: Buffer.alloc(r.width * r.height * 4, 9),
      capturedAt: 0,
    }),
  read: () => Promise.reject(new Error('not asked')),
};
const frame: FrameRef = { hash: '0'.repeat(64), width: 640, height: 400 },
  cell = headOffsets(GLYPH_SPEC).cell;

type Who = 'policy' | 'human' | 'oracle';
const stepOf = (who: Who, index: number, entropy: number, traced: boolean): Step => ({
  index,
  frame,
  actions: [{ type: 'click', at: { x: 8 + 16 * index, y: 40 } }],
  origin: who,
  settled: true,
  timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
  // A person's step that carries a trace all the same (a damaged or hostile record) must not be trained as the policy's
  // either.
  ...(who === 'policy' || traced
    ? {
        version: 1,
        tokens: {
          logprobs: Float32Array.of(-1, -2),
          entropies: Float32Array.of(entropy, entropy),
          ids: Int32Array.of(0, cell + index),
        },
      }
    : {}),
});
const trajectory = fc.record({
  who: fc.array(fc.constantFrom<Who>('policy', 'policy', 'human'), { minLength: 1, maxLength: 6 }),
  won: fc.boolean(),
  entropy: fc.double({ min: 0, max: 4, noNaN: true }),
  traced: fc.boolean(),
});
const build = (
  name: string,
  t: { who: readonly Who[]; won: boolean; entropy: number; traced: boolean },
  kind: 'rollout' | 'human' | 'oracle' = 'rollout',
): Trajectory => ({
  id: id<RolloutId>(name),
  task: id('t#1'),
  family: id('t'),
  instruction: 'Press "Save".',
  provenance: { kind },
  steps: t.who.map((w, i) => stepOf(w, i, t.entropy + i / 10, t.traced && w === 'human')),
  outcome: { kind: t.won ? 'success' : 'failure', reward: t.won ? 1 : 0, truncated: false },
  cap: 9,
  startedAt: 0,
  endedAt: 1,
  resetMs: 0,
  verifyMs: 0,
});

describe('steps in which a person acted', () => {
  it("never have a policy-gradient term; they are imitated only when the trajectory succeeded, with the group's advantage", async () => {
    const observations = new Observations(frames, GLYPH_SPEC);
    await fc.assert(
      fc.asyncProperty(
        fc.array(trajectory, { minLength: 2, maxLength: 5 }),
        fc.constantFrom('human', 'oracle', 'none'),
        fc.constantFrom('trajectory' as const, 'step' as const),
        fc.constantFrom('trajectory' as const, 'fork' as const),
        async (ts, pool, balance, credit) => {
          const own = ts.map((t, i) => build(`r${i}`, t)),
            demo = build(
              'demo',
              {
                who: [pool === 'human' ? 'human' : 'oracle', pool === 'human' ? 'human' : 'oracle'],
                won: true,
                entropy: 1,
                traced: false,
              },
              pool === 'human' ? 'human' : 'oracle',
            );
          const curated = curateGroup(
            own,
            () => (pool === 'none' ? undefined : demo),
            dataConfig({ groupFilter: { maxSize: 8 } }),
            random(1),
          );
          if (curated.kind === 'dropped') return;
          const { members } = curated,
            trajectories = members.map((m) => m.trajectory),
            keep = members.map((m) => m.keep);
          const out = await policySamples(
            GLYPH_SPEC,
            observations,
            [{ group: { id: id<GroupId>('g'), family: id('t'), trajectories, injected: [] }, keep }],
            { baseline: 'trajectory', norm: 'std', balance, credit },
          );
          const samples = new Map<string, EmbeddedSample>(out.map((s) => [`${s.rollout}/${s.step}`, s]));
          expect(samples.size).toBe(out.length);
          const advantages = groupAdvantages(
            members.map((m) => m.reward),
            keep.map((k) => k.filter(Boolean).length),
            { baseline: 'trajectory', norm: 'std' },
          );
          trajectories.forEach((t, i) => {
            const mine = t.steps.flatMap((s) => {
              const x = samples.get(`${t.id}/${s.index}`);
              return x ? [{ s, x }] : [];
            });
            for (const { s, x } of mine) {
              if (s.origin !== 'human') {
                expect(x).toMatchObject({ kind: 'policy' });
                expect(x.coefficient).toBeUndefined();
                continue;
              }
              expect(t.outcome.kind).toBe('success');
              expect(x).toMatchObject({ kind: 'imitation', advantage: 0 });
              expect([x.rolloutLogprobs, x.version]).toEqual([undefined, undefined]);
              expect(x.coefficient!).toBeGreaterThan(0);
              if (credit === 'trajectory') expect(x.coefficient!).toBeCloseTo(advantages[i]!, 10);
            }
            // With credit by trajectory a success has all of its person's steps in the batch, and a trajectory weighs
            // one in all.
            if (credit === 'trajectory' && advantages[i]! > 0)
              expect(mine.filter((m) => m.s.origin === 'human')).toHaveLength(
                t.steps.filter((s) => s.origin === 'human').length,
              );
            if (credit === 'trajectory' && balance === 'trajectory' && mine.length > 0)
              expect(mine.reduce((n, m) => n + m.x.weight, 0)).toBeCloseTo(1, 10);
            // Policy steps of a taken-over trajectory stay usable: the mask alone decides.
            if (credit === 'trajectory' && advantages[i] !== 0 && assisted(t))
              expect(mine.filter((m) => m.s.origin === 'policy').map((m) => m.s.index)).toEqual(
                t.steps.filter((s) => s.origin === 'policy' && keep[i]![s.index]).map((s) => s.index),
              );
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('do not move the entropy threshold of their group', () => {
    fc.assert(
      fc.property(fc.array(trajectory, { minLength: 2, maxLength: 5 }), (ts) => {
        const own = ts.map((t, i) => build(`r${i}`, t)),
          config = dataConfig({ groupFilter: { enabled: false, maxSize: 8 } });
        const without = own
          .map((t) => ({ ...t, steps: t.steps.filter((s) => s.origin === 'policy') }))
          .filter((t) => t.steps.length > 0);
        const a = curateGroup(own, () => undefined, config, random(1)),
          b = without.length > 0 ? curateGroup(without, () => undefined, config, random(1)) : undefined;
        if (a.kind === 'formed' && b?.kind === 'formed') {
          expect(a.threshold).toBe(b.threshold);
          for (const m of b.members) {
            const same = a.members.find((x) => x.trajectory.id === m.trajectory.id)!;
            expect(same.keep.filter((_, i) => same.trajectory.steps[i]!.origin === 'policy')).toEqual(m.keep);
            expect(same.keep.filter((_, i) => same.trajectory.steps[i]!.origin === 'human')).not.toContain(true);
          }
        } else expect(a.kind).toBe(b?.kind ?? 'dropped');
      }),
      { numRuns: 200 },
    );
  });
});
