import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { candidates, rankForReview, type Candidate, type Ranked } from '../../../runtime/annotations/queue.js';
import type { RunReader } from '../../../runtime/data/store/runStore.js';
import { rankedAtOnce } from '../../helpers/annotations/rankedAtOnce.js';

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
const order = async (all: readonly Candidate[], infeasible: readonly string[] = []): Promise<[string, string][]> =>
  (await rankForReview(all, (f) => infeasible.includes(f))).map((r) => [r.rollout, r.why]);
afterEach(() => {
  vi.restoreAllMocks();
});

describe('the review queue', () => {
  it('begins with what nobody solved, then goes down to what needs nobody', async () => {
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
    const ranked = await order(all, ['nobody can']),
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
    expect(await order([c('both', 'x', { truncated: true, steps: 7 })])).toEqual([
      ['both', 'Nobody has solved this task yet: 1 failure; it ran out of steps (7).'],
    ]);
  });
  it('takes families in turn, newest first', async () => {
    const all = [
      ...Array.from({ length: 3 }, (_, i) => c(`a${i}`, 'a')),
      ...Array.from({ length: 3 }, (_, i) => c(`b${i}`, 'b')),
    ];
    expect((await order(all)).map(([r]) => r)).toEqual(['b2', 'a2', 'b1', 'a1', 'b0', 'a0']);
  });
  it('does not take a person for one who solved it, but learns from them what is long', async () => {
    const all = [c('demo', 'a', { success: true, counts: false, steps: 3 }), c('f', 'a'), c('g', 'a')];
    expect((await order(all))[0]).toEqual(['g', 'Nobody has solved this task yet: 2 failures.']);
    const more = await order([...all, c('w', 'a', { success: true, steps: 8 })]);
    expect(more.find(([r]) => r === 'w')![1]).toMatch(/shortest success of its kind takes 3/);
  });
  it('puts the reviewed last, in the same order', async () => {
    const all = [
      c('seen hard', 'hard', { reviewed: true }),
      ...solved('easy', 4),
      c('seen easy', 'easy', { reviewed: true }),
    ];
    const ranked = await rankForReview(all, () => false);
    expect(ranked.slice(-2).map((r) => [r.rollout, r.reviewed])).toEqual([
      ['seen hard', true],
      ['seen easy', true],
    ]);
    expect(ranked.map((r) => r.priority)).toEqual([...ranked.map((r) => r.priority)].sort((a, b) => b - a));
  });
  it('says the same whatever the order it is told in', async () => {
    const all = [...solved('easy', 4), c('x', 'hard'), c('y', 'easy', { truncated: true })];
    expect(await order([...all].reverse())).toEqual(await order(all));
  });

  const any: fc.Arbitrary<Candidate> = fc.record({
    rollout: fc.uuid(),
    family: fc.constantFrom('a', 'b', 'c'),
    success: fc.boolean(),
    truncated: fc.boolean(),
    steps: fc.integer({ min: 1, max: 12 }),
    counts: fc.boolean(),
    gaveUp: fc.boolean(),
    born: fc.nat(400),
    reviewed: fc.boolean(),
  });
  /** Some of one kind, and more of them than a family has turns that count. */
  const many = fc
    .tuple(fc.array(any, { maxLength: 60 }), any, fc.nat(150))
    .map(([all, one, n]) => [...all, ...Array.from({ length: n }, (_, i) => ({ ...one, rollout: `${i}`, born: i }))]);
  it('is that of a sort of all of them, whatever they are and however many are asked for', async () => {
    const infeasible = (f: string): boolean => f === 'b';
    await fc.assert(
      fc.asyncProperty(many, fc.nat(300), fc.boolean(), async (all, limit, sorted) => {
        const told = sorted ? [...all].sort((a, b) => b.born - a.born) : all,
          whole = rankedAtOnce(told, infeasible);
        expect(await rankForReview(told, infeasible)).toEqual(whole);
        expect(await rankForReview(told, infeasible, { limit })).toEqual(whole.slice(0, limit));
        expect(await rankForReview(told, infeasible, { limit, reviewed: false })).toEqual(
          whole.filter((r) => !r.reviewed).slice(0, limit),
        );
      }),
      { numRuns: 200 },
    );
  });
});

describe('a queue of many', () => {
  const n = 20_000;
  /** How often the event loop came round meanwhile, where each look at the clock says that it is high time. */
  async function turnsOf<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly turns: number }> {
    let at = 0,
      turns = 0,
      over = false;
    vi.spyOn(performance, 'now').mockImplementation(() => (at += 100));
    const tick = (): void => {
      turns++;
      if (!over) setImmediate(tick);
    };
    setImmediate(tick);
    const value = await work();
    over = true;
    return { value, turns };
  }
  it('lets the event loop turn while it is put in order, and while all of it is asked for', async () => {
    const all = Array.from({ length: n }, (_, i) => c(`${i}`, `f${i % 5}`)),
      first = await turnsOf<readonly Ranked[]>(() => rankForReview(all, () => false, { limit: 1 }));
    expect(first.value.map((r) => r.rollout)).toEqual([`${n - 1}`]);
    expect(first.turns).toBeGreaterThan((2 * n) / 2048);
    const whole = await turnsOf(() => rankForReview(all, () => false));
    expect(whole.value).toHaveLength(n);
    expect(whole.turns).toBeGreaterThan((3 * n) / 2048);
  });
  it('is read in parts, and the event loop turns in between', async () => {
    const asked: (readonly unknown[])[] = [],
      columns = (_sql: string, params: readonly unknown[]): Promise<unknown[][]> => {
        asked.push(params);
        const from = asked.length === 1 ? n : Number(params[0]),
          born = Array.from({ length: Math.min(from, Number(params.at(-1))) }, (_, i) => from - 1 - i),
          same = (v: unknown): unknown[] => born.map(() => v);
        return Promise.resolve([
          born.map((b) => `r${b}`),
          same('f'),
          same('failure'),
          same(0),
          same(3),
          same('rollout'),
          born,
          same(0),
        ]);
      },
      run = { index: { columns } } as unknown as RunReader,
      read = await turnsOf(() => candidates(run, new Map(), undefined, 6000));
    expect(read.value.map((x) => x.born)).toEqual(Array.from({ length: n }, (_, i) => n - 1 - i));
    expect(asked).toEqual([
      [6000],
      [14_000, 14_000, 'r14000', 6000],
      [8000, 8000, 'r8000', 6000],
      [2000, 2000, 'r2000', 6000],
    ]);
    expect(read.turns).toBeGreaterThan(n / 2048);
  });
});
