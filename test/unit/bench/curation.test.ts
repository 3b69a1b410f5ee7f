import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PRESETS, parseRunFile } from '../../../runtime/config/index.js';
import { random } from '../../../runtime/domain/index.js';
import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';
import { additive, halfWidths, type Observed } from '../../bench/curation/additive.js';
import { BLOCK_RUNS, HADAMARD, areWhole, blockOf, levelsOf } from '../../bench/curation/design.js';
import {
  MECHANISMS,
  NOTHING,
  canAct,
  isNested,
  onByDefault,
  sorted,
  switches,
  type Levels,
  type Mechanism,
} from '../../bench/curation/mechanisms.js';
import { movingTemplates, onTemplates } from '../../bench/curation/moving.js';
import {
  columnsOf,
  curationPlan,
  expectedScatter,
  minutesOf,
  planId,
  resolution,
  seedsThatResolve,
  type CurationPlan,
} from '../../bench/curation/plan.js';
import { claimWork, mixture, readRecord, type Recorded } from '../../bench/curation/record.js';
import { curationReport } from '../../bench/curation/report.js';
import { makeRuns, type Session } from '../../bench/curation/session.js';
import { EFFECT_COLUMNS, effectBar, judged } from '../../bench/curation/verdict.js';
import { Interrupted, type Experiment, type RunResult } from '../../bench/lib/experiments.js';
import { t975 } from '../../bench/schedule/statistics.js';
import { resultOf } from '../../helpers/bench/results.js';
import { withDir } from '../../helpers/data/manager.js';

const { known } = sorted(),
  plan: CurationPlan = { seeds: [1, 2, 3, 4], mechanisms: known, minutes: 3, words: 160, heldout: 60, quick: false },
  columns = columnsOf(plan),
  range = (n: number): number[] => [...Array(n).keys()],
  sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0);

describe('the screening design', () => {
  const blocks = [1, 2, 3, 4].map((seed) => blockOf(seed, 22)),
    design = blocks.flat();

  it('is a Hadamard matrix without its first column', () => {
    expect(HADAMARD.map((r) => r.length)).toEqual(Array(24).fill(23));
    for (const a of range(23)) {
      expect(sum(HADAMARD.map((r) => r[a]!))).toBe(0);
      for (const b of range(a)) expect(sum(HADAMARD.map((r) => r[a]! * r[b]!))).toBe(0);
    }
  });
  it('has every column on in six of the twelve runs of each seed', () => {
    expect(blocks.map((b) => b.length)).toEqual([BLOCK_RUNS, BLOCK_RUNS, BLOCK_RUNS, BLOCK_RUNS]);
    for (const b of blocks) for (const k of range(22)) expect(sum(b.map((r) => r[k]!))).toBe(0);
  });
  it('has every two columns orthogonal, already over two seeds that follow each other', () => {
    for (const runs of [design, [...blocks[0]!, ...blocks[1]!], [...blocks[2]!, ...blocks[3]!]])
      for (const a of range(22)) for (const b of range(a)) expect(sum(runs.map((r) => r[a]! * r[b]!))).toBe(0);
  });
  it('has over four seeds no column that two others acting together could pass for', () => {
    for (const a of range(22))
      for (const b of range(a)) {
        const together = design.map((r) => r[a]! * r[b]!);
        for (const c of range(22)) expect(sum(design.map((r, k) => r[c]! * together[k]!))).toBe(0);
      }
  });
  it('begins again after four seeds, and refuses what it has no room for', () => {
    expect(blockOf(5, 22)).toEqual(blocks[0]);
    expect(blockOf(3, 22)).toEqual(blocks[0]!.map((r) => r.map((x) => -x)));
    expect([[1, 2, 3, 4], [3, 4, 5, 6], [1, 2], [1, 2, 5, 6], []].map(areWhole)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(() => blockOf(1, 23)).toThrow(/22 columns/);
    expect(() => blockOf(0, 3)).toThrow(/from 1 on/);
  });
});

describe('mechanisms', () => {
  it('are switched in the run file, and what acts only beside another is off without it', () => {
    const of = (...names: string[]): ReturnType<typeof parseRunFile> =>
      parseRunFile(switches(known, Object.fromEntries(names.map((n) => [n, true]))));
    const none = of();
    expect([none.curation.pool.enabled, none.trainer.replay, none.curation.planner, none.trainer.credit]).toEqual([
      false,
      0,
      'shuffle',
      'trajectory',
    ]);
    expect(of('strong').curation.uncertainty).toBe(none.curation.uncertainty);
    expect(of('strong', 'variance').curation.uncertainty).toBe(2);
    expect(of('progress').trainer.credit).toBe('progress');
    expect(of('progress', 'fork').trainer.credit).toBe('fork');
    expect(of('hindsight', 'pool').curation.hindsight.enabled).toBe(false);
    expect(of('hindsight', 'pool', 'replay').curation.hindsight.enabled).toBe(true);
    expect(of('high-entropy')).toEqual({
      ...none,
      curation: { ...none.curation, highEntropy: { ...none.curation.highEntropy, enabled: true } },
    });
  });
  it('that a run file does not have are left out with what is said of them, and with them what acts beside them', () => {
    const made = [
      { name: 'old', label: 'old', on: { curation: { pilot: 4 } }, off: { curation: { pilot: 0 } } },
      { name: 'new', label: 'new', on: { curation: { foresight: true } }, off: {} },
      { name: 'beside', label: 'beside', within: ['old', 'new'], on: { curation: { pilot: 4 } }, off: {} },
    ];
    const { known: had, leftOut } = sorted(made);
    expect(had.map((m) => m.name)).toEqual(['old']);
    expect(leftOut.map((x) => x.mechanism.name)).toEqual(['new', 'beside']);
    expect(leftOut[0]!.why).toMatch(/unknown key "foresight"/);
    expect(leftOut[1]!.why).toMatch(/beside "new"/);
  });
  it('are all known to this version', () => {
    expect(sorted().leftOut).toEqual([]);
  });
  it('say whether a run file that says nothing has them', () => {
    const byDefault = (name: string): boolean => onByDefault(MECHANISMS.find((m) => m.name === name)!);
    expect([
      byDefault('pool'),
      byDefault('replay'),
      byDefault('fork'),
      byDefault('progress'),
      byDefault('variance'),
    ]).toEqual([true, false, false, false, false]);
    expect(onByDefault(NOTHING)).toBe(false);
    // A preset may have what a plain run file has not.
    const preset = { ...PRESETS.quickstart, curation: { planner: 'variance' as const } },
      quick = (name: string): boolean =>
        onByDefault(
          MECHANISMS.find((m) => m.name === name)!,
          preset,
        );
    expect(['pool', 'replay', 'fork', 'variance', 'strong'].map(quick)).toEqual([true, false, false, true, false]);
  });
});

/** Of a fixed sequence. */
const noise = (seed: string): (() => number) => {
  const r = random(seed);
  return () => r.normal();
};
const truth: Readonly<Record<string, number>> = { pool: 0.12, tis: -0.06, replay: 0.2, strong: 0.05, variance: -0.04 };
const signOf = (m: Mechanism, levels: Levels): number => (canAct(m, levels) ? (levels[m.name] ? 0.5 : -0.5) : 0);
const simulated = (
  seeds: readonly number[],
  o: { scatter?: number; between?: number; together?: number; draw?: () => number } = {},
): Observed[] =>
  seeds.flatMap((seed) => {
    const draw = o.draw ?? (() => 0),
      own = new Map(columns.map((m) => [m.name, (truth[m.name] ?? 0) + (o.between ?? 0) * draw()]));
    return levelsOf(seed, columns).map((levels) => ({
      block: String(seed),
      levels,
      value:
        0.3 +
        0.1 * seed +
        sum(columns.map((m) => signOf(m, levels) * own.get(m.name)!)) +
        // Two mechanisms that only help together, and two that hinder each other.
        (o.together ?? 0) * ((levels['pool'] && levels['fork'] ? 1 : 0) - (levels['tis'] && levels['reuse'] ? 1 : 0)) +
        (o.scatter ?? 0) * draw(),
    }));
  });

describe('the additive model', () => {
  it('finds effects that add up, exactly, whatever the seeds start at', () => {
    const m = additive(simulated([1, 2, 3, 4]), columns)!;
    for (const e of m.effects) expect(e.mean, e.mechanism.name).toBeCloseTo(truth[e.mechanism.name] ?? 0, 9);
    expect([m.runs, m.freedom]).toEqual([48, 48 - 4 - columns.length]);
    expect(m.scatter).toBeLessThan(1e-9);
    const none = Object.fromEntries(columns.map((c) => [c.name, false]));
    expect(m.predicted({ ...none, pool: true }).mean - m.predicted(none).mean).toBeCloseTo(0.12, 9);
  });
  it('is not misled by mechanisms that act together: only these two have half of what both do', () => {
    const more: Readonly<Record<string, number>> = { pool: 0.1, fork: 0.1, tis: -0.1, reuse: -0.1 },
      together = simulated([1, 2, 3, 4], { together: 0.2 }),
      off = (mechanisms: readonly Mechanism[]): number =>
        Math.max(
          ...additive(together, mechanisms)!.effects.map((e) =>
            !isNested(e.mechanism)
              ? Math.abs(e.mean - (truth[e.mechanism.name] ?? 0) - (more[e.mechanism.name] ?? 0))
              : 0,
          ),
        );
    // What acts beside one other is an interaction itself; beside two, it is no longer clear of all.
    expect(off(columns.filter((m) => (m.within?.length ?? 0) < 2))).toBeLessThan(1e-9);
    expect(off(columns)).toBeLessThan(0.02 * 0.2);
  });
  it.each([
    ['of chance alone', { scatter: 0.06 }, 0.93],
    ['a little less where effects differ from seed to seed, too', { scatter: 0.05, between: 0.04 }, 0.9],
  ])('its intervals hold the truth about as often as they say, %s', (_, o, least) => {
    const draw = noise('coverage');
    let held = 0,
      of = 0;
    for (let k = 0; k < 100; k++)
      for (const e of additive(simulated([1, 2, 3, 4], { ...o, draw }), columns)!.effects) {
        of++;
        if (Math.abs(e.mean - (truth[e.mechanism.name] ?? 0)) <= e.half) held++;
      }
    expect(held / of).toBeGreaterThan(least);
    expect(held / of).toBeLessThan(0.97);
  });
  it('says nothing of runs that do not tell mechanisms apart', () => {
    expect(additive([], columns)).toBeUndefined();
    expect(additive(simulated([1]), columns)).toBeUndefined();
    expect(additive(simulated([1, 2]).slice(0, 17), columns)).toBeUndefined();
    expect(additive(simulated([1, 2]), columns)).toBeDefined();
  });
  it('learns from a pair how its two runs differ, and nothing of where they lie', () => {
    const draw = noise('pairs'),
      runs = simulated([1, 2, 3, 4], { scatter: 0.06, draw }),
      pair = (to: number): Observed[] =>
        [1, 2, 3, 4].flatMap((seed) =>
          [false, true].map((hindsight) => ({
            block: `${seed} aside`,
            aside: true,
            levels: { pool: true, replay: true, hindsight },
            value: to + (hindsight ? 0.3 : 0),
          })),
        ),
      of = (observed: readonly Observed[], name: string): number =>
        additive(observed, columns)!.effects.find((e) => e.mechanism.name === name)!.mean;
    expect(of([...runs, ...pair(5)], 'hindsight')).toBeCloseTo(of([...runs, ...pair(0)], 'hindsight'), 9);
    expect(of([...runs, ...pair(5)], 'hindsight')).toBeGreaterThan(of(runs, 'hindsight') + 0.05);
    const none = Object.fromEntries(columns.map((c) => [c.name, false]));
    expect(additive([...runs, ...pair(5)], columns)!.predicted(none).mean).toBeCloseTo(
      additive([...runs, ...pair(0)], columns)!.predicted(none).mean,
      9,
    );
  });
  it('says how far a prediction is certain: at a corner of the design least', () => {
    const m = additive(simulated([1, 2, 3, 4], { scatter: 0.06, draw: noise('corner') }), columns)!,
      none = Object.fromEntries(columns.map((c) => [c.name, false])),
      middle = (t975(m.freedom) * m.scatter) / Math.sqrt(m.runs);
    // Each free mechanism that is off adds a quarter of its effect's variance.
    expect(m.predicted(none).half).toBeGreaterThan(2.5 * middle);
    expect(m.predicted(none).half).toBeLessThan(6 * middle);
  });
  it('has intervals as wide as they were planned', () => {
    const runs = simulated([1, 2, 3, 4], { scatter: 0.06, draw: noise('wide') }),
      m = additive(runs, columns)!,
      halves = halfWidths(runs, columns, m.scatter);
    for (const [k, e] of m.effects.entries()) expect(e.half).toBeCloseTo(halves[k]!, 12);
    // On less off of 48 runs, half of them each.
    const free = columns.findIndex((c) => c.name === 'pool');
    expect(halves[free]).toBeCloseTo((t975(m.freedom) * 2 * m.scatter) / Math.sqrt(48), 9);
  });
});

describe('what the plan can tell', () => {
  it('follows from the scatter of the record, with more episodes than that had', () => {
    expect(expectedScatter({ words: 96 })).toBeCloseTo(6.8);
    expect(expectedScatter(plan)).toBeCloseTo(Math.sqrt(6.8 ** 2 - 4.7 ** 2 + 4.7 ** 2 * 0.6));
  });
  it('four seeds tell an effect of 8 points from none whatever it comes to, two do not', () => {
    expect(resolution(plan, [1, 2, 3, 4]).half).toBeLessThan(4);
    expect(resolution(plan, [1, 2]).half).toBeGreaterThan(4);
    expect(seedsThatResolve(plan)).toBe(4);
    expect(seedsThatResolve(plan, 9)).toBeGreaterThan(4);
    const { half, within } = resolution(plan, [1, 2, 3, 4]);
    // Hindsight acts in a quarter of the runs, and has a pair a seed.
    expect(within / half).toBeGreaterThan(1.3);
    expect(within / half).toBeLessThan(1.8);
  });
  it('an effect is resolved, excluded, both or neither', () => {
    const of = (mean: number, half: number): unknown[] => {
      const { resolved, excluded, verdict } = judged({ mean: mean / 100, half: half / 100 });
      return [resolved, excluded, verdict];
    };
    expect(of(10, 4)).toEqual([true, false, 'helps']);
    expect(of(-9, 4)).toEqual([true, false, 'hurts']);
    expect(of(5, 2)).toEqual([true, true, 'helps, by less than 8 points']);
    expect(of(1, 4)).toEqual([false, true, 'no effect of 8 points']);
    expect(of(5, 6)).toEqual([false, false, 'cannot be told']);
    const bar = effectBar({ mechanism: MECHANISMS[1]!, mean: 0.05, half: 0.06, n: 48 });
    expect(bar).toMatchObject({ name: 'effect_dynamic_n', holds: false, resolved: false, excluded: false });
    expect([bar.value, bar.low, bar.high].map(Math.round)).toEqual([5, -1, 11]);
  });
});

describe('the plan', () => {
  const planned = curationPlan(plan);

  it('has per seed a starting policy first, then twelve runs of the design and four beside it, in random order', () => {
    expect(planned).toHaveLength(4 * (1 + BLOCK_RUNS + 4));
    const orders = [1, 2, 3, 4].map((seed) => planned.filter((x) => x.experiment.seed === seed));
    for (const [k, runs] of orders.entries()) {
      expect(runs[0]!.experiment.name).toBe(`s${k + 1}-start`);
      expect(runs.slice(1).every((x) => x.experiment.from === `s${k + 1}-start`)).toBe(true);
      expect(runs.filter((x) => x.part === 'design')).toHaveLength(BLOCK_RUNS);
    }
    const names = orders.map((runs) => runs.slice(1).map((x) => x.experiment.variant));
    expect(names[0]).not.toEqual(names[1]);
    expect([...names[0]!].sort()).toEqual([...names[1]!].sort());
    expect(curationPlan(plan)).toEqual(planned);
    expect(curationPlan({ ...plan, seeds: [2] })).toEqual(orders[1]);
  });
  it('has run files that are right, and those of the design differ in what is switched alone', () => {
    for (const { experiment: e } of planned) expect(parseRunFile(e.file).seed).toBe(e.seed);
    for (const { experiment: e, levels } of planned.filter((x) => x.part === 'design' && x.experiment.seed === 1)) {
      const others = planned.find((x) => x.experiment.variant === 'none')!.experiment.file;
      expect({ ...e.file, name: '', curation: {}, trainer: {} }).toEqual({
        ...others,
        name: '',
        curation: {},
        trainer: {},
      });
      expect(parseRunFile(e.file)).toMatchObject(switches(known, levels!));
    }
    expect(planned.every((x) => x.experiment.half === 'redo')).toBe(true);
  });
  it('measures every run on at least 160 episodes of unseen words, and the controls once a seed', () => {
    const names = (variant: string): string[] =>
      planned.find((x) => x.experiment.variant === variant)!.measures.map((m) => m.name);
    for (const x of planned) {
      const words = x.measures.find((m) => m.name === 'words')!;
      expect(words.args).toEqual(['--split', 'words', '--episodes', '160']);
    }
    expect(names('start')).toEqual(['words', 'heldout', 'words-random']);
    expect(names('pool')).toEqual(['words', 'heldout', 'words-blind']);
    expect(names('run-03')).toEqual(['words', 'heldout']);
  });
  it('imitates in one row beside it, for as many updates as fit and nothing else', () => {
    const { experiment: e } = planned.find((x) => x.experiment.variant === 'imitation')!,
      c = parseRunFile(e.file);
    expect([c.warmStart.steps, c.budget]).toEqual([1240, { minutes: 3, rollouts: 1 }]);
  });
  it('trains templates that can be held out by their words, take five steps and more, and are none of the blind', () => {
    const suite = deskSuite(),
      blind = (
        JSON.parse(readFileSync('test/bench/results/blind/blind.json', 'utf8')) as {
          rows: { section: string; family: string; blind?: boolean }[];
        }
      ).rows.flatMap((r) => (r.section === 'template' && r.blind ? [r.family] : [])),
      { solved_blind: desk } = JSON.parse(readFileSync('test/bench/results/desk/seed-1.json', 'utf8')) as {
        solved_blind: string[];
      },
      families = planned[0]!.experiment.file.tasks!.families!.map((f) => `desk/${f}`);
    for (const name of families) {
      const f = suite.families.find((x) => String(x.id) === name)!;
      expect(f.split, name).toBe('train');
      // `finished` is one more.
      expect(f.steps, name).toBeGreaterThanOrEqual(4);
      expect(suite.holdouts(f.id), name).toContain('words');
      expect([...blind, ...desk], name).not.toContain(name);
    }
    expect(families.length).toBeGreaterThanOrEqual(6);
  });
  it('has a name that does not depend on its seeds, and does on all else', () => {
    const id = planId(plan);
    expect(planId({ ...plan, seeds: [7] })).toBe(id);
    for (const other of [{ minutes: 2 }, { words: 200 }, { quick: true }, { mechanisms: known.slice(1) }])
      expect(planId({ ...plan, ...other })).not.toBe(id);
  });
  it('is cheap as a short look, and costs some hours in full', () => {
    const minutes = (p: CurationPlan): number => sum(curationPlan(p).map(minutesOf));
    expect(curationPlan({ ...plan, quick: true, seeds: [1] }).map((x) => x.experiment.variant)).toHaveLength(3);
    expect(minutes({ ...plan, quick: true, seeds: [1] })).toBeLessThan(1);
    expect(minutes(plan) / 60).toBeGreaterThan(4);
    expect(minutes(plan) / 60).toBeLessThan(7);
  });
});

const row = { episodes: 8, successes: 4, errors: 1, perFamily: { 'desk/survey': { episodes: 8, successes: 4 } } };
/** A lab whose runs are made at once; `lost`: folders of starting policies that are no longer there. */
function pretend(dir: string, o: { fail?: string; stop?: string; lost?: boolean } = {}): Session & { made: string[] } {
  const made: string[] = [],
    there = new Map<string, RunResult>(),
    runs = join(dir, 'runs.jsonl');
  const recorded = readRecord(runs);
  const result = (e: Experiment): RunResult => ({
    ...resultOf(e.variant, e.seed),
    name: e.name,
    startedAt: `2026-01-0${e.seed}T00:00:00.000Z`,
  });
  return {
    made,
    out: dir,
    runs,
    work: join(dir, 'work'),
    plan: { ...plan, seeds: [1] },
    leftOut: [],
    identity: { plan: 'p', code: 'c' },
    mix: false,
    signal: new AbortController().signal,
    log: { status: () => undefined, note: () => undefined },
    recorded,
    failed: [],
    lab: {
      commit: 'c0ffee',
      finished: (e) => (o.lost ? undefined : (there.get(e.name) ?? (recorded.length > 0 ? result(e) : undefined))),
      run: (e) => {
        if (e.name === o.fail) return Promise.reject(new Error('no desktop could be started'));
        if (made.length === 3 && o.stop !== undefined) return Promise.reject(new Interrupted());
        made.push(e.name);
        there.set(e.name, result(e));
        return Promise.resolve(there.get(e.name)!);
      },
      evaluate: () => Promise.resolve(row),
    },
  };
}

describe('a session', () => {
  it('goes on run by run where it was stopped, each run a line with its commit and date', () =>
    withDir(async (dir) => {
      const first = pretend(dir, { stop: 'after three' });
      await makeRuns(first);
      expect(first.made).toHaveLength(3);
      expect(readRecord(first.runs).map((r) => r.name)).toEqual(first.made);
      // A crash while the next line was written.
      appendFileSync(first.runs, '{"name":"s1-torn');
      const second = pretend(dir);
      await makeRuns(second);
      const all = readRecord(second.runs);
      expect([...first.made, ...second.made]).toEqual(all.map((r) => r.name));
      expect(all.map((r) => r.name)).toEqual(curationPlan({ ...plan, seeds: [1] }).map((x) => x.experiment.name));
      expect(all.every((r) => r.commit !== '' && r.startedAt.startsWith('2026-01') && r.measured['words'])).toBe(true);
      expect(
        all.filter((r) => r.part === 'design').every((r) => Object.keys(r.levels!).length === columns.length),
      ).toBe(true);
      const third = pretend(dir);
      await makeRuns(third);
      expect(third.made).toEqual([]);
    }));
  it('tries the others after one that failed, and that one when it is started again', () =>
    withDir(async (dir) => {
      const first = pretend(dir, { fail: 's1-run-05' });
      await makeRuns(first);
      expect(first.failed).toEqual(['s1-run-05: no desktop could be started']);
      const second = pretend(dir);
      await makeRuns(second);
      expect(second.made).toEqual(['s1-run-05']);
    }));
  it('refuses a record of another plan or of other sources, unless it is told', () =>
    withDir(async (dir) => {
      await makeRuns(pretend(dir, { stop: 'after three' }));
      for (const identity of [
        { plan: 'p', code: 'other' },
        { plan: 'other', code: 'c' },
      ]) {
        const s = { ...pretend(dir), identity };
        await expect(makeRuns(s)).rejects.toThrow(/3 runs are recorded there, of (another plan|other sources)/);
        expect(s.made).toEqual([]);
        expect(readRecord(s.runs)).toHaveLength(3);
      }
      const told = { ...pretend(dir), identity: { plan: 'p', code: 'other' }, mix: true };
      await makeRuns(told);
      expect(new Set(readRecord(told.runs).map((r) => r.code))).toEqual(new Set(['c', 'other']));
    }));
  it('refuses run folders of other sources, and a starting policy that is not the one of the record', () =>
    withDir(async (dir) => {
      const work = join(dir, 'work');
      expect(claimWork(work, { plan: 'p', code: 'c' })).toBeUndefined();
      expect(claimWork(work, { plan: 'p', code: 'c' })).toBeUndefined();
      expect(claimWork(work, { plan: 'p', code: 'd' })).toMatch(/other sources/);
      await makeRuns(pretend(dir, { stop: 'after three' }));
      const s = pretend(dir, { lost: true });
      await makeRuns(s);
      expect(s.made).toEqual([]);
      expect(s.failed[0]).toMatch(/the starting policy that runs are recorded of is not in .*work/);
    }));
  it('takes an empty record, and names what does not belong to one', () => {
    expect(mixture([], { plan: 'p', code: 'c' })).toBeUndefined();
    expect(mixture([{ name: 'x', plan: 'p', code: 'd', commit: 'abc' }], { plan: 'p', code: 'c' })).toMatch(
      /other sources of the runtime \(x, commit abc\)/,
    );
  });
});

const recordedOf = (seeds: readonly number[]): Recorded[] => {
  const draw = noise('report');
  return curationPlan({ ...plan, seeds }).map(({ experiment: e, levels, part, measures }) => ({
    ...resultOf(e.variant, e.seed),
    name: e.name,
    plan: 'p',
    code: 'c',
    ...(part ? { part } : {}),
    ...(levels ? { levels } : {}),
    measured: Object.fromEntries(
      measures.map((m) => {
        const rate = 0.4 + (levels?.['replay'] ? 0.2 : 0) + 0.03 * draw(),
          successes = Math.round(40 * rate);
        return [
          m.name,
          { episodes: 40, successes, errors: 0, perFamily: { 'desk/survey': { episodes: 40, successes } } },
        ];
      }),
    ),
    measuredSeconds: 90,
  }));
};
describe('the report of the ablation', () => {
  const wellFormed = (svg: string): void => {
    expect(svg).toMatch(/^<svg[^]*<\/svg>\n$/);
    expect(svg).not.toMatch(/NaN|Infinity/);
  };

  it('can be written at any moment: of nothing, of a part, of all', () => {
    const all = recordedOf([1, 2, 3, 4]);
    for (const recorded of [[], all.slice(0, 1), all.slice(0, 20), all.slice(0, 33), all]) {
      const w = curationReport(recorded, { plan, leftOut: [], failed: ['s1-run-01: lost'] });
      wellFormed(w.svg);
      expect(w.markdown).toContain('s1-run-01: lost');
      expect(w.markdown).not.toMatch(/undefined|Infinity|NaN/);
    }
  });
  it('judges every mechanism of a whole plan, and bars say what is told', () => {
    const w = curationReport(recordedOf([1, 2, 3, 4]), { plan, leftOut: [], failed: [] }),
      effects = w.rows.filter((r) => r['section'] === 'effect');
    expect(effects.map((r) => r['mechanism'])).toEqual(columns.map((m) => m.name));
    expect(effects.find((r) => r['mechanism'] === 'replay')).toMatchObject({ verdict: 'helps', resolved: true });
    expect(effects.find((r) => r['mechanism'] === NOTHING.name)).toMatchObject({ resolved: false, excluded: true });
    expect(w.rows[0]).toMatchObject({ section: 'plan', complete: true, runs: 48, made: 48 });
    const bars = new Map(w.bars.map((b) => [b.name, b]));
    expect(bars.get('effect_replay')!.value).toBeGreaterThan(15);
    expect(bars.get('effects_decided')).toMatchObject({ value: known.length, holds: true });
    expect(w.markdown).toMatch(
      /\| successes imitated beside a batch \(ours\) \| \+\d+\.\d ± \d\.\d \| helps \| .* \| off \| off \|/,
    );
    expect(w.rows.filter((r) => r['section'] === 'beside').map((r) => r['row'])).toEqual([
      'random',
      'blind',
      'start',
      'imitation',
      'none',
      'pool',
      'hindsight',
      'design',
    ]);
  });
  it('tells effects once more over the templates that can move, and Wilson where all episodes ended alike', () => {
    const count = (successes: number) => ({ episodes: 40, successes }),
      all = recordedOf([1, 2, 3, 4]).map((r): Recorded => {
        const { words, ...rest } = r.measured,
          still = { 'desk/idle': count(6), 'desk/known': count(40) },
          random = rest['words-random'] && { ...rest['words-random'], successes: 0 };
        return {
          ...r,
          measured: {
            ...rest,
            ...(random ? { 'words-random': random } : {}),
            words: { ...words!, perFamily: { ...words!.perFamily, ...still } },
          },
        };
      });
    expect(movingTemplates(all)).toEqual(['desk/survey']);
    expect(onTemplates(all[0]!, ['desk/idle', 'desk/known'])).toBeCloseTo(46 / 80);
    const w = curationReport(all, { plan, leftOut: [], failed: [] });
    expect(w.markdown).toContain('over the 1 that can (`survey`)');
    expect(w.rows.find((r) => r['mechanism'] === 'replay' && r['section'] === 'effect')).toMatchObject({
      moved: expect.closeTo(20, -1) as number,
      quickstart: 'off',
    });
    expect(w.rows.find((r) => r['row'] === 'random')!['words']).toBe('0.0 % [0, 9]');
    expect(w.rows.find((r) => r['row'] === 'none')!['model']).toMatch(/^\d+\.\d % ± \d+\.\d$/);
  });
  it('says so where not all is made, and what is left out', () => {
    const all = recordedOf([1, 2]),
      leftOut = [{ mechanism: MECHANISMS[0]!, why: 'unknown key' }],
      w = curationReport(all, { plan, leftOut, failed: [] });
    expect(w.rows[0]).toMatchObject({ complete: false, made: 24, runs: 48 });
    expect(w.markdown).toContain('**24 of the 48 runs of a whole design so far**');
    expect(w.markdown).toContain('- experience pool (`pool`): unknown key');
    const short = curationReport([], { plan: { ...plan, quick: true, seeds: [1] }, leftOut, failed: [] });
    expect(short.bars.map((b) => b.name)).toEqual(['mechanisms_known']);
  });
});

describe('what pages say of it', () => {
  const table = (head: readonly string[], rows: readonly (readonly unknown[])[]): string =>
    [head, ...rows].map((r) => `| ${r.join(' | ')} |`).join('\n');
  const before = '- **old one** (ours) hurts here: -5.3 ± 4.6 points (in pairs of runs: none).';
  const script = async (): Promise<{
    curationTables(o: { now: unknown; before: string; columns: readonly string[] }, t: typeof table): string;
    earnedSaid(now: unknown): string;
  }> => (await import(pathToFileURL('scripts/lib/curationTables.mjs').href)) as Awaited<ReturnType<typeof script>>;
  const tables = async (now: unknown): Promise<string> =>
      (await script()).curationTables({ now, before, columns: EFFECT_COLUMNS }, table),
    frontPage = async (now: unknown): Promise<string> => (await script()).earnedSaid(now);
  const effect = (
    label: string,
    points: number,
    half: number,
    by: string,
    quickstart = by,
  ): Record<string, unknown> => ({
    section: 'effect',
    mechanism: label,
    label,
    ours: false,
    among: '',
    points,
    low: points - half,
    high: points + half,
    resolved: Math.abs(points) > half,
    excluded: Math.abs(points) + half < 8,
    verdict: 'v',
    heldout: 1,
    'heldout±': 4,
    moved: 2,
    'moved±': 8,
    default: by,
    quickstart,
  });

  it('is version 0.1 until all runs are made', async () => {
    expect(await tables(undefined)).toMatch(
      /^\*\*Not recorded yet\.\*\*[^]*\| old one \(ours\) \| -5\.3 ± 4\.6 \| hurts here \|/,
    );
    const some = {
      rows: [{ section: 'plan', complete: false, made: 3, runs: 12, design: 48 }, effect('a', 9, 1, 'on')],
    };
    expect(await tables(some)).toMatch(/^\*\*3 of 48 runs of the design are recorded\*\*/);
    expect(await tables(some)).not.toContain('| a |');
    const all = curationReport(recordedOf([1, 2, 3, 4]), { plan, leftOut: [], failed: [] }),
      page = await tables(JSON.parse(JSON.stringify({ ...all, commit: 'abc' })));
    expect(page).toMatch(/^48 runs of 4 seeds \(68 with/);
    expect(page).toMatch(/\| successes imitated beside a batch \(ours\) \| \+\d+\.\d \[.*\] \| helps \|/);
    expect(page).not.toMatch(/undefined|NaN/);
    const none = curationReport([], { plan, leftOut: [], failed: [] });
    expect(await tables(none)).toMatch(/^\*\*Not recorded yet/);
  });
  it('is then every effect with its verdict, and which mechanisms did not earn their place', async () => {
    const now = {
      commit: 'abc',
      rows: [
        { section: 'plan', complete: true, made: 48, runs: 48, seeds: '1 2 3 4' },
        effect('good', 9, 4, 'on'),
        effect('bad', -9, 4, 'on'),
        effect('idle', 1, 4, 'on'),
        effect('found', 7, 4, 'off'),
        effect('dark', 6, 7, 'off'),
        effect('preset', -4, 3, 'off', 'on'),
        effect('nothing', 0, 4, 'off'),
        { section: 'beside', label: 'random choices', seeds: 4, words: '0 %', heldout: '', model: '' },
      ],
    };
    const page = await tables(now);
    expect(page).toContain('| good | +9.0 [+5.0, +13.0] | v | +2.0 ± 8.0 | +1.0 ± 4.0 | on | on |');
    expect(page).toContain('- Helps here: good, found.');
    expect(page).toContain('- Hurts here: bad, preset.');
    expect(page).toContain('- An effect of 8 points is excluded: idle.');
    expect(page).toContain('- Cannot be told: dark.');
    expect(page).toContain(
      '- **On by default or in the quick start without having earned its place here**: bad, idle, preset.',
    );
    expect(page).toContain('- Off by default though it helps here: found.');
    expect(page).toContain('| random choices | 4 | 0 % |  |  |');
    const front = await frontPage(now);
    expect(front).toContain(
      "*DART's, on by default*: helps: good (+9.0 [+5.0, +13.0]); hurts: bad (-9.0 [-13.0, -5.0]), preset (-4.0 [-7.0, -1.0]); an effect of 8 points is excluded: idle. *",
    );
    expect(front).toContain(
      "*DART's, off by default*: helps: found (+7.0 [+3.0, +11.0]); cannot be told: dark (+6.0 [-1.0, +13.0]).",
    );
    expect(front).not.toContain('nothing');
    expect(await frontPage(undefined)).toContain('no ablation is recorded yet');
  });
});
