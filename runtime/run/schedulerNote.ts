import type { SchedulerEvent } from '../rollout/types.js';

/** The message for people while no rollout begins for a while. */
export function schedulerNote(e: SchedulerEvent): string | undefined {
  if (e.type === 'leaseFailed') return `No desktop: ${e.error.message} ${e.error.remedy}`;
  if (e.type !== 'failing') return undefined;
  const { inARow, pauseMs, error } = e;
  return `${inARow} rollouts in a row ended in errors, so the next begins in ${pauseMs / 1000} s: ${error.message} ${error.remedy}`;
}
