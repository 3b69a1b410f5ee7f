import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { QUICKSTART_FAMILIES, parseRunFile } from '../../../runtime/config/index.js';
import { livePlan } from '../../bench/live/plan.js';
import { liveReport } from '../../bench/live/report.js';
import { GLYPH_SPEC, READER_SPEC } from '../../../runtime/domain/index.js';
import { policyGraph, policyModel, towerGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import { blindParts, blindPlan } from '../../bench/blind/plan.js';
import { blindReport, blindTemplates } from '../../bench/blind/report.js';
import { executedFlops, usefulFlops } from '../../bench/trainer/flops.js';
import { POOL_VARIANTS, poolPlan } from '../../bench/pool/plan.js';
import { neverSolved, poolCells, poolReport } from '../../bench/pool/report.js';
import { resultOf } from '../../helpers/bench/results.js';
import { visibleAfter } from '../../bench/cockpit/visible.js';
import { madeOf } from '../../bench/lib/report.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';

const range = (n: number): number[] => [...Array(n).keys()];
const wellFormed = (svg: string): void => {
  const open: string[] = [];
  for (const [, close, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (close) expect(open.pop()).toBe(name);
    else if (!self) open.push(name!);
  }
  expect(open).toEqual([]);
  expect(svg).not.toMatch(/NaN|Infinity/);
};

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
    expect(neverSolved(results, 1)).toEqual({ families: ['a'], attempts: 10, solved: ['b', 'c'] });
    expect(neverSolved(results, 2)).toEqual({ families: ['a', 'b'], attempts: 20, solved: [] });
  });
  it('are all that success is counted on', () => {
    const cells = poolCells(results);
    expect(cells.map((c) => [c.row.name, c.successes, c.episodes])).toEqual([
      ['without', 1, 30],
      ['pool', 18, 30],
    ]);
    expect(cells[1]!.success.mean).toBeCloseTo((0.7 + 0.55) / 2);
  });
  it('give the bar its figure, with the runs without the pool beside it', () => {
    // Two seeds tell nothing of a third.
    expect(poolReport(results, [], { quick: false, budget: 600, probe: 20 }).bars[2]!.holds).toBe(false);
    const before: Record<string, [number, number]> = { a: [0, 10], b: [0, 10] },
      third = [
        resultOf('without', 3, { before, after: { a: [0, 10], b: [1, 10] } }),
        resultOf('pool', 3, { before, after: { a: [6, 10], b: [7, 10] } }),
      ];
    const w = poolReport([...results, ...third], [], { quick: false, budget: 600, probe: 20 });
    // Of seeds: 0.7, 0.55 and 0.65 with the pool, 0, 0.05 and 0.05 without.
    expect(w.bars.map((b) => [b.name, b.goal, b.holds])).toEqual([
      ['pool_success', '> 0', true],
      ['pool_gain', '> 0', true],
      ['pool_gain_low', '> 0', true],
    ]);
    expect(w.bars[1]!.value).toBeCloseTo(0.6, 9);
    expect(w.bars[2]!.value).toBeLessThan(0.5);
    expect(w.bars[2]!.value).toBeGreaterThan(0.2);
    expect(w.markdown).toContain('Left out, because the starting policy solved some of it: b (seed 1), c (seed 1).');
    wellFormed(w.svg);
    wellFormed(poolReport([], [], { quick: true, budget: 1, probe: 1 }).svg);
  });
  it('miss their goals where the pool gains nothing, or nothing that can be told', () => {
    const none = poolReport(
        [
          resultOf('without', 1, { before: { a: [0, 10] }, after: { a: [0, 10] } }),
          resultOf('pool', 1, { before: { a: [0, 10] }, after: { a: [0, 10] } }),
        ],
        [],
        { quick: false, budget: 1, probe: 1 },
      ),
      little = poolReport(
        [
          resultOf('without', 1, { before: { a: [0, 10] }, after: { a: [1, 10] } }),
          resultOf('pool', 1, { before: { a: [0, 10] }, after: { a: [2, 10] } }),
        ],
        [],
        { quick: false, budget: 1, probe: 1 },
      );
    expect(none.bars.map((b) => b.holds)).toEqual([false, false, false]);
    expect(little.bars.map((b) => b.holds)).toEqual([true, true, false]);
    expect([none.markdown, none.svg].join()).not.toMatch(/46|paper/);
  });
  it('have the imitation of the same demonstrations beside them, before any reinforcement learning', () => {
    const before: Record<string, [number, number]> = { a: [0, 10], b: [0, 10] },
      /** After reinforcement learning; what imitation alone came to is `warm`. */
      seed = (n: number, warm: number, pool: number, both: number) => {
        const r = resultOf('imitation', n, { before, after: { a: [both, 10], b: [both, 10] } }),
          alone = resultOf('imitation', n, { after: { a: [warm, 10], b: [warm, 10] } }).measure.evals[0]!,
          evals = [...r.measure.evals, { ...alone, label: 'warm start' }];
        return [
          resultOf('pool', n, { before, after: { a: [pool, 10], b: [pool, 10] } }),
          { ...r, measure: { ...r.measure, evals } },
        ];
      },
      of = (both: number) =>
        poolReport([seed(1, 6, 2, both), seed(2, 7, 2, both), seed(3, 6, 3, both)].flat(), [], {
          quick: false,
          budget: 600,
          probe: 20,
        }),
      w = of(7),
      rows = w.rows.filter((r) => r['section'] === 'variant');
    expect(rows.map((r) => [r['variant'], r['successes'], r['injected']])).toEqual([
      ['pool', 14, 9],
      ['imitation-alone', 38, undefined],
      ['imitation', 42, 9],
    ]);
    // A row of numbers, not a run of its own.
    expect(w.rows.filter((r) => r['section'] === 'run')).toHaveLength(6);
    expect(w.markdown).toMatch(
      /\| imitation warm start alone \| 1 2 3 \| 38 of 60: 63 % \[\d+, \d+\] \|.*\|  \|  \|  \|  \|/,
    );
    expect(w.markdown).toMatch(
      /is 40 points \[\d+, \d+\] above the pool without it; the pool after it adds 7 points \[-\d+, \d+\], which cannot be told from none\./,
    );
    expect(of(10).markdown).toMatch(/adds 37 points \[\d+, \d+\]\.$/m);
    expect(w.markdown).toContain('it solved 0 of 20 tasks per seed');
    expect(poolReport(results, [], { quick: false, budget: 600, probe: 20 }).markdown).not.toContain('alone, without');
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
    const [sighted, blind] = ['pool', 'blind'].map((v) => parseRunFile(runs.find((e) => e.variant === v)!.file));
    expect(blind).toEqual({ ...sighted, name: 'pool-blind', policy: { ...sighted!.policy, blind: true } });
  });

  it('are of templates that need to see, by the recorded list', async () => {
    interface Row {
      readonly section: string;
      readonly family: string;
      readonly blind: boolean;
    }
    const { rows } = JSON.parse(await readFile('test/bench/results/blind/blind.json', 'utf8')) as {
        readonly rows: readonly Row[];
      },
      sighted = rows.filter((r) => r.section === 'template' && !r.blind).map((r) => r.family),
      [, run] = poolPlan({ seeds: [1], variants: ['pool'], budget: 600, probe: 60, quick: false });
    for (const f of parseRunFile(run!.file).tasks.families!) expect(sighted).toContain(`desk/${f}`);
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
    // However few turns are made, both orders come as often as the other.
    for (const seed of [1, 2, 3]) {
      const orders = livePlan({ regimes: ['a', 'd'], turns: 8, minutes: 1, seed, quick: false })
        .slice(1)
        .map((e) => e.variant);
      for (const turns of [2, 4, 8]) expect(range(turns).filter((t) => orders[2 * t] === 'a')).toHaveLength(turns / 2);
    }
    expect(livePlan({ regimes: ['a', 'd'], turns: 3, minutes: 1, seed: 1, quick: false })).toEqual(
      livePlan({ regimes: ['a', 'd'], turns: 3, minutes: 1, seed: 1, quick: false }),
    );
  });
  it('are reported with the bars of regime d and its ratios over a, turn by turn', () => {
    const results = [
      resultOf('base', 1),
      resultOf('a', 1, { throughput: { ratio: 0.5, loose: 0.4, trainedActions: 20, rate: 1 } }),
      resultOf('d', 1, { throughput: { ratio: 0.95, loose: 0.96, strict: 0.45, trainedActions: 40, rate: 2 } }),
      resultOf('a', 1, { throughput: { ratio: 0.6, loose: 0.5, trainedActions: 10, rate: 1, failed: 2, outMax: 2 } }),
      resultOf('d', 1, { throughput: { ratio: 0.93, loose: 0.9, strict: 0.45, trainedActions: 40, rate: 2 } }),
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
    expect(w.rows.find((r) => r['name'] === 'desktop_strict_ratio_live')).toMatchObject({ value: 0.5 });
    wellFormed(w.svg);
    expect(liveReport([], [], { quick: true, turns: 1, minutes: 1 }).bars).toEqual([]);
  });
  it('have no bar and no name of sync where replicas never leave service', () => {
    const of = (variant: string) => resultOf(variant, 1, { throughput: { outMax: 0 } }),
      w = liveReport([of('a'), of('d')], [], { quick: false, turns: 1, minutes: 1, vlm: true });
    expect(w.bars.map((b) => b.name)).toEqual([
      'x_over_bound_live',
      'desktop_utilisation_loose',
      'sync_failed_requests_live',
    ]);
    expect(w.markdown).toContain('| d: rollout-wise |');
    expect(w.svg).not.toContain('per-worker sync');
  });
  it('say what was possible at their latencies: X* in rollouts, and in the trained actions that these had', () => {
    const of = (variant: string, rate: number, bound: number, trainedActions: number) =>
        resultOf(variant, 1, { throughput: { rate, bound, ratio: rate / bound, trainedActions } }),
      // 2 rollouts a second of 4 possible, 60 trained actions a minute: half an action a rollout.
      results = [of('a', 1, 4, 30), of('a', 1, 4, 30), of('d', 2, 4, 60), of('d', 2, 2, 60)],
      w = liveReport(results, [], { quick: false, turns: 2, minutes: 1 }),
      rows = w.markdown.split('\n').filter((l) => l.startsWith('|')),
      head = rows.find((l) => l.includes('possible: X*'))!.split(' | '),
      cell = (regime: string, column: string): string | undefined =>
        rows.find((l) => l.startsWith(`| ${regime}: `))!.split(' | ')[head.indexOf(column)];
    expect([cell('a', 'possible: X*'), cell('a', 'possible trained actions/min')]).toEqual(['14400 ± 0', '120 ± 0']);
    // Turns of 14,400 and 7,200 rollouts an hour, 120 and 60 actions a minute.
    expect(cell('d', 'possible: X*')).toMatch(/^10800 ± 45\d{3}$/);
    expect(cell('d', 'possible trained actions/min')).toMatch(/^90 ± 38\d$/);
    expect(w.bars[0]!.unit).toContain('10800 rollouts/h and, with the trained actions that a rollout had, 90 trained');
    expect(w.rows.filter((r) => r['regime'] === 'd').map((r) => r['possibleTrainedActionsPerMinute'])).toEqual([
      120, 60,
    ]);
    expect(w.markdown).toContain('X* / 60 x (trained actions / rollouts ended)');
    // The number and the order of turns are those of the runs, not of today's plan.
    const turn = (n: number, variant: string, at: number) => ({
        ...of(variant, 1, 2, 3),
        name: `turn${n}-${variant}`,
        startedAt: new Date(at).toISOString(),
      }),
      about = (planned: string, ran = planned): string =>
        liveReport(
          planned.split(' ').map((o) => turn(Number(o[0]), o[1]!, ran.split(' ').indexOf(o))),
          [],
          { quick: false, turns: 16, minutes: 1 },
        ).markdown,
      same = about('1a 1d 2d 2a', '1a 1d 2a 2d');
    expect(same).toContain('2 turns of the regimes, in the order a d each');
    expect(same.match(/^\| turn\S+/gm)).toEqual(['| turn1-a', '| turn1-d', '| turn2-a', '| turn2-d']);
    // Where turns are described, and under the ratios.
    expect(same.match(/Regime d came after a in each of the 2 recorded turns/g)).toHaveLength(2);
    expect(about('1a 1d 2d 2a')).toContain('2 turns of the regimes, in random order each');
    expect(about('1a 1d 2d 2a')).not.toContain('came after');
    const idle = liveReport([resultOf('d', 1, { throughput: { rate: 0 } })], [], { quick: true, turns: 1, minutes: 1 });
    expect(idle.svg).not.toMatch(/NaN/);
  });
});

describe('templates that need no eyes', () => {
  it('are found with the quick start on blank screens, all training templates in parts of its size', () => {
    const plan = blindPlan({ seeds: [1], minutes: 20, parts: Infinity, quick: false }),
      families = blindParts().flat();
    expect(blindPlan({ seeds: [1], minutes: 20, parts: 1, quick: false }).map((e) => e.file.tasks)).toEqual([
      { families: [...QUICKSTART_FAMILIES] },
    ]);
    expect(new Set(families).size).toBe(families.length);
    expect(families.length).toBeGreaterThanOrEqual(51);
    for (const e of plan) {
      const c = parseRunFile(e.file);
      expect(c.policy.blind).toBe(true);
      expect(c.tasks.families!.length).toBeLessThanOrEqual(QUICKSTART_FAMILIES.length);
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
    // One seed, all failures: 0 of 20 is not certain, and 1 of 20 cannot be told from a fifth.
    const one = resultOf('part 1', 1, { after: { 'desk/none': [0, 20], 'desk/few': [1, 20] } }),
      [few, none] = blindTemplates([one]);
    expect([none!.low, none!.high]).toEqual([0, expect.closeTo(0.161, 3)]);
    expect([few!.low, few!.high]).toEqual([expect.closeTo(0.009, 3), expect.closeTo(0.236, 3)]);
    expect(blindReport([one], [], { quick: false, minutes: 20 }).markdown).toContain(
      'Of the 2 that need to see, 1 cannot be told from 20 %: `few`.',
    );
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
  it('of the policy that reads count one look at the screen besides, without the zeros of its stem', () => {
    const m = policyModel(READER_SPEC),
      look = towerGraph(m).gemmFlops(),
      executed = executedFlops(m, baseTrainerOptions),
      // 3 x 3 from 1 to 12 channels at 320 x 200, pooled over 4 x 2.
      convolution = 2 * 9 * 12 * 320 * 200,
      product = 2 * (12 * 8) * 32 * (80 * 100);
    expect(executed.forward).toBe(look + policyGraph(m).gemmFlops());
    expect(executed.update).toBeGreaterThan(look + 2 * policyGraph(m).gemmFlops());
    for (const pass of ['forward', 'update'] as const)
      expect(usefulFlops(m, executed[pass], pass)).toBeCloseTo(executed[pass] - product + convolution, 0);
  });
});

describe('a report of runs that were made before', () => {
  it('has their commits, machine and time, not its own', () => {
    const run = (commit: string, startedAt: string) => ({ commit, startedAt, machine: { cpu: 'old' } }),
      of = madeOf([run('a1', '2026-01-02T00:00:00.000Z'), run('b2', '2026-01-01T00:00:00.000Z')]);
    expect(of).toEqual({ commit: 'a1 b2', at: '2026-01-02T00:00:00.000Z', machine: { cpu: 'old' } });
    expect(Date.now() - Date.parse(madeOf([]).at)).toBeLessThan(60_000);
  });
});

describe('steps that a page shows', () => {
  const at = new Map([
      ['r1/0', 1000],
      ['r1/1', 2000],
      ['r1/2', 3000],
      ['r1/3', 9500],
      ['r10/0', 2000],
    ]),
    shown = { since: 1500, until: 10_000 };
  it('count from when they happened, and for ever where the page stops; not those before, nor the last ones', () => {
    expect(visibleAfter('r1', { ...shown, at: { '0': 1600, '1': 2100 } }, at)).toEqual([100, Infinity]);
    expect(visibleAfter('r1', { ...shown, at: { '1': 2100, '2': 3300, '3': 9700 } }, at)).toEqual([100, 300, 200]);
  });
});
