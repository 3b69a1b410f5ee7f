import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What happens to one request: a server of OSWorld under load does all of it. */
export type Fault = 'error500' | 'hang' | 'half' | 'cut' | 'busy';

export interface FaultyProxy {
  readonly url: string;
  /** Asked for each request; undefined lets it through. */
  fault: (method: string, path: string) => Fault | undefined;
  /** Requests that came, as `METHOD /path`. */
  readonly seen: string[];
  /** Ends it: nothing listens any more, as while a server restarts. */
  close(): Promise<void>;
}

/** A proxy before a server, which loses, delays and cuts what the test says. */
export async function faultyProxy(target: string): Promise<FaultyProxy> {
  const seen: string[] = [],
    proxy = { fault: (() => undefined) as FaultyProxy['fault'] };
  const server = createServer((req, res) => {
    const path = req.url ?? '/';
    seen.push(`${req.method} ${path}`);
    const fault = proxy.fault(req.method ?? 'GET', path);
    if (fault === 'hang') {
      req.resume();
      return;
    }
    if (fault === 'error500' || fault === 'busy') {
      req.resume();
      res.writeHead(fault === 'busy' ? 503 : 500, { 'content-type': 'application/json' });
      res.end('{"status":"error","message":"put in by the test"}');
      return;
    }
    forward(target, path, req, res, fault);
  });
  await new Promise<void>((r) => {
    server.listen(0, '127.0.0.1', r);
  });
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () =>
      new Promise<void>((r) => {
        server.closeAllConnections();
        server.close(() => r());
      }),
  });
}

function forward(
  target: string,
  path: string,
  req: IncomingMessage,
  res: ServerResponse,
  fault: 'half' | 'cut' | undefined,
): void {
  const out = request(target + path, { method: req.method, headers: { ...req.headers, host: new URL(target).host } });
  out.on('response', (answer) => {
    const parts: Buffer[] = [];
    answer.on('data', (d: Buffer) => parts.push(d));
    answer.on('end', () => {
      const body = Buffer.concat(parts);
      if (fault === 'cut') {
        res.writeHead(200, { 'content-length': body.length + 1 });
        res.write(body.subarray(0, body.length >> 1));
        res.destroy();
        return;
      }
      res.writeHead(answer.statusCode ?? 500, { 'content-type': answer.headers['content-type'] ?? 'text/plain' });
      res.end(fault === 'half' ? body.subarray(0, body.length >> 1) : body);
    });
  });
  out.on('error', () => res.destroy());
  req.pipe(out);
}
