import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { wilson } from '../../../runtime/domain/stats.js';
import { compareConfigs, comparedParts, flatConfig, progressOf } from '../../../runtime/queries/compare.js';
import { balancedCurve, successCurves } from '../../../runtime/queries/curves.js';
import { factsOf } from '../../../runtime/service/facts.js';
import { families, writeSyntheticRun, type SyntheticRun } from '../../helpers/data/syntheticRun.js';

describe('a run to compare', () => {
  let dir: string, run: RunReader, truth: SyntheticRun;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dart-compare-'));
    truth = await writeSyntheticRun(join(dir, 'run'), { groups: 30, size: 4, steps: 5 });
    run = await RunReader.open(join(dir, 'run'), { index: 'local' });
  });
  afterAll(async () => {
    await run.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('has its curves, what they are placed by, and every metric, with no more points than asked for', async () => {
    const c = await comparedParts(run, await factsOf(run), { window: 16, maxPoints: 10 }),
      ended = truth.told.filter((t) => t.reward !== undefined).length;
    expect(c.progress.rollouts.at(-1)).toBe(ended);
    expect(c.progress.updates.at(-1)).toBe(truth.updates);
    expect(c.progress.actions.at(-1)).toBeGreaterThan(0);
    expect(c.progress.tokens!.at(-1)).toBe(truth.updates * 96);
    for (const column of [c.progress.at, c.progress.workedMs, c.progress.updates, c.progress.rollouts])
      for (let i = 1; i < column.length; i++) expect(column[i]).toBeGreaterThanOrEqual(column[i - 1]!);
    expect(c.success.at.length).toBeLessThanOrEqual(10);
    expect(c.series.find((s) => s.name === 'update.loss')!.at.length).toBe(Math.min(10, truth.updates));
    expect(c.series.every((s) => s.at.length <= 10)).toBe(true);
    expect(c.tasks.map((t) => t.family)).toEqual([...families].sort());
    expect(c.evals.length).toBeGreaterThan(0);
    // Nothing that JSON would change on the way: absent stays absent.
    expect(JSON.parse(JSON.stringify(c.series))).toEqual(c.series);
  });

  it('of before tokens were recorded has no count of them, also where later updates have', async () => {
    await writeSyntheticRun(join(dir, 'old'), { groups: 30, size: 4, steps: 5, untold: true });
    const old = await RunReader.open(join(dir, 'old'), { index: 'local' }),
      c = await comparedParts(old, await factsOf(old), { window: 16, maxPoints: 10 });
    await old.close();
    expect(c.series.find((s) => s.name === 'update.tokens')!.value.length).toBeGreaterThan(0);
    expect(c.progress.tokens).toBeUndefined();
  });
});

describe('success in which every task weighs the same', () => {
  const ends = (families: string[], family: number[], success: number[]): Parameters<typeof balancedCurve>[0] => ({
    at: Float64Array.from(family, (_, i) => i),
    families,
    family: Uint32Array.from(family),
    success: Uint8Array.from(success),
  });
  it('does not fall because the planner asks the hard task more often', async () => {
    // `easy` always succeeds, `hard` half the time; later the hard one is asked nine times as often.
    const family: number[] = [],
      success: number[] = [];
    for (let i = 0; i < 400; i++) {
      const hard = i < 200 ? i % 2 === 0 : i % 10 !== 0;
      family.push(hard ? 1 : 0);
      success.push(!hard || Math.floor(i / 2) % 2 === 0 ? 1 : 0);
    }
    const o = ends(['easy', 'hard'], family, success),
      c = await balancedCurve(o, { window: 64, maxPoints: 2000, infeasible: () => false }),
      sampled = success.slice(-64).filter(Boolean).length / 64;
    expect(c.balanced).toEqual({ families: 2, each: 32 });
    expect(c.mean[199]).toBeCloseTo(0.75, 1);
    expect(c.mean[399]).toBeCloseTo(0.75, 1);
    expect(sampled).toBeLessThan(0.6);
    for (let i = 0; i < 400; i++) {
      expect(c.low[i]).toBeLessThanOrEqual(c.mean[i]!);
      expect(c.high[i]).toBeGreaterThanOrEqual(c.mean[i]!);
    }
  });
  it('of one task is its rolling mean, and of none is empty', async () => {
    const success = Array.from({ length: 50 }, (_, i) => (i % 3 === 0 ? 1 : 0)),
      o = ends(
        ['a'],
        success.map(() => 0),
        success,
      ),
      c = await balancedCurve(o, { window: 8, maxPoints: 2000, infeasible: () => false });
    success.forEach((_, i) => {
      const of = success.slice(Math.max(0, i - 7), i + 1);
      expect(c.mean[i]).toBeCloseTo(wilson(of.filter(Boolean).length, of.length).rate, 4);
    });
    expect((await balancedCurve(ends([], [], []), { window: 8, maxPoints: 9, infeasible: () => false })).mean).toEqual(
      [],
    );
  });
  it('of a long run lets others have their turn, and is of what was known when it was asked', async () => {
    const n = 600_000,
      family = Array.from({ length: n }, (_, i) => i % 7),
      success = Array.from({ length: n }, (_, i) => ((i * 2654435761) % 5) & 1),
      names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
      q = { window: 64, maxPoints: 500, infeasible: (f: string) => f === 'c' };
    const still = await successCurves(ends(names, family, success), q);
    const moving = ends(names, family, success),
      asked = successCurves(moving, q);
    let turns = 0,
      done = false;
    const turn = (): void => {
      turns++;
      (moving.success as Uint8Array).fill(1);
      (moving.family as Uint32Array).fill(0);
      if (!done) setImmediate(turn);
    };
    setImmediate(turn);
    const curves = await asked;
    done = true;
    expect(turns).toBeGreaterThan(1);
    expect(curves).toEqual(still);
    expect(curves.map((c) => [c.family, c.infeasible])).toEqual([
      [undefined, undefined],
      [undefined, true],
      ...names.map((f) => [f, f === 'c' ? true : undefined]),
    ]);
  });
});

describe('how far a run was', () => {
  it('leaves out the time in which nobody worked on it, and counts at each moment', () => {
    const p = progressOf({
      from: 1000,
      to: 11_000,
      timeline: { outages: [{ from: 4000, to: 8000 }] },
      ended: [2000, 3000, 9000],
      trained: [
        { at: 3500, steps: 10, tokens: 900 },
        // Older ones are added up.
        { at: 10_000, n: 3, steps: 7, tokens: 40 },
      ],
    });
    const at = (t: number): readonly number[] => {
      const i = p.at.indexOf(t);
      return [p.workedMs[i]!, p.updates[i]!, p.rollouts[i]!, p.actions[i]!, p.tokens![i]!];
    };
    expect(at(1000)).toEqual([0, 0, 0, 0, 0]);
    expect(at(3500)).toEqual([2500, 1, 2, 10, 900]);
    expect(at(6000)).toEqual([3000, 1, 2, 10, 900]);
    expect(at(10_000)).toEqual([5000, 4, 3, 17, 940]);
    expect(at(11_000)).toEqual([6000, 4, 3, 17, 940]);
  });
});

describe('run files', () => {
  const of = (...files: object[]): ReturnType<typeof compareConfigs> => compareConfigs(files.map(flatConfig));
  it('differ in the keys whose values differ, defaults filled in; seed and name are no difference', () => {
    const c = of(
      { name: 'a', seed: 1, trainer: { lr: 0.001 } },
      { name: 'b', seed: 2, trainer: { lr: 0.001 }, store: { dir: 'elsewhere' } },
      { name: 'c', seed: 1, policy: { replicas: 4 } },
    );
    expect(c.differences).toEqual([
      { key: 'policy.replicas', values: ['2', '2', '4'] },
      { key: 'trainer.lr', values: ['0.001', '0.001', '0.0005'] },
    ]);
    expect(c.groups).toEqual([0, 0, 1]);
  });
  it('that say a default in words agree with one that says nothing', () => {
    expect(of({}, { trainer: { lr: 5e-4 } }).differences).toEqual([]);
  });
  it('of a version with other keys are compared as they are', () => {
    expect(of({ fromTheFuture: { x: 1 } }, { fromTheFuture: { x: 2 } }).differences).toEqual([
      { key: 'fromTheFuture.x', values: ['1', '2'] },
    ]);
    expect(of({ fromTheFuture: { x: 1 } }, { fromTheFuture: {} }).differences[0]!.values).toEqual(['1', '']);
  });
});
