import { evaluationText, onTemplates } from '../domain/evaluationInterval.js';
import { intervalText, rateText } from '../domain/stats.js';
import type { FiguresRow, RunFigures } from '../run/figures.js';
import { table, text } from './html.js';

const NAMES: Readonly<Record<FiguresRow['split'], string>> = {
  train: 'training tasks',
  heldout: 'other arrangements of the words of training',
  words: 'unseen words and numbers',
  near: 'unseen words among near-duplicates',
  pairs: 'unseen pairs of words',
  looks: 'one other look (dark, serif, other terminal colours, other places)',
  places: 'places of windows alone',
  styles: 'themes and letters alone',
  templates: 'templates never trained on',
  fresh: 'fresh templates',
};
export const rowName = (r: Pick<FiguresRow, 'split' | 'sampled' | 'blind' | 'random' | 'trained'>): string =>
  `${r.trained ? 'tasks that are trained (none is held out)' : NAMES[r.split]}${r.random ? ', a choice at random' : r.sampled ? ', sampled' : ''}${r.blind ? ', screen blanked' : ''}`;

/** The results of the final policy on everything held out (`train --figures`). */
export function figuresSection(f: RunFigures): string {
  const removed = f.failures_removed_by_rl_interval,
    untrained = f.points.filter((p) => p.label === 'untrained'),
    families = f.rows.find((r) => r.split === 'heldout' && !r.sampled && !r.blind)?.perFamily ?? {},
    blind = f.rows.find((r) => r.split === 'heldout' && r.blind)?.perFamily ?? {};
  return `<h2>Success of the trained policy</h2>
${table(
  `Measured ${f.at}${f.commit === undefined ? '' : `, commit ${f.commit}`}`,
  ['Tasks', 'Success [95 %]', 'Episodes', 'Errors'],
  [
    ...untrained.map((p) => [
      "before training, on the tasks of the run's own evaluations",
      text(rateText(p.successes, p.episodes)),
      text(p.episodes),
      text(p.errors),
    ]),
    ...f.rows.map((r) => [
      text(rowName(r)),
      text(evaluationText(r.split, r)),
      text(`${r.episodes}${onTemplates(r.split, r)}`),
      text(r.errors),
    ]),
  ],
)}
<p>An episode that ended in an error is among the episodes and is no success. Intervals are over episodes; on templates that were not trained on they are over these templates and the episodes of each, since a template is often solved always or never.${
    removed
      ? ` Reinforcement learning removed ${text(intervalText(removed.mean, removed.low, removed.high))} of the failures that imitation left.`
      : ''
  }</p>
${table(
  'By family, on other arrangements of the words of training',
  ['Family', 'Success [95 %]', 'Screen blanked'],
  Object.entries(families).map(([name, n]) => {
    const b = blind[name];
    return [text(name), text(rateText(n.successes, n.episodes)), b ? text(rateText(b.successes, b.episodes)) : ''];
  }),
)}`;
}
