import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';
import { parseActions } from '../../../runtime/policy/actions/uiTars.js';
import { inOrder, variantsOf } from '../../bench/lib/session.js';
import { figureBars, gpuFigures, type Figures } from '../../bench/vlm/figures.js';
import { clickOn, vlmPlan, WORDS, type Engine } from '../../bench/vlm/plan.js';
import { reached, vlmReport } from '../../bench/vlm/report.js';
import { seedFailuresRemoved } from '../../bench/vlm/tally.js';
import { resultOf } from '../../helpers/bench/results.js';
import type { RunResult } from '../../bench/lib/experiments.js';

const engine = (port: number): Engine => ({ url: `http://127.0.0.1:${port}`, model: `/m${port}`, imageToken: 9 });
const size = { minutes: 6, parts: 2, demonstrating: 0.5, lessons: 100, learning: 2, demonstrations: 48, probe: 100 };
const plan = vlmPlan({ seeds: [1, 2], ...size, seeing: engine(1), blind: true, random: 'http://127.0.0.1:3/v1' });

/** A run of one evaluation, of 100 episodes. */
function run(variant: string, seed: number, label: string, successes: number): RunResult {
  const r = resultOf(variant, seed, { after: { f: [successes, 100] } });
  return { ...r, measure: { ...r.measure, evals: r.measure.evals.slice(-1).map((e) => ({ ...e, label })) } };
}

describe('the plan of the vision-language bench', () => {
  const file = (name: string): ReturnType<typeof parseRunFile> => parseRunFile(plan.find((e) => e.name === name)!.file);

  it('starts RL and further imitation from one policy, with the same demonstrations and no less time', () => {
    const of = (name: string): string | undefined => plan.find((e) => e.name === name)!.from;
    expect([of('s2-rl'), of('s2-imitation-1'), of('s2-imitation-2')]).toEqual(['s2-base', 's2-base', 's2-imitation-1']);
    const parts = ['s1-imitation-1', 's1-imitation-2'].map(file);
    expect(parts.reduce((n, c) => n + c.budget.minutes!, 0)).toBeGreaterThanOrEqual(file('s1-rl').budget.minutes!);
    for (const c of [...parts, file('s1-base'), file('s1-blind')]) {
      expect([c.seed, c.warmStart.demonstrations]).toEqual([1, 48]);
      expect(c.evaluation.episodes).toBe(100);
    }
    expect(file('s1-rl').warmStart).toMatchObject({ demonstrations: 0, steps: 0 });
    // What it imitates are successes of its own: the demonstrations are the other arm's.
    expect(file('s1-rl').curation.pool.enabled).toBe(false);
    expect(file('s1-rl').trainer).toMatchObject({ remote: { rank: 0 } });
  });
  it('trains in varied looks, so that those it is measured on can be met, and RL on more screens than it demonstrates', () => {
    for (const e of plan) expect(parseRunFile(e.file).tasks.looks, e.name).toBe('varied');
    expect(file('s1-rl').tasks.trainSeeds).toBeGreaterThan(1000);
  });
  it('blinds the policy of its own arm alone', () => {
    const blind = plan.flatMap((e) => {
      const { policy } = parseRunFile(e.file);
      return policy.vlm ? [[e.variant, policy.blind]] : [];
    });
    for (const [variant, is] of blind) expect(is).toBe(variant === 'blind');
    expect(blind.filter(([v]) => v === 'blind')).toHaveLength(2);
  });
  it('clicks at random on cells of the whole screen, at places the model has a token for', () => {
    const at = (x: number, y: number): unknown =>
      parseActions(clickOn(x, y), { mode: 'relative1000', screen: { width: 640, height: 400 } }).actions;
    expect(at(0, 0)).toMatchObject([{ type: 'click', at: { x: 8, y: 8 } }]);
    expect(at(1, 1)).toMatchObject([{ type: 'click', at: { x: 632, y: 392 } }]);
    const [, x, y] = /\((\d+),(\d+)\)/.exec(clickOn(0.3, 0.8))!;
    expect(WORDS).toEqual(expect.arrayContaining([x, y]));
    for (const w of WORDS) expect(w).not.toContain(',');
  });
});

describe('the report of the vision-language bench', () => {
  it('says of a recording how that was made, not how it is made today', () => {
    const page = (base: RunFile): string =>
      vlmReport([{ ...run('base', 1, 'warm start', 50), file: base }], [], { quick: false, ...size }).markdown;
    const earlier = page({ warmStart: { demonstrations: 47 } }),
      varied = page({ tasks: { looks: 'varied' }, warmStart: { demonstrations: 193 } });
    expect(earlier).toContain('imitates 47 scripted demonstrations');
    expect(earlier).toContain('All training tasks have one look');
    expect(varied).toContain('imitates 193 scripted demonstrations');
    expect(varied).toContain('colours and letters of their own');
    const replayed = { ...run('rl', 1, 'final', 50), file: { trainer: { replay: 63 } } };
    expect(vlmReport([replayed], [], { quick: false, ...size }).markdown).toContain('63 of its own latest successes');
    expect(earlier).not.toContain('of its own latest successes');
  });

  const results = [
    run('base', 1, 'warm start', 50),
    run('imitation', 1, 'final', 70),
    run('imitation', 1, 'final', 60),
    run('rl', 1, 'final', 85),
    run('base', 2, 'warm start', 60),
    run('imitation', 2, 'final', 40),
    run('rl', 2, 'final', 50),
  ];
  it('holds RL against the best checkpoint that imitation had, the one both started from included', () => {
    expect(reached(results, 1, 'longer')).toMatchObject({ successes: 70 });
    expect(reached(results, 2, 'longer')).toMatchObject({ successes: 60 });
    const w = vlmReport(results, ['s3-rl: it broke'], { quick: false, ...size }),
      near = w.rows.filter((r) => r['section'] === 'seed').map((r) => r['failures_removed_by_rl_near'] as number);
    // Half of 30 failures are gone with seed 1; seed 2 has ten more than the 40 there were.
    expect(near[0]).toBeCloseTo(0.5);
    expect(near[1]).toBeCloseTo(-0.25);
    // The headline is of places and looks that never occurred, which nobody measured here.
    expect(w.bars).toEqual([]);
    expect(w.markdown).toContain('s3-rl: it broke');
    expect(w.rows.filter((r) => r['section'] === 'policy').map((r) => r['policy'])).toEqual([
      'imitation',
      'longer',
      'rl',
    ]);
  });
  it('has unseen words and other looks of the policies that measured them', () => {
    const of = (successes: number): { episodes: number; successes: number } => ({ episodes: 100, successes }),
      measured = [
        { ...run('rl', 1, 'final', 85), splits: { words: of(80), looks: of(10) } },
        { ...run('rl', 2, 'final', 85), splits: { words: of(60), looks: of(20) } },
        { ...run('imitation', 1, 'final', 85), splits: { words: of(40), looks: of(0) } },
      ],
      w = vlmReport(measured, [], { quick: false, ...size });
    expect(w.rows.filter((r) => r['section'] === 'split')).toMatchObject([
      { split: 'words', policy: 'longer', seeds: 1, successes: 40, episodes: 100 },
      { split: 'words', policy: 'rl', seeds: 2, successes: 140, episodes: 200, meanOverSeeds: 0.7 },
      { split: 'looks', policy: 'longer', successes: 0 },
      { split: 'looks', policy: 'rl', successes: 30 },
    ]);
    // 80 and 60 %: Student's half of two seeds is 127 points, and one pile of episodes would have said [63, 76].
    expect(w.markdown).toContain('140 of 200: 70 % [0, 100] | 70 % ± 127 |');
    expect(w.rows.find((r) => r['policy'] === 'rl' && r['split'] === 'words')).toMatchObject({ low: 0, high: 1 });
    expect(w.markdown).toContain('[ ] are 95 % intervals over seeds');
    // Held against RL at its end alone it is no best of several, and says so.
    expect(w.markdown).toContain('| unseen words | imitation alone, at its end |');
    const start = { ...run('base', 1, 'warm start', 50), splits: { words: of(50) } },
      best = vlmReport([start, ...measured], [], { quick: false, ...size }).markdown;
    expect(best).toMatch(/\| unseen words \| imitation alone \| 1 \| 50 of 100/);
  });
  it('counts the failures that RL removes where places and looks never occurred by themselves', () => {
    const of = (successes: number): { episodes: number; successes: number } => ({ episodes: 100, successes }),
      recorded = [
        run('base', 1, 'warm start', 50),
        { ...run('imitation', 1, 'final', 60), splits: { looks: of(0) } },
        { ...run('rl', 1, 'final', 85), splits: { looks: of(10) } },
      ],
      bars = (results: readonly RunResult[]) =>
        new Map(vlmReport(results, [], { quick: false, ...size }).bars.map((b) => [b.name, b]));
    const unseen = bars(recorded).get('failures_removed_by_rl')!;
    expect(unseen).toMatchObject({ goal: '>= 0.4', holds: false });
    expect(unseen.value).toBeCloseTo(0.1);
    // A seed that failed leaves no mean of the others behind.
    expect(bars([...recorded, run('base', 2, 'warm start', 50)]).has('failures_removed_by_rl')).toBe(false);
    expect(unseen.unit).toContain('never occurred in training');
    const page = (results: readonly RunResult[]): string => vlmReport(results, [], { quick: false, ...size }).markdown;
    expect(page(recorded)).toContain('places and looks never seen (untrained, after imitation, blind)');
    expect(page(recorded)).toContain('places never seen, known looks (every policy)');
    // A policy before further imitation that is better there is what imitation alone comes to.
    const base = { ...recorded[0]!, splits: { looks: of(5), 'looks-untrained': of(0) } },
      whole = [base, ...recorded.slice(1), { ...run('blind', 1, 'final', 5), splits: { looks: of(1) } }];
    expect(bars(whole).get('failures_removed_by_rl')!.value).toBeCloseTo(1 - 90 / 95);
    // So is an earlier part of it, wherever it stands.
    const earlier = { ...run('imitation', 1, 'final', 60), splits: { looks: of(55) } };
    for (const all of [
      [earlier, ...whole],
      [...whole, earlier],
    ])
      expect(bars(all).get('failures_removed_by_rl')!.value).toBeCloseTo(1 - 90 / 45);
    expect(page(whole)).not.toContain('places and looks never seen (');
    expect(
      vlmReport(whole, [], { quick: false, ...size })
        .rows.filter((r) => r['section'] === 'split')
        .map((r) => [r['policy'], r['successes']]),
    ).toEqual([
      ['untrained', 0],
      ['imitation', 5],
      ['longer', 5],
      ['rl', 10],
      ['blind', 1],
    ]);
  });
  it('has every policy on new places and looks, together and each alone, by plan', () => {
    const splits = new Map(plan.map((e) => [e.name, e.splits]));
    for (const s of [1, 2]) {
      for (const arm of ['rl', 'imitation-2'])
        expect(splits.get(`s${s}-${arm}`)).toEqual(['words', 'looks', 'places', 'styles']);
      expect(splits.get(`s${s}-blind`)).toEqual(['looks', 'places', 'styles']);
      const unseen = ['looks', 'places', 'styles'];
      expect(splits.get(`s${s}-base`)).toEqual(['words', ...unseen, ...unseen.map((x) => `${x}-untrained`)]);
      expect(splits.get(`s${s}-imitation-1`)).toEqual(['words', 'looks']);
    }
    expect(new Set(plan.flatMap((e) => (e.splits ? [e.episodes] : [])))).toEqual(new Set([100]));
  });
  it('has no figure where an arm is missing, or where imitation left no failure', () => {
    expect(
      vlmReport([run('base', 1, 'warm start', 50), run('rl', 1, 'final', 90)], [], { quick: true, ...size }).bars,
    ).toEqual([]);
    expect(seedFailuresRemoved({ successes: 4, episodes: 4 }, { successes: 4, episodes: 4 })).toBeUndefined();
    expect(vlmReport([], [], { quick: true, ...size }).svg).not.toMatch(/NaN/);
  });
});

describe('one arm of the bench by itself', () => {
  const of = (name: string): RunResult => ({ ...run('rl', 1, 'final', 50), name }),
    list = (value: string | undefined) => ({ list: () => value?.split(',') });
  it('stands where the plan has it, and what another plan recorded stays behind it', () => {
    const done = new Map(['s1-rl', 's9-rl', 's1-blind'].map((n) => [n, of(n)])),
      names = (others: boolean): string[] => inOrder(plan, done, others).map((r) => r.name);
    expect(names(false)).toEqual(['s1-rl', 's1-blind']);
    expect(names(true)).toEqual(['s1-rl', 's1-blind', 's9-rl']);
  });
  it('is refused where the plan has no arm of that name', () => {
    expect(variantsOf(list('blind'), plan)).toEqual(['blind']);
    expect(variantsOf(list(undefined), plan)).toBeUndefined();
    expect(() => variantsOf(list('blnd'), plan)).toThrow('there is no blnd');
  });
});

describe('figures beside the learning', () => {
  const engine = { gradient_relative_error: 1e-7, logprob_max_difference: 1e-6, failed_calls_during_publish: 0 },
    vllm = {
      logprob_max_difference: 5.1e-5,
      failed_calls_during_publish: 0,
      logprobs: { tokens: 31_550 },
      publishing: { calls_during_publish: 1538 },
    },
    probe = { planted: 26, caught: 26, missed: [], falseRefusals: 0, faultless: 3 },
    bars = (f: Figures) => new Map(figureBars(f).map((b) => [b.name, b]));
  it('are of a real vLLM where the name promises one, and say so; those of our engine have names of their own', () => {
    const both = bars({ engine, vllm });
    expect(both.get('logprob_max_difference')).toMatchObject({
      value: 5.1e-5,
      holds: false,
      unit: expect.stringContaining('a real vLLM') as string,
    });
    expect(both.get('logprob_max_difference_own')).toMatchObject({ value: 1e-6, holds: true });
    expect(bars({ engine }).has('logprob_max_difference')).toBe(false);
  });
  it('count what the probe refused of every exact server that was asked', () => {
    const asked = (dtype: string, ok: boolean) => ({ dtype, layers: 2, rank: 8, ok, failed: [], seconds: 1 }),
      probes = { probes: [asked('float32', true), asked('bfloat16', false)], probe_false_refusals: 1 },
      refusals = (f: Figures) => bars({ probe, ...f }).get('probe_false_refusals');
    expect(refusals({ probes, tuft: { probe_false_refusals: 2 } })).toMatchObject({ value: 2, holds: false });
    expect(refusals({ tuft: { probe_false_refusals: null } })).toMatchObject({
      value: 0,
      unit: 'of 3 reference servers, our engine not asked, TuFT not asked',
    });
  });
  it('count what it refused of our own engine on a GPU, until it is recorded to pass there', () => {
    const gpu = { shape: 'Qwen2.5-VL-3B', commit: 'b7944ad7', dtype: 'bfloat16', device: 'NVIDIA H200', ok: false },
      refusals = (f: Figures) => bars({ probe, ...f }).get('probe_false_refusals')!,
      named = 'our engine (Qwen2.5-VL-3B, bfloat16, NVIDIA H200';
    expect(refusals({ gpu })).toMatchObject({ value: 1, holds: false });
    expect(refusals({ gpu }).unit).toContain(`${named}: refused at b7944ad7`);
    expect(refusals({ gpu: { ...gpu, ok: true } })).toMatchObject({ value: 0, holds: true });
    expect(refusals({ gpu: { ...gpu, ok: true } }).unit).toContain(`${named})`);
    // As it is recorded.
    const { probe: there } = JSON.parse(readFileSync('test/engine/results/gpu.json', 'utf8')) as {
      probe: { ok: boolean };
    };
    expect(gpuFigures()!.ok).toBe(there.ok);
    expect(gpuFigures()!.device).toContain('NVIDIA');
  });
});
