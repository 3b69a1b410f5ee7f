import type { DiscoveryRecord } from '../../runtime/protocol/version.js';
import type { Session } from './session.js';
import type { Log } from './types.js';

/**
 * `Session.open`. The socket and JSON-RPC are two thirds of the extension's code, and are not needed before there is a
 * daemon.
 */
export async function openSession(record: DiscoveryRecord, log: Log, port?: number): Promise<Session> {
  return (await import('./session.js')).Session.open(record, log, port);
}
