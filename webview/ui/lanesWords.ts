/** The lanes in words: one span, and the whole window. */
import type { Lanes } from '../../runtime/protocol/types.js';
import { duration } from './format.js';
import { activityWord, kindName } from './lanesInk.js';
import { underWay } from './lanesLoad.js';
import { shares, syncBands, type SlotLane, type Window } from './lanesMath.js';
import { t } from './words.js';

/**
 * A span in words, `moment` after the start of the run. Of a replica that answers `concurrency` calls at a time
 * also how full it was in the window that is shown.
 */
export function spanWords(lane: SlotLane, span: number, moment: string, w: Window, concurrency?: number): string[] {
  const rollout = lane.rollout[span],
    version = lane.version[span] ?? -1;
  return [
    lane.names?.[span] ?? lane.id,
    `${activityWord(lane.what[span]!)} ${duration(lane.ms[span]!)}`,
    t('at {0}', moment),
    ...(rollout ? [t('rollout {0}', rollout)] : []),
    ...(version >= 0 ? [t('version {0}', version)] : []),
    ...(lane.kind === 'replica' && concurrency !== undefined ? [underWay([lane], w, concurrency)] : []),
  ];
}
/** A sentence on the window for screen readers. `origin`: 0 of the run's clock, which `moment` tells. */
export function summaryWords(known: Lanes, w: Window, origin: number, moment: (ms: number) => string): string {
  const busyKinds = (['trainer', 'replica', 'desktop'] as const)
    .filter((k) => known.lanes.some((l) => l.kind === k))
    .map((k) => busyWords(known, k, w));
  const syncs = syncBands(known.syncs).filter((b) => b.to >= w.from && b.from <= w.to).length;
  return t(
    'From {0} to {1}: {2}. {3} weight syncs.',
    moment(w.from - origin),
    moment(w.to - origin),
    busyKinds.join('; ') || t('nothing recorded'),
    syncs,
  );
}
/** How busy the lanes of a kind are, with the three activities that take most of the time. */
function busyWords(known: Lanes, kind: 'desktop' | 'replica' | 'trainer', w: Window): string {
  const { concurrency } = known;
  if (kind === 'replica' && concurrency !== undefined)
    return `${kindName[kind]} ${underWay(known.lanes, w, concurrency)}`;
  const s = shares(known.lanes, kind, w),
    busy = Math.round(s.busy * 100);
  const most = [...s.by]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .map(([a, v]) => `${activityWord(a)} ${Math.round(v * 100)} %`);
  return most.length
    ? t('{0} busy {1} % ({2})', kindName[kind], busy, most.join(', '))
    : t('{0} busy {1} %', kindName[kind], busy);
}
