import type { Lane } from '../../runtime/protocol/types.js';
import { duration } from './format.js';
import { activityWord } from './lanesInk.js';
import { t } from './words.js';

/** A span in words, `moment` after the start of the run. */
export function spanWords(lane: Lane, span: number, moment: string): string[] {
  const rollout = lane.rollout[span],
    version = lane.version[span] ?? -1;
  return [
    lane.id,
    `${activityWord(lane.what[span]!)} ${duration(lane.ms[span]!)}`,
    t('at {0}', moment),
    ...(rollout ? [t('rollout {0}', rollout)] : []),
    ...(version >= 0 ? [t('version {0}', version)] : []),
  ];
}
