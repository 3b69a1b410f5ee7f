import { isAway } from './poolPlace.js';
import type { PoolEvent } from './types.js';

/**
 * The log's entry for a place that was quarantined: every failure with its time, and what the desktop wrote last.
 * `places`: of the pool.
 */
export function quarantineNote(e: Extract<PoolEvent, { type: 'quarantined' }>, places: number): string {
  const lines = e.log.map(({ at, error }) => {
    const said = error.details?.['stderr'];
    const tail = typeof said === 'string' && said.trim() !== '' ? ` [${said.trim().slice(-300)}]` : '';
    return `${new Date(at).toISOString()} ${error.kind}: ${error.message}${tail}`;
  });
  return [
    `Desktop ${e.desktop} failed ${e.log.length} times in a row and is paused for some ${isAway(e.log) ? 'seconds' : 'minutes'}${places > 1 ? '; the others continue' : ''}.`,
    ...lines,
  ].join('\n');
}
