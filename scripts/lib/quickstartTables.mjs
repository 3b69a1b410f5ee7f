// What pages say of the quick start, from the files that `npm run quickstart -- --json FILE` writes, one for each seed.
import { load } from './load.mjs';

/** A template that the policy solves as often with its screen blanked needs no eyes. */
const BLIND_SHARE = 0.2;
const ROWS = [
  ['other arrangements of the words of training', 'heldout'],
  ['the same, sampled', 'heldout-sampled'],
  ['unseen words and numbers', 'words'],
  ['unseen words among near-duplicates', 'near'],
  ['unseen pairs of words', 'pairs'],
  ['other looks', 'looks'],
  ['templates never trained on', 'templates'],
];

/**
 * `seeds`: the files, in any order; `learnedBlind`: templates that bench:blind found to need no eyes; `imitation`: rows of
 * bench:imitation. `short`: the table over all seeds with what stands below it; `each`: a row for each seed. Intervals over
 * seeds are hierarchical bootstraps: they have the variance between seeds in them.
 */
export async function quickstartTables({ seeds, learnedBlind, imitation }, table) {
  const { failuresRemoved, hierarchicalBootstrap, outcomesOf, pairedBootstrap } =
      await load('runtime/domain/bootstrap.ts'),
    { wilson } = await load('runtime/domain/stats.ts'),
    { PRESETS } = await load('runtime/config/index.ts'),
    runs = [...seeds].sort((a, b) => a.seed - b.seed),
    percent = (x) => `${Math.round(100 * x)}`,
    written = ({ mean, low, high }) => `${percent(mean)} % [${percent(low)}, ${percent(high)}]`,
    outcomes = (e) => outcomesOf(e.successes, e.episodes),
    rowsOf = (label) => runs.map((r) => r.rows.find((x) => x.label === label)).filter((x) => x),
    over = (rows) => (rows.length === 0 ? '' : written(hierarchicalBootstrap(rows.map(outcomes)))),
    point = (r, label) => r.points.findLast((p) => p.label === label),
    one = (e) => {
      const { low, high } = wilson(e.successes, e.episodes);
      return written({ mean: e.successes / e.episodes, low, high });
    },
    removed = (of, which = (e) => e) =>
      written(
        pairedBootstrap(
          of.map((r) => ['warm start', 'final'].map((l) => outcomes(which(point(r, l))))),
          failuresRemoved,
        ),
      );
  const families = Object.keys(runs[0].points[0].perFamily),
    learned = learnedBlind.filter((f) => families.includes(f)),
    sighted = (row) => without(row, learned),
    named = (list) => list.map((f) => `\`${f.replace('desk/', '')}\``).join(', '),
    // Of templates that it was not trained on, bench:blind says nothing.
    known = (row) => Object.keys(row.perFamily).every((f) => families.includes(f)),
    rows = (text, of, blind = []) => [text, over(of.filter(known).map(sighted)), over(of), over(blind)];
  const longer = imitation.filter((r) => r.section === 'imitation'),
    atBest = imitation.find((r) => r.section === 'removed');
  return {
    short: [
      table(
        ['the trained policy on', 'templates that need to see', 'all templates', 'all, its screen blanked'],
        [
          ...[
            ['evaluations of the run: untrained', 'untrained'],
            ['after imitation', 'warm start'],
            ['after reinforcement learning', 'final'],
          ].map(([text, label]) =>
            rows(
              text,
              runs.map((r) => point(r, label)),
            ),
          ),
          ...ROWS.map(([text, label]) => rows(text, rowsOf(label), rowsOf(`${label}-blind`))),
        ],
      ),
      `Reinforcement learning removed ${removed(runs, sighted)} of the failures that imitation had left on templates that need to see, ${removed(runs)} on all. Imitation alone, with ${longer[0].steps} updates instead of ${PRESETS.quickstart.warmStart.steps}, comes to ${over(longer.map((r) => r.tuned))} on all; of what imitation leaves at its best, reinforcement learning removes ${written(atBest)} ([how](test/bench/README.md#imitation-alone)). ${learned.length} of the ${families.length} templates need no eyes: a policy that was trained on blank screens for as long solves a fifth of their episodes or more ([which](test/bench/results/blind/blind.md)). The trained policy, its screen blanked, solves as much of ${named(blindFamilies(rowsOf('heldout-blind')))}.`,
    ].join('\n\n'),
    each: table(
      [
        'seed',
        'untrained',
        'after imitation',
        'after RL',
        'failures removed by RL',
        'unseen words',
        'near-duplicates',
        'other looks',
        'held-out templates',
        'blind',
        'errors',
      ],
      runs.map((r) => [
        r.seed,
        ...['untrained', 'warm start', 'final'].map((l) => one(point(r, l))),
        removed([r]),
        ...['words', 'near', 'looks', 'templates', 'heldout-blind'].map((l) => one(r.rows.find((x) => x.label === l))),
        r.rows.reduce((n, x) => n + x.errors, 0),
      ]),
    ),
  };
}

function blindFamilies(rows) {
  const sums = new Map();
  for (const row of rows)
    for (const [name, f] of Object.entries(row.perFamily)) {
      const [won, n] = sums.get(name) ?? [0, 0];
      sums.set(name, [won + f.successes, n + f.episodes]);
    }
  return [...sums].filter(([, [won, n]]) => won >= BLIND_SHARE * n).map(([name]) => name);
}
const without = (row, families) =>
  Object.entries(row.perFamily)
    .filter(([name]) => !families.includes(name))
    .reduce((sum, [, f]) => ({ successes: sum.successes + f.successes, episodes: sum.episodes + f.episodes }), {
      successes: 0,
      episodes: 0,
    });
