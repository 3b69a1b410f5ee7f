/** The exchange with a daemon before and after a connection. */
import type { HelloResult } from '../../runtime/protocol/requests.js';
import type { HostError } from '../../webview/protocol.js';
import { readDiscovery } from './discovery.js';
import { openSession } from './openSession.js';
import type { Session } from './session.js';
import { DaemonError, type GoingDown, type Log } from './types.js';

/** A daemon that shuts down with an active run takes this long at most. */
const goingMs = 330_000;

export const stopped = (): DaemonError =>
  new DaemonError('daemon.stopped', 'The runtime is not running.', 'Start the runtime.');

/**
 * Connects to the daemon of the record, without a hello yet, because an incompatible one can be asked to leave, too.
 */
export async function knock(storage: string, log: Log): Promise<Session | undefined> {
  const record = await readDiscovery(storage);
  try {
    return record && (await openSession(record, log));
  } catch (e) {
    log('info', `daemon: ${(e as Error).message}`);
    return undefined;
  }
}
/** Asks an older daemon to end; false when it will end only after a run or a long job. */
export async function sendAway(session: Session, log: Log): Promise<boolean> {
  const { waitingFor, busy } = await session.request('daemon/drain', {}),
    { version, time } = session.record.build,
    works = waitingFor.length > 0 || busy === true;
  log(
    'info',
    `the runtime is of an older build, ${version} of ${new Date(time).toISOString()}; it is replaced ${works ? 'when its work ends' : 'now'}`,
  );
  if (works) return false;
  await untilGone(session);
  return true;
}
/** Rejects with `timeout` when the daemon takes longer to close its run than any does. */
export async function untilGone(session: Session): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_done, fail) => {
    timer = setTimeout(
      () =>
        fail(
          new DaemonError(
            'timeout',
            `The runtime (pid ${session.record.pid}) is still shutting down.`,
            'Try again later, or end that process.',
          ),
        ),
      goingMs,
    );
  });
  try {
    await Promise.race([session.closed, late]);
  } finally {
    clearTimeout(timer);
  }
}
/** Why the connection ended, in words; `restarts`: a new daemon is being started. */
export function whyLost(last: GoingDown | undefined, restarts: boolean): HostError {
  if (last?.reason === 'drained')
    return {
      kind: 'connection.lost',
      message: 'The runtime is being replaced by a newer one.',
      remedy: 'Wait a moment.',
    };
  return {
    kind: 'connection.lost',
    message:
      last?.reason === 'fault'
        ? `The runtime ended with an error: ${last.message ?? 'see the log'}.`
        : 'The runtime ended, or stopped responding.',
    remedy: restarts
      ? 'It is being started again. A run it was training can be resumed.'
      : 'Start the runtime. A run it was training can be resumed.',
  };
}
/** Words about a daemon of an older build that works and is replaced later. */
export const olderWords = (hello: HelloResult): HostError => ({
  kind: 'daemon.older',
  message: `The runtime is of an older build (${hello.build.version}) because a run is active.`,
  remedy: 'It restarts automatically when the run ends.',
});
