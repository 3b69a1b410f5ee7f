// What pages say of the quick start, from the files that `npm run quickstart -- --json FILE` writes, one for each seed.
import { HELD_OUT, ROWS, coverage, figuresText, madeBy, pointOf, rowsOf } from './figuresText.mjs';
import { load } from './load.mjs';

/**
 * `seeds`: the files, in any order; `learnedBlind`: templates that bench:blind found to need no eyes; `unsure`: others that it cannot tell from these; `imitation`: what
 * imitationTables says of imitation alone; `earlier`: records of before, each with `said`, what they are of, and its
 * `runs`. `short`: the table over all seeds with what stands below it; `each`: a row for each seed; `beside`: the records of
 * before beside these. Rows that no seed has, because its file is older, are left out.
 */
export async function quickstartTables({ seeds, learnedBlind, unsure = [], imitation, earlier = [] }, table) {
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
    whole = (label, of) => overRow(label, rowsOf(of, label)),
    before = ({ said, runs: of }) =>
      `${said} (${processors(of)}, ${updates(of)} updates): other arrangements ${whole('heldout', of)}, unseen words ${whole('words', of)}, near-duplicates ${whole('near', of)}, the other look ${whole('looks', of)}`,
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
        `- **${learned.length} of the ${families.length} templates need no eyes**: a policy that was trained on blank screens for as long solves a fifth of their episodes or more (one seed${doubted === 0 ? '' : `; of the other ${families.length - learned.length}, ${doubted} cannot be told from these`}; [which](test/bench/results/blind/blind.md)). The trained policy, its screen blanked, solves a fifth or more of ${named(solvedBlind(runs.flatMap((r) => r.rows)).families)}.`,
        ...(earlier.length > 0
          ? [
              `- **Another processor, other weights**: these runs made ${updates(runs)} updates by reinforcement learning in their 20 minutes (${processors(runs)}). Records of before: ${earlier.map(before).join('; ')} ([all rows](test/bench/README.md#the-records-before)).`,
            ]
          : []),
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
    beside: besideTable([{ said: 'now', runs }, ...earlier], { over, whole, byRL }, table),
  };
}

/** Records of the quick start side by side, over the seeds of each. */
function besideTable(records, { over, whole, byRL }, table) {
  const row = (text, of) => [text, ...records.map((r) => of(r.runs))],
    point = (label) => (of) => over(of.map((r) => pointOf(r, label)));
  return table(
    ['in the 20 minutes, all templates', ...records.map((r) => r.said)],
    [
      row('seeds', (of) => of.map((r) => r.seed).join(', ')),
      row('processor', processors),
      row('updates by reinforcement learning', updates),
      row('set for tuning: after imitation', point('warm start')),
      row('at the end', point('final')),
      row('of the failures between, removed', (of) => byRL(of)),
      ...ROWS.filter(([, label]) => records.every((r) => rowsOf(r.runs, label).length > 0)).flatMap(([text, label]) => [
        row(text, (of) => whole(label, of)),
        ...(label === 'heldout' ? [row('the same, screen blanked', (of) => whole('heldout-blind', of))] : []),
      ]),
      row('commit', (of) => [...new Set(of.map((r) => r.commit ?? 'not kept'))].join(', ')),
    ],
  );
}
const processors = (runs) => [...new Set(runs.map((r) => r.machine.cpu.replace(/\(R\)| Processor/g, '')))].join(', ');

/** How many updates of reinforcement learning the runs made, lessons not counted: "27 to 41". */
export function updates(runs) {
  const made = runs.map((r) => pointOf(r, 'final').version - pointOf(r, 'warm start').version);
  return `${Math.min(...made)} to ${Math.max(...made)}`;
}
