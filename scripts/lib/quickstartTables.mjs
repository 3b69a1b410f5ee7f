// What pages say of the quick start, from the files that `npm run quickstart -- --json FILE` writes, one for each seed.
import { HELD_OUT, ROWS, coverage, figuresText, madeBy, pointOf, rowsOf } from './figuresText.mjs';
import { load } from './load.mjs';

/**
 * `seeds`: the files, in any order; `learnedBlind`: templates that bench:blind found to need no eyes; `unsure`: others that it cannot tell from these; `imitation`: what
 * imitationTables says of imitation alone; `slower`: the files of a slower processor. `short`: the table over all seeds with
 * what stands below it; `all`: that table alone; `each`: a row for each seed. Rows that no seed has, because its file is older, are left out.
 */
export async function quickstartTables({ seeds, learnedBlind, unsure = [], imitation, slower = [] }, table) {
  const { over, overRow, removed, without, written } = await figuresText(),
    { solvedBlind } = await load('runtime/run/solvedBlind.ts'),
    runs = [...seeds].sort((a, b) => a.seed - b.seed),
    families = Object.keys(runs[0].points[0].perFamily),
    learned = learnedBlind.filter((f) => families.includes(f)),
    seeing = families.filter((f) => !learned.includes(f)),
    doubted = unsure.filter((f) => families.includes(f)).length,
    sighted = (row) => without(row, learned),
    named = (list) => list.map((f) => `\`${f.replace('desk/', '')}\``).join(', '),
    byRL = (of, which = (e) => e) =>
      written(removed(of.map((r) => ['warm start', 'final'].map((l) => which(pointOf(r, l)))))),
    // Of templates that it was not trained on, bench:blind says nothing.
    known = (label) => !HELD_OUT.test(label),
    row = (text, label, of, blind = []) => [
      `${text}${known(label) ? coverage(of, families, seeing) : ''}`,
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
    onSlower = (of) => {
      const whole = (label) => overRow(label, rowsOf(of, label));
      return `- **On a slower processor** (${of[0].machine.cpu}, today's network \`reader-3\`, ${of.length} seeds, ${updates(of)} updates by reinforcement learning in the 20 minutes where the runs above made ${updates(runs)}): other arrangements ${whole('heldout')}, unseen words ${whole('words')}, near-duplicates ${whole('near')}, the other look ${whole('looks')}, templates never trained on ${whole('templates')}, its screen blanked ${whole('heldout-blind')}; of the failures that imitation had left in the run reinforcement learning removed ${byRL(of)} ([all rows](test/bench/README.md#on-a-slower-processor)).`;
    },
    chance = rowsOf(runs, 'words-random').length > 0,
    measured = ROWS.flatMap(([text, label]) => {
      const of = rowsOf(runs, label);
      return of.length === 0 ? [] : [row(text, label, of, rowsOf(runs, `${label}-blind`))];
    });
  const all = table(
    ['policy and tasks', 'templates that need to see', 'all templates', 'all, its screen blanked'],
    [...points, ...measured],
  );
  return {
    all,
    short: [
      all,
      [
        `- **What reinforcement learning adds**, on tasks for tuning (other arrangements): it removed ${byRL(runs, sighted)} of the failures that imitation had left on templates that need to see, ${byRL(runs)} on all. ${imitation.sentence} ([how](test/bench/README.md#imitation-alone)).`,
        `- **${learned.length} of the ${families.length} templates need no eyes**: a policy that was trained on blank screens for as long solves a fifth of their episodes or more (one seed${doubted === 0 ? '' : `; of the other ${families.length - learned.length}, ${doubted} cannot be told from these`}; [which](test/bench/results/blind/blind.md)). The trained policy, its screen blanked, solves a fifth or more of ${named(solvedBlind(runs.flatMap((r) => r.rows)).families)}.`,
        ...(slower.length > 0 ? [onSlower(slower)] : []),
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
          `near-duplicates${coverage(rowsOf(runs, 'near'), families)}`,
          'one other look',
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

/** How many updates of reinforcement learning the runs made, lessons not counted: "27 to 41". */
export function updates(runs) {
  const made = runs.map((r) => pointOf(r, 'final').version - pointOf(r, 'warm start').version);
  return `${Math.min(...made)} to ${Math.max(...made)}`;
}
