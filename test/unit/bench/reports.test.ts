import { quickstartFamilies } from '../../../runtime/tasks/suites/desk/index.js';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { additive } from '../../bench/curation/additive.js';
import { MEASURED, MECHANISMS, MILD, OURS, VARIANTS, switches } from '../../bench/curation/mechanisms.js';
import { curationPlan } from '../../bench/curation/plan.js';
import { curationReport, effects, successOf, verdict } from '../../bench/curation/report.js';
import { livePlan } from '../../bench/live/plan.js';
import { liveReport } from '../../bench/live/report.js';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import { policyGraph, policyModel } from '../../../runtime/trainer/native/model/policyGraph.js';
import { blindParts, blindPlan } from '../../bench/blind/plan.js';
import { blindReport, blindTemplates } from '../../bench/blind/report.js';
import { usefulFlops } from '../../bench/trainer/flops.js';
import { POOL_VARIANTS, poolPlan } from '../../bench/pool/plan.js';
import { neverSolved, poolCells, poolReport } from '../../bench/pool/report.js';
import { t975 } from '../../bench/schedule/statistics.js';
import { resultOf } from '../../helpers/bench/results.js';

const wellFormed = (svg: string): void => {
  const open: string[] = [];
  for (const [, close, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (close) expect(open.pop()).toBe(name);
    else if (!self) open.push(name!);
  }
  expect(open).toEqual([]);
  expect(svg).not.toMatch(/NaN|Infinity/);
};

describe('the plan of the curation ablation', () => {
  const plan = curationPlan({
    seeds: [1, 2],
    variants: VARIANTS.map((v) => v.name),
    budget: 400,
    probe: 96,
    quick: false,
  });

  it('has every mechanism alone, all, none and all but each, from one warm start of the same seed', () => {
    expect(VARIANTS).toHaveLength(2 + 2 * (MECHANISMS.length + 2));
    expect(
      MEASURED.filter((m) => m !== MILD).map((m) =>
        VARIANTS.filter((v) => v.name === `only-${m.name}` || v.name === `without-${m.name}`).map((v) => v.on.size),
      ),
    ).toEqual(MEASURED.filter((m) => m !== MILD).map((m) => (m.name === 'ours' ? [5, 4] : [8, 1])));
    expect(['mild', 'only-variance-mild'].map((n) => VARIANTS.find((v) => v.name === n)!.on.size)).toEqual([9, 1]);
    expect(new Set(plan.map((e) => e.name)).size).toBe(2 * (1 + VARIANTS.length));
    for (const e of plan.filter((x) => x.variant !== 'base'))
      expect([e.from, parseRunFile(e.file).seed]).toEqual([`base-s${e.seed}`, e.seed]);
  });
  it('switches in the run file exactly what a variant names, and nothing else differs between variants', () => {
    const off = parseRunFile(switches(VARIANTS.find((v) => v.name === 'none')!));
    expect(
      off.curation.pool.enabled ||
        off.curation.dynamicRollouts.enabled ||
        off.curation.dynamicLength.enabled ||
        off.curation.highEntropy.enabled ||
        off.trainer.tis.enabled,
    ).toBe(false);
    expect([
      off.curation.planner,
      off.curation.pilot,
      off.warmStart.demonstrations,
      off.trainer.reuse.enabled,
      off.trainer.credit,
    ]).toEqual(['shuffle', 0, 0, false, 'trajectory']);
    const on = parseRunFile(switches(VARIANTS.find((v) => v.name === 'all')!));
    expect(
      on.curation.pool.enabled &&
        on.curation.dynamicRollouts.enabled &&
        on.curation.dynamicLength.enabled &&
        on.curation.highEntropy.enabled &&
        on.trainer.tis.enabled,
    ).toBe(true);
    expect([on.curation.planner, on.curation.pilot, on.trainer.reuse.enabled, on.trainer.credit]).toEqual([
      'variance',
      4,
      true,
      'fork',
    ]);
    const only = parseRunFile(switches(VARIANTS.find((v) => v.name === 'only-high-entropy')!));
    expect(only).toEqual({
      ...off,
      curation: { ...off.curation, highEntropy: { ...off.curation.highEntropy, enabled: true } },
    });
  });
  it('refuses a variant that is not there, naming those that are', () => {
    expect(() => curationPlan({ seeds: [1], variants: ['al'], budget: 1, probe: 1, quick: true })).toThrow(
      /unknown; there are all, none/,
    );
  });
});

describe('the effect of a mechanism', () => {
  const at = (variant: string, seed: number, k: number): ReturnType<typeof resultOf> =>
    resultOf(variant, seed, { after: { f: [k, 100] } });

  it('is the mean of paired differences, alone and among the others, with the error over pairs', () => {
    // pool: alone +10, +20; among +30, +20. Two seeds that differ by 50 points, which the pairing takes out.
    const results = [
      at('none', 1, 10),
      at('only-pool', 1, 20),
      at('all', 1, 50),
      at('without-pool', 1, 20),
      at('none', 2, 60),
      at('only-pool', 2, 80),
      at('all', 2, 95),
      at('without-pool', 2, 75),
    ];
    const e = effects(results, successOf).find((x) => x.mechanism.name === 'pool')!;
    expect(e.alone.mean).toBeCloseTo(0.15);
    expect(e.among.mean).toBeCloseTo(0.25);
    expect(e.both).toMatchObject({ n: 4 });
    expect(e.both.mean).toBeCloseTo(0.2);
    expect(e.both.half).toBeCloseTo((3.182 * Math.sqrt(0.02 / 3)) / 2, 3);
    expect(verdict(e)).toMatch(/helps here: \+20\.0 ± 13\.0 points over 4 pairs/);
  });
  it('leaves out pairs of which one run is missing, and says when nothing can be told', () => {
    const e = effects(
      [at('none', 1, 10), at('only-pool', 1, 30), at('only-tis', 1, 5), at('only-tis', 2, 5)],
      successOf,
    );
    const of = (name: string): string => verdict(e.find((x) => x.mechanism.name === name)!);
    expect(of('pool')).toMatch(/one pair of runs, which says nothing yet/);
    expect(of('tis')).toMatch(/one pair/);
    expect(of('variance')).toMatch(/not measured/);
  });
  it('hurts, or cannot be told, by its interval', () => {
    const seeds = (f: (s: number) => [number, number]): ReturnType<typeof resultOf>[] =>
      [1, 2, 3].flatMap((s) => [at('none', s, f(s)[0]), at('only-tis', s, f(s)[1])]);
    const of = (rs: ReturnType<typeof resultOf>[]): string =>
      verdict(effects(rs, successOf).find((x) => x.mechanism.name === 'tis')!);
    expect(of(seeds((s) => [50 + s, 30 + 2 * s]))).toMatch(/hurts here/);
    expect(of(seeds((s) => [50, 50 + (s - 2) * 10]))).toMatch(
      /no effect can be told here.*gain of more than 25 points or a loss of more than 25/,
    );
  });
});

describe('the additive model over all runs', () => {
  const truth: Readonly<Record<string, number>> = { pool: 0.2, tis: -0.1, variance: 0.04 },
    levels: Readonly<Record<number, number>> = { 1: 0.3, 2: 0.6, 3: 0.5 };
  const observed = (
    variants: readonly string[],
    noise: (k: number) => number,
  ): { variant: string; seed: number; value: number }[] =>
    variants.flatMap((name, i) =>
      [1, 2, 3].map((seed) => ({
        variant: name,
        seed,
        value:
          levels[seed]! +
          [...VARIANTS.find((v) => v.name === name)!.on].reduce((x, m) => x + (truth[m] ?? 0), 0) +
          noise(3 * i + seed),
      })),
    );

  it('finds effects that add up, exactly, whatever the seeds start at', () => {
    const m = additive(
      observed(
        VARIANTS.map((v) => v.name),
        () => 0,
      ),
    )!;
    expect(
      Object.fromEntries(
        m.effects.map((e) => [e.mechanisms.map((x) => x.name).join('+'), Math.round(1e6 * e.mean) / 1e6 + 0]),
      ),
    ).toEqual({
      pool: 0.2,
      'dynamic-n': 0,
      'dynamic-length': 0,
      'high-entropy': 0,
      tis: -0.1,
      variance: 0.04,
      decided: 0,
      reuse: 0,
      fork: 0,
      'variance-mild': 0,
    });
    expect([m.runs, m.freedom]).toEqual([72, 59]);
    expect(m.scatter).toBeLessThan(1e-9);
  });
  it('its intervals hold the truth about as often as they say', () => {
    // Normal noise from a fixed generator: 60 experiments of 9 intervals each.
    let seed = 7;
    const uniform = (): number => {
        seed = (seed * 1664525 + 1013904223) % 2 ** 32;
        return (seed + 0.5) / 2 ** 32;
      },
      normal = (): number => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    let held = 0,
      of = 0;
    for (let k = 0; k < 60; k++)
      for (const e of additive(
        observed(
          VARIANTS.map((v) => v.name),
          () => 0.08 * normal(),
        ),
      )!.effects) {
        of++;
        if (Math.abs(e.mean - (truth[e.mechanisms[0]!.name] ?? 0)) <= e.half) held++;
      }
    expect(held / of).toBeGreaterThan(0.92);
    expect(held / of).toBeLessThan(0.98);
  });
  it('takes together what no run had apart, and says nothing of what cannot be told', () => {
    const paper = VARIANTS.filter((v) => !/(^mild|-(variance|variance-mild|decided|reuse|fork))$/.test(v.name)).map(
        (v) => v.name,
      ),
      m = additive(observed(paper, () => 0))!;
    expect(m.effects.map((e) => e.label)).toEqual([
      ...MECHANISMS.filter((x) => !x.ours).map((x) => x.label),
      OURS.label,
    ]);
    expect(m.effects.at(-1)!.mean).toBeCloseTo(0.04);
    expect(additive(observed(['all'], () => 0))).toBeUndefined();
    expect(additive([])).toBeUndefined();
    expect(additive(observed(['all', 'none'], () => 0))!.effects).toHaveLength(1);
    expect(t975(33)).toBeCloseTo(2.0345, 3);
  });
});

describe('the report of the ablation', () => {
  it('can be written at any moment: of nothing, of a part, of all', () => {
    const how = { quick: false, budget: 400, probe: 96 };
    for (const results of [
      [],
      [resultOf('base', 1)],
      VARIANTS.flatMap((v) =>
        [1, 2, 3].map((s) => resultOf(v.name, s, { before: { f: [10, 96] }, after: { f: [40 + s, 96] } })),
      ),
    ]) {
      const w = curationReport(results, ['s1-all: lost'], how);
      wellFormed(w.svg);
      expect(w.markdown).toContain('s1-all: lost');
      expect(w.markdown).not.toMatch(/undefined|Infinity/);
    }
  });
  it('pools episodes over seeds and keeps the spread of repeated evaluations of one policy', () => {
    const w = curationReport(
      [
        resultOf('base', 1, { before: { f: [8, 100] }, after: { f: [12, 100] } }),
        resultOf('all', 1, { after: { f: [40, 100] } }),
        resultOf('none', 1, { after: { f: [20, 100] } }),
      ],
      [],
      { quick: false, budget: 400, probe: 100 },
    );
    expect(w.markdown).toContain(
      'Before: 10.0 % (mean over the 1 starting policy, 10 %; two evaluations of one and the same policy differ by up to 4 points).',
    );
    expect(w.markdown).toMatch(/\| all \| 1 \| 40\.0 \| 40 of 100 \[3[01], (49|50)\] \| \+30\.0 \(one pair\) \|/);
  });
});

describe('tasks never solved', () => {
  const results = [
    resultOf('base', 1),
    resultOf('without', 1, {
      before: { a: [0, 10], b: [0, 10], c: [1, 10] },
      after: { a: [0, 10], b: [0, 10], c: [5, 10] },
    }),
    resultOf('pool', 1, {
      before: { a: [0, 10], b: [1, 10], c: [0, 10] },
      after: { a: [7, 10], b: [9, 10], c: [9, 10] },
    }),
    resultOf('without', 2, { before: { a: [0, 10], b: [0, 10] }, after: { a: [1, 10], b: [0, 10] } }),
    resultOf('pool', 2, { before: { a: [0, 10], b: [0, 10] }, after: { a: [6, 10], b: [5, 10] } }),
  ];
  it('are those without one success in any evaluation of the starting policy, seed by seed', () => {
    expect(neverSolved(results, 1)).toEqual({ families: ['a'], attempts: 20, solved: ['b', 'c'] });
    expect(neverSolved(results, 2)).toEqual({ families: ['a', 'b'], attempts: 40, solved: [] });
  });
  it('are all that success is counted on', () => {
    const cells = poolCells(results);
    expect(cells.map((c) => [c.variant.name, c.successes, c.episodes])).toEqual([
      ['without', 1, 30],
      ['pool', 18, 30],
    ]);
    expect(cells[1]!.success.mean).toBeCloseTo((0.7 + 0.55) / 2);
  });
  it('give the bar its figure, with the runs without the pool beside it', () => {
    const w = poolReport(results, [], { quick: false, budget: 600, probe: 20 });
    expect(w.bars.map((b) => [b.name, b.value, b.holds])).toEqual([
      ['pool_success', 0.6, true],
      ['pool_gain', 0.6 - 1 / 30, true],
    ]);
    expect(w.markdown).toContain('Left out, because the starting policy solved some of it: b (seed 1), c (seed 1).');
    wellFormed(w.svg);
    wellFormed(poolReport([], [], { quick: true, budget: 1, probe: 1 }).svg);
  });
  it('are met with the pool off in one variant and from the same policy in all', () => {
    const plan = poolPlan({
        seeds: [3],
        variants: POOL_VARIANTS.map((v) => v.name),
        budget: 600,
        probe: 60,
        quick: false,
      }),
      [base, ...runs] = plan;
    const taught = parseRunFile(base!.file).tasks.families!;
    for (const e of runs) {
      expect(e.from).toBe('base-s3');
      for (const f of parseRunFile(e.file).tasks.families!) expect(taught).not.toContain(f);
    }
    const without = parseRunFile(runs.find((e) => e.variant === 'without')!.file);
    expect([
      without.curation.pool.enabled,
      without.trainer.replay,
      without.warmStart.demonstrations,
      without.warmStart.steps,
    ]).toEqual([false, 0, 0, 0]);
  });
});

describe('the regimes live', () => {
  it('take turns and differ in barrier and sync alone', () => {
    const plan = livePlan({ regimes: ['a', 'b', 'c', 'd'], turns: 2, minutes: 1.4, seed: 1, quick: false });
    expect(plan[0]!.variant).toBe('base');
    for (const turn of [plan.slice(1, 5), plan.slice(5)])
      expect(turn.map((e) => e.variant).sort()).toEqual(['a', 'b', 'c', 'd']);
    const files = [...plan.slice(1, 5)]
      .sort((x, y) => (x.variant < y.variant ? -1 : 1))
      .concat(plan.slice(5))
      .map((e) => parseRunFile(e.file));
    expect(files.slice(0, 4).map((c) => [c.rollout.regime, c.policy.sync])).toEqual([
      ['batch', 'global'],
      ['task', 'global'],
      ['rollout', 'global'],
      ['rollout', 'replica'],
    ]);
    for (const c of files)
      expect({ ...c, name: '', rollout: { ...c.rollout, regime: '' }, policy: { ...c.policy, sync: '' } }).toEqual({
        ...files[0],
        name: '',
        rollout: { ...files[0]!.rollout, regime: '' },
        policy: { ...files[0]!.policy, sync: '' },
      });
  });
  it('come in another order each turn, so that what drifts hits each alike', () => {
    const plan = livePlan({ regimes: ['a', 'b', 'c', 'd'], turns: 40, minutes: 1, seed: 1, quick: false }),
      turns = Array.from({ length: 40 }, (_, t) => plan.slice(1 + 4 * t, 5 + 4 * t).map((e) => e.variant));
    for (const place of [0, 1, 2, 3])
      for (const r of ['a', 'b', 'c', 'd']) {
        const times = turns.filter((t) => t[place] === r).length;
        expect(times, `${r} at ${place}`).toBeGreaterThan(2);
        expect(times, `${r} at ${place}`).toBeLessThan(20);
      }
    expect(livePlan({ regimes: ['a', 'd'], turns: 3, minutes: 1, seed: 1, quick: false })).toEqual(
      livePlan({ regimes: ['a', 'd'], turns: 3, minutes: 1, seed: 1, quick: false }),
    );
  });
  it('are reported with the bars of regime d and its ratios over a, turn by turn', () => {
    const results = [
      resultOf('base', 1),
      resultOf('a', 1, { throughput: { ratio: 0.5, loose: 0.4, trainedActions: 20, rate: 1 } }),
      resultOf('d', 1, { throughput: { ratio: 0.95, loose: 0.96, trainedActions: 40, rate: 2 } }),
      resultOf('a', 1, { throughput: { ratio: 0.6, loose: 0.5, trainedActions: 10, rate: 1, failed: 2, outMax: 2 } }),
      resultOf('d', 1, { throughput: { ratio: 0.93, loose: 0.9, trainedActions: 40, rate: 2 } }),
    ];
    const w = liveReport(results, [], { quick: false, turns: 2, minutes: 1 });
    expect(Object.fromEntries(w.bars.map((b) => [b.name, [b.value, b.holds]]))).toEqual({
      x_over_bound_live: [0.94, true],
      desktop_utilisation_loose: [0.9299999999999999, false],
      sync_failed_requests_live: [2, false],
      sync_replicas_out_live: [1, true],
      sync_downtime_live: [0, true],
      // 2 and 4: mean 3, half of the interval 12.7.
      trained_actions_ratio_error_live: [expect.closeTo(12.706 / 3, 3), false],
    });
    expect(w.rows.find((r) => r['name'] === 'trained_actions_ratio_live')).toMatchObject({ value: 3 });
    wellFormed(w.svg);
    expect(liveReport([], [], { quick: true, turns: 1, minutes: 1 }).bars).toEqual([]);
  });
});

describe('templates that need no eyes', () => {
  it('are found with the quick start on blank screens, all training templates in parts of its size', () => {
    const plan = blindPlan({ seeds: [1], minutes: 20, parts: Infinity, quick: false }),
      families = blindParts().flat();
    expect(blindPlan({ seeds: [1], minutes: 20, parts: 1, quick: false }).map((e) => e.file.tasks)).toEqual([
      { families: [...quickstartFamilies] },
    ]);
    expect(new Set(families).size).toBe(families.length);
    expect(families.length).toBeGreaterThanOrEqual(51);
    for (const e of plan) {
      const c = parseRunFile(e.file);
      expect(c.policy.blind).toBe(true);
      expect(c.tasks.families!.length).toBeLessThanOrEqual(quickstartFamilies.length);
      expect(c.evaluation.episodes).toBe(20 * c.tasks.families!.length);
      expect([c.budget.minutes, c.warmStart.reading.steps]).toEqual([20, 0]);
    }
  });
  it('are those of which a fifth of the episodes succeed, over all seeds', () => {
    const templates = blindTemplates([
      resultOf('part 1', 1, { after: { 'desk/keys': [20, 20], 'desk/eyes': [0, 20], 'desk/edge': [4, 20] } }),
      resultOf('part 1', 2, { after: { 'desk/keys': [18, 20], 'desk/eyes': [3, 20], 'desk/edge': [4, 20] } }),
    ]);
    expect(templates.map((t) => [t.family, t.successes, t.episodes, t.blind])).toEqual([
      ['desk/keys', 38, 40, true],
      ['desk/edge', 8, 40, true],
      ['desk/eyes', 3, 40, false],
    ]);
    const w = blindReport([], ['lost'], { quick: true, minutes: 1 });
    expect(w.markdown).toContain('lost');
    expect(w.markdown).not.toMatch(/undefined|NaN/);
  });
});

describe('useful operations of the trainer', () => {
  it('are those of the convolutions, not of the zeros of their matrices', () => {
    const m = policyModel(GLYPH_SPEC),
      executed = policyGraph(m).gemmFlops(),
      { stem, cell } = m.size,
      // 5 x 5 from 1 to `stem` channels at 320 x 200, and 3 x 3 from `stem` to `cell` at 80 x 50.
      convolutions = 2 * 25 * stem * 320 * 200 + 2 * 9 * stem * cell * 80 * 50,
      products = 2 * (stem * 16) * 64 * 4000 + 2 * (cell * 4) * (16 * stem) * 1000;
    expect(usefulFlops(m, executed, 'forward')).toBeCloseTo(executed - products + convolutions, 0);
    expect(usefulFlops(m, executed, 'forward')).toBeLessThan(0.95 * executed);
    expect(usefulFlops(m, 3 * executed, 'update')).toBeLessThan(3 * executed);
  });
});
