/** The verdict on a trajectory, in words. Pure. */
import { isPartial, scoreText } from '../../runtime/protocol/shared.js';
import type { OutcomeKind, TrajectoryView } from '../../runtime/protocol/types.js';
import { t } from '../ui/words.js';

export const outcomeWords: Readonly<Record<OutcomeKind, string>> = {
  success: t('Success'),
  failure: t('Failure'),
  error: t('Error'),
  running: t('Running'),
};
/** Within a sentence. */
export const outcomeLower: Readonly<Record<OutcomeKind, string>> = {
  success: t('success'),
  failure: t('failure'),
  error: t('error'),
  running: t('running'),
};

/** NaN, null, undefined: none. */
export type Reward = number | null | undefined;
const withScore = (word: string, kind: OutcomeKind, reward: Reward): string =>
  isPartial(kind, reward) ? t('{0}, score {1}', word, scoreText(reward)) : word;
/** "Failure, score 0.7": a partial score is said with the outcome. */
export const verdictWords = (kind: OutcomeKind, reward: Reward): string => withScore(outcomeWords[kind], kind, reward);
/** Within a sentence. */
export const verdictLower = (kind: OutcomeKind, reward: Reward): string => withScore(outcomeLower[kind], kind, reward);
/** The verdict for narrow places: "Failure, 0.7". */
export const verdictBrief = (kind: OutcomeKind, reward: Reward): string =>
  isPartial(kind, reward) ? t('{0}, {1}', outcomeWords[kind], scoreText(reward)) : outcomeWords[kind];

/** Words in place of the screenshot of a trajectory without steps. */
export const noStepWords = (
  v: Pick<TrajectoryView, 'live' | 'row'>,
): { readonly icon: string; readonly words: string; readonly busy?: boolean } =>
  v.live
    ? { icon: 'loading', words: t('Waiting for the first step: the desktop is being reset.'), busy: true }
    : {
        icon: 'circle-slash',
        words:
          v.row.outcome === 'error'
            ? t('It ended with an error before its first step.')
            : t('This trajectory has no steps.'),
      };
