/** Clusters of failures in words; pure. */
import type { FailureCluster, Side } from '../../runtime/protocol/types.js';
import type { Action } from '../ui/actions.js';
import { t } from '../ui/words.js';

type Type = Action['type'];
const did: Readonly<Record<Type, string>> = {
  click: t('clicked'),
  left_double: t('double-clicked'),
  right_single: t('right-clicked'),
  drag: t('dragged'),
  scroll: t('scrolled'),
  hotkey: t('pressed keys'),
  type: t('typed'),
  wait: t('waited'),
  finished: t('said it was done'),
  fail: t('gave up'),
};
const doing: Readonly<Record<Type, string>> = {
  click: t('clicking'),
  left_double: t('double-clicking'),
  right_single: t('right-clicking'),
  drag: t('dragging'),
  scroll: t('scrolling'),
  hotkey: t('pressing keys'),
  type: t('typing'),
  wait: t('waiting'),
  finished: t('finishing'),
  fail: t('giving up'),
};
const sides: Readonly<Record<Side, string>> = {
  above: t('above'),
  below: t('below'),
  left: t('to the left of'),
  right: t('to the right of'),
};
const endings: Readonly<Record<FailureCluster['ended'], string>> = {
  finished: t('said it was done'),
  'gave up': t('gave up'),
  'step cap': t('hit the step limit'),
};

/** "typed without clicking first", "clicked 35 px below the right place". */
export function clusterWords(c: FailureCluster): string {
  const mine = c.did === undefined ? '' : did[c.did],
    theirs = c.expected === undefined ? '' : doing[c.expected];
  switch (c.kind) {
    case 'instead':
      if (c.did === 'type' && c.expected === 'click') return t('typed without clicking first');
      return mine === '' || theirs === '' ? t('did something else') : t('{0} instead of {1}', mine, theirs);
    case 'beside':
      return t('{0} {1} px {2} the right place', mine, c.distance ?? 0, c.side ? sides[c.side] : t('from'));
    case 'elsewhere':
      return t('{0} somewhere else, {1} px away', mine, c.distance ?? 0);
    case 'other':
      return c.did === 'type'
        ? t('typed another text')
        : c.did === 'hotkey'
          ? t('pressed other keys')
          : t('scrolled the other way');
    case 'early':
      return theirs === '' ? endings[c.ended] : t('{0} before {1}', endings[c.ended], theirs);
    case 'late':
      return t('continued where successes finish');
    case 'same':
      return t('did what successes do, and failed');
    case 'alone':
      return t('{0}; no success to compare with', endings[c.ended]);
  }
}
/** "usually at step 2 · v3–v7". */
export const clusterFacts = (c: FailureCluster): string =>
  [
    t('usually at step {0}', c.step + 1),
    c.versions === undefined
      ? ''
      : c.versions[0] === c.versions[1]
        ? `v${c.versions[0]}`
        : `v${c.versions[0]}–${c.versions[1]}`,
    c.kind === 'early' || c.kind === 'alone' ? '' : t('then {0}', endings[c.ended]),
  ]
    .filter(Boolean)
    .join(' · ');
