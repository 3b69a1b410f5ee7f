import { describe, expect, it } from 'vitest';
import {
  failuresRemoved,
  hierarchicalBootstrap,
  outcomesOf,
  pairedBootstrap,
} from '../../../runtime/domain/bootstrap.js';
import {
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
import { tallyEpisodes } from '../../../runtime/run/evaluation.js';
import { figuresOf, type FiguresRow } from '../../../runtime/run/figures.js';
import { figuresSection } from '../../../runtime/share/figures.js';
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
  it('say nothing of reinforcement learning where there was none', () => {
    const f = figuresOf({ run: 'r', config: { seed: 3 }, minutes: 1, points: [point('final', 60)] }, rows);
    expect([f.failures_removed_by_rl, f.failures_removed_by_rl_interval]).toEqual([null, null]);
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
  });
});
