/** A runtime that is not this machine's own: where it is, and how long it is worth seeking. Plain Node. */
import type { DiscoveryRecord } from '../../runtime/protocol/version.js';
import { cancelledWords } from './kubectl.js';
import { openSession } from './openSession.js';
import type { Session } from './session.js';
import { asError, DaemonError, type Log, type RequestErrorKind } from './types.js';

const lasting: ReadonlySet<RequestErrorKind> = new Set<RequestErrorKind>([
  'remote.program',
  'remote.invalid',
  'remote.rights',
  'remote.gone',
  'remote.token',
  'protocol.mismatch',
]);
/** Whether trying again by itself cannot help. */
export const isLasting = (kind: RequestErrorKind): boolean => lasting.has(kind);

/** An API server that restarts refuses what it allows a moment later. */
const mostRefusals = 8;
/**
 * Whether coming back to it is over, asked once after each attempt that failed. Another machine may come back after
 * hours; what leads there is not waited for when it cannot.
 */
export function remotePatience(
  remote: Pick<RemoteRuntime, 'patienceMs'>,
  since: number,
): (kind: RequestErrorKind, now: number) => boolean {
  let refusals = 0;
  return (kind, now) => {
    if (now - since > (remote.patienceMs ?? Infinity)) return true;
    refusals = kind === 'remote.rights' ? refusals + 1 : 0;
    return kind === 'remote.rights' ? refusals >= mostRefusals : isLasting(kind);
  };
}

/** How it is reached at this moment. */
export interface Way {
  /** The runtime's own record, as it is where it runs. */
  readonly record: DiscoveryRecord;
  /** Port on 127.0.0.1 of this machine. */
  readonly port: number;
}
export interface RemoteRuntime {
  /** Name for people: the pod, or the address. */
  readonly name: string;
  /** ms for which it is sought when it was lost; without it for as long as the window is attached. */
  readonly patienceMs?: number;
  /** A new way to it; the one before has ended. Rejects with a DaemonError, `cancelled` when the signal fires. */
  reach(signal?: AbortSignal): Promise<Way>;
  /** Ends what leads to it. */
  dispose(): void;
}

/** A connection to it, before any hello. */
export async function openRemote(remote: RemoteRuntime, log: Log, signal?: AbortSignal): Promise<Session> {
  const { record, port } = await remote.reach(signal);
  try {
    return await openSession(record, log, port);
  } catch (e) {
    const { message } = asError(e);
    throw /server response: 401\b/.test(message)
      ? new DaemonError(
          'remote.token',
          `What answers for ${remote.name} does not take this token.`,
          'Attach again with the token of the runtime that runs there now.',
        )
      : new DaemonError(
          'remote.unreachable',
          `The runtime of ${remote.name} does not answer: ${message}`,
          'Look whether it still runs, then attach again.',
        );
  }
}

/** Throws when attaching was cancelled meanwhile. */
export function wanted(session: Session, signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return;
  session.close();
  throw cancelledWords();
}

/** The runtime of another build is never replaced from here: it trains. */
export const otherVersion = (remote: RemoteRuntime, e: DaemonError): DaemonError =>
  e.kind === 'protocol.mismatch'
    ? new DaemonError(
        e.kind,
        `The runtime of ${remote.name} is of another version than this extension: ${e.message}`,
        'Install the version of the extension that its image was made from.',
      )
    : e;
export const goneWords = (remote: RemoteRuntime, why: string | undefined): DaemonError =>
  new DaemonError(
    'remote.gone',
    `The runtime of ${remote.name} has ended${why ? `: ${why}` : ''}.`,
    'Choose Detach from Runtime to go back to the one of this machine.',
  );
