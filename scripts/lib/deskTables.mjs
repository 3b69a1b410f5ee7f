// What pages say of the preset desk, from the files that `train --preset desk --figures FILE` wrote, one for each seed.
import { HELD_OUT, ROWS, coverage, figuresText, madeBy, pointOf, rowsOf } from './figuresText.mjs';
import { load } from './load.mjs';

/** What was aimed at: [row, what it is called, goal, bar]. */
const GOALS = [
  ['looks', 'The other look', 0.75],
  ['templates', 'Templates never trained on', 0.4, 0.2],
];

/** `table`: every row with what stands below it; `said`: the figures as the front page says them. */
export async function deskTables(seeds, table) {
  const { intervalOf, over, overRow, percent, removed, without, written } = await figuresText(),
    { solvedBlind } = await load('runtime/run/solvedBlind.ts'),
    runs = [...seeds].sort((a, b) => a.seed - b.seed),
    of = (label) => rowsOf(runs, label),
    // Each seed has its own, told from all rows with a blank screen: older files were told from one of them.
    blindly = runs.map((r) => solvedBlind(r.rows)),
    seeing = (label) => runs.flatMap((r, i) => rowsOf([r], label).map((x) => without(x, blindly[i].families))),
    rate = (rows) => {
      const [won, n] = rows.reduce(([w, k], x) => [w + x.successes, k + x.episodes], [0, 0]);
      return n === 0 ? undefined : won / n;
    },
    short = (rows) => (rate(rows) === undefined ? '–' : `${percent(rate(rows))} %`);
  const families = Object.keys(of('heldout')[0].perFamily),
    untrained = runs.map((r) => pointOf(r, 'untrained')).filter((p) => p),
    measured = ROWS.flatMap(([text, label]) =>
      of(label).length === 0
        ? []
        : [
            [
              `${text}${HELD_OUT.test(label) ? '' : coverage(of(label), families)}`,
              overRow(label, of(label)),
              HELD_OUT.test(label) ? '' : over(seeing(label)),
              overRow(`${label}-blind`, of(`${label}-blind`)),
            ],
          ],
    ),
    gone = removed(runs.map((r) => ['warm start', 'final'].map((l) => pointOf(r, l)))),
    [imitated, after] = ['warm start', 'final'].map((l) => over(runs.map((r) => pointOf(r, l)))),
    added = `imitation alone comes to ${imitated}, and reinforcement learning after it to ${after}: ${gone.low > 0 ? `it removed ${written(gone)} of the failures` : 'it added nothing that can be told'}`,
    trained = families.length,
    blind = [...new Set(blindly.flatMap((b) => b.families))],
    fewest = Math.min(...blindly.map((b) => b.fewest));
  return {
    table: [
      table(
        ['the trained policy on', 'all templates', 'without those that it solves blind', 'all, its screen blanked'],
        [...(untrained.length === 0 ? [] : [['before training', over(untrained), '', '']]), ...measured],
      ),
      [
        `${madeBy(runs)}`,
        `The run's own evaluations: ${timeline(runs[0], over)}${runs.length > 1 ? ` (seed ${runs[0].seed})` : ''}.`,
        `Reinforcement learning removed ${written(gone)} of the failures that imitation had left${gone.low <= 0 ? ': nothing that can be told from none' : ''}.`,
        ...GOALS.map((g) => goal(g, intervalOf(g[0], of(g[0])), written)),
        `Solved blind, a fifth of the time or more over all rows with a blank screen (${fewest} episodes of a template or more): ${blind.length} of the ${trained} templates.`,
        `Templates never trained on: ${heldOut(of('templates'))}; fresh ones: ${heldOut(of('fresh'))}.`,
      ].join(' '),
    ].join('\n\n'),
    said: [
      `- **All ${trained} templates for ${runs[0].minutes} minutes** (\`--preset desk\`, ${runs.length === 1 ? 'one seed' : `${runs.length} seeds`}): ${added}. Measured at the end it comes to ${over(of('heldout'))}, ${short(of('words'))} on unseen words, ${short(of('near'))} among near-duplicates and ${short(of('looks'))} in another look; without the ${blind.length} templates that it solves blind to ${short(seeing('heldout'))}, ${short(seeing('words'))}, ${short(seeing('near'))} and ${short(seeing('looks'))} ([table](test/bench/README.md#all-templates)).`,
      `- **Templates never trained on**: that run comes to ${overRow('templates', of('templates'))} on those of which training has near relatives (${heldOut(of('templates'))}), and to ${overRow('fresh', of('fresh'))} on fresh ones, which were not considered when those of training were chosen (${heldOut(of('fresh'))}).`,
    ].join('\n'),
  };
}

const timeline = (run, over) => run.points.map((p) => `${p.label} ${over([p])}`).join(', ');

function goal([, what, aim, least], interval, written) {
  const is = (x) => `${Math.round(100 * x)} %`,
    said = (x) =>
      interval.mean < x ? 'missed' : interval.low >= x ? 'holds' : 'holds by the mean, not by the interval';
  return `${what}, ${written(interval)}: ${least === undefined ? '' : `bar ${is(least)} ${said(least)}; `}goal ${is(aim)} ${said(aim)}.`;
}

/** "4 of 11 always, 7 never": what an average over templates hides. */
function heldOut(rows) {
  const sums = new Map();
  for (const row of rows)
    for (const [name, f] of Object.entries(row.perFamily)) {
      const [won, n] = sums.get(name) ?? [0, 0];
      sums.set(name, [won + f.successes, n + f.episodes]);
    }
  const all = [...sums.values()],
    count = (is) => all.filter(is).length,
    parts = [
      [count(([won, n]) => won === n), 'always'],
      [count(([won, n]) => won > 0 && won < n), 'sometimes'],
      [count(([won]) => won === 0), 'never'],
    ].filter(([n]) => n > 0);
  return all.length === 0 ? 'none' : `of ${all.length}, ${parts.map(([n, how]) => `${n} ${how}`).join(', ')}`;
}
