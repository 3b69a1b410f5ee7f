import { lookup as resolve, type LookupAddress } from 'node:dns';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** An answer that another try does not change. */
export class Refused extends Error {}

const REDIRECTS = 5;
/** A server that says nothing for so long is given up, ms. */
const SILENT_MS = 60_000;

/** IPv4 networks that are not reached from the internet (IANA, special-purpose address registry). */
const PRIVATE = new BlockList();
for (const network of `
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`
  .trim()
  .split(/\s+/)) {
  const [net, prefix] = network.split('/');
  PRIVATE.addSubnet(net!, Number(prefix), 'ipv4');
}
/** Of IPv6 one eighth is given out at all; of that, these carry IPv4 addresses or are for examples. */
const GIVEN_OUT = new BlockList(),
  NOT_PUBLIC = new BlockList();
GIVEN_OUT.addSubnet('2000::', 3, 'ipv6');
/** IPv4 addresses as networks that have IPv6 alone see them (NAT64, RFC 6052): the last four bytes are the address. */
const TRANSLATED = new BlockList();
TRANSLATED.addSubnet('64:ff9b::', 96, 'ipv6');
NOT_PUBLIC.addSubnet('2001::', 32, 'ipv6');
NOT_PUBLIC.addSubnet('2002::', 16, 'ipv6');
NOT_PUBLIC.addSubnet('2001:db8::', 32, 'ipv6');

/** Whether an IP address is one of the internet, not of this machine, its network or a cloud's metadata service. */
export function isPublicAddress(ip: string): boolean {
  if (isIP(ip) === 4) return !PRIVATE.check(ip, 'ipv4');
  if (TRANSLATED.check(ip, 'ipv6')) return isPublicAddress(lastFour(ip));
  return GIVEN_OUT.check(ip, 'ipv6') && !NOT_PUBLIC.check(ip, 'ipv6');
}

/** `64:ff9b::808:808` and `64:ff9b::8.8.8.8` as `8.8.8.8`; the URL parser writes both alike. */
function lastFour(ip: string): string {
  const [high = '', low = ''] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split(':').slice(-2),
    n = [high, low].map((part) => Number.parseInt(part || '0', 16));
  return n.flatMap((part) => [part >> 8, part & 255]).join('.');
}

const refusal = (host: string): Refused =>
  new Refused(
    `${host} is an address of this machine or its network, which a task file may not have asked; allow it with --allow-private`,
  );

/** Resolves a name as always, and fails where any answer must not be asked: a name can be made to lead anywhere. */
const lookupOf =
  (mayAsk: DownloadOptions['mayAsk']): LookupFunction =>
  (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const [first] = found ?? [];
      if (error) done(error, []);
      else if (!first || found.some((a) => !mayAsk(a.address))) done(refusal(host), []);
      else if (options.all) done(null, found);
      else done(null, first.address, first.family);
    });
  };

/** The http or https address that a text is, or undefined. */
export function httpAddress(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && ['http:', 'https:'].includes(url.protocol) ? url : undefined;
}

export interface Download {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** To be read or destroyed. */
  readonly body: IncomingMessage;
}
export interface DownloadOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Whether an IP address may be connected to. */
  readonly mayAsk: (ip: string) => boolean;
  readonly signal: AbortSignal;
}

/**
 * Asks for an address and goes where the server sends it. `mayAsk` is asked of every number that is connected to, so
 * neither a redirect nor a name that changes its mind leads to another. Rejects
 * with `Refused` for what is not allowed, with the network's error else.
 */
export async function openDownload(address: string, o: DownloadOptions): Promise<Download> {
  let url = httpAddress(address);
  for (let hops = 0; ; hops++) {
    if (!url) throw new Refused('it is no http or https address');
    if (hops > REDIRECTS) throw new Refused(`the server sends one on more than ${REDIRECTS} times`);
    const body = await answerOf(url, o),
      status = body.statusCode ?? 0,
      next = status >= 300 && status < 400 ? body.headers.location : undefined;
    if (next === undefined) return { status, headers: body.headers, body };
    body.destroy();
    url = URL.canParse(next, url.href) ? httpAddress(new URL(next, url).href) : undefined;
  }
}

function answerOf(url: URL, o: DownloadOptions): Promise<IncomingMessage> {
  // Without its brackets: an IPv6 address. A number is connected to without being looked up.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !o.mayAsk(host)) throw refusal(host);
  return new Promise((answered, failed) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      headers: { 'User-Agent': 'dart-studio', ...o.headers },
      signal: o.signal,
      timeout: SILENT_MS,
      lookup: lookupOf(o.mayAsk),
    });
    request.on('timeout', () => request.destroy(new Error('the server says nothing')));
    request.on('error', failed);
    request.on('response', answered);
    request.end();
  });
}
