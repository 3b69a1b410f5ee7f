import { describe, expect, it } from 'vitest';
import {
  failuresRemoved,
  hierarchicalBootstrap,
  outcomesOf,
  pairedBootstrap,
  templateBootstrap,
} from '../../../runtime/domain/bootstrap.js';
import { evaluationInterval, evaluationText, onTemplates } from '../../../runtime/domain/evaluationInterval.js';
import {
  EVALUATION_SPLITS,
  id,
  random,
  type Action,
  type Frame,
  type TaskId,
  type FamilyId,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import type { Policy } from '../../../runtime/policy/types.js';
import { blinded } from '../../../runtime/run/blindPolicy.js';
import { tallyEpisodes } from '../../../runtime/run/evaluateEpisodes.js';
import { ASKED, askedOf, figuresOf, type FiguresRow } from '../../../runtime/run/figures.js';
import { solvedBlind } from '../../../runtime/run/solvedBlind.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { figuresSection, rowName } from '../../../runtime/share/figures.js';
import { broken, failure, makeTrajectory, success } from '../../helpers/data/manager.js';

describe('intervals over seeds', () => {
  it('have the variance between seeds in them, which one pile of episodes has not', () => {
    const apart = [60, 20, 40].map((s) => outcomesOf(s, 64)),
      alike = [40, 40, 40].map((s) => outcomesOf(s, 64)),
      pile = hierarchicalBootstrap([apart.flat()]),
      [a, b] = [hierarchicalBootstrap(apart), hierarchicalBootstrap(alike)];
    expect(a.mean).toBeCloseTo(0.625, 9);
    expect(a.high - a.low).toBeGreaterThan(3 * (pile.high - pile.low));
    expect(b.high - b.low).toBeLessThan(1.6 * (pile.high - pile.low));
  });
  it('hold the truth about as often as they say, with enough seeds', () => {
    const r = random('coverage');
    let held = 0;
    for (let k = 0; k < 200; k++) {
      const seeds = Array.from({ length: 12 }, () => {
        const p = Math.min(1, Math.max(0, 0.5 + 0.2 * r.normal()));
        return Array.from({ length: 30 }, () => (r.next() < p ? 1 : 0));
      });
      const { low, high } = hierarchicalBootstrap(seeds, { samples: 200, seed: String(k) });
      if (low <= 0.5 && 0.5 <= high) held++;
    }
    expect(held / 200).toBeGreaterThan(0.86);
    expect(held / 200).toBeLessThan(0.99);
  });
  it('keep what was measured on one seed together', () => {
    // Every seed loses exactly half of its failures, seeds differ widely: no doubt about the half.
    const runs = [200, 600, 1000].map((f) => [outcomesOf(2000 - f, 2000), outcomesOf(2000 - f / 2, 2000)]),
      { mean, low, high } = pairedBootstrap(runs, failuresRemoved, { samples: 200 });
    expect(mean).toBeCloseTo(0.5, 9);
    expect(low).toBeGreaterThan(0.42);
    expect(high).toBeLessThan(0.58);
  });
  it('have no lower end where imitation left so few failures that there may as well be none', () => {
    const { mean, low, high } = pairedBootstrap([[outcomesOf(83, 84), outcomesOf(83, 84)]], failuresRemoved);
    expect([mean, low]).toEqual([0, -Infinity]);
    expect(high).toBeGreaterThan(0.99);
    // Neither before nor after: nothing was there to be removed.
    expect(pairedBootstrap([[outcomesOf(9, 9), outcomesOf(9, 9)]], failuresRemoved).low).toBeNaN();
  });
});

describe('intervals over templates', () => {
  const each = (solved: readonly number[], episodes = 20): Record<string, { episodes: number; successes: number }> =>
      Object.fromEntries(solved.map((successes, i) => [`t${i}`, { episodes, successes }])),
    whole = (perFamily: ReturnType<typeof each>) => ({
      episodes: Object.values(perFamily).reduce((n, f) => n + f.episodes, 0),
      successes: Object.values(perFamily).reduce((n, f) => n + f.successes, 0),
      perFamily,
    }),
    /** As the preset desk did: four of eleven always, seven never. */
    allOrNothing = whole(each([20, 20, 20, 20, 0, 0, 0, 0, 0, 0, 0]));
  it('do not take 20 episodes of a template that is always or never solved for 20 answers', () => {
    const held = evaluationInterval('templates', allOrNothing),
      trained = evaluationInterval('heldout', allOrNothing);
    expect(evaluationText('heldout', allOrNothing)).toBe('36 % [30, 43]');
    expect(trained).toEqual({ low: wilson(80, 220).low, high: wilson(80, 220).high });
    expect(held.low).toBeGreaterThan(0);
    expect(held.low).toBeLessThan(0.15);
    expect(held.high).toBeGreaterThan(0.6);
    expect(held.high).toBeLessThan(0.8);
    expect(evaluationInterval('fresh', allOrNothing)).toEqual(held);
    expect([onTemplates('templates', allOrNothing), onTemplates('heldout', allOrNothing)]).toEqual([
      ' on 11 templates',
      '',
    ]);
  });
  it('are about as those of episodes where templates do not differ', () => {
    const { low, high } = evaluationInterval('templates', whole(each(Array<number>(11).fill(8))));
    expect(low).toBeCloseTo(wilson(88, 220).low, 1);
    expect(high).toBeCloseTo(wilson(88, 220).high, 1);
  });
  it('say of nothing solved what so few templates can say', () => {
    const none = whole(each(Array<number>(6).fill(0))),
      { low, high } = evaluationInterval('fresh', none);
    expect(low).toBeCloseTo(0, 9);
    expect(high).toBeCloseTo(wilson(0, 6).high, 9);
    expect(high).toBeGreaterThan(0.3);
    expect(evaluationInterval('fresh', whole(each([20, 20, 20]))).high).toBe(1);
    expect(evaluationText('templates', whole({}))).toBe('no episodes');
  });
  it('are never narrower for one more success, however few there are', () => {
    const with_ = (first: number): number => templateBootstrap([each([first, 0, 0, 0, 0, 0])]).high,
      highs = [0, 1, 3, 10, 20].map(with_);
    expect(highs[0]).toBeCloseTo(wilson(0, 6).high, 9);
    expect(highs).toEqual([...highs].sort((a, b) => a - b));
  });
  it('over seeds draw templates once for all of them', () => {
    const seeds = [each([20, 20, 0, 0]), each([20, 20, 0, 0]), each([20, 20, 0, 0])],
      one = templateBootstrap(seeds.slice(0, 1)),
      three = templateBootstrap(seeds);
    expect(three.mean).toBe(0.5);
    // More seeds of the same templates do not make more templates.
    expect(three.high - three.low).toBeGreaterThan(0.9 * (one.high - one.low));
    const apart = templateBootstrap([each([20, 20, 20, 20]), each([0, 0, 0, 0])]);
    expect([apart.mean, apart.low, apart.high]).toEqual([0.5, 0, 1]);
  });
  it('hold the truth far more often than those of episodes', () => {
    const r = random('templates'),
      mean = 0.4;
    let held = 0,
      naive = 0;
    for (let k = 0; k < 150; k++) {
      const row = whole(each(Array.from({ length: 11 }, () => (r.next() < mean ? 20 : 0)))),
        { low, high } = templateBootstrap([row.perFamily], { samples: 200, seed: String(k) }),
        w = wilson(row.successes, row.episodes);
      if (low <= mean && mean <= high) held++;
      if (w.low <= mean && mean <= w.high) naive++;
    }
    expect(held / 150).toBeGreaterThan(0.82);
    expect(naive / 150).toBeLessThan(0.6);
  });
});

describe('an evaluation', () => {
  const of = (n: number, outcome: Trajectory['outcome']): Trajectory =>
    makeTrajectory({ rollout: id(`p${n}`), family: id<FamilyId>('f'), task: id<TaskId>('f#1'), cap: 5 }, outcome, {
      provenance: { kind: 'probe' },
      steps: 1,
    });
  it('counts an episode that ended in an error among its episodes, and says how many there were', () => {
    const t = tallyEpisodes([of(1, success), of(2, failure), of(3, broken), of(4, broken)], new Set());
    expect(t).toMatchObject({ episodes: 4, successes: 1, errors: 2 });
    expect(t.perFamily).toEqual({ f: { episodes: 4, successes: 1 } });
    expect(t.low).toBeLessThan(0.25);
    expect(t.high).toBeLessThan(0.75);
  });
});

describe('the blind control', () => {
  it('is the same policy, which sees one grey picture whatever the screen', async () => {
    const seen: Frame[] = [],
      told: (readonly Action[])[] = [];
    const policy: Policy = {
      open: () => ({
        decide: (frame) => {
          seen.push(frame as Frame);
          return Promise.resolve({ actions: [{ type: 'finished' }], version: 7, queueMs: 0, computeMs: 0 });
        },
        acted: (a) => {
          told.push(a);
        },
        close: () => undefined,
      }),
    };
    const screen = (fill: number): Frame => ({ width: 4, height: 2, data: Buffer.alloc(32, fill), capturedAt: fill }),
      frames = [screen(1), screen(200)],
      session = blinded(policy).open({} as never);
    for (const f of frames) expect((await session.decide(f, new AbortController().signal)).version).toBe(7);
    session.acted([{ type: 'wait' }] as never);
    expect(seen.map((f) => [f.width, f.height, f.data.length, f.capturedAt])).toEqual([
      [4, 2, 32, 1],
      [4, 2, 32, 200],
    ]);
    expect(seen[0]!.data.equals(seen[1]!.data)).toBe(true);
    expect(new Set(seen[0]!.data).size).toBe(1);
    expect(told).toHaveLength(1);
    // What is recorded is what was on the screen.
    expect(frames.map((f) => f.data[0])).toEqual([1, 200]);
  });
});

describe('the figures of a run', () => {
  const row = (split: FiguresRow['split'], successes: number, o: Partial<FiguresRow> = {}): FiguresRow => ({
    split,
    sampled: false,
    blind: false,
    label: split,
    version: 9,
    episodes: 20,
    successes,
    errors: 0,
    low: 0,
    high: 1,
    rate: successes / 20,
    perFamily: { keys: { episodes: 10, successes: 10 }, eyes: { episodes: 10, successes: successes - 10 } },
    ...o,
  });
  const point = (label: string, successes: number) => ({
    ...row('heldout', successes),
    label,
    episodes: 64,
    infeasible: { episodes: 0, successes: 0 },
  });
  const rows = [
    row('heldout', 16),
    row('heldout', 15, { sampled: true }),
    row('heldout', 10, {
      blind: true,
      perFamily: { keys: { episodes: 10, successes: 9 }, eyes: { episodes: 10, successes: 1 } },
    }),
    row('words', 11),
    row('words', 10, { blind: true }),
    row('templates', 0),
    row('fresh', 3),
  ];
  it('are the rates of their rows, with what the policy does blind apart', () => {
    const f = figuresOf(
      {
        run: 'r',
        config: { seed: 3 },
        minutes: 20,
        points: [point('untrained', 0), point('warm start', 44), point('final', 60)],
      },
      rows,
    );
    expect(f).toMatchObject({
      unseen_words_success: 0.55,
      blind_success: 0.5,
      heldout_success: 0.8,
      heldout_templates_success: 0,
      fresh_templates_success: 0.15,
      solved_blind: ['keys'],
      heldout_success_sighted: 0.6,
      seed: 3,
    });
    expect(f.failures_removed_by_rl).toBeCloseTo(0.8, 9);
    expect(f.failures_removed_by_rl_interval!.low).toBeGreaterThan(0.4);
    expect(f.failures_removed_by_rl_interval!.high).toBeLessThanOrEqual(1);
  });
  it('call a template solved blind by all rows with a blank screen, not by an episode or two of one', () => {
    const blind = (split: FiguresRow['split'], eyes: readonly [number, number]) =>
        row(split, 0, {
          blind: true,
          perFamily: {
            keys: { episodes: 2, successes: 2 },
            eyes: { episodes: eyes[1], successes: eyes[0] },
          },
        }),
      some = [row('heldout', 16), blind('heldout', [1, 2]), blind('words', [0, 3]), blind('looks', [0, 2])],
      of = (more: readonly FiguresRow[]) =>
        figuresOf({ run: 'r', config: { seed: 3 }, minutes: 1, points: [] }, [...some, ...more]);
    expect(of([]).solved_blind).toEqual(['keys']);
    expect(of([]).heldout_success_sighted).toBeCloseTo(0.6, 9);
    expect(solvedBlind(some)).toEqual({ families: ['keys'], fewest: 6 });
    expect(solvedBlind([...some, blind('near', [2, 2])]).families).toEqual(['keys', 'eyes']);
    // Templates never trained on are none of those.
    const fresh = { other: { episodes: 20, successes: 20 } };
    expect(of([row('templates', 0, { blind: true, perFamily: fresh })]).solved_blind).toEqual(['keys']);
  });
  it('carry the commit where there is one', () => {
    const of = (commit?: string) => figuresOf({ run: 'r', config: { seed: 3 }, minutes: 1, points: [], commit }, rows);
    expect(of('017a516d, with changes').commit).toBe('017a516d, with changes');
    expect(of()).not.toHaveProperty('commit');
  });
  it('have a row of chance, where it was asked for', () => {
    const of = (more: readonly FiguresRow[]) =>
      figuresOf({ run: 'r', config: { seed: 3 }, minutes: 1, points: [] }, [...rows, ...more]);
    expect(of([]).random_success).toBe(null);
    const f = of([row('words', 1, { sampled: true, random: true, label: 'words-random' })]);
    expect([f.random_success, f.unseen_words_success]).toEqual([0.05, 0.55]);
  });
  it('know how little one seed tells that has no failure left', () => {
    const points = [point('warm start', 44), point('final', 64)],
      { failures_removed_by_rl: all, failures_removed_by_rl_interval: of } = figuresOf(
        { run: 'r', config: { seed: 3 }, minutes: 1, points },
        rows,
      );
    expect(all).toBe(1);
    // Of 64 episodes up to 5.7 % may fail (Wilson), where 31 % did.
    expect(of!.low).toBeCloseTo(1 - 0.0566 / 0.3125, 3);
    expect(of!.high).toBe(1);
  });
  it('say nothing of reinforcement learning where there was none', () => {
    const f = figuresOf({ run: 'r', config: { seed: 3 }, minutes: 1, points: [point('final', 60)] }, rows);
    expect([f.failures_removed_by_rl, f.failures_removed_by_rl_interval]).toEqual([null, null]);
  });
});

describe('what the final policy is asked', () => {
  const has = (want: (typeof ASKED)[number]): boolean =>
    ASKED.some(
      (a) => a.split === want.split && !!a.blind === !!want.blind && !!a.random === !!want.random && !a.sampled,
    );
  it('is every split that holds something out, each with a blank screen too; looks whole, not in its parts', () => {
    for (const split of EVALUATION_SPLITS.filter((s) => !['train', 'places', 'styles'].includes(s))) {
      expect(has({ split }), split).toBe(true);
      expect(has({ split, blind: true }), `${split}, blind`).toBe(true);
    }
    expect(new Set(ASKED.map((a) => JSON.stringify(a))).size).toBe(ASKED.length);
  });
  it('is what chance comes to on unseen words, of a policy whose choices have numbers', () => {
    expect(has({ split: 'words', random: true })).toBe(true);
    const random = (kind: string): number =>
      askedOf({ policy: { kind } } as Parameters<typeof askedOf>[0]).filter((a) => a.random).length;
    expect(['embedded', 'vlm'].map(random)).toEqual([1, 0]);
    expect(rowName({ split: 'words', sampled: true, blind: false, random: true })).toBe(
      'unseen words and numbers, a choice at random',
    );
    expect(rowName({ split: 'heldout', sampled: false, blind: true, trained: true })).toBe(
      'tasks that are trained (none is held out), screen blanked',
    );
  });
});

describe('report.html', () => {
  const figures = figuresOf(
    { run: 'run <1>', config: { seed: 3 }, minutes: 20, points: [] },
    (['heldout', 'words', 'templates'] as const).flatMap((split) => [false, true].map((blind) => one(split, blind))),
  );
  function one(split: FiguresRow['split'], blind: boolean): FiguresRow {
    return {
      split,
      blind,
      sampled: false,
      label: split,
      version: 1,
      episodes: 10,
      successes: 4,
      errors: 1,
      low: 0,
      high: 1,
      rate: 0.4,
      perFamily: { 'desk/<b>': { episodes: 10, successes: 4 } },
    };
  }
  it('shows what was measured, and takes nothing of a task for markup', () => {
    const html = figuresSection(figures);
    expect(html).not.toMatch(/https?:|<script|<b>/);
    expect(html).toContain('desk/&lt;b&gt;');
    expect(html).toContain('unseen words and numbers, screen blanked');
    expect(html).toContain('40 % [');
    expect(html.match(/<table>/g)!.length).toBe(2);
    // One template: what Wilson says of 4 of 10 is not what is shown.
    expect(html).toContain('10 on 1 templates');
  });
  it('shows a rate on held-out templates with the interval over these, what was untrained, and the commit', () => {
    const perFamily = Object.fromEntries(
        [10, 10, 0, 0, 0, 0].map((successes, i) => [`t${i}`, { episodes: 10, successes }]),
      ),
      untrained = { ...one('heldout', false), label: 'untrained', successes: 1 },
      html = figuresSection({
        ...figures,
        commit: 'c0ffee',
        points: [{ ...untrained, infeasible: { episodes: 0, successes: 0 } }],
        rows: [{ ...one('templates', false), episodes: 60, successes: 20, perFamily }],
      });
    expect(html).toContain('60 on 6 templates');
    expect(html).not.toContain('33 % [23, 46]');
    expect(html).toMatch(/33 % \[0, [67]\d\]/);
    expect(html).toContain('before training');
    expect(html).toContain('commit c0ffee');
  });
});
