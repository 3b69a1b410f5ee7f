/** A runtime that somebody forwarded to this machine: an address on loopback, and its token. Plain Node. */
import { protocolVersion, type DiscoveryRecord } from '../../runtime/protocol/version.js';
import { parseDiscovery } from './discovery.js';
import type { RemoteRuntime } from './remote.js';

/**
 * The port of `127.0.0.1:PORT`, `localhost:PORT` or `PORT`, also with `http://` or `ws://`; undefined for anything else:
 * no other machine is connected to.
 */
export function loopbackPort(text: string): number | undefined {
  const port = Number(/^(?:(?:http|ws):\/\/)?(?:(?:127\.0\.0\.1|localhost):)?(\d{1,5})\/?$/i.exec(text.trim())?.[1]);
  return port > 0 && port < 65_536 ? port : undefined;
}
/**
 * The record of a runtime from what was pasted: its whole `daemon.json`, or its token alone; it then listens at `port`
 * where it runs, too.
 */
export function recordFrom(pasted: string, port: number): DiscoveryRecord | undefined {
  const text = pasted.trim();
  return parseDiscovery(
    /^[0-9a-f]{64}$/.test(text)
      ? JSON.stringify({
          pid: 0,
          port,
          token: text,
          protocol: protocolVersion,
          minClient: 1,
          build: { version: '?', time: 0 },
          startedAt: 0,
        })
      : text,
  );
}
/** How long a token is offered at a port of this machine: another program may listen there later. */
export const forwardedPatienceMs = 60_000;
export const forwardedRuntime = (record: DiscoveryRecord, port: number): RemoteRuntime => ({
  name: `127.0.0.1:${port}`,
  patienceMs: forwardedPatienceMs,
  reach: () => Promise.resolve({ record, port }),
  dispose: () => undefined,
});
