// Rates and intervals as pages write them, from files of figures. Intervals over seeds have the variance between seeds in
// them: a hierarchical bootstrap, or Student's t over seeds where that is wider, since draws of two or three seeds cannot
// leave their range. On templates never trained on they have that between templates too.
import { load } from './load.mjs';

const without = (row, families) =>
  Object.entries(row.perFamily)
    .filter(([name]) => !families.includes(name))
    .reduce((sum, [, f]) => ({ successes: sum.successes + f.successes, episodes: sum.episodes + f.episodes }), {
      successes: 0,
      episodes: 0,
    });

export async function figuresText() {
  const { failuresRemoved, hierarchicalBootstrap, outcomesOf, pairedBootstrap, templateBootstrap } =
      await load('runtime/domain/bootstrap.ts'),
    { wilson } = await load('runtime/domain/wilson.ts'),
    { widened } = await load('test/bench/lib/interval.ts'),
    percent = (x) => `${Math.round(100 * x)}`,
    written = ({ mean, low, high }) => `${percent(mean)} % [${percent(low)}, ${percent(high)}]`,
    outcomes = (e) => outcomesOf(e.successes, e.episodes);
  /** One seed: its episodes alone. */
  const one = (e) => {
    const { low, high } = wilson(e.successes, e.episodes);
    return { mean: e.successes / e.episodes, low, high };
  };
  /** The interval of one figure over seeds; undefined without any. */
  const interval = (rows) => {
    const some = rows.filter((r) => r.episodes > 0);
    if (some.length < 2) return some.map(one)[0];
    const all = some.reduce((n, r) => [n[0] + r.successes, n[1] + r.episodes], [0, 0]);
    // Where all episodes ended alike every draw does, which is not certainty.
    if (all[0] === 0 || all[0] === all[1]) return one({ successes: all[0], episodes: all[1] });
    const wide = widened(
      hierarchicalBootstrap(some.map(outcomes)),
      some.map((r) => r.successes / r.episodes),
    );
    return { ...wide, low: Math.max(0, wide.low) };
  };
  const held = (rows) => (rows.length === 0 ? undefined : templateBootstrap(rows.map((r) => r.perFamily)));
  const intervalOf = (label, rows) => (HELD_OUT.test(label) ? held(rows) : interval(rows));
  const text = (of) => (of === undefined ? '' : written(of));
  return {
    percent,
    written,
    without,
    /** Over seeds, on templates that were trained on: whole rows, or anything with episodes and successes. */
    over: (rows) => text(interval(rows)),
    /** The same of a row by its label; of templates that were never trained on over seeds and templates. */
    overRow: (label, rows) => text(intervalOf(label, rows)),
    /** The same as numbers; undefined without rows. */
    intervalOf,
    /** Of pairs [before, after], a seed each: the share of the failures before that are gone after. */
    removed: (pairs) => {
      const runs = pairs.map((p) => p.map(outcomes));
      return widened(
        pairedBootstrap(runs, failuresRemoved),
        runs.map((r) => failuresRemoved([r])),
      );
    },
    widened,
    /** The share of failures that each pair removed. */
    removedBy: (pairs) => pairs.map((p) => failuresRemoved([p.map(outcomes)])),
  };
}
/** Rows of a file in the order of a page: [in words, label]. Blind ones stand beside them, as "LABEL-blind". */
export const ROWS = [
  ['other arrangements of the words of training', 'heldout'],
  ['the same, sampled', 'heldout-sampled'],
  ['unseen words and numbers', 'words'],
  ['the same, a choice at random', 'words-random'],
  ['unseen words among near-duplicates', 'near'],
  ['unseen pairs of words', 'pairs'],
  ['other looks', 'looks'],
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
