/**
 * Rows of the Experience Pool: coverage of what was never solved, tasks, and the trajectories that are injected or
 * imitated.
 */
import type { PoolEntryRow, PoolFamily, PoolView } from '../../runtime/protocol/types.js';
import { percent, plain, span, steps, t } from '../words.js';
import { lines, list, type Row, type RowIcon } from './rows.js';

/** Tasks that lack a success first, then those with the fewest. */
export function poolOrder(families: readonly PoolFamily[]): readonly PoolFamily[] {
  const rank = (f: PoolFamily): number => (f.neverSolved ? 0 : 1);
  return [...families].sort(
    (a, b) => rank(a) - rank(b) || a.entries.length - b.entries.length || a.family.localeCompare(b.family),
  );
}
/** Tasks that are in the pool, and those that ought to be: nothing that was relabelled is injected. */
export const shownFamilies = (v: PoolView): readonly PoolFamily[] => v.families.filter((f) => f.entries.length > 0);
export const uncovered = (v: PoolView): readonly PoolFamily[] =>
  v.families.filter((f) => f.neverSolved && !f.entries.some((e) => e.enabled && e.source !== 'hindsight'));

export function coverageWords(v: PoolView): string {
  if (v.neverSolved === 0) return '';
  return t('{0} of {1} never-solved tasks covered', v.covered, v.neverSolved);
}
/** Text beside the view's title. */
export const poolDescription = (v: PoolView): string =>
  v.entries === 0 ? coverageWords(v) : list(successesWords(v.entries), coverageWords(v));
const successesWords = (n: number): string => (n === 1 ? t('1 success') : t('{0} successes', n));
const usesWords = (n: number): string =>
  n === 0 ? t('never used') : n === 1 ? t('used once') : t('used {0} times', n);

export function coverageRow(v: PoolView): Row {
  const all = v.covered >= v.neverSolved,
    missing = v.neverSolved - v.covered;
  return {
    id: 'pool coverage',
    label: t('Never-solved tasks'),
    context: 'pool.coverage',
    icon: all ? { id: 'pass', color: 'charts.green' } : { id: 'warning', color: 'list.warningForeground' },
    description: all ? t('all {0} covered', v.neverSolved) : t('{0} of {1} covered', v.covered, v.neverSolved),
    tooltip: lines(
      t(
        'Tasks that the policy has tried and never solved: {0}. Of these {1} have a success in the pool.',
        v.neverSolved,
        v.covered,
      ),
      missing > 0 && t('Without one, every rollout of their groups fails and teaches nothing. Record a demonstration.'),
    ),
    spoken: coverageWords(v),
  };
}
export function uncoveredRow(run: string, f: PoolFamily): Row {
  return {
    id: `pool missing ${run} ${f.family}`,
    label: f.family,
    context: 'pool.missing',
    icon: { id: 'circle-large-outline', color: 'list.warningForeground' },
    description: list(t('0 of {0} rollouts', f.rollouts), f.entries.length > 0 && t('turned off')),
    tooltip: lines(
      `**${plain(f.family)}**`,
      f.title && plain(f.title),
      t('{0} rollouts, none succeeded, and no demonstration is in use.', f.rollouts),
    ),
    spoken: t('{0}, never solved, no demonstration', f.family),
  };
}
export function familyRow(run: string, f: PoolFamily, now: number): Row {
  const rate = f.rate === undefined ? undefined : percent(f.rate),
    sources = [...new Set(f.entries.map((e) => e.source))].map(sourceWord).join(', ');
  return {
    id: `pool family ${run} ${f.family}`,
    label: f.family,
    context: f.neverSolved ? 'pool.family.never' : 'pool.family',
    icon: f.neverSolved ? { id: 'target', color: 'list.warningForeground' } : { id: 'target' },
    description: list(
      successesWords(f.entries.length),
      f.shortest !== undefined && t('shortest {0}', f.shortest),
      f.uses > 0 && usesWords(f.uses),
      f.neverSolved && t('never solved'),
    ),
    tooltip: lines(
      `**${plain(f.family)}**`,
      f.title && plain(f.title),
      `${successesWords(f.entries.length)}${sources === '' ? '' : ` (${sources})`}`,
      f.shortest !== undefined && t('Shortest: {0}', steps(f.shortest)),
      f.newest !== undefined && t('Newest: {0} ago', span(now - f.newest)),
      t('Injected into groups: {0}', usesWords(f.uses)),
      rate === undefined
        ? t('No rollouts yet')
        : t('Success of the newest rollouts {0}, of {1} in total', rate, f.rollouts),
    ),
    spoken: [f.family, successesWords(f.entries.length), f.neverSolved ? t('never solved') : '', usesWords(f.uses)]
      .filter((x) => x !== '')
      .join(', '),
  };
}

export const sourceWord = (s: PoolEntryRow['source']): string =>
  ({
    human: t('human'),
    imported: t('imported'),
    oracle: t('scripted'),
    rollout: t('by the policy'),
    hindsight: t('relabelled'),
  })[s];
const sourceIcons: Readonly<Record<PoolEntryRow['source'], string>> = {
  human: 'person',
  imported: 'cloud-download',
  oracle: 'mortar-board',
  rollout: 'robot',
  hindsight: 'tag',
};
const whyWord = (w: NonNullable<PoolEntryRow['why']>): string =>
  ({ off: t('turned off'), imitated: t('imitated'), 'used up': t('used up'), aged: t('aged') })[w];

export function entryRow(run: string, e: PoolEntryRow, now: number): Row {
  const icon: RowIcon =
    e.usable || e.why === 'imitated'
      ? { id: sourceIcons[e.source] }
      : { id: sourceIcons[e.source], color: 'disabledForeground' };
  const source =
    e.source === 'imported' && e.from
      ? t('imported from {0}', e.from)
      : e.source === 'rollout' && e.version !== undefined
        ? t('policy version {0}', e.version)
        : e.source === 'hindsight' && e.from
          ? t('relabelled from: {0}', e.from)
          : sourceWord(e.source);
  // An entry that is never injected does not count as unused.
  const used = e.source === 'hindsight' ? '' : usesWords(e.uses);
  const state = e.usable ? '' : e.why === undefined ? t('not in use') : whyWord(e.why);
  return {
    id: `pool entry ${run} ${e.rollout}`,
    label: steps(e.steps),
    context: e.enabled ? 'pool.entry.on' : 'pool.entry.off',
    icon,
    checked: e.enabled,
    description: list(source, used, state, e.override !== undefined && t('not verified')),
    tooltip: lines(
      `**${plain(e.task)}**, ${plain(e.rollout)}`,
      e.instruction && plain(e.instruction),
      plain(source),
      steps(e.steps),
      e.addedAt !== undefined && t('Added {0} ago', span(now - e.addedAt)),
      used !== '' && used,
      e.usable
        ? t('The next group in which every rollout fails can get it.')
        : e.why === 'off'
          ? t('Turned off: not injected into groups.')
          : e.why === 'used up'
            ? t('Used as often as the run file allows (curation.pool).')
            : e.why === 'aged'
              ? t('Older than the run file allows (curation.pool).')
              : e.why === 'imitated'
                ? t('Imitated beside the batches, and not injected into groups.')
                : undefined,
      e.override !== undefined && t("Added without the verifier's confirmation: {0}", plain(e.override)),
    ),
    spoken: [source, steps(e.steps), used, state, e.override === undefined ? '' : t('not verified')]
      .filter((x) => x !== '')
      .join(', '),
  };
}
