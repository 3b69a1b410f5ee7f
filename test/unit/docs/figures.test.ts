import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

/** What pages say of recorded figures, older files among them. */
type Table = (head: readonly string[], rows: readonly (readonly unknown[])[]) => string;
interface Counts {
  readonly episodes: number;
  readonly successes: number;
}
interface Row extends Counts {
  readonly label: string;
  readonly split: string;
  readonly blind: boolean;
  readonly version: number;
  readonly errors: number;
  readonly perFamily: Readonly<Record<string, Counts>>;
}
interface Figures {
  readonly seed: number;
  readonly minutes: number;
  readonly machine: { readonly cpu: string };
  readonly commit?: string;
  readonly solved_blind: readonly string[];
  readonly rows: readonly Row[];
  readonly points: readonly Row[];
}
interface Imitation {
  readonly table: string;
  readonly sentence: string;
}
const script = async <T>(name: string): Promise<T> => (await import(pathToFileURL(`scripts/lib/${name}`).href)) as T,
  { quickstartTables, updates } = await script<{
    quickstartTables(
      o: {
        seeds: readonly Figures[];
        learnedBlind: readonly string[];
        unsure?: readonly string[];
        imitation: Imitation;
        earlier?: readonly { said: string; runs: readonly Figures[] }[];
      },
      table: Table,
    ): Promise<{ short: string; each: string; beside: string }>;
    updates(runs: readonly Figures[]): string;
  }>('quickstartTables.mjs'),
  { deskTables } = await script<{
    deskTables(seeds: readonly Figures[], table: Table): Promise<{ table: string; said: string }>;
  }>('deskTables.mjs'),
  { imitationTables } = await script<{
    imitationTables(
      o: { rows: unknown; quickstart: readonly Figures[]; learnedBlind: readonly string[]; own: number },
      table: Table,
    ): Promise<Imitation>;
  }>('imitationTables.mjs');

const table: Table = (head, rows) => [head, ...rows].map((r) => `| ${r.map(String).join(' | ')} |`).join('\n'),
  spread = (label: string, won: readonly number[], names = 'abcdefghijk', errors = 0): Row => ({
    label,
    split: label.split('-')[0]!,
    blind: label.endsWith('-blind'),
    version: label === 'final' ? 43 : label === 'warm start' ? 2 : 0,
    errors,
    episodes: 20 * won.length,
    successes: won.reduce((n, w) => n + w, 0),
    perFamily: Object.fromEntries(won.map((successes, i) => [`desk/${names[i]!}`, { episodes: 20, successes }])),
  }),
  lines = (text: string, start: string): string[] => text.split('\n').filter((l) => l.startsWith(`| ${start}`));
const HELD = [20, 20, 20, 20, 0, 0, 0, 0, 0, 0, 0],
  figures = (more: readonly Row[] = []): Figures => ({
    seed: 1,
    minutes: 60,
    machine: { cpu: 'AMD EPYC' },
    solved_blind: ['desk/a'],
    rows: [
      spread('heldout', [20, 10]),
      spread('heldout-blind', [20, 0]),
      spread('words', [20, 12]),
      spread('near', [20, 8]),
      spread('looks', [20, 6]),
      spread('templates', HELD, 'klmnopqrstu'),
      spread(
        'templates-blind',
        HELD.map(() => 0),
        'klmnopqrstu',
      ),
      ...more,
    ],
    points: [spread('untrained', [0, 0]), spread('warm start', [10, 5]), spread('final', [20, 10])],
  });

describe('tables of the preset desk', () => {
  it('have every row without the templates solved blind, and an interval over templates where these are held out', async () => {
    const { table: text, said } = await deskTables([figures([spread('fresh', [0, 0, 0], 'vwx')])], table);
    expect(lines(text, 'other arrangements')).toEqual([
      '| other arrangements of the words of training | 75 % [60, 86] | 50 % [30, 70] | 50 % [35, 65] |',
    ]);
    const [held] = lines(text, 'templates never');
    expect(held).toMatch(/^\| templates never trained on \| 36 % \[\d, [67]\d\] \| {2}\| 0 % \[0, 26\] \|$/);
    expect(text).toContain('of 11, 4 always, 7 never; fresh ones: of 3, 3 never');
    expect(said).toContain('without the 1 templates that it solves blind to 50 %, 60 %, 40 % and 30 %');
    expect(said).not.toContain('[30, 43]');
  });
  it('of the committed record say what it holds', async () => {
    const record = JSON.parse(readFileSync('test/bench/results/desk/seed-1.json', 'utf8')) as Figures,
      { table: text, said } = await deskTables([record], table);
    expect([text, said].join()).not.toMatch(/NaN|undefined/);
    // What an hour comes to is imitation's, of one seed.
    const imitated = record.points.find((p) => p.label === 'warm start')!,
      percent = Math.round((100 * imitated.successes) / imitated.episodes);
    expect(said).toMatch(
      new RegExp(`one seed\\): imitation alone comes to ${percent} % \\[.*\\]: it added nothing that can be told\\.`),
    );
    expect(text).toMatch(/commit [0-9a-f]{8}\./);
    const blind = blindly(record.rows.filter((r) => r.blind && !/^(templates|fresh)/.test(r.label))),
      sum = (label: string): number => {
        const left = Object.entries(record.rows.find((r) => r.label === label)!.perFamily).filter(
          ([name]) => !blind.includes(name),
        );
        return Math.round(
          (100 * left.reduce((n, [, f]) => n + f.successes, 0)) / left.reduce((n, [, f]) => n + f.episodes, 0),
        );
      };
    expect(said).toContain(
      `without the ${blind.length} templates that it solves blind to ${sum('heldout')} %, ${sum('words')} %, ${sum('near')} % and ${sum('looks')} %`,
    );
    expect(text).toContain(`(2 episodes of a template or more): ${blind.length} of the 69 templates.`);
  });
  it('say of how many templates a row is, where it is not of all', async () => {
    const { table: text } = await deskTables([figures([spread('pairs', [20], 'b')])], table);
    expect(lines(text, 'unseen pairs')[0]).toMatch(/^\| unseen pairs of words \(1 of 2 templates\) \|/);
    expect(lines(text, 'unseen words and')[0]).toMatch(/^\| unseen words and numbers \|/);
    // Those never trained on are other ones by their nature.
    expect(lines(text, 'templates never')[0]).toMatch(/^\| templates never trained on \|/);
  });
});

/** Names of which a fifth or more of the episodes succeed, over all of these rows. */
function blindly(rows: readonly Row[]): string[] {
  const names = new Set(rows.flatMap((r) => Object.keys(r.perFamily))),
    sum = (name: string, of: 'episodes' | 'successes'): number =>
      rows.reduce((n, r) => n + (r.perFamily[name]?.[of] ?? 0), 0);
  return [...names].filter((n) => sum(n, 'successes') >= 0.2 * sum(n, 'episodes'));
}

describe('tables of the quick start', () => {
  const imitation = { table: '', sentence: 'Imitation alone' },
    of = (seeds: readonly Figures[]) => quickstartTables({ seeds, learnedBlind: ['desk/a'], imitation }, table);
  it('take the interval of held-out templates over these', async () => {
    const { short, each } = await of([figures(), { ...figures(), seed: 2 }]);
    expect(lines(short, 'templates never')[0]).toMatch(
      /^\| templates never trained on \| {2}\| 36 % \[\d, [67]\d\] \| 0 % \[0, 26\] \|$/,
    );
    expect(each).not.toContain('[30, 43]');
  });
  it('have intervals no narrower than Student of three seeds', async () => {
    const seeds = [1, 2, 3].map((seed) => ({
        ...figures().rows[0]!,
        ...{ seed, label: 'words', episodes: 100, successes: 40 + 10 * seed, perFamily: {} },
      })),
      runs = seeds.map((words, i) => ({ ...figures(), seed: i + 1, rows: [...figures().rows.slice(0, 2), words] })),
      { short, each } = await of(runs);
    // 50, 60, 70: mean 60, half 4.30 x 10 / sqrt(3) = 25.
    expect(lines(short, 'unseen words and')[0]).toContain('| 60 % [35, 85] |');
    expect(each).toMatch(/^Recorded, before commits were kept\.$/m);
  });
  it('have intervals no narrower than one seed, whose tasks all seeds share', async () => {
    const { short } = await of([figures(), { ...figures(), seed: 2 }, { ...figures(), seed: 3 }]);
    // 32 of 40 each: Wilson of 40, and not of 120.
    expect(lines(short, 'unseen words and')[0]).toContain('| 80 % [65, 90] |');
  });
  it('say of how many templates a row is, and of how many that need to see', async () => {
    const { short, each } = await of([figures([spread('pairs', [20], 'a')])]);
    expect(lines(short, 'unseen pairs')[0]).toMatch(
      /^\| unseen pairs of words \(1 of 2 templates, 0 of the 1 that need to see\) \|/,
    );
    expect(each).toContain('| near-duplicates | one other look |');
    const partly = figures(),
      near = partly.rows.map((r) => (r.label === 'near' ? spread('near', [20], 'b') : r));
    expect((await of([{ ...partly, rows: near }])).each).toContain('| near-duplicates (1 of 2 templates) |');
  });
  it('call the other look what it is: one', async () => {
    const { short } = await of([figures()]);
    expect(short).toContain('| one other look (dark, serif, other terminal colours, other places) |');
    expect(short).not.toContain('other looks');
  });
  it('count updates of reinforcement learning, of which lessons are none', async () => {
    expect(updates([figures()])).toBe('41 to 41');
  });
  it('stand beside the records of before, each with its processor', async () => {
    const then = { ...figures(), seed: 7, machine: { cpu: 'Intel(R) Xeon(R) Processor' }, commit: 'beef' },
      earlier = [{ said: 'the network before', runs: [then] }],
      more = { learnedBlind: ['desk/a'], imitation, earlier },
      { short, beside } = await quickstartTables({ seeds: [figures()], ...more }, table);
    expect(short).toContain(
      'these runs made 41 to 41 updates by reinforcement learning in their 20 minutes (AMD EPYC)',
    );
    expect(short).toContain('the network before (Intel Xeon, 41 to 41 updates): other arrangements 75 % [');
    expect(beside).toContain('| in the 20 minutes, all templates | now | the network before |');
    expect(beside).toContain('| seeds | 1 | 7 |');
    expect(beside).toContain('| commit | not kept | beef |');
    expect(lines(beside, 'the same, screen blanked')).toHaveLength(1);
    // A row that one of the records lacks cannot be compared.
    expect(beside).not.toContain('at random');
  });
  it('say which templates cannot be told from blind ones', async () => {
    const more = { learnedBlind: ['desk/a'], unsure: ['desk/b', 'desk/other'], imitation },
      { short } = await quickstartTables({ seeds: [figures()], ...more }, table);
    expect(short).toContain('(one seed; of the other 1, 1 cannot be told from these;');
  });
  it('read files without the rows that came later, and show these where they are', async () => {
    const older = await of([figures()]),
      newer = await of([figures([spread('words-random', [1, 0]), spread('near-blind', [3, 0])])]);
    expect(older.short).not.toContain('at random');
    expect(lines(newer.short, 'the same, a choice at random')[0]).toContain(' 3 % [');
    expect([lines(older.short, 'unseen words among')[0], lines(newer.short, 'unseen words among')[0]]).toEqual([
      expect.stringMatching(/\| {2}\|$/),
      expect.stringMatching(/\| 8 % \[\d, \d+\] \|$/),
    ]);
  });
});

describe('tables of imitation alone', () => {
  const rest = { quickstart: [figures()], learnedBlind: ['desk/a'], own: 600 },
    count = (successes: number): Counts => ({ episodes: 84, successes }),
    old = [
      { section: 'imitation', seed: 1, steps: 3000, seconds: 9, tuned: count(61), reported: { heldout: count(52) } },
      { section: 'pair', seed: 1, rl: count(77), best: count(61) },
      { section: 'removed', mean: 0.7, low: 0.5, high: 0.9 },
    ];
  it('read an older report, and say that it chose where it counted', async () => {
    const t = await imitationTables({ rows: old, ...rest }, table);
    expect(lines(t.table, 'other arrangements |')[0]).toMatch(/^\| other arrangements \| 62 % \[/);
    expect(t.table).toContain('(seed 1 3,000)');
    expect(t.table).toContain('chosen and failures counted on one set');
    expect(t.sentence).toContain('with 3,000 updates instead of 600');
    expect([t.table, t.sentence].join()).not.toMatch(/NaN|undefined/);
  });
  it('have a column for every candidate, and count where nothing was chosen', async () => {
    const one = (steps: number, tuned: number) => ({
        ...{ section: 'imitation', seed: 1, steps, lr: 2e-3, seconds: 9, tuned: count(tuned) },
        reported: { heldout: spread('heldout', [20, 5]), 'heldout-blind': spread('heldout-blind', [20, 0]) },
      }),
      rows = [
        ...[one(600, 50), one(3000, 60), one(8000, 55)],
        {
          section: 'pair',
          seed: 1,
          chosen: { steps: 3000, lr: 2e-3 },
          best: spread('', [20, 5]),
          rl: spread('', [20, 10]),
        },
        { section: 'removed', on: 'heldout', mean: 0.7, low: 0.5, high: 0.9 },
        { section: 'removed, sighted', on: 'heldout', mean: 0.6, low: 0.4, high: 0.8 },
      ],
      t = await imitationTables({ rows, ...rest }, table);
    expect(t.table.split('\n')[0]!.split(' | ')).toHaveLength(5);
    expect(lines(t.table, 'other arrangements, templates that need to see')[0]).toContain('| 25 % [');
    // Of 15 failures 10 are left, as the pair says, whatever an older program made of it.
    expect(t.table).toContain('33 % [-9, 64] on templates that need to see');
    expect(t.sentence).toContain('at its best of 600 updates, 3,000 updates and 8,000 updates');
    expect([t.table, t.sentence].join()).not.toMatch(/NaN|undefined|chosen and failures/);
  });
  it('are refused of a file that has nothing of it, with what to do', async () => {
    await expect(imitationTables({ rows: old.slice(0, 1), ...rest }, table)).rejects.toThrow(/record it again/);
  });
});
