import { describe, expect, it } from 'vitest';
import { rankForReview, type Candidate } from '../../../runtime/annotations/queue.js';

let born = 0;
const c = (rollout: string, family: string, o: Partial<Candidate> = {}): Candidate => ({
  rollout,
  family,
  success: false,
  truncated: false,
  steps: 4,
  counts: true,
  gaveUp: false,
  born: ++born,
  reviewed: false,
  ...o,
});
const solved = (family: string, n: number, o: Partial<Candidate> = {}): Candidate[] =>
  Array.from({ length: n }, (_, i) => c(`${family}-won-${i}`, family, { success: true, ...o }));
const order = (all: readonly Candidate[], infeasible: readonly string[] = []): [string, string][] =>
  rankForReview(all, (f) => infeasible.includes(f)).map((r) => [r.rollout, r.why]);

describe('the review queue', () => {
  it('begins with what nobody solved, then goes down to what needs nobody', () => {
    const all = [
      ...solved('easy', 5),
      c('short', 'easy'),
      c('cut', 'easy', { truncated: true, steps: 12 }),
      c('gave up', 'easy', { gaveUp: true }),
      c('long', 'easy', { success: true, steps: 9 }),
      c('never', 'hard'),
      c('rare', 'middling'),
      ...solved('middling', 2),
      ...solved('nobody can', 4, { gaveUp: true }),
      c('tried', 'nobody can'),
    ];
    const ranked = order(all, ['nobody can']),
      at = (r: string): number => ranked.findIndex(([x]) => x === r);
    expect(['never', 'rare', 'tried', 'gave up', 'cut', 'long', 'short'].map(at).slice(0, 2)).toEqual([0, 1]);
    for (const [earlier, later] of [
      ['rare', 'gave up'],
      ['gave up', 'cut'],
      ['tried', 'cut'],
      ['cut', 'long'],
      ['long', 'short'],
      ['long', 'easy-won-0'],
    ] as const)
      expect(at(earlier), `${earlier} before ${later}`).toBeLessThan(at(later));
    expect(Object.fromEntries(ranked)).toMatchObject({
      never: 'Nobody has solved this task yet: 1 failure.',
      rare: 'Hardly ever solved: 2 of 3.',
      'gave up': 'It was given up as impossible, though the task can be done.',
      tried: 'The task cannot be done, but it was not given up.',
      cut: 'It ran out of steps (12).',
      long: 'Succeeded in 9 steps; the shortest success of its kind takes 4.',
      short: 'Failed; 6 of 9 of its kind succeeded.',
      'easy-won-0': 'Succeeded in 4 steps.',
    });
    expect(order([c('both', 'x', { truncated: true, steps: 7 })])).toEqual([
      ['both', 'Nobody has solved this task yet: 1 failure; it ran out of steps (7).'],
    ]);
  });
  it('takes families in turn, newest first', () => {
    const all = [
      ...Array.from({ length: 3 }, (_, i) => c(`a${i}`, 'a')),
      ...Array.from({ length: 3 }, (_, i) => c(`b${i}`, 'b')),
    ];
    expect(order(all).map(([r]) => r)).toEqual(['b2', 'a2', 'b1', 'a1', 'b0', 'a0']);
  });
  it('does not take a person for one who solved it, but learns from them what is long', () => {
    const all = [c('demo', 'a', { success: true, counts: false, steps: 3 }), c('f', 'a'), c('g', 'a')];
    expect(order(all)[0]).toEqual(['g', 'Nobody has solved this task yet: 2 failures.']);
    expect(order([...all, c('w', 'a', { success: true, steps: 8 })]).find(([r]) => r === 'w')![1]).toMatch(
      /shortest success of its kind takes 3/,
    );
  });
  it('puts the reviewed last, in the same order', () => {
    const all = [
      c('seen hard', 'hard', { reviewed: true }),
      ...solved('easy', 4),
      c('seen easy', 'easy', { reviewed: true }),
    ];
    const ranked = rankForReview(all, () => false);
    expect(ranked.slice(-2).map((r) => [r.rollout, r.reviewed])).toEqual([
      ['seen hard', true],
      ['seen easy', true],
    ]);
    expect(ranked.map((r) => r.priority)).toEqual([...ranked.map((r) => r.priority)].sort((a, b) => b - a));
  });
  it('says the same whatever the order it is told in', () => {
    const all = [...solved('easy', 4), c('x', 'hard'), c('y', 'easy', { truncated: true })];
    expect(order([...all].reverse())).toEqual(order(all));
  });
});
