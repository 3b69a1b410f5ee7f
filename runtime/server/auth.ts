import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { socketPath } from '../protocol/version.js';

export type Refusal = 'path' | 'host' | 'origin' | 'token';

/**
 * Whether an upgrade request is from a client of ours; undefined when it is, else the first check it failed. A web page
 * always sends an Origin, also a page of this machine, and a rebound name shows in Host: both are refused before the
 * token is checked.
 */
export function refusal(
  req: { readonly url?: string | undefined; readonly headers: IncomingHttpHeaders },
  port: number,
  token: string,
): Refusal | undefined {
  if (req.url !== socketPath) return 'path';
  if (req.headers.host !== `127.0.0.1:${port}`) return 'host';
  if (req.headers.origin !== undefined) return 'origin';
  const given = Buffer.from(/^Bearer ([0-9a-f]+)$/.exec(req.headers.authorization ?? '')?.[1] ?? ''),
    want = Buffer.from(token);
  return given.length === want.length && timingSafeEqual(given, want) ? undefined : 'token';
}
