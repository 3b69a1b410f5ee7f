import { describe, expect, it } from 'vitest';
import {
  aggregate,
  entitiesOf,
  evaluationLine,
  lastEvaluation,
  metricLine,
  placed,
  taskLines,
  without,
} from '../../../webview/compareRuns/model.js';
import { wilson } from '../../../runtime/domain/stats.js';
import { makeComparison } from '../../helpers/pages/dashboard/comparison.js';

const made = makeComparison();

describe('lines of a comparison', () => {
  it('are the runs, or the seeds of one configuration, with names that tell them apart', () => {
    const grouped = entitiesOf(made, true),
      single = entitiesOf(made, false);
    expect(grouped.map((e) => [e.label, e.runs.length])).toEqual([
      ['quickstart, lr 0.0003, 3 seeds', 3],
      ['quickstart, lr 0.001, 2 seeds', 2],
      ['with-kl', 1],
    ]);
    expect(single).toHaveLength(6);
    for (const es of [grouped, single]) {
      expect(new Set(es.map((e) => e.label)).size).toBe(es.length);
      expect(new Set(es.map((e) => `${e.hue} ${e.dash?.join() ?? ''}`)).size).toBe(es.length);
    }
    // Colours and dashes together tell more lines apart than there are colours.
    const many = {
      ...made,
      config: [],
      runs: Array.from({ length: 24 }, (_, i) => ({ ...made.runs[0]!, run: `/r${i}`, createdAt: i * 60_000 })),
    };
    expect(new Set(entitiesOf(many, false).map((e) => `${e.hue} ${e.dash?.join() ?? ''}`)).size).toBe(24);
  });

  it('average several lines where all of them are, with the lowest and the highest', () => {
    const a = { x: [0, 10, 20], y: [0, 1, 2] },
      b = { x: [5, 15], y: [2, 4] };
    const c = aggregate([a, b]);
    expect(c.x).toEqual([5, 10, 15]);
    expect(c.low).toEqual([0.5, 1, 1.5]);
    expect(c.high).toEqual([2, 3, 4]);
    expect(c.y).toEqual([1.25, 2, 2.75]);
    // Lines that share no place have no mean, and one line is itself.
    expect(aggregate([a, { x: [30], y: [1] }]).x).toEqual([]);
    expect(aggregate([a, { x: [], y: [] }])).toBe(a);
    expect(aggregate([])).toEqual({ x: [], y: [] });
    const long = { x: Array.from({ length: 5000 }, (_, i) => i), y: Array.from({ length: 5000 }, (_, i) => i) };
    expect(aggregate([long, long]).x).toHaveLength(200);
    expect(aggregate([long, long]).y.at(-1)).toBe(4999);
  });

  it('lie where the run was at that moment; counts are whole', () => {
    const p = { at: [0, 10, 20], workedMs: [0, 10, 15], updates: [0, 1, 3], rollouts: [0, 5, 9], actions: [0, 50, 90] };
    expect(placed(p, [0, 5, 10, 15, 20, 99], 'time')).toEqual([0, 5, 10, 12.5, 15, 15]);
    expect(placed(p, [0, 5, 10, 15, 20], 'updates')).toEqual([0, 0, 1, 2, 3]);
    expect(placed(p, [15], 'actions')).toEqual([70]);
    expect(placed({ ...p, tokens: [0, 900, 1000] }, [15], 'tokens')).toEqual([950]);
  });

  it('of evaluations have the interval of a single run, and the range of several', () => {
    const [three, , one] = entitiesOf(made, true),
      single = evaluationLine(one!, 'time');
    expect(single.low).toEqual(one!.runs[0]!.evals.map((e) => e.low));
    const several = evaluationLine(three!, 'time');
    several.y.forEach((y, i) => {
      expect(several.low![i]).toBeLessThanOrEqual(y);
      expect(several.high![i]).toBeGreaterThanOrEqual(y);
    });
    // By what a run did not record it has no curve, and is named.
    expect(evaluationLine(one!, 'tokens')).toEqual({ x: [], y: [] });
    expect(evaluationLine(three!, 'tokens').x.at(-1)).toBeGreaterThan(0);
    expect(without(made.runs, 'tokens')).toEqual(one!.runs);
    expect(without(made.runs, 'actions')).toEqual([]);
    expect(metricLine(three!, 'no.such', 'updates')).toEqual({ x: [], y: [] });
  });
});

describe('success by task', () => {
  it('leads with the evaluation of all seeds together and its interval; the most different first', () => {
    const entities = entitiesOf(made, true),
      lines = taskLines(entities);
    expect(lines).toHaveLength(13);
    for (let i = 1; i < lines.length; i++) expect(lines[i]!.spread).toBeLessThanOrEqual(lines[i - 1]!.spread);
    const first = lines[0]!,
      of = made.runs.slice(0, 3).map((r) => r.tasks.find((k) => k.family === first.family)!.evaluation!),
      won = of.reduce((a, e) => a + e.successes, 0),
      episodes = of.reduce((a, e) => a + e.episodes, 0);
    expect(first.cells[0]!.evaluation).toMatchObject({ ...wilson(won, episodes), episodes, successes: won });
    // A task that no evaluation had says that its number is of training.
    const bare = lines.find((l) => l.cells[2]!.evaluation === undefined)!;
    expect(bare.cells[2]!.recent!.of).toBe(16);
    expect(lastEvaluation([])).toBeUndefined();
  });
});
