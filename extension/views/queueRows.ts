/** Rows of the queue in the Runs view. */
import type { QueueItem } from '../../runtime/protocol/types.js';
import { plain, t } from '../words.js';
import { lines, list, type Row } from './rows.js';

export const queueRow = (runs: number, paused: boolean): Row => ({
  id: 'queue',
  label: t('Queue'),
  description: list(runs === 1 ? t('1 run') : t('{0} runs', runs), paused && t('paused')),
  icon: { id: paused ? 'debug-pause' : 'list-ordered' },
  context: paused ? 'queue.paused' : 'queue',
  tooltip: lines(
    t('These runs start one after another, even when VS Code is closed.'),
    paused && t('The queue is paused: no other run starts.'),
  ),
  spoken: t('Queue, {0} runs', runs),
});
export const queuedRow = (i: QueueItem): Row => {
  const failed = i.state === 'failed',
    away = !failed && i.error !== undefined;
  return {
    id: `queued ${i.id}`,
    label: i.name,
    description: list(
      i.seed !== undefined && t('seed {0}', i.seed),
      failed && t('not started'),
      away && t('waits for desktops'),
    ),
    icon: failed || away ? { id: 'warning', color: 'list.warningForeground' } : { id: 'watch' },
    context: `queued.${i.state}`,
    tooltip: i.error === undefined ? t('Waits for the runs before it.') : plain(i.error),
    spoken: failed
      ? t('{0}, not started', i.name)
      : away
        ? t('{0}, waits for desktops', i.name)
        : t('{0}, waiting', i.name),
  };
};
