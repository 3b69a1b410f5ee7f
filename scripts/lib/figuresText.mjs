// Rates and intervals as pages write them, from files of figures. Intervals over seeds have the variance between seeds in
// them: a hierarchical bootstrap, or Student's t over seeds where that is wider, since draws of two or three seeds cannot
// leave their range; and none is narrower than one seed's, since all are asked the same tasks. On templates never trained on
// they have that between templates too.
import { load } from './load.mjs';

const without = (row, families) =>
  Object.entries(row.perFamily)
    .filter(([name]) => !families.includes(name))
    .reduce((sum, [, f]) => ({ successes: sum.successes + f.successes, episodes: sum.episodes + f.episodes }), {
      successes: 0,
      episodes: 0,
    });

export async function figuresText() {
  const { templateBootstrap } = await load('runtime/domain/bootstrap.ts'),
    { removedInterval, successInterval } = await load('test/bench/lib/interval.ts'),
    percent = (x) => `${Math.round(100 * x)}`,
    written = ({ mean, low, high }) =>
      `${percent(mean)} % [${Number.isFinite(low) ? percent(low) : 'no lower end'}, ${percent(high)}]`;
  const held = (rows) => (rows.length === 0 ? undefined : templateBootstrap(rows.map((r) => r.perFamily)));
  const intervalOf = (label, rows) => (HELD_OUT.test(label) ? held(rows) : successInterval(rows));
  const text = (of) => (of === undefined ? '' : written(of));
  return {
    percent,
    written,
    without,
    /** Over seeds, on templates that were trained on: whole rows, or anything with episodes and successes. */
    over: (rows) => text(successInterval(rows)),
    /** The same of a row by its label; of templates that were never trained on over seeds and templates. */
    overRow: (label, rows) => text(intervalOf(label, rows)),
    /** The same as numbers; undefined without rows. */
    intervalOf,
    /** Of pairs [before, after], a seed each: the share of the failures before that are gone after. */
    removed: removedInterval,
  };
}
/** The look of `looks`, in which it is the only one (`DRESSES.test` of the desk suite). */
export const LOOK = 'dark, serif, other terminal colours, other places';
/** Rows of a file in the order of a page: [in words, label]. Blind ones stand beside them, as "LABEL-blind". */
export const ROWS = [
  ['other arrangements of the words of training', 'heldout'],
  ['the same, sampled', 'heldout-sampled'],
  ['unseen words and numbers', 'words'],
  ['the same, a choice at random', 'words-random'],
  ['unseen words among near-duplicates', 'near'],
  ['unseen pairs of words', 'pairs'],
  [`one other look (${LOOK})`, 'looks'],
  ['templates never trained on', 'templates'],
  ['fresh templates', 'fresh'],
];
/** Rows about templates that were not trained on. */
export const HELD_OUT = /^(templates|fresh)(-|$)/;
/** The same of every seed that has it. */
export const rowsOf = (runs, label) => runs.map((r) => r.rows.find((x) => x.label === label)).filter((x) => x);
/** Which commits files of figures are of; older files do not say. */
export function madeBy(runs) {
  const commits = [...new Set(runs.map((r) => r.commit ?? ''))],
    days = [...new Set(runs.map((r) => r.at?.slice(0, 10)).filter((d) => d))].join(', ');
  return `Recorded${days === '' ? '' : ` on ${days}`}${commits.map((c) => (c === '' ? ', before commits were kept' : `, commit ${c}`)).join('')}.`;
}
export const pointOf = (run, label) => run.points.findLast((p) => p.label === label);
/**
 * Which templates rows cover, where these are not all: " (9 of 21 templates)". `seeing`: those of them that need to see, if
 * they are counted apart.
 */
export function coverage(rows, all, seeing) {
  const asked = new Set(rows.flatMap((r) => Object.keys(r.perFamily ?? {}))),
    of = (names) => `${names.filter((f) => asked.has(f)).length} of`,
    covers = (names) => names.every((f) => asked.has(f));
  if (asked.size === 0 || covers(all)) return '';
  return ` (${of(all)} ${all.length} templates${seeing ? `, ${of(seeing)} the ${seeing.length} that need to see` : ''})`;
}
