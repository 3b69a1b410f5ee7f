// What pages say of the quick start, from the files that `npm run quickstart -- --json FILE` writes, one for each seed.
import { HELD_OUT, ROWS, figuresText, madeBy, pointOf, rowsOf } from './figuresText.mjs';

/** A template that the policy solves as often with its screen blanked needs no eyes. */
const BLIND_SHARE = 0.2;

/**
 * `seeds`: the files, in any order; `learnedBlind`: templates that bench:blind found to need no eyes; `unsure`: others that it cannot tell from these; `imitation`: what
 * imitationTables says of imitation alone. `short`: the table over all seeds with what stands below it; `each`: a row for
 * each seed. Rows that no seed has, because its file is older, are left out.
 */
export async function quickstartTables({ seeds, learnedBlind, unsure = [], imitation }, table) {
  const { over, overRow, removed, without, written } = await figuresText(),
    runs = [...seeds].sort((a, b) => a.seed - b.seed),
    families = Object.keys(runs[0].points[0].perFamily),
    learned = learnedBlind.filter((f) => families.includes(f)),
    doubted = unsure.filter((f) => families.includes(f)).length,
    sighted = (row) => without(row, learned),
    named = (list) => list.map((f) => `\`${f.replace('desk/', '')}\``).join(', '),
    byRL = (of, which = (e) => e) =>
      written(removed(of.map((r) => ['warm start', 'final'].map((l) => which(pointOf(r, l)))))),
    // Of templates that it was not trained on, bench:blind says nothing.
    known = (label) => !HELD_OUT.test(label),
    row = (text, label, of, blind = []) => [
      text,
      known(label) ? over(of.map(sighted)) : '',
      overRow(label, of),
      overRow(label, blind),
    ];
  const points = [
      ['the run’s own evaluations, on tasks for tuning: untrained', 'untrained'],
      ['after imitation', 'warm start'],
      ['after reinforcement learning', 'final'],
    ].map(([text, label]) =>
      row(
        text,
        label,
        runs.map((r) => pointOf(r, label)),
      ),
    ),
    chance = rowsOf(runs, 'words-random').length > 0,
    measured = ROWS.flatMap(([text, label]) => {
      const of = rowsOf(runs, label);
      return of.length === 0 ? [] : [row(text, label, of, rowsOf(runs, `${label}-blind`))];
    });
  return {
    short: [
      table(
        ['policy and tasks', 'templates that need to see', 'all templates', 'all, its screen blanked'],
        [...points, ...measured],
      ),
      [
        `- **What reinforcement learning adds**, on tasks for tuning (other arrangements): it removed ${byRL(runs, sighted)} of the failures that imitation had left on templates that need to see, ${byRL(runs)} on all. ${imitation.sentence} ([how](test/bench/README.md#imitation-alone)).`,
        `- **${learned.length} of the ${families.length} templates need no eyes**: a policy that was trained on blank screens for as long solves a fifth of their episodes or more (one seed${doubted === 0 ? '' : `; of the other ${families.length - learned.length}, ${doubted} cannot be told from these`}; [which](test/bench/results/blind/blind.md)). The trained policy, its screen blanked, solves a fifth or more of ${named(blindFamilies(rowsOf(runs, 'heldout-blind')))}.`,
      ].join('\n'),
    ].join('\n\n'),
    each: [
      table(
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
          ...(chance ? ['random'] : []),
          'errors',
        ],
        runs.map((r) => [
          r.seed,
          ...['untrained', 'warm start', 'final'].map((l) => over([pointOf(r, l)])),
          byRL([r]),
          ...['words', 'near', 'looks', 'templates', 'heldout-blind', ...(chance ? ['words-random'] : [])].map((l) =>
            overRow(l, rowsOf([r], l)),
          ),
          r.rows.reduce((n, x) => n + x.errors, 0),
        ]),
      ),
      madeBy(runs),
    ].join('\n\n'),
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
