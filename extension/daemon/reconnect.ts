/** Coming back to a runtime that was lost. */
import { FolderWatch } from './discovery.js';
import { asError, type DaemonError, type Log } from './types.js';

/**
 * Calls `attempt` until it succeeds. Rejects with its error when `isOver` says so. Between two attempts `waitMs` pass, or
 * less: until `signal` fires, or something changes in the folder `watched`.
 */
export async function untilConnected(o: {
  readonly attempt: () => Promise<void>;
  readonly isOver: (e: DaemonError) => boolean;
  readonly waitMs: (n: number) => number;
  readonly signal: AbortSignal;
  readonly watched?: string | undefined;
  readonly log: Log;
}): Promise<void> {
  const aborted = new Promise<void>((go) => o.signal.addEventListener('abort', () => go())),
    watch = o.watched === undefined ? undefined : await FolderWatch.open(o.watched);
  try {
    for (let n = 1; ; n++) {
      try {
        await o.attempt();
        return;
      } catch (e) {
        if (o.isOver(asError(e))) throw e;
        o.log('info', `daemon: not there yet (${asError(e).message})`);
      }
      const ms = o.waitMs(n);
      let looked = false;
      if (watch) await watch.until(async () => (looked ? true : void (looked = true)), ms, aborted);
      else await passed(ms, aborted);
    }
  } finally {
    watch?.close();
  }
}
/** `ms`, or less when `sooner` comes before. */
async function passed(ms: number, sooner: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((go) => {
    timer = setTimeout(go, ms);
  });
  await Promise.race([late, sooner]);
  clearTimeout(timer);
}
