import { describe, expect, it } from 'vitest';
import { GLYPH_SPEC, HEADS, headOffsets, headSizes, id, quantile, random } from '../../../runtime/domain/index.js';
import type { FamilyId, Head, RolloutId, Step, TaskId } from '../../../runtime/domain/index.js';
import { baseDataConfig } from '../../helpers/data/manager.js';
import { SuccessLengths, stepCap } from '../../../runtime/data/curation/dynamicLength.js';
import { groupSize } from '../../../runtime/data/curation/dynamicRollouts.js';
import { filterGroup } from '../../../runtime/data/curation/groupFilter.js';
import { selectHighEntropy, stepEntropy } from '../../../runtime/data/curation/highEntropy.js';
import { choosePoolEntry, distance, oldestFailure } from '../../../runtime/data/curation/poolInjection.js';
import type { PoolEntry } from '../../../runtime/data/curation/poolInjection.js';
import {
  admissionCapacity,
  groupCapacity,
  leavesRoom,
  oldestVersion,
} from '../../../runtime/data/curation/staleness.js';
import { SuccessStats } from '../../../runtime/data/curation/successStats.js';

const family = id<FamilyId>('desk/sum'),
  task = id<TaskId>('desk/sum#1');

describe('success statistics', () => {
  it('rates the latest rollouts only', () => {
    const s = new SuccessStats(4);
    for (const ok of [false, false, true, true, true, false]) s.add(family, ok);
    expect(s.of(family)).toEqual({ n: 4, successes: 3, rate: 0.75, posterior: 4 / 6, total: 6 });
  });
  it('knows nothing of a family without outcomes, and says one half', () => {
    expect(new SuccessStats(4).of(family)).toEqual({ n: 0, successes: 0, rate: undefined, posterior: 0.5, total: 0 });
  });
});

describe('dynamic rollout number (3c)', () => {
  const c = baseDataConfig.dynamicRollouts;
  it.each([
    [0, 8],
    [0.59, 8],
    [0.6, 8],
    [0.625, 7],
    [0.65, 6],
    [0.7, 5],
    [0.75, 5],
    [0.8, 4],
    [0.9, 3],
    [1, 2],
  ])('rate %f gives %i rollouts', (rate, n) => {
    expect(groupSize({ rate, n: 40 }, c)).toBe(n);
  });
  it('takes rates that come from counts to the same table', () => {
    expect(
      [
        [3, 5],
        [6, 10],
        [5, 8],
        [13, 20],
        [7, 10],
        [3, 4],
        [4, 5],
        [9, 10],
        [7, 7],
      ].map(([s, n]) => groupSize({ rate: s! / n!, n: 40 }, c)),
    ).toEqual([8, 8, 7, 6, 5, 5, 4, 3, 2]);
  });
  it('stays at the most without enough outcomes, or switched off', () => {
    expect(groupSize({ rate: undefined, n: 0 }, c)).toBe(8);
    expect(groupSize({ rate: 1, n: 7 }, c)).toBe(8);
    expect(groupSize({ rate: 1, n: 40 }, { ...c, enabled: false })).toBe(8);
  });
  it('scales with another most and respects the least', () => {
    expect(groupSize({ rate: 1, n: 40 }, { ...c, max: 16 })).toBe(4);
    expect(groupSize({ rate: 1, n: 40 }, { ...c, max: 4 })).toBe(2);
  });
});

describe('dynamic trajectory length (3d)', () => {
  const c = { ...baseDataConfig.dynamicLength, global: 30, floor: 4, slack: 2, exploreShare: 0.1 };
  it.each([
    [undefined, 0.5, 30],
    [1, 0.5, 4],
    [5, 0.5, 7],
    [29, 0.5, 30],
    [40, 0.5, 30],
    [5, 0.05, 30],
    [5, 0.1, 7],
  ])('longest %s, draw %f gives %i', (longest, u, cap) => {
    expect(stepCap(longest, u, c)).toBe(cap);
  });
  it('obeys a task limit under the global cap, whatever the floor says', () => {
    expect(stepCap(undefined, 0.5, c, 10)).toBe(10);
    expect(stepCap(20, 0.5, c, 10)).toBe(10);
    expect(stepCap(1, 0.5, c, 3)).toBe(3);
    expect(stepCap(5, 0.5, { ...c, enabled: false })).toBe(30);
  });
  it('remembers the longest success, or the longest of the latest', () => {
    const all = new SuccessLengths(0),
      last2 = new SuccessLengths(2);
    for (const n of [3, 9, 4, 5]) {
      all.add(family, n);
      last2.add(family, n);
    }
    expect([all.longest(family), last2.longest(family), all.longest(id<FamilyId>('other'))]).toEqual([9, 5, undefined]);
  });
});

const step = (entropies?: number[], bound?: 'lower'): Step => ({
  index: 0,
  frame: { hash: '', width: 1, height: 1 },
  actions: [],
  origin: 'policy',
  settled: true,
  timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 },
  ...(entropies
    ? { tokens: { logprobs: Float32Array.from(entropies), entropies: Float32Array.from(entropies), bound } }
    : {}),
});
/** Members of a group as the selection sees them. */
const own = (...steps: Step[]): Parameters<typeof selectHighEntropy>[0][number] => ({
  trajectory: { steps },
  injected: false,
});
const injected = (...steps: Step[]): ReturnType<typeof own> => ({ ...own(...steps), injected: true });

describe('high-entropy steps (3e)', () => {
  const rows = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
  it.each([
    [0.8, [0.9, 1]],
    [0.5, [0.6, 0.7, 0.8, 0.9, 1]],
    [1, [1]],
    [0, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]],
  ])('vector of losses.md, quantile %f', (q, kept) => {
    // The vector's padded tokens are steps without a trace here: they do not count, and nothing is known against them.
    const steps = [...rows.map((h) => step([h])), step(), step()],
      { keep } = selectHighEntropy([own(...steps)], { enabled: true, keep: 1 - q });
    expect(rows.filter((_, i) => keep[0]![i])).toEqual(kept);
    expect(keep[0]!.slice(rows.length)).toEqual([true, true]);
  });
  it('keeps everything and has no threshold when no step has a trace', () => {
    expect(selectHighEntropy([own(step(), step())], { enabled: true, keep: 0.5 })).toEqual({
      keep: [[true, true]],
      threshold: undefined,
    });
  });
  it('interpolates linearly', () => {
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
    expect(quantile([4, 1], 0.25)).toBe(1.75);
    expect(quantile([7], 0.2)).toBe(7);
    expect(quantile([], 0.2)).toBeUndefined();
  });
  it('takes the mean over the real tokens of a step', () => {
    expect(stepEntropy(step([0.5, 1, 1.5]))).toBe(1);
    expect(stepEntropy(step([]))).toBeUndefined();
    expect(stepEntropy(step())).toBeUndefined();
  });
  it('drops a fifth of a group across its trajectories', () => {
    const a = own(...[0.5, 1, 1.5, 2, 2.5].map((h) => step([h]))),
      b = own(...[3, 3.5, 4, 4.5, 5].map((h) => step([h])));
    const { keep, threshold } = selectHighEntropy([a, b], { enabled: true, keep: 0.8 });
    expect(threshold).toBeCloseTo(1.4, 6);
    expect(keep).toEqual([
      [false, false, true, true, true],
      [true, true, true, true, true],
    ]);
  });
  it('keeps ties, single steps and demonstrations, and everything when off', () => {
    const q = { enabled: true, keep: 0.8 };
    expect(selectHighEntropy([own(...[0.7, 0.7, 0.7].map((h) => step([h])))], q).keep).toEqual([[true, true, true]]);
    expect(selectHighEntropy([own(step([0.3]))], q).keep).toEqual([[true]]);
    const mixed = selectHighEntropy([own(step(), step()), own(step([0]), step([1]), step([2]))], q);
    expect(mixed.keep).toEqual([
      [true, true],
      [false, true, true],
    ]);
    expect(selectHighEntropy([own(step(), step())], q)).toEqual({ keep: [[true, true]], threshold: undefined });
    expect(selectHighEntropy([own(step([0]), step([1]))], { enabled: false, keep: 0.1 })).toEqual({
      keep: [[true, true]],
      threshold: undefined,
    });
  });
  it('an injected trajectory is held against the threshold and does not move it', () => {
    const q = { enabled: true, keep: 0.5 },
      mine = own(...[0.1, 0.2, 0.3, 0.4].map((h) => step([h])));
    const alone = selectHighEntropy([mine], q),
      helped = selectHighEntropy([mine, injected(step([5]), step([6]), step([0.05]))], q);
    expect(helped.threshold).toBe(alone.threshold);
    expect(helped.keep).toEqual([alone.keep[0], [true, true, false]]);
    expect(selectHighEntropy([own(step()), injected(step([5]), step([6]))], q)).toEqual({
      keep: [[true], [true, true]],
      threshold: undefined,
    });
  });
  it('choices of the embedded policy count as shares of what their heads can have', () => {
    const at = headOffsets(GLYPH_SPEC),
      most = Object.fromEntries(HEADS.map((h) => [h, Math.log(headSizes(GLYPH_SPEC)[h])])) as Record<Head, number>;
    const decided = (of: readonly Head[], shares: readonly number[]): Step => {
      const entropies = Float32Array.from(of, (h, i) => most[h] * shares[i]!);
      return { ...step(), tokens: { logprobs: entropies, entropies, ids: Int32Array.from(of, (h) => at[h]) } };
    };
    expect(stepEntropy(decided(['type', 'cell'], [0.2, 0.4]))).toBeCloseTo(0.3, 6);
    // In nats a hesitant `finished` (0.5 of ln 12) lies under a confident click (0.3 of ln 1000), and would be dropped.
    const click = decided(['type', 'cell'], [0.3, 0.3]),
      finished = decided(['type'], [0.5]),
      { keep, threshold } = selectHighEntropy([own(click, click, click, finished)], { enabled: true, keep: 0.25 });
    expect(keep).toEqual([[false, false, false, true]]);
    expect(threshold).toBeCloseTo(0.35, 6);
    // Undecided between the two texts that it could type: as undecided as it can be, though the head has more.
    const typed = decided(['type', 'text'], [0, 0]),
      entropies = Float32Array.of(0, Math.log(2)),
      of = (...choices: number[]): Step => ({
        ...typed,
        tokens: { ...typed.tokens!, entropies, choices: Int32Array.from(choices) },
      });
    expect(stepEntropy(of(12, 2))).toBeCloseTo(0.5, 6);
    // An older record does not say it, and one that is wrong is not believed.
    for (const whole of [of(), of(12), of(12, 0), of(12, 1e6), of(12, -1)])
      expect(stepEntropy(whole)).toBeCloseTo(Math.log(2) / most.text / 2, 6);
    // Another policy's tokens, and ids that are no choices, keep their nats.
    expect(stepEntropy({ ...step([2]), prompt: { kind: 'none' } as never })).toBe(2);
    const foreign = { logprobs: Float32Array.of(1), entropies: Float32Array.of(2), ids: Int32Array.of(151_655) };
    expect(stepEntropy({ ...step(), tokens: foreign })).toBe(2);
  });
  it('lower bounds and exact entropies are never compared: a step of the other kind is kept', () => {
    const q = { enabled: true, keep: 0.5 },
      exact = [0.25, 0.5, 0.75, 1].map((h) => step([h])),
      bounds = [1, 2, 3, 4].map((h) => step([h], 'lower'));
    expect(selectHighEntropy([own(...exact), injected(step([0], 'lower'))], q)).toEqual({
      keep: [[false, false, true, true], [true]],
      threshold: 0.625,
    });
    expect(selectHighEntropy([own(...bounds), injected(step([0]))], q)).toEqual({
      keep: [[false, false, true, true], [true]],
      threshold: 2.5,
    });
    // A server that began to say less within a group: most of its steps decide.
    expect(selectHighEntropy([own(...bounds, step([0])), own(step([9]))], q)).toMatchObject({
      keep: [[false, false, true, true, true], [true]],
      threshold: 2.5,
    });
  });
});

describe('group filter', () => {
  const c = { enabled: true, maxSize: 4, minSize: 2 };
  it('drops groups without variance, singletons and empty ones', () => {
    for (const r of [[1, 1, 1], [0, 0], [1], []]) expect(filterGroup(r, c, random(1))).toEqual({ drop: 'no-variance' });
    expect(filterGroup([0, 0], { ...c, enabled: false }, random(1))).toEqual({ keep: [0, 1] });
  });
  it('keeps a small group whole', () => {
    expect(filterGroup([0, 1, 0], c, random(1))).toEqual({ keep: [0, 1, 2] });
  });
  it('cuts to the size with at least one success and one failure, and what is pinned', () => {
    for (let seed = 0; seed < 200; seed++) {
      const r = filterGroup([0, 0, 0, 1, 0, 0, 0, 0], c, random(seed), [7]);
      if (!('keep' in r)) throw new Error('dropped');
      expect(r.keep).toHaveLength(4);
      expect(r.keep).toContain(3);
      expect(r.keep).toContain(7);
      expect([...r.keep]).toEqual([...r.keep].sort((a, b) => a - b));
    }
  });
  it('keeps each of equal trajectories equally often', () => {
    const times = [0, 0, 0, 0, 0, 0];
    for (let seed = 0; seed < 3000; seed++) {
      const r = filterGroup([0, 0, 0, 1, 1, 1], c, random(seed));
      if ('keep' in r) for (const i of r.keep) times[i]!++;
    }
    // Expected 2000 each, standard deviation 26.
    for (const n of times) expect(Math.abs(n - 2000)).toBeLessThan(160);
  });
});

describe('pool injection (3b)', () => {
  const c = { ...baseDataConfig.pool, reuseCap: 2, maxAge: 10 };
  const entry = (name: string, o: Partial<PoolEntry> = {}): PoolEntry => ({
    id: id<RolloutId>(name),
    task,
    family,
    steps: 5,
    provenance: 'rollout',
    version: 100,
    signature: ['click'],
    added: 1,
    uses: 0,
    lastUsed: 0,
    enabled: true,
    ...o,
  });
  const chosen = (es: PoolEntry[], o = {}): string | undefined =>
    choosePoolEntry(es, task, family, 105, { ...c, ...o })?.id;
  it('prefers the same task, else takes the same family, never another', () => {
    const other = entry('seed', { task: id<TaskId>('desk/sum#2'), steps: 1 });
    expect(chosen([other, entry('same')])).toBe('same');
    expect(chosen([other])).toBe('seed');
    expect(chosen([entry('x', { family: id<FamilyId>('desk/else') })])).toBeUndefined();
  });
  it('leaves used-up and aged entries; demonstrations do not age', () => {
    expect(chosen([entry('used', { uses: 2 })])).toBeUndefined();
    expect(chosen([entry('old', { version: 94 })])).toBeUndefined();
    expect(chosen([entry('edge', { version: 95 })])).toBe('edge');
    expect(chosen([entry('old', { version: 94 })], { maxAge: 0 })).toBe('old');
    expect(chosen([entry('demo', { version: undefined, provenance: 'human' })])).toBe('demo');
    expect(chosen([entry('same')], { enabled: false })).toBeUndefined();
  });
  it('picks the shortest, the newest, or the least like the last ones', () => {
    const es = [
      entry('a', { steps: 4, added: 1, signature: ['click', 'type'] }),
      entry('b', { steps: 3, added: 2, signature: ['click', 'type'], uses: 1, lastUsed: 9 }),
      entry('c', { steps: 6, added: 3, signature: ['hotkey', 'hotkey'] }),
    ];
    expect(chosen(es, { selection: 'shortest' })).toBe('b');
    expect(chosen(es, { selection: 'newest' })).toBe('c');
    expect(chosen(es, { selection: 'novelty' })).toBe('c');
    expect(chosen([entry('d'), entry('e', { uses: 1 })], { selection: 'shortest' })).toBe('d');
  });
  it('measures novelty by edit distance', () => {
    expect(distance([], [])).toBe(0);
    expect(distance(['a', 'b', 'c'], ['a', 'c'])).toBeCloseTo(1 / 3);
    expect(distance(['a'], ['b', 'c'])).toBe(1);
  });
  it('replaces the failure that ended first', () => {
    expect(
      oldestFailure([
        { success: false, endedAt: 5 },
        { success: false, endedAt: 3 },
        { success: true, endedAt: 1 },
      ]),
    ).toBe(1);
    expect(oldestFailure([])).toBe(-1);
  });
});

describe('staleness (5)', () => {
  it.each([
    [{ maxConcurrent: 100, perUpdate: 4, eta: 2, version: 0, running: 0, accepted: 0 }, 12],
    [{ maxConcurrent: 100, perUpdate: 4, eta: 2, version: 5, running: 0, accepted: 0 }, 32],
    [{ maxConcurrent: 10, perUpdate: 4, eta: 2, version: 0, running: 3, accepted: 0 }, 7],
    [{ maxConcurrent: 20, perUpdate: 4, eta: 2, version: 0, running: 0, accepted: 5 }, 7],
    [{ maxConcurrent: 100, perUpdate: 8, eta: 0, version: 0, running: 0, accepted: 0 }, 8],
    [{ maxConcurrent: 100, perUpdate: 8, eta: 0, version: 5, running: 0, accepted: 0 }, 48],
  ])('capacity vector %#', (input, capacity) => {
    expect(admissionCapacity(input)).toBe(capacity);
  });
  it('counts in groups where batches do', () => {
    expect([0, 5, 12, 14].map((pending) => groupCapacity({ pending, eta: 2, perUpdate: 4 }))).toEqual([12, 7, 0, -2]);
  });
  it('measures lag from the oldest acting version', () => {
    expect(oldestVersion([4, 5, undefined, 6])).toBe(4);
    expect(oldestVersion([undefined])).toBe(Infinity);
  });
  it('knows when the oldest can still have their turn', () => {
    const o = { version: 5, eta: 2, perUpdate: 2 };
    expect(leavesRoom([3, 3, 4, 4, 5, 5], o)).toBe(true);
    expect(leavesRoom([3, 3, 3], o)).toBe(false); // the third has its turn at 6 and would lag 3
    expect(leavesRoom([2], o)).toBe(false);
    expect(leavesRoom([], o)).toBe(true);
  });
});
